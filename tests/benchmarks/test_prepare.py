"""Preparation: distinct sequences, references with the same results, and the memory of every process."""

import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.corpora import parts, written

from benchmarks.prepare import run_measured, time_prepare, write_distinct_sequences
from benchmarks.prepare_reference import prepare_from_fields, prepare_from_objects, quantize
from sketchdnn.data import PRESETS, SPLITS, prepare
from sketchdnn.errors import SketchError
from sketchdnn.formats import read, write
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Kind, Point, Ref, Sketch


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts with as many constraints as primitives, or one less, and some duplicates."""
    sketches = []
    for number, sketch in enumerate(parts(60)):
        lines = [i for i, p in enumerate(sketch) if p.kind is Kind.LINE] or [0]
        count = len(sketch) - (number % 5 == 0)
        equal = [Constraint(ConstraintType.EQUAL, (Ref(lines[i % len(lines)]),)) for i in range(count)]
        sketches.append(replace(sketch, constraints=tuple(equal)))
    return written(sketches + sketches[:20], tmp_path_factory.mktemp("base") / "base.npy")


def count_kept(source: Path, out: Path) -> int:
    """The number of kept sketches, by the references and by `prepare`; representatives of duplicates may differ."""
    objects, num_sketches = prepare_from_objects([source])
    matrices, num_sequences = prepare_from_fields([source])
    assert num_sketches <= num_sequences  # a sequence without primitives is not a sketch
    assert sorted(map(quantize, matrices)) == sorted(map(quantize, objects.matrices))
    prepare([source], out, PRESETS["authors"], workers=1)
    folders = [folder for split in SPLITS if (folder := out / "parquet" / split).exists()]
    kept = [name for folder in folders for name in pq.read_table(folder, columns=["id"])["id"].to_pylist()]
    representatives = objects.representative
    assert sorted(representatives[name] for name in kept) == sorted(set(representatives.values()))
    return len(kept)


def test_references_agree_with_prepare(base: Path, real_data: Path, tmp_path: Path) -> None:
    assert 30 < count_kept(base, tmp_path / "out") <= 60
    assert count_kept(real_data / "sketchgraphs" / "sg_subset.npy", tmp_path / "real") > 1000


def test_perturbed_sequences_are_distinct(base: Path, real_data: Path, tmp_path: Path) -> None:
    files = write_distinct_sequences(base, tmp_path, 400, workers=1)
    sketches = [sketch for file in files for sketch in read(file)]
    assert (len(sketches), len({sketch.primitives for sketch in sketches[60:]})) == (400, 340)
    assert [len(s) for s in sketches[:80]] == [len(s) for s in sketches[80:160]]
    report = prepare(files, tmp_path / "out", PRESETS["authors"], workers=1)
    assert report["duplicates"] <= 20  # those of the base
    real = real_data / "sketchgraphs" / "sg_subset.npy"
    files = write_distinct_sequences(real, tmp_path / "real", 12_000, workers=1)
    pickles = [data for file in files for data in open_sequences(file).pickles(0, 12_000)]
    assert len(set(pickles)) == len(pickles) == 12_000
    # Sketches at the origin too.
    dots = written([Sketch((Point((0, 0)),)), Sketch((Circle((0, 0), 1),))], tmp_path / "dots.npy")
    (file,) = write_distinct_sequences(dots, tmp_path / "in", 200, workers=1)
    assert len({sketch.primitives for sketch in read(file)}) == 200
    write([], tmp_path / "none.npy")
    with pytest.raises(SketchError, match="holds no sequence"):
        write_distinct_sequences(tmp_path / "none.npy", tmp_path / "out", 10, workers=1)


def test_memory_of_child_processes_is_measured() -> None:
    child = "import time; held = bytearray(60_000_000); time.sleep(0.6)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    run = run_measured([sys.executable, "-c", code])
    assert run.processor_seconds > 0
    assert 60_000_000 < (run.peak or 0) <= (run.peak_sum or 0) < 300_000_000
    with pytest.raises(SketchError, match="out of order"):
        run_measured([sys.executable, "-c", "import sys; sys.exit('out of order')"])


def test_page_has_both_references(base: Path) -> None:
    stages: list[str] = []
    timing = time_prepare(base, 300, 100, stages.append)
    assert (len(stages), [reference.sequences for reference in timing.references]) == (4, [100, 100])
    assert timing.kept > 100
    page = timing.markdown("python -m benchmarks prepare")
    assert all(f"| ratio to the {name} reference |" in page for name in ("plain", "lean"))
