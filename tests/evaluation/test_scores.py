"""Corrupted sketches are valid and damaged by the given amount, and every score gets worse with the damage."""

import math
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.evaluation_data import FakeExtractor
from support.sketch_sets import parts, rows, sets, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.curves import end_gaps
from sketchdnn.evaluation.features import Extractor, load_inception
from sketchdnn.evaluation.protocol import Sizes
from sketchdnn.evaluation.scores import CORRUPTIONS, Scorer, StageTimer, drop_primitives, jitter_ends
from sketchdnn.geometry import Circle, Kind, Point, bounds
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.representation.compact import collapsed


def assert_worse_with_damage(extractor: Extractor, count: int, cache: Path | None, *, slightest: bool = True) -> None:
    """Without `slightest` the first step of each kind is ignored: few sketches cannot show it."""
    whole, sizes = parts(2 * count), Sizes(count, 0)
    test, train = whole[:count], whole[count:]
    scorer = Scorer(extractor, cache, StageTimer(), seed=0)
    features = scorer.extract(test, test, train, sizes)
    steps = scorer.score_corruptions(test, features, scorer.score(features, sizes)["test"]["floor"])
    assert [(step["kind"], step["amount"]) for step in steps] == [("none", 0.0), *CORRUPTIONS]
    for kind in ("jitter", "drop"):
        undamaged, least, *more = (step for step in steps if step["kind"] in ("none", kind))
        for before, after in pairwise([undamaged, least, *more] if slightest else [undamaged, *more]):
            assert after["fid"]["value"] > before["fid"]["value"]
            assert after["kid"]["value"] > before["kid"]["value"]
            assert after["median_gap"]["value"] >= before["median_gap"]["value"]
            assert after["within_loose"]["value"] < before["within_loose"]["value"]


def test_scores_get_worse_with_damage() -> None:
    assert_worse_with_damage(FakeExtractor(), 300, None)


def test_only_the_repaired_samples_that_are_compared_are_looked_at() -> None:
    whole, sizes, look = parts(60), Sizes(20, 0), FakeExtractor.features
    scorer = Scorer(FakeExtractor(), None, StageTimer(), seed=0)
    features = scorer.extract(whole[:30], whole[20:40], whole[40:], sizes)
    with patch.object(FakeExtractor, "features", autospec=True, side_effect=look) as looked:
        scores = scorer.score_repaired(whole[:30], features, sizes)
    assert sum(len(call.args[1]) for call in looked.call_args_list) == 20
    assert scores["test"]["system"] == scorer.score(features, sizes)["test"]["system"]


@pytest.mark.slow
def test_inception_scores_get_worse_with_damage(inception_file: Path, tmp_path: Path) -> None:
    assert_worse_with_damage(load_inception(inception_file), 50, tmp_path, slightest=False)


def assert_normalized(compact: Compact) -> None:
    """Rows that decode without repair, in a centered box of side 2; empty rows are zero and come last."""
    assert not collapsed(compact).any()
    empty = compact.kind == layout.NONE
    assert not any((compact.params[empty].any(), compact.construction[empty].any()))
    assert (np.diff(empty.astype(int), axis=1) >= 0).all()
    for decoded in decode_compact(compact):
        assert (decoded.repairs, decoded.rejects) == ((), ())
        assert len(decoded.sketch)
        box = bounds(decoded.sketch)
        assert (box.size, box.center) == (pytest.approx(2, abs=1e-4), pytest.approx((0, 0), abs=1e-4))


@given(sets, st.sampled_from([0.005, 0.05, 0.5]), st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 99))
def test_corrupted_sketches_are_normalized(compact: Compact, sigma: float, share: float, seed: int) -> None:
    jittered, dropped = jitter_ends(compact, sigma, seed), drop_primitives(compact, share, seed)
    assert_normalized(jittered)
    np.testing.assert_array_equal(jittered.kind, compact.kind)
    arcs = compact.kind == Kind.ARC
    np.testing.assert_array_equal(jittered.params[arcs, layout.BEND], compact.params[arcs, layout.BEND])
    assert_normalized(dropped)
    assert (dropped.counts <= compact.counts).all()


def test_corruption_has_its_amount() -> None:
    compact = rows(*[square()] * 300)
    jittered = jitter_ends(compact, 0.01, 7)
    # Two ends that met are as far apart as two draws; the whole is scaled a little to fit its box again.
    assert np.nanmedian(end_gaps(jittered)) == pytest.approx(0.01 * math.sqrt(2) * math.sqrt(2 * math.log(2)), rel=0.05)
    np.testing.assert_array_equal(jittered.params, jitter_ends(compact, 0.01, 7).params)
    assert not np.array_equal(jittered.params, jitter_ends(compact, 0.01, 8).params)
    compact = parts(300)
    few, many = (drop_primitives(compact, share, 3).counts for share in (0.1, 0.4))
    assert few.sum() / compact.counts.sum() == pytest.approx(0.9, abs=0.02)
    assert many.sum() / compact.counts.sum() == pytest.approx(0.6, abs=0.02)
    assert (many <= few).all()
    compact = rows([Circle((0, 0), 1), *[Point((0, y / 10)) for y in range(9)]], [Point((-1, 0)), Point((1, 0))])
    remaining = drop_primitives(compact, 1.0, 0)
    assert (remaining.kind[0, 0], remaining.counts.tolist()) == (Kind.CIRCLE, [1, 2])
    for same in (jitter_ends(parts(20), 0.0, 1), drop_primitives(parts(20), 0.0, 1)):
        np.testing.assert_array_equal(same.kind, parts(20).kind)
        np.testing.assert_allclose(same.params, parts(20).params, atol=1e-6)
    with pytest.raises(GeometryError, match="standard deviation"):
        jitter_ends(parts(20), -1, 0)
    with pytest.raises(GeometryError, match="between 0 and 1"):
        drop_primitives(parts(20), 1.5, 0)
