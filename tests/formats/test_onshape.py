"""Onshape JSON: what its entities and constraints mean, real sketches, archives, and files that mean harm."""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import lzma
import math
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_same

from sketchdnn.errors import FormatError
from sketchdnn.formats import onshape, sketchgraphs
from sketchdnn.formats.format import ReadItem, ReadResult, Skipped, collect
from sketchdnn.formats.registry import read
from sketchdnn.geometry import (
    EXTERNAL,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Ref,
    Sketch,
)

T = ConstraintType
Json = dict[str, Any]


def entity(type_: str, id_: str, geometry: str = "", curve: Json | None = None, **fields: Any) -> Json:
    message: Json = {"entityId": id_, "isConstruction": False, **fields}
    if geometry:
        message["geometry"] = {"typeName": geometry, "message": curve}
    return {"typeName": type_, "message": message}


def line(id_: str, **fields: Any) -> Json:
    curve = {"dirX": 0.6, "dirY": 0.8, "pntX": 1.0, "pntY": 2.0}
    ends = {"startParam": 0.0, "endParam": 5.0}
    return entity("BTMSketchCurveSegment", id_, "BTCurveGeometryLine", curve, **(ends | fields))


ROUND = {"xCenter": 0.0, "yCenter": 0.0, "xDir": 0.0, "yDir": 1.0, "radius": 2.0, "clockwise": True}


def circle(id_: str, **fields: Any) -> Json:
    return entity("BTMSketchCurve", id_, "BTCurveGeometryCircle", ROUND, **fields)


def arc(id_: str, **fields: Any) -> Json:
    ends = {"startParam": 0.0, "endParam": 3 * math.pi / 2}
    return entity("BTMSketchCurveSegment", id_, "BTCurveGeometryCircle", ROUND, **(ends | fields))


def point(id_: str, **fields: Any) -> Json:
    return entity("BTMSketchPoint", id_, **({"x": 1.0, "y": 2.0} | fields))


def constraint(type_: str, **parameters: Any) -> Json:
    def parameter(key: str, value: Any) -> Json:
        if key.startswith("local"):
            return {"typeName": "BTMParameterString", "message": {"parameterId": key, "value": value}}
        if key.startswith("external"):
            return {"typeName": "BTMParameterQueryList", "message": {"parameterId": key, "queries": []}}
        if key in ("length", "angle") or key.startswith("label"):
            message = {"parameterId": key, "expression": value, "units": "", "value": 0.0}
            return {"typeName": "BTMParameterQuantity", "message": message}
        return {"typeName": "BTMParameterEnum", "message": {"parameterId": key, "value": value}}

    return {"message": {"constraintType": type_, "parameters": [parameter(*p) for p in parameters.items()]}}


def sketch(entities: list[Any], constraints: list[Any] | None = None) -> Json:
    return {
        "featureType": "newSketch",
        "featureId": "F1",
        "name": "Sketch 1",
        "entities": entities,
        "constraints": constraints or [],
    }


def found(tmp_path: Path, data: Any) -> list[ReadItem]:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    return list(onshape.read(path))


def only(tmp_path: Path, data: Any) -> Sketch:
    (one,) = found(tmp_path, data)
    assert isinstance(one, Sketch)
    return one


class TestMeaning:
    def test_entities(self, tmp_path: Path) -> None:
        one = only(tmp_path, [sketch([line("l"), circle("c", isConstruction=True), arc("a"), point("p")])])
        # The arc runs from the top three quarters round clockwise: counter-clockwise, from the left to the top.
        expected = (
            Line((1, 2), (4, 6)),
            Circle((0, 0), 2, True),
            Arc((0, 0), 2, -math.pi, 3 * math.pi / 2),
            Point((1, 2)),
        )
        assert_same(one, Sketch(expected), 1e-12)
        assert one.units == "m"
        assert one.extra == {"source": "onshape", "id": "a/F1", "group": "a", "name": "Sketch 1"}

    def test_constraints(self, tmp_path: Path) -> None:
        entities = [line("l"), arc("a"), point("p"), point("q"), circle("c", centerId="somewhere")]
        on_point = (Ref(2, Part.POINT), Ref(3, Part.POINT))
        distance = {"direction": "VERTICAL", "length": "0.5 in", "labelRatio": "0.5", "sketchToolType": "OFFSET"}
        cases = [
            (constraint("HORIZONTAL", localFirst="l"), Constraint(T.HORIZONTAL, (Ref(0),))),
            (
                constraint("COINCIDENT", externalSecond=1, localFirst="l.start"),
                Constraint(T.COINCIDENT, (Ref(0, Part.START), EXTERNAL)),
            ),
            (  # the arc is clockwise, so its start in the file is the end of ours
                constraint("COINCIDENT", localFirst="a.start", localSecond="l.end"),
                Constraint(T.COINCIDENT, (Ref(1, Part.END), Ref(0, Part.END))),
            ),
            (
                constraint("CONCENTRIC", local0="a.center", local1="somewhere"),
                Constraint(T.CONCENTRIC, (Ref(1, Part.CENTER), Ref(4, Part.CENTER))),
            ),
            (
                constraint("MIRROR", localMirror="l", localFirst="p", localSecond="q"),
                Constraint(T.SYMMETRIC, (*on_point, Ref(0))),
            ),
            (
                constraint("MIDPOINT", localEntity1="l.start", localEntity2="l.end", localMidpoint="p"),
                Constraint(T.MIDPOINT, (Ref(2, Part.POINT), Ref(0, Part.START), Ref(0, Part.END))),
            ),
            (
                constraint("DISTANCE", localFirst="p", localSecond="q", halfSpace0="LEFT", **distance),
                Constraint(T.VERTICAL_DISTANCE, on_point, 0.0127, extra={"halfSpace0": "LEFT"}),
            ),
            (
                constraint("LENGTH", localFirst="l", direction="MINIMUM", length="(#w) mm"),
                Constraint(T.LENGTH, (Ref(0),), extra={"length": "(#w) mm"}),
            ),
            (
                constraint("ANGLE", localFirst="l", externalSecond=1, angle="180.0*degree"),
                Constraint(T.ANGLE, (Ref(0), EXTERNAL), math.pi),
            ),
            (
                constraint("CENTERLINE_DIMENSION", localFirst="l", length="2 mm"),
                Constraint(T.OTHER, (Ref(0),), name="Centerline_Dimension", extra={"length": "2 mm"}),
            ),
        ]
        one = only(tmp_path, [sketch(entities, [stated for stated, _ in cases])])
        assert list(one.constraints) == [expected for _, expected in cases]

    @pytest.mark.parametrize(
        ("text", "meters"),
        [("12 mm", 0.012), ("7*millimeter", 0.007), (".5 in", 0.0127), ("2*ft", 0.6096), ("1e1 cm", 0.1), ("3 m", 3)],
    )
    def test_lengths(self, tmp_path: Path, text: str, meters: float) -> None:
        one = only(tmp_path, [sketch([circle("c")], [constraint("DIAMETER", localFirst="c", length=text)])])
        assert one.constraints[0].value == meters

    def test_what_is_no_primitive_is_counted(self, tmp_path: Path) -> None:
        others = [
            entity("BTMSketchCurveSegment", "s", "BTCurveGeometrySpline", {}),
            entity("BTMSketchCurve", "i", "BTCurveGeometryInterpolatedSpline", {}),
            entity("BTMSketchCurve", "e", "BTCurveGeometryEllipse", {}),
            entity("BTMSketchCurveSegment", "k", "BTCurveGeometryConic", {}),
            entity("BTMSketchTextEntity", "t"),
            entity("BTMSketchImageEntity", "m"),
            entity("BTMNew", "n"),
            line("z", endParam=0.0),
        ]
        on_them = [constraint("COINCIDENT", localFirst=f"{name}.start", localSecond="p") for name in "siektmnz?"]
        *skipped, one = found(tmp_path, [sketch([*others, point("p")], [*on_them, constraint("FIX", localFirst="p")])])
        assert isinstance(one, Sketch)
        assert one.primitives == (Point((1, 2)),)
        assert one.constraints == (Constraint(T.FIX, (Ref(0, Part.POINT),)),)
        assert one.extra["dropped_entities"] == 8
        assert collect(skipped).skipped == {
            "a spline": 2,
            "an ellipse": 1,
            "a conic": 1,
            "a text": 1,
            "an image": 1,
            "an entity of unknown type": 1,
            "a line of no length": 1,
            "a constraint on what was left out": 9,
        }

    @pytest.mark.parametrize(
        "wrap", [lambda s: s, lambda s: [s], lambda s: {"features": [s]}, lambda s: {"message": s}]
    )
    def test_ways_to_hold_a_sketch(self, tmp_path: Path, wrap: Any) -> None:
        assert len(only(tmp_path, wrap(sketch([point("p")])))) == 1

    def test_other_features_and_empty_sketches(self, tmp_path: Path) -> None:
        assert found(tmp_path, [{"featureType": "extrude"}, sketch([]), 5]) == [
            Skipped("a feature that is not a sketch"),
            Skipped("a sketch without a line, circle, arc or point", is_sketch=True),
            Skipped("a feature that is damaged", is_sketch=True),
        ]

    def test_variants_of_one_document_belong_together(self, tmp_path: Path) -> None:
        path = tmp_path / "00273126_d90a324875bc6891cbed2cf4_featurescript_005.json"
        path.write_text(json.dumps([sketch([point("p")])]))
        (one,) = onshape.read(path)
        assert isinstance(one, Sketch)
        assert one.extra["group"] == "00273126_d90a324875bc6891cbed2cf4"


@pytest.fixture(scope="module")
def reading(real_data: Path) -> ReadResult:
    return read(real_data / "sketchgraphs" / "onshape_json.tar.xz")


class TestRealSketches:
    def test_all_are_read_or_refused(self, reading: ReadResult) -> None:
        assert len(reading) + reading.skipped["a sketch without a line, circle, arc or point"] == 237
        assert len(reading) == 227
        assert reading.skipped == {
            "a spline": 66,
            "a text": 4,
            "an image": 1,
            "a line of no length": 8,
            "a constraint on what was left out": 103,
            "a sketch without a line, circle, arc or point": 10,
        }
        kinds = Counter(p.kind.label for s in reading for p in s)
        assert kinds == {"line": 1645 - 8, "arc": 321, "circle": 197, "point": 247}

    def test_constraints_hold(self, reading: ReadResult) -> None:
        right: Counter[tuple[T, bool]] = Counter()
        for one in reading:
            for c in one.constraints:
                error = off_by(one, c)
                if error is not None:
                    right[c.type, error <= 1e-6] += 1
        for type_ in (T.COINCIDENT, T.LENGTH, T.DIAMETER, T.RADIUS, T.HORIZONTAL_DISTANCE, T.VERTICAL_DISTANCE):
            assert right[type_, True] > 20
            assert right[type_, False] <= 0.03 * right[type_, True], type_

    def test_they_survive_as_sketchgraphs(self, reading: ReadResult, tmp_path: Path) -> None:
        path = tmp_path / "a.npy"
        sketchgraphs.write(reading, path)
        again = collect(sketchgraphs.read(path))
        assert not again.skipped
        for a, b in zip(reading, again, strict=True):
            assert_same(a, b, 1e-9)
            assert Counter((c.type, c.value, c.name, frozenset(c.refs)) for c in a.constraints) == Counter(
                (c.type, c.value, c.name, frozenset(c.refs)) for c in b.constraints
            )

    @given(data=st.data())
    def test_a_mutated_file_is_read_or_refused(
        self, real_data: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        text = bytearray(_small_member(real_data / "sketchgraphs" / "onshape_json.tar.xz"))
        for _ in range(data.draw(st.integers(1, 5))):
            at = data.draw(st.integers(0, len(text) - 1))
            text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        path = tmp_path_factory.mktemp("mutated") / "a.json"
        path.write_bytes(text)
        with contextlib.suppress(FormatError):
            list(onshape.read(path))


_members: dict[Path, bytes] = {}


def _small_member(path: Path) -> bytes:
    if path not in _members:
        with tarfile.open(path) as archive:
            smallest = min((m for m in archive if m.isreg() and m.size > 20_000), key=lambda m: m.size)
            file = archive.extractfile(smallest)
            assert file
            _members[path] = file.read()
    return _members[path]


def off_by(one: Sketch, c: Constraint) -> float | None:
    """How far a sketch is from what a constraint says, where that is easy to tell."""
    primitives = [one.primitives[r.primitive] if r.primitive is not None else None for r in c.refs]
    places = []
    for p, r in zip(primitives, c.refs, strict=True):
        if isinstance(p, Point):
            places.append(p.at)
        elif isinstance(p, Line | Arc) and r.part in (Part.START, Part.END):
            places.append(p.start if r.part is Part.START else p.end)
        elif isinstance(p, Circle | Arc) and r.part is Part.CENTER:
            places.append(p.center)
    if len(places) == 2:
        dx, dy = (abs(a - b) for a, b in zip(*places, strict=True))
        expected = {T.COINCIDENT: (math.hypot(dx, dy), 0.0), T.HORIZONTAL_DISTANCE: (dx, c.value)}
        expected[T.VERTICAL_DISTANCE] = (dy, c.value)
        measured, value = expected.get(c.type, (0.0, None))
    else:
        first = primitives[0]
        radius = getattr(first, "radius", 0.0)
        length = first.length if first else 0.0
        measured = {T.LENGTH: length, T.RADIUS: radius, T.DIAMETER: 2 * radius}.get(c.type, 0.0)
        value = c.value if c.type in (T.LENGTH, T.RADIUS, T.DIAMETER) else None
    return None if value is None else abs(measured - value)


class TestBadFiles:
    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"\0" * 100,
            b"[",
            b'[{"entities": [',
            b"\xff\xfe\x00",
            b'"text"',
            b"5",
            b"null",
            b"{}",
            b'{"primitives": []}',
            b'{"entities": 5}',
            b"[" * 200_000,
            b'{"a":' * 100_000,
            b"[" + b"9" * 10_000 + b"]",
        ],
    )
    def test_not_onshape(self, tmp_path: Path, text: bytes) -> None:
        (tmp_path / "a.json").write_bytes(text)
        with pytest.raises(FormatError, match=r"a\.json: is not JSON with Onshape sketches"):
            list(onshape.read(tmp_path / "a.json"))

    def test_no_file_and_too_large_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match="cannot be read"):
            list(onshape.read(tmp_path / "a.json"))
        with (tmp_path / "b.json").open("wb") as file:
            file.truncate(onshape.LARGEST_FILE + 1)
        with pytest.raises(FormatError, match="larger than 32 MiB"):
            list(onshape.read(tmp_path / "b.json"))

    @pytest.mark.parametrize("value", [None, "1", [], {}, [[]], "NaN", math.nan, math.inf, 10**400])
    @pytest.mark.parametrize("key", ["x", "isConstruction"])
    def test_fields_that_are_no_numbers(self, tmp_path: Path, key: str, value: Any) -> None:
        *skipped, one = found(tmp_path, [sketch([point("p"), point("q", **{key: value})])])
        assert skipped == [Skipped("an entity with a field that is missing or no number")]
        assert isinstance(one, Sketch)
        assert len(one) == 1

    @given(data=st.data())
    def test_anything_anywhere(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        """Replace any value of a sketch by any JSON value: something is lost, nothing breaks."""
        whole = [
            sketch(
                [line("l"), arc("a"), circle("c"), point("p")],
                [
                    constraint("COINCIDENT", localFirst="a.start", localSecond="l.end"),
                    constraint("DISTANCE", localFirst="p", externalSecond=1, direction="MINIMUM", length="2 mm"),
                ],
            )
        ]
        changed = copy.deepcopy(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            node: Any = changed
            while True:
                keys = list(node) if isinstance(node, dict) else list(range(len(node)))
                if not keys:
                    break
                key = data.draw(st.sampled_from(keys))
                inner = node[key]
                if not isinstance(inner, list | dict) or data.draw(st.integers(0, 4)) == 0:
                    node[key] = data.draw(anything)
                    break
                node = inner
        path = tmp_path_factory.mktemp("odd") / "a.json"
        path.write_text(json.dumps(changed))
        for item in onshape.read(path):
            assert isinstance(item, Sketch | Skipped)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["p", "a.end", "l"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_an_archive_cut_short_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    data = json.dumps([sketch([point("p")])]).encode()
    with tarfile.open(path, "w") as archive:
        for name in ("1.json", "2.json", "3.json"):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    whole = path.read_bytes()
    assert len(read(path)) == 3
    end = whole.rindex(b"3.json") + 512 + 512 * math.ceil(len(data) / 512)
    for suffix, compress in (("tar", bytes), ("tar.xz", lzma.compress), ("tar.gz", gzip.compress)):
        packed = tmp_path / f"b.{suffix}"
        for keep in range(0, end + 1, 256):
            packed.write_bytes(compress(whole[:keep]))
            with pytest.raises(FormatError):
                read(packed)


def test_recognition(real_data: Path, tmp_path: Path) -> None:
    text = _small_member(real_data / "sketchgraphs" / "onshape_json.tar.xz")
    recognizes = onshape.FORMAT.recognizes
    assert recognizes(tmp_path / "a.json", text[:4096])
    assert recognizes(tmp_path / "a.json", json.dumps([sketch([point("p")])]).encode())
    assert not recognizes(tmp_path / "a.json", b'{"primitives": [{"type": "point", "at": [0, 1]}], "constraints": []}')
    assert not recognizes(tmp_path / "a.txt", text[:4096])
