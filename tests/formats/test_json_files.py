"""JSON, JSON lines and corpora: round trips of records, compression, and bad lines."""

from __future__ import annotations

import gzip
import json
import lzma
import math
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_refused, assert_same, sketches

from sketchdnn.errors import SketchError
from sketchdnn.formats import Skipped, collect, detect_format, read, scan, write
from sketchdnn.formats import json_files as module
from sketchdnn.formats.json_files import format_record, parse_record
from sketchdnn.geometry import EXTERNAL, TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch
from sketchdnn.geometry.constraints import PARTS_OF_KIND

EXAMPLE = """{"primitives": [
   {"type": "line",   "construction": false, "start": [0, 0], "end": [1, 0]},
   {"type": "circle", "construction": false, "center": [0.5, 0.5], "radius": 0.1},
   {"type": "arc",    "construction": true,  "center": [0, 0], "radius": 1, "start_angle": 0.0, "end_angle": 1.57},
   {"type": "point",  "construction": false, "at": [0, 1]}],
 "constraints": [{"type": "coincident", "refs": [[0, "start"], [3, "point"]]}, {"type": "horizontal", "refs": [[0, "whole"]]},
                 {"type": "distance", "refs": [[0, "whole"], ["external"]], "value": 12.7},
                 {"type": "other", "name": "Projected", "refs": [[2, "whole"]]}],
 "units": "mm"}"""  # noqa: E501

words = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


def unknown_keys(*known: str, min_size: int = 0) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(words.filter(lambda key: key not in known), json_values, min_size=min_size, max_size=2)


@st.composite
def rich_sketches(draw: st.DrawFn) -> Sketch:
    """Sketches with constraints of every type, units, and keys of others at every level."""
    bare = draw(sketches(units=draw(st.sampled_from([None, "mm", "in"]))))
    ref = st.integers(0, len(bare) - 1).flatmap(
        lambda i: st.builds(Ref, st.just(i), st.sampled_from(sorted(PARTS_OF_KIND[bare.primitives[i].kind])))
    )
    outside = st.sampled_from([EXTERNAL, Ref(None, Part.ORIGIN), Ref(None, Part.X_AXIS), Ref(None, Part.Y_AXIS)])
    constraint = st.builds(
        Constraint,
        st.sampled_from(ConstraintType),
        st.lists(ref | outside, min_size=1, max_size=3).map(tuple),
        st.none() | st.floats(-1e6, 1e6),
        st.text(min_size=1, max_size=8),
        unknown_keys("type", "refs", "value", "name"),
    )
    extra = draw(unknown_keys("primitives", "constraints", "units"))
    kept = draw(st.dictionaries(st.integers(0, len(bare) - 1).map(str), unknown_keys(*_FIELDS, min_size=1), max_size=2))
    if kept:
        extra = {**extra, "primitives": kept}
    return Sketch(bare.primitives, tuple(draw(st.lists(constraint, max_size=4))), bare.units, extra)


_FIELDS = ("type", "construction", "start", "end", "center", "radius", "start_angle", "end_angle", "at")


@given(sketch=rich_sketches())
def test_record_round_trip(tmp_path_factory: pytest.TempPathFactory, sketch: Sketch) -> None:
    again = parse_record(format_record(sketch).encode())
    path = tmp_path_factory.mktemp("json") / "sketch.json"
    write(sketch, path)
    assert read(path).sketches == (again,)
    assert_same(sketch, again, 1e-12)
    assert_same(sketch, parse_record(format_record(sketch, compact=True).encode()), 1e-12)
    assert (again.constraints, again.units, again.extra) == (sketch.constraints, sketch.units, sketch.extra)
    for p, q in zip(sketch, again, strict=True):
        if not isinstance(p, Arc):  # an arc's end angle is rounded once; every other number is the same bit for bit
            assert p == q


@given(start=st.floats(-10, 10), short_of_a_turn=st.floats(1e-15, 1e-6))
def test_arc_short_of_full_turn_never_collapses(start: float, short_of_a_turn: float) -> None:
    try:
        arc = Arc((0.0, 0.0), 1.0, start, TAU - short_of_a_turn)
    except SketchError:
        return  # closer to a full turn than floats can tell
    (again,) = parse_record(format_record(Sketch((arc,))).encode())
    assert isinstance(again, Arc)
    assert again.sweep == pytest.approx(arc.sweep, abs=1e-14)


def test_example_of_design(tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    path.write_text(EXAMPLE)
    (sketch,) = read(path)
    assert ([p.kind.label for p in sketch], sketch.units) == (["line", "circle", "arc", "point"], "mm")
    assert sketch.constraints[2] == Constraint(ConstraintType.DISTANCE, (Ref(0), EXTERNAL), 12.7)
    assert sketch.constraints[3].name == "Projected"
    write(sketch, path)
    assert (read(path).sketches, json.loads(path.read_text())) == ((sketch,), json.loads(EXAMPLE))


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_lines_are_compressed_as_name_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"many{suffix}"
    many = [Sketch((Point((float(i), 0.1)),), extra={"id": str(i)}) for i in range(100)]
    write(many, path)
    assert list(read(path)) == many
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "rt") as file:
        assert sum(1 for _ in file) == 100


def test_lines_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    many = (Sketch(tuple(Point((float(i), float(j))) for j in range(100))) for i in range(200))
    tracemalloc.start()
    try:
        module.write_lines(many, path)
        count = sum(len(found) == 100 for found in module.read_lines(path) if isinstance(found, Sketch))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 200
    assert path.stat().st_size > 1e6
    assert peak < 4e5


def _primitive(text: str) -> str:
    return f'{{"primitives": [{text}]}}'


def _constraint(text: str) -> str:
    return f'{{"primitives": [], "constraints": [{text}]}}'


BAD_LINES = {
    "not JSON at all": ("{", "not JSON"),
    "no primitives": ('{"lines": []}', "a record without a list 'primitives'"),
    "NaN": (_primitive('{"type": "point", "at": [NaN, 0]}'), "NaN where a number belongs"),
    "infinity": (_primitive('["P", 0, 0, -Infinity]'), "-Infinity where a number belongs"),
    "overflow": (_primitive('["P", 0, 1e999, 0]'), "a point has a value that is beyond ±1e+12"),
    "a huge integer": (_primitive(f'["P", 0, {10**400}, 0]'), "a point has a value that is beyond ±1e+12"),
    "a giant integer": (_primitive(f'["P", 0, 1{"0" * 5000}, 0]'), "a number too large to read"),
    "overflow kept": ('{"primitives": [], "note": 1e999}', "a number that is infinite"),
    "a word": (_primitive('{"type": "point", "at": ["0", 0]}'), "'at' must be made of numbers"),
    "true as a number": (_primitive('{"type": "point", "at": [true, 0]}'), "'at' must be made of numbers"),
    "three coordinates": (_primitive('{"type": "point", "at": [1, 2, 3]}'), "'at' must be two numbers"),
    "no length": (_primitive('["L", 0, 1, 1, 1, 1]'), "a line needs two different ends"),
    "no turn": (_primitive('["A", 0, 0, 0, 1, 2, 2]'), "an arc's sweep lies between 0 and 2π"),
    "a spline": (_primitive('{"type": "spline"}'), "a primitive of an unknown type"),
    "a list for a type": (_primitive('{"type": []}'), "a primitive of an unknown type"),
    "an unknown row": (_primitive('["S", 0, 1, 2]'), "a row of an unknown form"),
    "an empty row": (_primitive("[]"), "a row of an unknown form"),
    "a number for a primitive": (_primitive("3"), "a primitive that is neither an object nor a row"),
    "construction 2": (_primitive('["P", 2, 0, 0]'), "a row of an unknown form"),
    "construction a word": (_primitive('{"construction": "no"}'), "'construction' must be true or false"),
    "a key twice": ('{"primitives": [], "a": 1, "a": 2}', "an object with a key that appears twice"),
    "deep": (f'{{"primitives": [], "a": {"[" * 100_000}{"]" * 100_000}}}', "JSON nested too deeply"),
    "unknown units": ('{"primitives": [], "units": "furlong"}', "'furlong' is not a known unit"),
    "units a number": ('{"primitives": [], "units": 3}', "'constraints' must be a list and 'units' a word"),
    "dangling": (_constraint('{"type": "fix", "refs": [[4, "whole"]]}'), "a fix constraint refers to a primitive"),
    "unknown": (_constraint('{"type": "glued", "refs": [["origin"]]}'), "a constraint of an unknown type"),
    "a bad reference": (_constraint('{"type": "fix", "refs": ["origin"]}'), "a reference of an unknown form"),
    "a reference to nothing": (_constraint('{"type": "fix", "refs": []}'), "a fix constraint refers to nothing"),
    "a constraint in words": (_constraint('"fix"'), "a constraint without a list 'refs'"),
}


def test_bad_records(tmp_path: Path) -> None:
    lines, single = tmp_path / "some.jsonl", tmp_path / "bad.json"
    for line, reason in BAD_LINES.values():
        lines.write_text(f'{line}\n\n{{"primitives": [["P", 0, 1, 2]]}}\n')
        result = read(lines)
        assert list(result.skipped.items()) == [(reason, 1)]
        assert result.sketches == (Sketch((Point((1.0, 2.0)),)),)
        single.write_text(line)
        assert_refused(read, single, r"bad\.json: is not a sketch: ")


def test_bad_lines_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_RECORD", 100)
    path = tmp_path / "long.jsonl"
    good = '{"primitives": [["P", 0, 1, 2]]}\n'
    path.write_text(f"{good}{'x' * 1000}\n{good}{'y' * 100}")
    reading = collect(module.read_lines(path))
    assert (len(reading), sum(reading.skipped.values())) == (2, 2)
    single = tmp_path / "long.json"
    single.write_text(" " * 200)
    assert_refused(read, single, "is larger than")
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"primitives": [], "name": "\xe9"}\n\xef\xbb\xbf{"primitives": []}\n')
    assert list(module.read_lines(path)) == [Skipped("text that is not UTF-8", is_sketch=True), Sketch(())]


@pytest.mark.parametrize("extra", [{"when": object()}, {"share": math.nan}, {"raw": b"bytes"}])
def test_extra_data_that_is_not_json_is_refused(tmp_path: Path, extra: dict[str, object]) -> None:
    for name in ("sketch.json", "sketch.jsonl"):
        with pytest.raises(SketchError, match="cannot be written as JSON"):
            write(Sketch((Line((0, 0), (1, 0)),), extra=extra), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


CORPUS_RECORD = (
    b'{"source":"freecad","licence":"CC0","group":"g","id":"i","primitives":'
    b'[["L",1,0,0,1,0],["C",0,1,2,0.5],["A",0,0,0,1,3.0,-3.0],["P",0,4,5]]}'
)


def test_record_means_what_corpus_says() -> None:
    sketch = parse_record(CORPUS_RECORD)
    assert sketch.extra == {"source": "freecad", "licence": "CC0", "group": "g", "id": "i"}
    line, circle, arc, point = sketch
    assert (line, circle) == (Line((0.0, 0.0), (1.0, 0.0), construction=True), Circle((1.0, 2.0), 0.5))
    assert point == Point((4.0, 5.0))
    # Counter-clockwise, the span modulo a full turn: from 3 to -3 is the short way past pi.
    assert isinstance(arc, Arc)
    assert (arc.sweep, arc.mid) == (pytest.approx(math.tau - 6), pytest.approx((-1.0, 0.0)))


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_corpus_is_known_by_its_first_record(tmp_path: Path, suffix: str) -> None:
    sketch = parse_record(CORPUS_RECORD)
    ours, corpus = tmp_path / f"ours{suffix}", tmp_path / f"corpus{suffix}"
    write([sketch] * 3, ours)
    write([sketch] * 3, corpus, "corpus")
    assert (detect_format(ours).name, detect_format(corpus).name) == ("jsonl", "corpus")
    assert read(ours).sketches == read(corpus).sketches


def test_open_corpus_is_read_or_refused(real_data: Path, tmp_path: Path) -> None:
    sample = tmp_path / "sample.jsonl"
    with lzma.open(real_data / "open-sketches.jsonl.xz") as corpus, sample.open("wb") as file:
        lines = [line for index, line in enumerate(corpus) if index % 4 == 0]
        file.writelines(lines)
    counts = Counter(type(found) for found in scan(sample))
    assert counts.total() == len(lines) == 19_559
    assert counts[Skipped] < 0.002 * len(lines)  # primitives that five digits left without extent
