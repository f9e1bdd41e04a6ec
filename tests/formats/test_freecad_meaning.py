"""What FreeCAD writes, in our words."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from support.freecad_document import constrain, document, geometry, line, read
from support.strategies import numbers

from sketchdnn.formats.freecad import FORMAT
from sketchdnn.geometry import EXTERNAL, Arc, Constraint, ConstraintType, Part, Ref

T = ConstraintType


def test_construction_in_old_files_and_new(tmp_path: Path) -> None:
    point = '<GeomPoint X="1" Y="2" Z="0"/>'
    shapes = [
        line(0, 0, 1, 0, flags="10"),
        line(0, 0, 1, 0, flags="01"),
        line(0, 0, 1, 0, flags=None, construction=True),
        line(0, 0, 1, 0, flags=None, construction=False),
        line(0, 0, 1, 0).replace('internalGeometryType="0"', 'internalGeometryType="2"'),
        geometry("Point", point, flags="0"),
        geometry("Point", point, construction=False),  # never part of a profile before there were flags
    ]
    (sketch,) = read(document(tmp_path / "a.FCStd", "".join(shapes)))
    assert [p.construction for p in sketch] == [True, False, True, False, True, False, True]
    assert sketch.extra["name"] == "Plate & co"
    assert sketch.units == "mm"


@pytest.mark.parametrize("turn", [0.0, 0.4, -3.0])
@pytest.mark.parametrize(("start", "end"), [(0.5, 2.0), (5.0, 7.5), (2.0, 1.0), (-1.0, 1.0)])
def test_an_arc_in_a_plane_that_faces_down(tmp_path: Path, turn: float, start: float, end: float) -> None:
    """Both arcs are the same set of places: a plane facing down is turned over about the y axis."""

    def arc(normal: int) -> str:
        plane = f'CenterX="1" CenterY="2" NormalX="0" NormalY="0" NormalZ="{normal}" AngleXU="{turn}"'
        return geometry("ArcOfCircle", f'<ArcOfCircle {plane} Radius="3" StartAngle="{start}" EndAngle="{end}"/>')

    (sketch,) = read(document(tmp_path / "a.FCStd", arc(1) + arc(-1)))
    up, down = sketch
    assert isinstance(up, Arc)
    assert isinstance(down, Arc)
    for fraction in (0, 0.3, 1):
        angle = turn + start + fraction * ((end - start) % math.tau)
        assert up.at(fraction) == pytest.approx((1 + 3 * math.cos(angle), 2 + 3 * math.sin(angle)))
        assert down.at(1 - fraction) == pytest.approx((1 - 3 * math.cos(angle), 2 + 3 * math.sin(angle)))


def test_what_cannot_be_read_is_counted_and_so_are_constraints_on_it(tmp_path: Path) -> None:
    shapes = [
        geometry("Ellipse", '<Ellipse CenterX="0"/>'),
        line(0, 0, 5, 0),
        line("nan", 0, 5, 0),  # type: ignore[arg-type]
        line(1, 1, 1, 1),
        geometry("Circle", '<Circle CenterX="0" CenterY="0" NormalX="1" NormalY="0" NormalZ="0" Radius="1"/>'),
        geometry("Circle", "<Square/>"),
        line(0, 0, 0, 5),
    ]
    rules = [
        constrain(12, (0, 0), (1, 0)),
        constrain(1, (1, 1), (6, 1)),
        constrain(1, (1, 3), (6, 1)),
        constrain(1, (1, 1), (99, 1)),
        constrain(99, (1, 0)),
        constrain(6, (1, 0), value="inf"),  # type: ignore[arg-type]
        constrain(2),
        constrain(20, (1, 0), (6, 0), ElementIds="1 6 1 6", ElementPositions="0 0 1 1"),
    ]
    reading = read(document(tmp_path / "a.FCStd", "".join(shapes), "".join(rules)))
    (sketch,) = reading
    assert [numbers(p) for p in sketch] == [[0, 0, 5, 0], [0, 0, 0, 5]]
    assert sketch.constraints == (Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(1, Part.START))),)
    assert reading.skipped == Counter(
        {
            "GeomEllipse cannot be a primitive": 1,
            "GeomLineSegment with impossible numbers": 2,
            "GeomCircle with impossible numbers": 2,
            "a constraint on geometry that was left out": 2,
            "a constraint on a part that its geometry does not have": 1,
            "a constraint of a kind or with numbers that we do not know": 4,
        }
    )


X, O = Ref(None, Part.X_AXIS), Ref(None, Part.ORIGIN)  # noqa: E741
L0, L1, C2, A3, P4 = (Ref(i) for i in range(5))
START, END, CENTER = Part.START, Part.END, Part.CENTER


@pytest.mark.parametrize(
    ("xml", "meaning"),
    [
        (constrain(1, (0, 2), (1, 1)), Constraint(T.COINCIDENT, (Ref(0, END), Ref(1, START)))),
        (constrain(1, (4, 1), (-1, 1)), Constraint(T.COINCIDENT, (Ref(4, Part.POINT), O))),
        (constrain(1, (4, 1), (-3, 2)), Constraint(T.COINCIDENT, (Ref(4, Part.POINT), EXTERNAL))),
        (constrain(2, (0, 0)), Constraint(T.HORIZONTAL, (L0,))),
        (constrain(3, (0, 1), (2, 3)), Constraint(T.VERTICAL, (Ref(0, START), Ref(2, CENTER)))),
        (constrain(4, (0, 0), (-1, 0)), Constraint(T.PARALLEL, (L0, X))),
        (constrain(5, (0, 0), (2, 0)), Constraint(T.TANGENT, (L0, C2))),
        (constrain(5, (0, 0), (1, 0)), Constraint(T.COLLINEAR, (L0, L1))),
        (
            constrain(5, (0, 2), (3, 1), value=1.5),
            Constraint(T.TANGENT, (Ref(0, END), Ref(3, START)), extra={"offset": 1.5}),
        ),
        (constrain(6, (0, 0), value=4), Constraint(T.LENGTH, (L0,), 4)),
        (constrain(6, (0, 1), (1, 0), value=4), Constraint(T.DISTANCE, (Ref(0, START), L1), 4)),
        (constrain(7, (0, 0), value=-4), Constraint(T.HORIZONTAL_DISTANCE, (Ref(0, START), Ref(0, END)), -4)),
        (constrain(8, (0, 2), value=4), Constraint(T.VERTICAL_DISTANCE, (O, Ref(0, END)), 4)),
        (constrain(9, (0, 0), value=1), Constraint(T.ANGLE, (L0,), 1)),
        (constrain(9, (-1, 1), (0, 2), value=1), Constraint(T.ANGLE, (X, Ref(0, END)), 1)),
        (constrain(10, (0, 0), (1, 0)), Constraint(T.PERPENDICULAR, (L0, L1))),
        (
            constrain(11, (3, 0), value=2, IsDriving="0").replace('Name=""', 'Name="size"'),
            Constraint(T.RADIUS, (A3,), 2, extra={"label": "size", "driving": False}),
        ),
        (constrain(12, (2, 0), (3, 0), IsActive="0"), Constraint(T.EQUAL, (C2, A3), extra={"active": False})),
        (constrain(13, (3, 2), (0, 0)), Constraint(T.POINT_ON_CURVE, (Ref(3, END), L0))),
        (
            constrain(14, (0, 1), (0, 2), (4, 1)),
            Constraint(T.SYMMETRIC, (Ref(0, START), Ref(0, END), Ref(4, Part.POINT))),
        ),
        (constrain(15, (4, 1), (2, 0)), Constraint(T.OTHER, (Ref(4, Part.POINT), C2), name="InternalAlignment")),
        (
            constrain(16, (0, 2), (1, 1), (2, 0), value=1.3),
            Constraint(T.OTHER, (Ref(0, END), Ref(1, START), C2), 1.3, name="SnellsLaw"),
        ),
        (constrain(17, (0, 0)), Constraint(T.FIX, (L0,))),
        (constrain(18, (2, 0), value=6), Constraint(T.DIAMETER, (C2,), 6)),
        (constrain(19, (2, 0), value=1), Constraint(T.OTHER, (C2,), 1, name="Weight")),
    ],
)
def test_what_freecad_means(tmp_path: Path, xml: str, meaning: Constraint) -> None:
    """Each of FreeCAD's constraints in our words; and what we then write is read as the same again."""
    plane = 'CenterX="1" CenterY="2" NormalX="0" NormalY="0" NormalZ="1"'
    shapes = [
        line(0, 0, 4, 1),
        line(4, 1, 5, 5),
        geometry("Circle", f'<Circle {plane} Radius="3"/>', flags="0"),
        geometry("ArcOfCircle", f'<ArcOfCircle {plane} Radius="2" StartAngle="0" EndAngle="1"/>', flags="0"),
        geometry("Point", '<GeomPoint X="1" Y="2" Z="0"/>', flags="0"),
    ]
    reading = read(document(tmp_path / "a.FCStd", "".join(shapes), xml))
    assert reading.sketches[0].constraints == (meaning,)
    FORMAT.write(reading, tmp_path / "b.FCStd")
    (back,) = read(tmp_path / "b.FCStd")
    assert back.constraints == (meaning,)
