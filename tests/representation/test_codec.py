"""Composite rows: there and back with either arc scalar, and an account of everything that is not right."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from support.corpora import open_sketches
from support.strategies import numbers, sketches

from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Sketch, normalize
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, Decoded, SketchBatch, decode, encode, encode_table, expand, relevant
from sketchdnn.representation import decoding as why
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.layout import MAX_PRIMITIVES, PARAMS_OF_KIND, ArcScalar

# A radius says little about an arc that is nearly a semicircle: its square root of single precision is lost.
TOLERANCE: dict[ArcScalar, float] = {"signed_radius": 2e-3, "sweep": 1e-4}


def composite(rows: Compact, arc_scalar: ArcScalar = "signed_radius", **options: str) -> SketchBatch:
    tensors = map(torch.from_numpy, (rows.kind, rows.construction, rows.params))
    return expand(*tensors, arc_scalar=arc_scalar, **options)


def assert_round_trip(drawings: list[Sketch], arc_scalar: ArcScalar) -> float:
    """What is drawn agrees: the ends and middles of arcs, not their distant centers. The share that fits rows."""
    placed = [normalize(sketch)[0] for sketch in drawings]
    rows = encode_table(sketches_to_table(placed))
    fine = ~collapsed(rows)
    decoded = decode(composite(rows[fine], arc_scalar), arc_scalar)
    for original, back in zip((s for s, ok in zip(placed, fine, strict=True) if ok), decoded, strict=True):
        assert not back.rejects
        for p, q in zip(original, back.sketch, strict=True):
            assert (p.kind, p.construction) == (q.kind, q.construction)
            first = 3 if p.kind == Kind.ARC else 0
            apart = np.subtract(numbers(p)[first:], numbers(q)[first:])
            assert np.linalg.norm(apart) < TOLERANCE[arc_scalar], f"{p} became {q}"
    return float(fine.mean())


@pytest.mark.parametrize("arc_scalar", TOLERANCE)
@given(sketch=sketches(max_size=MAX_PRIMITIVES))
def test_round_trip(arc_scalar: ArcScalar, sketch: Sketch) -> None:
    assert_round_trip([sketch], arc_scalar)


@pytest.mark.parametrize("arc_scalar", TOLERANCE)
def test_round_trip_of_real_sketches(arc_scalar: ArcScalar, real_data: Path) -> None:
    fitting = [sketch for sketch in open_sketches(real_data, 3000) if len(sketch) <= MAX_PRIMITIVES]
    assert assert_round_trip(fitting, arc_scalar) > 0.99


def test_clean_rows_are_one_hot_with_bounded_arc_scalars() -> None:
    arcs = [Arc((0, 0), 1, 0, sweep) for sweep in (1e-3, math.pi / 2, math.pi, 2 * math.pi - 1e-3)]
    bends = composite(encode([Sketch(tuple(arcs))]), "sweep").of_kind(Kind.ARC)[0, :4, -1]
    assert (bends.abs() < 1).all()
    assert bends[1:3].tolist() == pytest.approx([-0.5, 0], abs=1e-6)
    rows = encode([Sketch((Line((0, 1), (2, 3), True), Circle((4, 5), 6), Arc((0, 0), 1, 0, 1), Point((7, 8))))])
    batch = composite(rows)
    assert torch.equal(batch.kind.argmax(-1), torch.from_numpy(rows.kind).long())
    assert torch.equal(batch.kind.sum(-1), torch.ones(1, MAX_PRIMITIVES))
    assert batch.construction[0, :2].tolist() == [[0, 1], [1, 0]]
    own = relevant(torch.from_numpy(rows.kind))
    assert not batch.params[~own].any()
    assert batch.params[0, 0, PARAMS_OF_KIND[Kind.LINE]].tolist() == [0, 1, 2, 3]
    rows = encode([Sketch((Point((0, 0)),))])
    assert composite(rows).construction[0, 1:].tolist() == [[1, 0]] * 15
    assert not composite(rows, none_construction="zero").construction[0, 1:].any()
    assert composite(rows, none_construction="zero").construction[0, 0].tolist() == [1, 0]


def broken(kind: Kind, values: list[float], arc_scalar: ArcScalar = "signed_radius") -> Decoded:
    """What becomes of one row of this kind with these numbers, beside a healthy circle."""
    rows = encode([Sketch((Circle((0, 0), 1), Circle((0, 0), 1)))])
    batch = composite(rows)
    batch.kind[0, 1] = torch.nn.functional.one_hot(torch.tensor(int(kind)), 5).float()
    batch.params[0, 1] = 0
    batch.params[0, 1, PARAMS_OF_KIND[kind]] = torch.tensor(values)
    return decode(batch, arc_scalar)[0]


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        (Kind.LINE, [0.1, 0.2, 0.1, 0.2], why.NO_LENGTH),
        (Kind.LINE, [0.1, math.nan, 0.1, 0.2], why.NOT_FINITE),
        (Kind.POINT, [math.inf, 0.0], why.NOT_FINITE),
        (Kind.CIRCLE, [0.0, 0.0, 0.0], why.NO_RADIUS),
        (Kind.CIRCLE, [0.0, 0.0, -0.3], why.NO_RADIUS),
        (Kind.ARC, [0.1, 0.1, 0.1, 0.1, 0.5], why.NO_CHORD),
        (Kind.ARC, [0.1, 0.1, 0.5, 0.1, math.nan], why.NOT_FINITE),
        (Kind.ARC, [0.1, 0.1, 0.5, 0.1, -math.inf], why.NOT_FINITE),
        (Kind.CIRCLE, [0.0, 0.0, 1e30], why.NOT_A_PRIMITIVE),
        *((Kind.ARC, [0.0, 0.0, 1.0, 0.0, bend], why.SWEEP_OUT_OF_RANGE) for bend in (-1.0, -1.5, 1.0, 1.2)),
    ],
)
def test_rows_that_make_no_sense_are_rejected_with_the_reason(kind: Kind, values: list[float], reason: str) -> None:
    decoded = broken(kind, values, "sweep" if reason == why.SWEEP_OUT_OF_RANGE else "signed_radius")
    assert [(issue.row, issue.reason) for issue in decoded.rejects] == [(1, reason)]
    assert not decoded.repairs
    assert decoded.sketch.primitives == (Circle((0, 0), 1),)


def test_short_radii_are_repaired_but_not_rounded_semicircles_nan_or_unknown_scalars() -> None:
    for bend in (0.0, 0.3, -0.3, 0.4999):
        decoded = broken(Kind.ARC, [0.0, 0.0, 1.0, 0.0, bend])
        assert [(issue.row, issue.reason) for issue in decoded.repairs] == [(1, why.SHORT_RADIUS)]
        arc = decoded.sketch.primitives[1]
        assert (arc.radius, arc.sweep) == pytest.approx((0.5, math.pi))
    turns = np.linspace(0, 6, 200)
    for start in range(0, 200, 10):
        arcs = Sketch(tuple(Arc((0.1, 0.2), 0.37, a, math.pi) for a in turns[start : start + 10]))
        decoded = decode(composite(encode([arcs])))[0]
        assert ((decoded.repairs, decoded.rejects), len(decoded.sketch)) == (((), ()), 10)
    batch = composite(encode([Sketch((Circle((0, 0), 1), Line((0, 0), (1, 1))))]))
    batch.kind[0, 1, 2] = math.nan
    batch.construction[0, 5, 0] = math.nan
    decoded = decode(batch)[0]
    assert [(issue.row, issue.reason) for issue in decoded.rejects] == [(1, why.NOT_FINITE), (5, why.NOT_FINITE)]
    assert len(decoded.sketch) == 1
    rows = encode([Sketch((Point((0, 0)),))])
    with pytest.raises(ValueError, match="'bulge' is not one of signed_radius, sweep"):
        composite(rows, "bulge")  # type: ignore[arg-type]


def test_expand_compiles_to_one_graph() -> None:
    rows = encode([Sketch((Arc((0, 0), 1, 0, 1), Line((0, 0), (1, 1))))])
    tensors = [torch.from_numpy(a) for a in (rows.kind, rows.construction, rows.params)]
    explained = torch._dynamo.explain(expand)(*tensors, arc_scalar="sweep")
    assert explained.graph_break_count == 0
