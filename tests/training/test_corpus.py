"""The training set: symmetric copies, canonical lines, rare sketches more often, and the order of visits."""

import math

import pytest
import torch
from hypothesis import given
from support.outlines import turned
from support.strategies import assert_same, sketches

from sketchdnn.geometry import Arc, Circle, Kind, Line, Sketch, normalize
from sketchdnn.representation import Compact, decode_compact, encode, layout
from sketchdnn.systems import RowForm
from sketchdnn.training import corpus as training_corpus
from sketchdnn.training.config import RunError
from sketchdnn.training.corpus import NUM_SYMMETRIES, Corpus, DataOrder, oversample, to_device


@pytest.mark.parametrize("symmetry", range(NUM_SYMMETRIES))
@given(sketch=sketches(max_size=6))
def test_turning_rows_is_turning_the_sketch(symmetry: int, sketch: Sketch) -> None:
    sketch, _ = normalize(sketch)
    # Nearly closed arcs cannot be rebuilt from their rows in single precision.
    if any(isinstance(p, Arc) and not 0.1 < p.sweep < math.tau - 0.1 for p in sketch):
        return
    rows = encode([sketch])
    kind, params = torch.tensor(rows.kind), torch.tensor(rows.params)
    params = training_corpus.apply_symmetry(kind, params, torch.tensor([symmetry]))
    image = decode_compact(Compact(rows.kind, rows.construction, params.numpy()))[0].sketch
    expected = [turned(p, symmetry % 4 * math.pi / 2, mirrored=symmetry >= 4) for p in sketch]
    assert_same(Sketch(tuple(expected)), image, tolerance=2e-3)


def test_line_direction_carries_no_meaning_and_a_batch_is_what_was_stored() -> None:
    rows = encode([Sketch((Line((0, 0), (1, 0.5)),)), Sketch((Line((1, 0.5), (0, 0)),))])
    there, back = training_corpus.smaller_end_first(torch.tensor(rows.kind), torch.tensor(rows.params))
    assert torch.equal(there, back)
    # A batch is what was stored.
    corpus = to_device(encode([Sketch((Line((-1, 0), (1, 0), True), Circle((0, 0), 0.5)))]), "cpu")
    batch = corpus.batch(torch.tensor([0]), torch.tensor([0]), RowForm())
    assert batch.kind[0].argmax(dim=-1)[:3].tolist() == [0, 1, 4]
    assert batch.construction[0, :2].argmax(dim=-1).tolist() == [1, 0]


def corpus_of(special: list[bool]) -> Corpus:
    """Lines; a special sketch has a point or construction too."""
    kind = torch.full((len(special), 3), Kind.LINE.value, dtype=torch.uint8)
    construction = torch.zeros(len(special), 3, dtype=torch.bool)
    odd, mask = torch.arange(len(special)) % 2 == 1, torch.tensor(special)
    kind[mask & odd, 1] = Kind.POINT.value
    construction[mask & ~odd, 2] = True
    return Corpus(kind, construction, torch.zeros(len(special), 3, layout.MAX_KIND_PARAMS))


@pytest.mark.parametrize("rare", [1.0, 1.25, 2.0, 3.5])
def test_special_sketches_are_seen_that_much_more_often(rare: float) -> None:
    special = [number % 5 < 2 for number in range(200)]
    seen = torch.bincount(oversample(corpus_of(special), rare, 1.0, 0), minlength=200)
    mask = torch.tensor(special)
    assert (seen[~mask] == 1).all()
    assert int(seen[mask].sum()) == int(80 * rare)
    assert int(seen[mask].max() - seen[mask].min()) <= 1
    assert torch.equal(oversample(corpus_of([False] * 7), rare, 1.0, 0), torch.arange(7))


def test_large_sketches_are_seen_that_much_more_often() -> None:
    kind = torch.full((40, 5), Kind.LINE.value, dtype=torch.uint8)
    kind[::4, 3:] = layout.NONE
    corpus = Corpus(kind, torch.zeros(40, 5, dtype=torch.bool), torch.zeros(40, 5, layout.MAX_KIND_PARAMS))
    seen = torch.bincount(oversample(corpus, 1.0, 2.5, 4))
    assert (seen[::4] == 1).all()
    assert int(seen.sum()) == 10 + int(30 * 2.5)
    # The 15 that are large and rare share out their fraction alone.
    kind[:20, 0] = Kind.POINT.value
    seen = torch.bincount(oversample(corpus, 1.2, 1.25, 4))[:20]
    assert int(seen.sum()) == 5 * 1.2 + 15 * 1.5 // 1


def test_two_ranks_share_what_one_would_see() -> None:
    whole = DataOrder(10, 8, seed=3, device="cpu")
    halves = [DataOrder(10, 8, 3, "cpu", rank, 2) for rank in range(2)]
    for step in range(4):
        for name in ("indices", "numbers"):
            assert torch.equal(torch.cat([getattr(h, name)(step) for h in halves]), getattr(whole, name)(step))
    assert torch.equal(torch.cat([half.positions() for half in halves]), whole.positions())
    with pytest.raises(RunError, match="multiple of 3"):
        DataOrder(10, 8, 3, "cpu", 0, 3)
    for size, batch_size in ((0, 8), (10, 0)):
        with pytest.raises(RunError, match="cannot be drawn"):
            DataOrder(size, batch_size, 3, "cpu")
    # Every pass sees every sketch once.
    order = DataOrder(10, 4, seed=3, device="cpu")
    seen = torch.cat([order.indices(step) for step in range(5)])
    assert sorted(seen[:10].tolist()) == sorted(seen[10:].tolist()) == list(range(10))
    assert not torch.equal(seen[:10], seen[10:])
    assert torch.equal(DataOrder(10, 4, 3, "cpu").indices(4), order.indices(4))
    assert sorted(DataOrder(10, 10, 2**63 - 1, "cpu").indices(3).tolist()) == list(range(10))  # the largest seed
