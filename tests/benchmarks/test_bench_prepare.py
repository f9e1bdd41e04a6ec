"""The bench measures what it says: sequences that differ, a reference that does the same, memory of every process."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.corpora import parts, written

from benchmarks.prepare import run_watched, time_prepare, write_distinct
from benchmarks.prepare_reference import prepare_leanly, prepare_plainly, quantized
from sketchdnn.data import PRESETS, SPLITS, prepare
from sketchdnn.errors import SketchError
from sketchdnn.formats import read, write
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Kind, Point, Ref, Sketch


def constrained(count: int) -> list[Sketch]:
    """Parts with as many constraints as primitives, or one less."""
    found = []
    for number, sketch in enumerate(parts(count)):
        lines = [i for i, p in enumerate(sketch) if p.kind is Kind.LINE] or [0]
        wanted = len(sketch) - (number % 5 == 0)
        equal = [Constraint(ConstraintType.EQUAL, (Ref(lines[i % len(lines)]),)) for i in range(wanted)]
        found.append(replace(sketch, constraints=tuple(equal)))
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sketches = constrained(60)
    return written(sketches + sketches[:20], tmp_path_factory.mktemp("base") / "base.npy")


def assert_agree(source: Path, out: Path) -> int:
    """Both ways keep one sketch of each of the same groups; which one of twins stays is each one's own affair."""
    plain, looked_at = prepare_plainly([source])
    lean, also_looked_at = prepare_leanly([source])
    assert looked_at <= also_looked_at  # one without a primitive is no sketch to the first
    assert sorted(map(quantized, lean)) == sorted(map(quantized, plain.matrices))
    prepare([source], out, PRESETS["authors"], workers=1)
    kept = [name for split in SPLITS for name in ids(out, split)]
    assert sorted(plain.stands_for[name] for name in kept) == sorted(set(plain.stands_for.values()))
    return len(kept)


def ids(out: Path, split: str) -> list[str]:
    folder = out / "parquet" / split
    return pq.read_table(folder, columns=["id"])["id"].to_pylist() if folder.exists() else []


def test_the_reference_and_prepare_agree(base: Path, tmp_path: Path) -> None:
    assert 30 < assert_agree(base, tmp_path / "out") <= 60


def test_they_agree_on_real_sequences(real_data: Path, tmp_path: Path) -> None:
    assert assert_agree(real_data / "sketchgraphs" / "sg_subset.npy", tmp_path / "out") > 1000


def test_perturbed_sequences_are_all_different(base: Path, tmp_path: Path) -> None:
    files = write_distinct(base, tmp_path, 400, workers=1)
    sketches = [sketch for file in files for sketch in read(file)]
    assert len(sketches) == 400
    assert len({sketch.primitives for sketch in sketches[60:]}) == 340
    assert [len(s) for s in sketches[:80]] == [len(s) for s in sketches[80:160]]
    report = prepare(files, tmp_path / "out", PRESETS["authors"], workers=1)
    assert report["duplicates"] <= 20  # those that the base itself holds


def test_even_a_sketch_at_the_origin_changes(tmp_path: Path) -> None:
    dot = written([Sketch((Point((0, 0)),)), Sketch((Circle((0, 0), 1),))], tmp_path / "dot.npy")
    (file,) = write_distinct(dot, tmp_path / "in", 200, workers=1)
    assert len({sketch.primitives for sketch in read(file)}) == 200


def test_real_sequences_become_all_different(real_data: Path, tmp_path: Path) -> None:
    files = write_distinct(real_data / "sketchgraphs" / "sg_subset.npy", tmp_path, 12_000, workers=1)
    pickles = [data for file in files for data in open_sequences(file).pickles(0, 12_000)]
    assert len(set(pickles)) == len(pickles) == 12_000


def test_memory_of_all_processes_is_seen() -> None:
    child = "import time; held = bytearray(60_000_000); time.sleep(0.6); sum(range(10**7))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    run = run_watched([sys.executable, "-c", code])
    assert run.seconds > 0.6
    assert 0.05 < run.processor_seconds < run.seconds
    assert run.together is not None
    assert run.peaks is not None
    assert 60_000_000 < run.together <= run.peaks < 300_000_000


def test_a_failing_command_is_a_sentence() -> None:
    with pytest.raises(SketchError, match="out of order"):
        run_watched([sys.executable, "-c", "import sys; sys.exit('out of order')"])


def test_the_whole_bench(base: Path) -> None:
    stages: list[str] = []
    timing = time_prepare(base, 300, 100, stages.append)
    assert len(stages) == 4
    assert [one.sequences for one in timing.references] == [100, 100]
    assert timing.kept > 100
    page = timing.markdown("python -m benchmarks prepare")
    assert "| ratio to the plain reference |" in page
    assert "| ratio to the lean reference |" in page


def test_a_file_of_no_sequences_is_said(tmp_path: Path) -> None:
    write([], tmp_path / "none.npy")
    with pytest.raises(SketchError, match="holds no sequence"):
        write_distinct(tmp_path / "none.npy", tmp_path / "out", 10, workers=1)
