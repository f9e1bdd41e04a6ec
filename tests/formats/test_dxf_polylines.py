"""A DXF of polylines holds the same curves as one of entities, a closed polyline for each loop of the profile."""

from __future__ import annotations

import math
from pathlib import Path

import ezdxf
import ezdxf.path
import pytest
from ezdxf.entities import LWPolyline
from hypothesis import given, settings
from support.freecad_judge import ask_freecad
from support.outlines import backwards, nested_plate, placements, rectangle
from support.strategies import numbers, sketches

from sketchdnn.formats import read, write
from sketchdnn.geometry import TAU, Arc, Circle, Kind, Line, Point, Primitive, Sketch, bounds, profile

# A nested plate with a hole, an axis and a mark.
PLATE = Sketch(
    (
        *nested_plate(), Circle((-35.0, 25.0), 2.0), Line((-60.0, 0.0), (60.0, 0.0), construction=True),
        Point((0.0, 20.0)),
    ),
    units="mm",
)  # fmt: skip


def drawn(sketch: Sketch, path: Path) -> ezdxf.document.Drawing:
    write(sketch, path, polylines=True)
    document = ezdxf.readfile(path)
    found = document.audit()
    assert not found.errors
    assert not found.fixes
    return document


def polylines(document: ezdxf.document.Drawing) -> list[LWPolyline]:
    return [entity for entity in document.modelspace() if isinstance(entity, LWPolyline)]


def signed_area(polyline: LWPolyline, scale: float = 1.0) -> float:
    """By ezdxf's own idea of what a bulge is."""
    places = [(v.x, v.y) for v in ezdxf.path.make_path(polyline).flattening(1e-2 * scale)]
    return sum(x * v - u * y for (x, y), (u, v) in zip(places, places[1:] + places[:1], strict=True)) / 2


def assert_same_curves(a: Sketch, b: Sketch, tolerance: float = 1e-6) -> None:
    """The same primitives in any order, lines drawn from either end."""
    left = list(b)
    allowed = tolerance * bounds(a).size
    for p in a:
        alike = [q for q in left if q.kind is p.kind and q.construction is p.construction]
        assert alike, f"{p} is missing"
        off, nearest = min(((_apart(p, q), q) for q in alike), key=lambda pair: pair[0])
        assert off <= allowed, f"{p} became {nearest}: {off}"
        left.remove(nearest)
    assert not left


def _apart(p: Primitive, q: Primitive) -> float:
    return min(max(abs(x - y) for x, y in zip(numbers(p), numbers(way), strict=True)) for way in (q, backwards(q)))


def test_each_loop_becomes_closed_polyline(tmp_path: Path) -> None:
    document = drawn(PLATE, tmp_path / "plate.dxf")
    loops = [loop for loop in profile(PLATE).loops if len(loop.edges) > 1]
    found = polylines(document)
    assert all(polyline.closed for polyline in found)
    assert [signed_area(polyline) for polyline in found] == pytest.approx([loop.area for loop in loops], rel=3e-3)
    assert sorted(loop.area > 0 for loop in loops) == [False, True, True]  # outline, slot, island
    rest = [(e.dxftype(), e.dxf.layer) for e in document.modelspace() if not isinstance(e, LWPolyline)]
    assert rest == [("CIRCLE", "0"), ("LINE", "construction"), ("POINT", "0")]
    assert_same_curves(PLATE, read(tmp_path / "plate.dxf").sketches[0])


@given(items=placements(PLATE.primitives, [1e-3, 1.0, 1e4]))
@settings(max_examples=20)
def test_invariance_to_order_and_transform(tmp_path_factory: pytest.TempPathFactory, items: list[Primitive]) -> None:
    scale = bounds(items).size / bounds(PLATE).size
    path = tmp_path_factory.mktemp("dxf") / "plate.dxf"
    found = polylines(drawn(Sketch(tuple(items)), path))
    assert len(found) == 3
    assert sum(signed_area(polyline, scale) for polyline in found) == pytest.approx(
        sum(loop.area for loop in profile(items).loops if len(loop.edges) > 1), rel=3e-3
    )
    assert_same_curves(Sketch(tuple(items)), read(path).sketches[0])


@given(sketch=sketches(units="mm"))
@settings(max_examples=25)
def test_any_sketch_is_read_back(tmp_path_factory: pytest.TempPathFactory, sketch: Sketch) -> None:
    path = tmp_path_factory.mktemp("dxf") / "any.dxf"
    write(sketch, path, polylines=True)
    reading = read(path)
    assert not reading.skipped
    assert_same_curves(sketch, reading.sketches[0], 3e-4)  # ends that profiles take as one become one


def test_chains_are_open_and_shared_curves_stay(tmp_path: Path) -> None:
    hook = Sketch(
        (Line((0.0, 0.0), (10.0, 0.0)), Arc((10.0, 5.0), 5.0, -math.pi / 2, math.pi), Line((50.0, 0.0), (60.0, 9.0)))
    )
    document = drawn(hook, tmp_path / "hook.dxf")
    assert [e.dxftype() for e in document.modelspace()] == ["LWPOLYLINE", "LINE"]
    assert not polylines(document)[0].closed
    assert_same_curves(hook, read(tmp_path / "hook.dxf").sketches[0])
    rooms = Sketch((*rectangle(0, 0, 10, 5), Line((5.0, 0.0), (5.0, 5.0))))
    halves = [Line((0.0, 0.0), (5.0, 0.0)), Line((5.0, 0.0), (10.0, 0.0))]
    halves += [Line((10.0, 5.0), (5.0, 5.0)), Line((5.0, 5.0), (0.0, 5.0))]
    split = Sketch((*halves, *rooms.primitives[1::2], rooms.primitives[4]))
    assert len(profile(split).loops) == 2
    document = drawn(split, tmp_path / "rooms.dxf")
    assert not polylines(document)
    assert len(read(tmp_path / "rooms.dxf").sketches[0]) == len(split)
    arc = Arc((0.0, 0.0), 10.0, 0.0, TAU - 2e-6)
    almost = Sketch((arc, Line(arc.end, (20.0, 0.0)), Line((20.0, 0.0), arc.start)))
    document = drawn(almost, tmp_path / "almost.dxf")
    assert "ARC" in [e.dxftype() for e in document.modelspace()] or not polylines(document)
    assert_same_curves(almost, read(tmp_path / "almost.dxf").sketches[0], 3e-4)


def test_freecad_imports_them(freecadcmd: str, tmp_path: Path) -> None:
    drawn(PLATE, tmp_path / "plate.dxf")
    found = ask_freecad(freecadcmd, tmp_path, [], [tmp_path / "plate.dxf"], solve=False)["drawings"]
    edges = found[str(tmp_path / "plate.dxf")]["edges"]
    curves = [p for p in PLATE if p.kind is not Kind.POINT]
    assert len(edges) == len(curves)
    assert sorted(edge[1] for edge in edges) == pytest.approx(sorted(p.length for p in curves))
