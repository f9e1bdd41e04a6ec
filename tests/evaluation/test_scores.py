"""Scores notice damage: the more of it, the worse, in every measure that the report plots."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from support.drawn_sets import parts
from support.judging import StandIn

from sketchdnn.evaluation.features import Extractor, load_inception
from sketchdnn.evaluation.protocol import Sizes
from sketchdnn.evaluation.scores import CORRUPTIONS, Scorer, StageTimer


def assert_worse_with_damage(extractor: Extractor, count: int, cache: Path | None, *, slightest: bool = True) -> None:
    """Without `slightest` the least damage of each sort is left out: few sketches cannot show it."""
    whole, sizes = parts(2 * count), Sizes(count, 0)
    test, train = whole[:count], whole[count:]
    judge = Scorer(extractor, cache, StageTimer(), seed=0)
    seen = judge.look(test, test, train, sizes)
    found = judge.corruption(test, seen, judge.scores(seen, sizes)["test"]["floor"])
    assert [(step["kind"], step["amount"]) for step in found] == [("none", 0.0), *CORRUPTIONS]
    for kind in ("jitter", "drop"):
        undamaged, least, *more = (step for step in found if step["kind"] in ("none", kind))
        steps = [undamaged, least, *more] if slightest else [undamaged, *more]
        for before, after in pairwise(steps):
            assert after["fid"]["value"] > before["fid"]["value"]
            assert after["kid"]["value"] > before["kid"]["value"]
            assert after["median_gap"]["value"] >= before["median_gap"]["value"]
            assert after["within_loose"]["value"] < before["within_loose"]["value"]


def test_every_score_gets_worse_with_every_step_of_damage() -> None:
    assert_worse_with_damage(StandIn(), 300, None)


@pytest.mark.slow
def test_so_it_does_with_the_inception(inception_file: Path, tmp_path: Path) -> None:
    assert_worse_with_damage(load_inception(inception_file), 50, tmp_path, slightest=False)
