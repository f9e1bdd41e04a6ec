"""The compact rows of a corpus: what they mean, and that they survive."""

from __future__ import annotations

import lzma
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from support.strategies import assert_same, sketches

from sketchdnn.formats import Skipped, detect_format, read, scan, write
from sketchdnn.formats.json_files import format_record, parse_record
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Point, Ref, Sketch

RECORD = (
    b'{"source":"freecad","licence":"CC0","group":"g","id":"i","primitives":'
    b'[["L",1,0,0,1,0],["C",0,1,2,0.5],["A",0,0,0,1,3.0,-3.0],["P",0,4,5]]}'
)


def test_a_record_means_what_the_corpus_says() -> None:
    sketch = parse_record(RECORD)
    assert sketch.extra == {"source": "freecad", "licence": "CC0", "group": "g", "id": "i"}
    line, circle, arc, point = sketch
    assert line == Line((0.0, 0.0), (1.0, 0.0), construction=True)
    assert circle == Circle((1.0, 2.0), 0.5)
    assert point == Point((4.0, 5.0))
    # Counter-clockwise, the span modulo a full turn: from 3 to -3 is the short way past pi.
    assert isinstance(arc, Arc)
    assert arc.sweep == pytest.approx(math.tau - 6)
    assert arc.mid == pytest.approx((-1.0, 0.0))


@given(sketch=sketches())
def test_rows_survive(sketch: Sketch) -> None:
    assert_same(sketch, parse_record(format_record(sketch, compact=True).encode()), 1e-12)


def test_constraints_and_units_survive_beside_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "sketches.corpus.jsonl"
    constraint = Constraint(ConstraintType.LENGTH, (Ref(0),), 1.0)
    sketch = Sketch((Line((0.0, 0.0), (1.0, 0.0)),), (constraint,), "mm", {"group": "g"})
    write(sketch, path)
    assert '["L",0,0.0,0.0,1.0,0.0]' in path.read_text()
    assert read(path).sketches == (sketch,)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_a_corpus_is_known_by_its_first_record(tmp_path: Path, suffix: str) -> None:
    sketch = parse_record(RECORD)
    ours, corpus = tmp_path / f"ours{suffix}", tmp_path / f"corpus{suffix}"
    write([sketch] * 3, ours)
    write([sketch] * 3, corpus, "corpus")
    assert detect_format(ours).name == "jsonl"
    assert detect_format(corpus).name == "corpus"
    assert read(ours).sketches == read(corpus).sketches


def test_every_record_of_the_open_corpus_is_read_or_refused_with_a_reason(real_data: Path, tmp_path: Path) -> None:
    """A quarter of the lines, in stride; the whole corpus is the same loop four times as long."""
    sample = tmp_path / "sample.jsonl"
    with lzma.open(real_data / "open-sketches.jsonl.xz") as corpus, sample.open("wb") as file:
        lines = [line for index, line in enumerate(corpus) if index % 4 == 0]
        file.writelines(lines)
    counts = Counter(type(found) for found in scan(sample))
    assert counts.total() == len(lines) == 19_559
    assert counts[Skipped] < 0.002 * len(lines)  # primitives that five digits left without extent


@pytest.mark.slow
def test_the_whole_open_corpus(real_data: Path) -> None:
    reading = read(real_data / "open-sketches.jsonl.xz")
    assert len(reading) + reading.skipped.total() == 78_236
    assert sum(8 <= len(sketch) <= 16 for sketch in reading) == pytest.approx(28_116, rel=0.005)
    assert {sketch.extra["source"] for sketch in reading} == {"hpsketch", "whucad", "freecad", "sketchgraphs"}
