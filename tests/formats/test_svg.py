"""SVG: what we write reads back, at its real size, and drawings of others are read as far as they are primitives."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_refused, assert_same, numbers, sketches

from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions, ReadResult, read, write
from sketchdnn.formats.svg import to_svg
from sketchdnn.geometry import MM_PER_UNIT, TAU, Arc, Circle, Line, Point, Sketch, bounds

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'


def drawing(tmp_path: Path, body: str, root: str = "", options: ReadOptions = DEFAULT_READ_OPTIONS) -> ReadResult:
    path = tmp_path / "drawing.svg"
    path.write_text(f"<svg {NAMESPACE} {root}>{body}</svg>", encoding="utf-8")
    return read(path, options)


def one(tmp_path: Path, body: str, root: str = "") -> Sketch:
    reading = drawing(tmp_path, body, root)
    assert not reading.skipped
    (sketch,) = reading
    return sketch


@given(sketch=sketches(), units=st.sampled_from([None, *MM_PER_UNIT]))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, sketch: Sketch, units: str | None) -> None:
    path = tmp_path_factory.mktemp("svg") / "sketch.svg"
    sketch = Sketch(sketch.primitives, units=units)
    write(sketch, path)
    reading = read(path)
    assert not reading.skipped
    (again,) = reading
    assert_same(sketch, again)
    assert again.units == units


@pytest.mark.parametrize("sweep", [1e-6, 1e-3, math.pi, math.pi + 1e-9, TAU - 0.2, TAU - 0.05, TAU - 1e-6])
def test_arcs_of_every_length_read_back(tmp_path: Path, sweep: float) -> None:
    path = tmp_path / "arc.svg"
    sketch = Sketch((Arc((3.0, -7.0), 2.5, 1.1, sweep), Line((0.0, 0.0), (1.0, 0.0))))
    write(sketch, path)
    (again,) = read(path)
    assert_same(sketch, again)


def test_written_elements_points_and_real_size(tmp_path: Path) -> None:
    sketch = Sketch((Line((0, 0), (2, 1)), Circle((1, 1), 0.5, True), Arc((0, 0), 1, 0, 2), Point((0, 1))), units="in")
    svg = ET.fromstring(to_svg(sketch))
    (group,) = svg
    assert [(e.tag.rpartition("}")[2], e.get("class")) for e in group] == [
        ("line", "line"), ("circle", "circle construction"), ("path", "arc"), ("circle", "point"),
    ]  # fmt: skip
    assert [e.get("stroke-dasharray") is not None for e in group] == [False, True, False, False]
    x, y, width, height = map(float, svg.get("viewBox", "").split())
    assert float(svg.get("width", "").removesuffix("mm")) == pytest.approx(25.4 * width)
    assert float(svg.get("height", "").removesuffix("mm")) == pytest.approx(25.4 * height)
    # Everything lies inside the view, y turned down.
    box = bounds(sketch)
    assert x < box.low[0] < box.high[0] < x + width
    assert y < -box.high[1] < -box.low[1] < y + height
    assert group[0].get("y2") == "-1"
    (sketch,) = read_back(tmp_path, Sketch((Point((5.0, 5.0), construction=True),)))
    assert sketch.primitives == (Point((5.0, 5.0), construction=True),)
    assert read_back(tmp_path, Sketch(())).skipped == {"a drawing without any line, circle, arc or point": 1}


def read_back(tmp_path: Path, sketch: Sketch) -> ReadResult:
    write(sketch, tmp_path / "it.svg")
    return read(tmp_path / "it.svg")


@pytest.mark.parametrize(
    ("large", "sweep", "center", "turn"),
    [(0, 0, (5, 5), 1.5), (0, 1, (5, -5), 1.5), (1, 0, (5, -5), 4.7), (1, 1, (5, 5), 4.7)],
)
def test_four_arcs_between_two_ends(
    tmp_path: Path, large: int, sweep: int, center: tuple[float, float], turn: float
) -> None:
    (arc,) = one(tmp_path, f'<path d="M 0 0 A {math.sqrt(50)} {math.sqrt(50)} 30 {large} {sweep} 10 0"/>')
    assert isinstance(arc, Arc)
    assert (arc.center, arc.sweep) == (pytest.approx(center), pytest.approx(turn, abs=0.1))


PATHS = {
    "M0 0L1 0 1 1Z": ["line"] * 3,
    "m 0 0 l 1 0 0 1 z": ["line"] * 3,
    "M0 0H5V5h-5z": ["line"] * 4,
    "M0,0,1,0,1,1": ["line"] * 2,
    "m1-1-.5.5e0+1-1": ["line"] * 2,
    "M0 0L1 0L1 1L0 0Z": ["line"] * 3,  # closed before it is closed
    "M0 0L1 0zM5 5L6 5z": ["line"] * 4,
    "M0 0A5 5 0 0 1 10 0A5 5 0 0 1 0 0": ["circle"],
    "M0 0A5 5 0 1 0 10 0A5 5 0 1 0 0 0z": ["circle"],
    "M0 0a5 5 0 0110 0 5 5 0 01-10 0z": ["circle"],
    "M0 0A5 5 0 0 1 10 0L20 0A5 5 0 0 1 30 0": ["arc", "line", "arc"],
    "M0 0A5 5 0 0 1 10 0A5 5 0 0 0 20 0": ["arc", "arc"],  # an S is no circle
    "M0 0A0 5 0 0 1 10 0": ["line"],
    "M0 0A1 1 0 0 1 10 0": ["arc"],  # too small a radius grows
}


@pytest.mark.parametrize("data", PATHS)
def test_paths(tmp_path: Path, data: str) -> None:
    assert [p.kind.label for p in one(tmp_path, f'<path d="{data}"/>')] == PATHS[data]


def test_paths_and_other_shapes(tmp_path: Path) -> None:
    absolute = one(tmp_path, '<path d="M1 2 L4 2 H6 V4 A2 2 0 0 1 4 6 Z"/>')
    relative = one(tmp_path, '<path d="m1 2 l3 0 h2 v2 a2 2 0 0 1-2 2 z"/>')
    assert_same(absolute, relative, 1e-12)
    assert numbers(absolute.primitives[2]) == [6, -2, 6, -4]
    quarter = one(tmp_path, '<path d="M10 0A10 10 0 0 0 0 -10A10 10 0 0 0 -10 0A10 10 0 0 0 0 10"/>')
    (arc,) = quarter
    assert isinstance(arc, Arc)
    assert (*arc.center, arc.radius, arc.sweep) == pytest.approx((0, 0, 10, 3 * TAU / 4))
    assert arc.start == pytest.approx((10, 0))
    sketch = one(
        tmp_path,
        '<polyline points="0,0 1,0 1,1"/><polygon points="0 0 1 0 1 1"/><rect x="1" y="2" width="3" height="4"/>'
        '<ellipse cx="1" cy="1" rx="2" ry="2"/><rect width="10" height="6" rx="1"/><rect width="4" height="2" ry="9"/>',
    )
    labels = [p.kind.label for p in sketch]
    assert labels == ["line"] * 9 + ["circle"] + ["arc", "line"] * 4 + ["arc", "arc", "line", "arc", "arc", "line"]
    rounded = Sketch(sketch.primitives[10:18])
    assert (bounds(rounded).low, bounds(rounded).high) == (pytest.approx((0, -6)), pytest.approx((10, 0)))
    ends = [end for p in rounded for end in ((p.start, p.end) if isinstance(p, Line | Arc) else ())]
    assert all(sum(math.dist(a, b) < 1e-9 for b in ends) == 2 for a in ends)  # a closed outline


@pytest.mark.parametrize(("transform", "place"), [
    ("translate(3)", (4, 0)), ("translate(3,4)", (4, -4)), ("scale(2)", (2, 0)), ("rotate(90)", (0, -1)),
    ("rotate(90 1 1)", (2, -1)), ("matrix(0 1 1 0 5 5)", (5, -6)), ("translate(10 0) scale(3) rotate(180)", (7, 0)),
    ("skewX(45)", (1, 0)),
])  # fmt: skip
def test_transforms_place_things(tmp_path: Path, transform: str, place: tuple[float, float]) -> None:
    (point,) = one(tmp_path, f'<circle class="point" cx="1" cy="0" r="9" transform="{transform}"/>')
    assert isinstance(point, Point)
    assert point.at == pytest.approx(place)


def test_nested_groups_and_mirrored_arcs(tmp_path: Path) -> None:
    shape = '<path d="M0 0A5 5 0 0 1 10 0"/><line x1="0" y1="0" x2="10" y2="0"/>'
    plain = one(tmp_path, shape)
    moved = one(
        tmp_path, f'<g transform="scale(-2,2)"><a><g transform="rotate(-30) translate(1 2)">{shape}</g></a></g>'
    )
    arc, line = moved
    assert isinstance(arc, Arc)
    assert isinstance(line, Line)
    assert arc.radius == pytest.approx(10)
    assert {tuple(round(x, 9) for x in end) for end in (arc.start, arc.end)} == {
        tuple(round(x, 9) for x in end) for end in (line.start, line.end)
    }
    assert arc.sweep == pytest.approx(plain.primitives[0].sweep)  # type: ignore[union-attr]


BROKEN_PATHS = ("L1 1", "M0 0L1 1 2", "M0 0Lnan 1", "M0 0L1e999 1")


@pytest.mark.parametrize(("body", "reason"), [
    ("<text>hello</text>", "an SVG element <text>"), ('<use href="#a"/>', "an SVG element <use>"),
    ('<svg><line x2="1"/></svg>', "an SVG element <svg>"), ('<ellipse rx="1" ry="2"/>', "an ellipse"),
    ('<path d="M0 0C1 1 2 2 3 3"/>', "a curve in a path"),
    ('<path d="M0 0A1 2 0 0 1 1 1"/>', "an elliptical arc in a path"),
    *((f'<path d="{d}"/>', "a path with an error in its data") for d in BROKEN_PATHS),
    ('<circle r="1" transform="scale(1 2)"/>', "a circle or arc that a transform makes an ellipse"),
    ('<circle r="1" transform="twist(1)"/>', "a transform we cannot read"),
    ('<g transform="oops"><circle r="1"/></g>', "a transform we cannot read"),
    ('<circle r="-1"/>', "a circle's radius must be above zero"), ('<circle r="10%"/>', "a length we cannot read"),
    ('<line x1="NaN" x2="1"/>', "a length we cannot read"), ("<line/>", "a line needs two different ends"),
    ('<rect width="1"/>', "a rectangle of no size"),
    ('<polyline points="0 0 one two"/>', "a list of points we cannot read"),
    ('<polyline points="0 0 nan 2"/>', "a line has a value that is not a number"),
])  # fmt: skip
def test_unsupported_elements_are_counted(tmp_path: Path, body: str, reason: str) -> None:
    reading = drawing(tmp_path, body + '<line x2="7"/>', options=ReadOptions(curve_tolerance_mm=None))
    assert reading.skipped == {reason: 1}
    (sketch,) = reading
    assert sketch.primitives[-1] == Line((0.0, 0.0), (7.0, 0.0))
    is_loss = not body.startswith("<text")
    assert sketch.extra == ({"dropped_entities": 1} if is_loss else {})


def test_undrawn_deep_and_large_documents(tmp_path: Path) -> None:
    body = (
        "<title>t</title><defs><circle r='1'/><g><text/></g></defs><style>x</style><metadata><a/></metadata>"
        '<namedview xmlns="urn:other"><line x2="3"/></namedview><line x2="7"/>'
    )
    assert len(one(tmp_path, body)) == 1
    assert len(one(tmp_path, "<g>" * 20_000 + '<line x2="1"/>' + "</g>" * 20_000)) == 1
    assert len(one(tmp_path, '<line x2="1"/>' * 20_000)) == 20_000


@pytest.mark.parametrize(("root", "length", "units"), [
    ("", 10, None),
    ('width="300" height="200"', 10, None),
    ('width="50mm" height="50mm" viewBox="0 0 50 50"', 10, "mm"),
    ('width="5cm" height="5cm" viewBox="0,0,50,50"', 10, "mm"),
    ('width="50mm" height="50mm" viewBox="0 0 5 5"', 10, "cm"),
    ('width="2in" height="2in" viewBox="0 0 2 2"', 10, "in"),
    ('width="100mm" height="100mm" viewBox="0 0 300 300"', 10 / 3, "mm"),
    ('width="100mm" height="40mm" viewBox="0 0 50 20"', 20, "mm"),
    ('width="100mm" height="100mm" viewBox="0 0 50 20"', 20, "mm"),
    ('width="100mm" height="100mm"', 10 * 25.4 / 96, "mm"),
    ('width="100mm" height="100mm" viewBox="broken"', 10 * 25.4 / 96, "mm"),
    ('width="100%" height="100%" viewBox="0 0 50 50"', 10, None),
    ('width="0mm" height="0mm" viewBox="0 0 0 0"', 10, None),
])  # fmt: skip
def test_units_come_from_real_size(tmp_path: Path, root: str, length: float, units: str | None) -> None:
    sketch = one(tmp_path, '<line x2="10"/>', root)
    (line,) = sketch
    assert (line.length, sketch.units) == (pytest.approx(length), units)


def test_other_documents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.svg"
    for content, reason in {
        b"<html/>": "not an SVG drawing", b"<svg xmlns='urn:other'/>": "not an SVG drawing",
        b"<svg": "not well-formed XML", b"<svg><line x2='1'/>": "not well-formed XML",
        b"\x00\x01binary": "not well-formed XML",
        b"<!DOCTYPE svg [<!ENTITY a SYSTEM 'b'>]><svg>&a;</svg>": "defines XML entities",
    }.items():  # fmt: skip
        path.write_bytes(content)
        assert_refused(read, path, rf"bad\.svg: .*{reason}")
    harmless = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
    path.write_text(f'<?xml version="1.0"?>{harmless}<svg {NAMESPACE}><line x2="1"/></svg>')
    assert len(read(path)) == 1


@pytest.mark.parametrize(
    "hiding",
    ['visibility="hidden"', 'display="none"', 'style="stroke:red; display: none"', 'style="visibility:collapse"'],
)
def test_hidden_elements_are_ignored(hiding: str, tmp_path: Path) -> None:
    hidden = f'<g {hiding}><line y2="1"/></g><circle {hiding} r="2"/>'
    assert one(tmp_path, f'<line x2="1"/>{hidden}').primitives == (Line((0.0, 0.0), (1.0, 0.0)),)


CURVES = {
    '<ellipse cx="50" cy="40" rx="40" ry="20"/>': ("an ellipse", 1),
    '<path d="M0 0C10 30 40 -30 60 5"/>': ("a curve in a path", 1),
    '<path d="M0 0c10 30 40 -30 60 5s40 20 50 0"/>': ("a curve in a path", 2),
    '<path d="M0 0Q20 40 40 0T80 0t40 0"/>': ("a curve in a path", 3),
    '<path d="M0 0A30 10 20 0 1 20 20"/>': ("an elliptical arc in a path", 1),
    '<circle r="20" transform="rotate(30) scale(1 2)"/>': ("a circle or arc that a transform makes an ellipse", 1),
    '<rect width="60" height="40" rx="10" ry="5"/>': ("a rectangle's elliptical corner", 4),
}


@pytest.mark.parametrize("body", CURVES)
def test_curves_become_lines_and_arcs(tmp_path: Path, body: str) -> None:
    what, count = CURVES[body]
    reading = drawing(tmp_path, body, 'width="100mm" height="100mm" viewBox="0 0 100 100"')
    assert not reading.skipped
    assert reading.notes == {f"{what} read as lines and arcs within 0.01 mm": count}
    (sketch,) = reading
    assert sketch.extra == {}
    ends = [end for p in sketch if isinstance(p, Line | Arc) for end in (p.start, p.end)]
    lonely = [a for a in ends if sum(math.dist(a, b) < 1e-9 for b in ends) != 2]
    assert len(lonely) == (2 if body.startswith("<path") else 0)


def test_curves_are_those_that_svg_draws(tmp_path: Path) -> None:
    shallow, deep = 20 - 20 * math.sqrt(0.75), 20 + 20 * math.sqrt(0.75)
    reaches = {(0, 1): (0, shallow), (0, 0): (-shallow, 0), (1, 1): (0, deep), (1, 0): (-deep, 0)}
    for (large, positive), reach in reaches.items():
        (sketch,) = drawing(tmp_path, f'<path d="M-20 0A40 20 0 {large} {positive} 20 0"/>')
        box = bounds(sketch)
        assert (box.low[1], box.high[1]) == pytest.approx(reach, abs=0.01)
    k = 5.5228475
    data = f"M10 0C10 {k} {k} 10 0 10S-10 {k} -10 0S{-k} -10 0 -10S10 {-k} 10 0Z"
    reading = drawing(tmp_path, f'<path d="M20 20L30 20{data}"/>')
    (sketch,) = reading
    _, circle = sketch
    assert isinstance(circle, Circle)
    assert (*circle.center, circle.radius) == pytest.approx((0, 0, 10), abs=1e-4)


def test_overflow_skips_one_element(tmp_path: Path) -> None:
    for body in (
        '<line x2="5" transform="rotate(1e999)"/>', '<circle r="5" transform="scale(1e300) scale(1e300)"/>',
        '<path d="M0 0A5 5 0 0 1 9 0" transform="matrix(1e200 0 0 1e200 0 0)"/>',
        '<path d="M0 0A1e-300 1e300 0 0 1 9 0"/>', '<path d="M0 0C1e300 1e300 -1e300 1e300 1 1"/>',
        '<ellipse rx="1e999" ry="1"/>', '<rect width="1e999" height="2" rx="1"/>',
        '<g transform="skewX(1e999)"><circle r="1"/></g>',
    ):  # fmt: skip
        reading = drawing(tmp_path, f'<line x2="7"/>{body}')
        assert reading.skipped.total() == 1, body
        assert [len(sketch) for sketch in reading] == [1]
    huge = drawing(tmp_path, '<line x2="7"/><line x2="1e12"/>', 'width="100mm" height="100mm" viewBox="0 0 9 9"')
    assert [len(sketch) for sketch in huge] == [1]


def test_compressed_drawings_and_missing_size(tmp_path: Path) -> None:
    reading = drawing(tmp_path, '<line x2="7"/>')
    assert [note.split(",")[0] for note in reading.notes] == ["a drawing without units"]
    inches = drawing(tmp_path, '<line x2="7"/>', options=ReadOptions(assume_units="in"))
    assert [sketch.units for sketch in inches] == ["in"]
    assert not inches.notes
    sketch = Sketch((Line((0.0, 0.0), (1.0, 2.0)),), units="mm")
    write(sketch, tmp_path / "a.svgz")
    packed = (tmp_path / "a.svgz").read_bytes()
    assert (packed[:2], read(tmp_path / "a.svgz").sketches) == (b"\x1f\x8b", (sketch,))
    (tmp_path / "a.svgz").write_bytes(packed[:-20])
    assert_refused(read, tmp_path / "a.svgz", "damaged or cut off")
    with gzip.open(tmp_path / "bomb.svgz", "wb", compresslevel=1) as file:
        for _ in range(80):
            file.write(b" " * 2**20)
    assert_refused(read, tmp_path / "bomb.svgz", "larger than 64 MiB")


def test_text_entities_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    head = '<!DOCTYPE svg [<!ENTITY ns_svg "http://www.w3.org/2000/svg"> <!ENTITY far "7">{}]>'
    body = '<svg xmlns="&ns_svg;"><line x2="&far;"/></svg>'
    path.write_text(head.format("") + body)
    assert [sketch.primitives for sketch in read(path)] == [(Line((0.0, 0.0), (7.0, 0.0)),)]
    for entity, reference in (
        ('<!ENTITY a "&far;&far;">', "&a;"), ('<!ENTITY a "&#60;g/>">', "&a;"), ('<!ENTITY % a "x">', ""),
        (f'<!ENTITY a "{"x" * 1000}">', "&a;" * 2000), ('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;"),
    ):  # fmt: skip
        path.write_text(head.format(entity) + f'<svg xmlns="&ns_svg;"><title>{reference}</title><line x2="1"/></svg>')
        assert_refused(read, path, "defines XML entities")
