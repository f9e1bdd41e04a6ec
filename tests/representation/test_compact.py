"""Compact rows: what is stored, in any order, from any table."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Sketch, normalize
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, encode, encode_table
from sketchdnn.representation.layout import MAX_PRIMITIVES, NONE


def test_stored_rows_keep_their_order_and_one_zero() -> None:
    sketch = Sketch((Line((0, 1), (2, 3), True), Circle((4, 5), 6), Arc((0, 0), 1, 0, 1.5), Point((7, 8), True)))
    rows = encode([sketch])
    assert rows.kind[0].tolist() == [0, 1, 2, 3] + [NONE] * 12
    assert rows.construction[0].tolist() == [True, False, False, True] + [False] * 12
    assert (rows.params[0, 0].tolist(), rows.params[0, 1].tolist()) == ([0, 1, 2, 3, 0], [4, 5, 6, 0, 0])
    assert rows.params[0, 2] == pytest.approx([1, 0, np.cos(1.5), np.sin(1.5), 1.5])
    assert rows.params[0, 3].tolist() == [7, 8, 0, 0, 0]
    assert not rows.params[0, 4:].any()
    assert rows.counts.tolist() == [4]
    for x in (1e-12, 0.0, -1e-12):
        rows = encode([Sketch((Line((x, 0.5), (0, -0.5)),))], canonical_lines=True)
        assert rows.params[0, 0, 1] == -0.5
    assert not np.signbit(encode([Sketch((Line((-0.0, -1e-60), (1, -0.0)),))]).params).any()
    sketch = Sketch((Line((0, 0), (1, 1), True), Circle((0, 0), 1)))
    rows = encode([sketch])
    order = np.arange(MAX_PRIMITIVES)[None, ::-1]
    turned = rows.permuted(order)
    assert (turned.kind[0, -1], turned.params[0, -2].tolist()) == (Kind.LINE, [0, 0, 1, 0, 0])
    assert turned.construction[0, -1]


@given(st.lists(sketches(max_size=MAX_PRIMITIVES), min_size=1, max_size=5), st.booleans())
def test_a_table_encodes_like_its_sketches_one_by_one(many: list[Sketch], canonical: bool) -> None:
    placed = [normalize(sketch)[0] for sketch in many]
    together = encode_table(sketches_to_table(placed), canonical_lines=canonical)
    for index, sketch in enumerate(placed):
        alone = encode_table(sketches_to_table([sketch]), canonical_lines=canonical)
        for name in ("kind", "construction", "params"):
            assert np.array_equal(getattr(together, name)[index], getattr(alone, name)[0])


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=4, max_size=4))
def test_a_canonical_line_forgets_its_direction(numbers: list[float]) -> None:
    a, b = (numbers[0], numbers[1]), (numbers[2], numbers[3])
    if a == b:
        return
    there, back = (encode([Sketch((line,))], canonical_lines=True).params for line in (Line(a, b), Line(b, a)))
    assert np.array_equal(there, back)
    assert tuple(there[0, 0, :2]) == tuple(np.float32(min(a, b)))


def test_what_does_not_fit_rows_is_refused() -> None:
    crowd = Sketch(tuple(Point((i, 0)) for i in range(17)))
    with pytest.raises(GeometryError, match="17 primitives does not fit in 16 rows"):
        encode([crowd])
    assert encode([crowd], max_primitives=24).kind.shape == (1, 24)
    with pytest.raises(GeometryError, match="normalize first"):  # lost in rounding
        encode([Sketch((Line((1e6, 0), (1e6 + 1e-3, 0)),))])
    rows = encode([Sketch((Point((0, 0)),))])
    with pytest.raises(ValueError, match="do not fit together"):
        Compact(rows.kind, rows.construction, rows.params[:, :8])


def test_workers_need_no_torch() -> None:
    code = "import sys, sketchdnn.representation.hashing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
