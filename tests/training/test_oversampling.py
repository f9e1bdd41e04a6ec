"""Sketches with points or construction are seen as often as asked."""

from __future__ import annotations

import pytest
import torch

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.training.corpus import Corpus, oversample_rare


def corpus_of(special: list[bool]) -> Corpus:
    kind = torch.full((len(special), 3), Kind.LINE.value, dtype=torch.uint8)
    construction = torch.zeros(len(special), 3, dtype=torch.bool)
    for number, is_special in enumerate(special):
        if is_special and number % 2:
            kind[number, 1] = Kind.POINT.value
        elif is_special:
            construction[number, 2] = True
    return Corpus(kind, construction, torch.zeros(len(special), 3, layout.MAX_KIND_PARAMS))


@pytest.mark.parametrize("rare", [1.0, 1.25, 2.0, 3.5])
def test_special_sketches_are_seen_that_much_more_often(rare: float) -> None:
    special = [number % 5 < 2 for number in range(200)]
    seen = torch.bincount(oversample_rare(corpus_of(special), rare), minlength=200)
    mask = torch.tensor(special)
    assert (seen[~mask] == 1).all()
    assert int(seen[mask].sum()) == int(80 * rare)
    assert int(seen[mask].max() - seen[mask].min()) <= 1


def test_nothing_special_means_every_sketch_once() -> None:
    assert torch.equal(oversample_rare(corpus_of([False] * 7), 5.0), torch.arange(7))
