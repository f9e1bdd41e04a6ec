"""Named tensors: flat and back, and what is relevant to a row."""

from typing import get_args

import pytest
import torch
from support.corpora import parts
from support.random_batches import clean_batch

from sketchdnn.geometry import Kind, normalize
from sketchdnn.representation import SketchBatch, from_flat, layout, relevant
from sketchdnn.representation.layout import NONE, NUM_PARAMS, PARAM_NAMES, PARAMS_OF_KIND, ROW_WIDTH


def test_flat_rows_their_relevant_columns_and_their_likeliest_kinds() -> None:
    rows = torch.randn(3, 16, ROW_WIDTH)
    batch = from_flat(rows)
    assert isinstance(batch, SketchBatch)
    assert torch.equal(batch.flat(), rows)
    assert len(batch[1:]) == 2
    mask = relevant(torch.tensor([*Kind, NONE]))
    for kind in Kind:
        assert mask[kind].sum() == len(PARAM_NAMES[kind])
        assert mask[kind, PARAMS_OF_KIND[kind]].all()
    assert not mask[NONE].any()
    clean = clean_batch(4)
    unsure = SketchBatch(
        0.6 * clean.construction + 0.2, 0.5 * clean.kind + 0.1, clean.params + 0.3 * ~relevant(clean.kind.argmax(-1))
    )
    assert torch.equal(unsure.most_likely().flat(), clean.flat())
    assert torch.equal(clean.most_likely().flat(), clean.flat())


def test_the_row_of_the_paper_has_21_columns() -> None:
    assert (ROW_WIDTH, max(Kind) + 1) == (21, NONE)
    assert sorted(i for s in PARAMS_OF_KIND.values() for i in range(s.start, s.stop)) == list(range(NUM_PARAMS))


@pytest.mark.parametrize("arc_scalar", get_args(layout.ArcScalar))
def test_sketches_round_trip(arc_scalar: layout.ArcScalar) -> None:
    sketches = [normalize(sketch)[0] for sketch in parts(30) if len(sketch) <= layout.MAX_PRIMITIVES]
    batch = SketchBatch.from_sketches(sketches, arc_scalar=arc_scalar)
    assert len(batch) == len(sketches)
    decoded = batch.to_sketches(arc_scalar)
    assert [[p.kind for p in sketch] for sketch in decoded] == [[p.kind for p in sketch] for sketch in sketches]
    again = SketchBatch.from_sketches(decoded, arc_scalar=arc_scalar)
    assert torch.allclose(again.params, batch.params, rtol=1e-4, atol=1e-4)
