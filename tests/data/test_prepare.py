"""Preparation is independent of order, cores and interruptions; nothing is lost or overwritten."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.corpora import contents, open_sketches, parts, shuffled, written

from sketchdnn.data import PRESETS, SPLITS, Dataset, Procedural, prepare
from sketchdnn.data import sources as sources_module
from sketchdnn.data import store as store_module
from sketchdnn.data.config import SAME_LEVELS
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import write
from sketchdnn.formats.json_files import format_record
from sketchdnn.geometry import Placement, Point, Sketch, bounds, normalize
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import decode_compact, encode_table
from sketchdnn.representation.hashing import symmetric_keys, turned

Corpus = tuple[list[Sketch], Path]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    sketches = parts(240, twins=40)
    prepare([written(sketches, folder / "parts.jsonl")], folder / "out", workers=1)
    return sketches, folder / "out"


def parquet_rows(folder: Path, split: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / "parquet" / split).to_pylist()


def all_rows(folder: Path) -> list[dict[str, Any]]:
    there = [split for split in SPLITS if (folder / "parquet" / split).exists()]
    return [row for split in there for row in parquet_rows(folder, split)]


def test_mirrored_training_sketches_are_not_in_test(tmp_path: Path) -> None:
    """Mirror images in another family would fall into any split; those of a training sketch are not held out."""
    sketches = parts(120)
    mirrored = [_mirrored(sketch, f"mirrored {number}") for number, sketch in enumerate(sketches)]
    report = prepare([written(sketches + mirrored, tmp_path / "parts.jsonl")], tmp_path / "out", workers=1)
    assert report["repeats_of_an_earlier_split"]["test"] > 0
    splits = [Dataset.open(tmp_path / "out").split(split) for split in SPLITS]
    keys = [symmetric_keys(split.compact, SAME_LEVELS) for split in splits]
    assert all(len(each) for each in keys)
    for earlier, later in combinations(keys, 2):
        assert not np.isin(later, earlier).any()


def _mirrored(sketch: Sketch, group: str) -> Sketch:
    rows = encode_table(sketches_to_table([normalize(sketch)[0]]))
    return replace(decode_compact(turned(rows, 4))[0].sketch, extra={"group": group})


def test_result_is_independent_of_tasks_and_cores(corpus: Corpus, tmp_path: Path, monkeypatch) -> None:
    sketches, out = corpus
    for number, first in enumerate(range(0, len(sketches), 100)):
        written(sketches[first : first + 100], tmp_path / "in" / f"{number}.jsonl")
    monkeypatch.setattr(sources_module, "BYTES_PER_STRIPE", 20_000)
    monkeypatch.setattr(sources_module, "LINES_PER_RUN", 7)
    report = prepare([tmp_path / "in"], tmp_path / "out", workers=2)
    assert report["files"] == 3
    different = {"report.json", "report.html"}  # they count files
    ours, theirs = contents(tmp_path / "out"), contents(out)
    assert {name for name in theirs if ours[name] != theirs[name]} == different


def test_shards_hold_the_corpus_in_order(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sketches, out = corpus
    monkeypatch.setattr(store_module, "SHARD_SIZE", 50)
    prepare([written(sketches, tmp_path / "parts.jsonl")], tmp_path / "out", workers=1)
    assert len(list((tmp_path / "out" / "parquet" / "train").glob("*.parquet"))) == 4
    assert all_rows(tmp_path / "out") == all_rows(out)
    for split in SPLITS:
        for name in store_module.ARRAYS:
            path = f"{split}/{name}.npy"
            assert (tmp_path / "out" / path).read_bytes() == (out / path).read_bytes()


def test_report_counts_add_up_and_groups_share_a_split(corpus: Corpus) -> None:
    sketches, out = corpus
    report = json.loads((out / "report.json").read_text())
    assert report["found"] == len(sketches)
    assert report["found"] == sum(report["refused"].values()) + report["duplicates"] + report["kept"]
    assert report["kept"] == sum(report["splits"].values())
    assert report["duplicates"] >= 39  # the twins of those that fit
    assert report["licences"] == {"procedural": {"CC0": report["kept"]}}
    assert sum(report["kinds"].values()) == sum(int(n) * c for n, c in report["primitives_per_sketch"].items())
    assert sum(report["sizes_mm"].values()) == report["kept"]
    groups = [{row["group"] for row in parquet_rows(out, split)} for split in SPLITS]
    assert all(groups)
    assert not any(a & b for a, b in combinations(groups, 2))


def test_arrays_and_parquet_agree_at_true_size(corpus: Corpus) -> None:
    sketches, out = corpus
    by_id = {sketch.extra["id"]: sketch for sketch in sketches}
    for split in SPLITS:
        compact = Dataset.open(out).split(split).compact
        rows = parquet_rows(out, split)
        assert len(rows) == len(compact)
        for index, row in enumerate(rows):
            count = len(row["kind"])
            assert row["kind"] == compact.kind[index, :count].tolist()
            assert row["params"] == compact.params[index, :count].reshape(-1).tolist()
            original = by_id[row["id"]]
            stored = decode_compact(compact[index : index + 1])[0].sketch
            true = Placement((row["center_x"], row["center_y"]), row["scale"], row["units"]).restore(stored)
            was, now = bounds(original), bounds(true)
            assert true.units == original.units
            assert (*now.low, *now.high) == pytest.approx((*was.low, *was.high), abs=1e-4 * was.size)


def test_paper_preset(tmp_path: Path) -> None:
    source = written(parts(150, per_group=150), tmp_path / "parts.jsonl")
    report = prepare([source], tmp_path / "out", PRESETS["paper"], workers=1)
    assert all(report["splits"].values())  # one group, and yet in every split
    compact = Dataset.open(tmp_path / "out").split("train").compact
    for decoded in decode_compact(compact[:20]):
        assert bounds(decoded.sketch).size == pytest.approx(1)
        assert bounds(decoded.sketch).center == pytest.approx((0, 0), abs=1e-6)


def test_drawn_order_keeps_rows_and_ends_and_changes_neither_selection_nor_splits(tmp_path: Path) -> None:
    """Rows and ends of lines are those of the source, whatever the order of the sketches there."""
    sketches = shuffled(parts(120, twins=20), seed=1)
    by_id = {sketch.extra["id"]: sketch for sketch in sketches}
    drawn = replace(PRESETS["ours"], order="drawn")
    source = written(sketches, tmp_path / "parts.jsonl")
    prepare([source], tmp_path / "canonical", workers=1)
    prepare([source], tmp_path / "drawn", drawn, workers=1)
    again = written(sketches[::-1], tmp_path / "again.jsonl")
    prepare([again], tmp_path / "again", drawn, workers=1)
    assert contents(tmp_path / "drawn" / "train") == contents(tmp_path / "again" / "train")
    turned_rows = 0
    for split in SPLITS:
        ids = [row["id"] for row in parquet_rows(tmp_path / "drawn", split)]
        assert ids == [row["id"] for row in parquet_rows(tmp_path / "canonical", split)]
        compact = Dataset.open(tmp_path / "drawn").split(split).compact
        for name, decoded in zip(ids, decode_compact(compact), strict=True):
            placed, _ = normalize(by_id[name])
            expected = encode_table(sketches_to_table([placed]), canonical_lines=False)
            stored = encode_table(sketches_to_table([decoded.sketch]), canonical_lines=False)
            np.testing.assert_array_equal(stored.kind, expected.kind)
            np.testing.assert_allclose(stored.params, expected.params, atol=1e-5)
        turned_rows += int((compact.kind != Dataset.open(tmp_path / "canonical").split(split).compact.kind).sum())
    assert turned_rows > 0
    assert "order" not in json.loads((tmp_path / "canonical" / "dataset.json").read_text())["config"]
    assert Dataset.open(tmp_path / "drawn").config.order == "drawn"
    with pytest.raises(SketchError, match="order must be canonical or drawn"):
        replace(PRESETS["ours"], order="random")  # type: ignore[arg-type]


def test_sketch_without_id_is_named_by_content(tmp_path: Path) -> None:
    bare = [replace(sketch, extra={}) for sketch in parts(60)]
    for seed in (1, 2):
        source = written(shuffled(bare, seed), tmp_path / f"{seed}" / "parts.jsonl")
        prepare([source], tmp_path / f"out{seed}", workers=1)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")
    names = [row["id"] for row in all_rows(tmp_path / "out1")]
    assert len(set(names)) == len(names) > 40


def test_mixed_formats_and_unreadable_files_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    sketches = parts(24)
    written(sketches[:8], folder / "some.jsonl")
    for index, sketch in enumerate(sketches[8:16]):
        write(sketch, folder / f"{index}.dxf")
    for index, sketch in enumerate(sketches[16:]):
        write(sketch, folder / "svg" / f"{index}.svg")
    (folder / "broken.json").write_text("{")
    (folder / "notes.txt").write_text("nothing to draw")
    (folder / "cut.npy").write_bytes(b"\x93NUMPY\x01\x00v")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "nowhere.dxf").symlink_to(tmp_path / "missing")
    os.mkfifo(folder / "pipe.svg")
    config = replace(PRESETS["ours"], min_primitives=1)
    report = prepare([folder], tmp_path / "out", config, parts=Procedural(10, seed=9), workers=1)
    assert (report["found"], report["files"]) == (34, 23)
    unread = ("broken.json", "notes.txt", "cut.npy", "empty.jsonl", "nowhere.dxf", "pipe.svg")
    assert set(report["files_not_read"]) == {f"in/{name}" for name in unread}
    assert set(report["licences"]) == {"procedural", "in"}


@pytest.mark.parametrize("name", ["bad.jsonl.xz", "bad.npy", "bad.dxf"])
def test_explicit_file_must_be_readable(tmp_path: Path, name: str) -> None:
    for content in (b"", b"{", b"\x93NUMPY\x01\x00v", b"\xfd7zXZ\x00junk"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SketchError, match=name):
            prepare([tmp_path / name], tmp_path / "out", workers=1)
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_killed_worker_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_a_worker(stage: str, done: int, total: int) -> None:
        if done == 1 and stage == "reading":
            os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)

    monkeypatch.setattr(sources_module, "BYTES_PER_STRIPE", 500)  # many tasks
    source = written(parts(120), tmp_path / "in" / "parts.jsonl")
    with pytest.raises(SketchError, match="run again to resume"):
        prepare([source], tmp_path / "out", workers=2, on_progress=end_a_worker)
    assert list((tmp_path / "out.partial" / "chunks").glob("*.json"))
    done: list[int] = []
    report = prepare([source], tmp_path / "out", workers=1, on_progress=lambda *seen: done.append(seen[1]))
    assert done[0] >= 1
    assert (report["found"], sorted(path.name for path in tmp_path.iterdir())) == (120, ["in", "out"])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FormatError("chunk", "cannot be written (No space left)")])
def test_damaged_staging_is_redone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def stopped(*_: object) -> None:
        raise error

    monkeypatch.setattr(sources_module, "BLOCK_SIZE", 60)
    some = Procedural(360)
    prepare([], tmp_path / "whole", parts=some, workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["sketchdnn.data.prepare"], "create_arrays", stopped)
        with pytest.raises(type(error)):
            prepare([], tmp_path / "out", parts=some, workers=1)
    records = sorted((tmp_path / "out.partial" / "chunks").glob("*.json"))
    assert len(records) == 6
    records[0].write_text("{")
    records[1].write_text('{"chunks": [3, null], "tally": 7}')
    cut, flipped, gone = (record.with_name(f"{record.stem}-000.arrow") for record in records[2:5])
    cut.write_bytes(cut.read_bytes()[:1000])
    flipped.write_bytes(flipped.read_bytes().replace(b"procedural", b"procedurAl", 1))
    gone.unlink()
    done: list[int] = []
    prepare([], tmp_path / "out", parts=some, workers=1, on_progress=lambda *seen: done.append(seen[1]))
    assert done[0] == 1  # the sixth alone was whole
    assert contents(tmp_path / "out", without=()) == contents(tmp_path / "whole", without=())


def test_killed_publication_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    prepare([], out, parts=Procedural(30), workers=1)
    (out / "notes.txt").write_text("mine")
    rename = Path.rename
    for last in range(3):
        left = [last]

        def killed(self: Path, target: Path, left: list[int] = left) -> Path:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return rename(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", killed)
            with pytest.raises(KeyboardInterrupt):
                prepare([], out, parts=Procedural(31 + last), workers=1, force=True)
        report = prepare([], out, parts=Procedural(31 + last), workers=1, force=True)
        assert (report["found"], (out / "notes.txt").read_text()) == (31 + last, "mine")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_output_may_be_inside_the_input_or_no_utf8_and_progress_is_reported(tmp_path: Path) -> None:
    written(parts(12), tmp_path / "good.jsonl")
    first = prepare([tmp_path], tmp_path / "corpus", workers=1)
    assert prepare([tmp_path], tmp_path / "corpus", workers=1) == first
    assert prepare([tmp_path], tmp_path / "corpus", workers=1, force=True)["files"] == 1
    out, steps = tmp_path / "new" / os.fsdecode(b"p\xff"), []
    report = prepare([], out, parts=Procedural(30), workers=1, on_progress=lambda *step: steps.append(step))
    assert (report["found"], steps[:2]) == (30, [("reading", 0, 1), ("reading", 1, 1)])
    assert [step[0] for step in steps[2:]] == ["writing"] * len(steps[2:])
    assert steps[-1][1] == steps[-1][2] == len(steps) - 2
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_errors_of_workers_keep_their_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(parts(60), tmp_path / "whole.jsonl.xz").read_bytes()
    (tmp_path / "cut.jsonl.xz").write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(sources_module, "BYTES_PER_STRIPE", 500)
    with pytest.raises(SketchError, match=r"cut\.jsonl\.xz: is compressed, and damaged"):
        prepare([tmp_path / "cut.jsonl.xz"], tmp_path / "out", workers=2)


def test_metadata_is_not_trusted(tmp_path: Path) -> None:
    odd = [
        {"id": "\ud800", "group": ["a", {"b": 1}], "licence": 7, "source": "<script>alert(1)</script>"},
        {"id": "x" * 10**5, "dropped_entities": "many", "licence": None},
        {"dropped_entities": -3, "units": "mm", "id": {}},
        {"dropped_entities": 10**30},
    ]
    records = [json.loads(format_record(sketch)) for sketch in parts(5)[1:]]
    lines = [json.dumps({**record, **extra}) for record, extra in zip(records, odd, strict=True)]
    (tmp_path / "odd.jsonl").write_text("\n".join(lines))
    config = replace(PRESETS["ours"], min_primitives=1)
    report = prepare([tmp_path / "odd.jsonl"], tmp_path / "out", config, workers=1)
    assert report["refused"] == {"an entity that is no primitive": 1}
    assert "<script" not in (tmp_path / "out" / "report.html").read_text()
    assert max(len(row["id"]) for row in all_rows(tmp_path / "out")) == 1000


def test_empty_corpus_is_an_error(tmp_path: Path) -> None:
    source = written([Sketch((Point((0, 0)),))] * 3, tmp_path / "dots.jsonl")
    with pytest.raises(SketchError, match="none of the 3 sketches found can be kept: 3 with fewer than 8 primitives"):
        prepare([source], tmp_path / "out", workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["dots.jsonl"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(SketchError, match="no sketch was found"):
        prepare([tmp_path / "empty"], tmp_path / "out", workers=1)


def test_existing_output_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    some = Procedural(30)
    first = prepare([], out, parts=some, workers=1)
    written_at = (out / "dataset.json").stat().st_mtime_ns
    assert prepare([], out, parts=some, workers=1) == first
    assert (out / "dataset.json").stat().st_mtime_ns == written_at
    with pytest.raises(FormatError, match="--force replaces it"):
        prepare([], out, parts=Procedural(40), workers=1)
    assert prepare([], out, parts=Procedural(40), workers=1, force=True)["found"] == 40
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(FormatError, match="is no prepared corpus"):
        prepare([], tmp_path / "mine", parts=some, workers=1, force=True)


# Prepares a corpus, and records when each task was finished before the staging folder is removed.
RUN = """
import json, sys
from pathlib import Path
import sketchdnn.data.sources as sources
from sketchdnn.data import Procedural, prepare
from sketchdnn.data.staging import Staging
sources.BLOCK_SIZE = 60
publish = Staging.publish
def record_times(self):
    times = {p.name: p.stat().st_mtime_ns for p in (self.folder / "chunks").glob("*.json")}
    self.out.with_name("times.json").write_text(json.dumps(times))
    publish(self)
Staging.publish = record_times
if __name__ == "__main__":
    prepare([], Path(sys.argv[1]), parts=Procedural(900), workers=int(sys.argv[2]))
"""


def test_killed_run_is_resumed_with_the_same_result(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    subprocess.run([sys.executable, script, tmp_path / "whole", "1"], check=True)
    out, chunks = tmp_path / "out", tmp_path / "out.partial" / "chunks"
    run = subprocess.Popen([sys.executable, script, out, "2"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(chunks.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in children):  # no worker outlives its parent
        assert time.monotonic() < deadline
        time.sleep(0.02)
    done = {path: path.stat().st_mtime_ns for path in chunks.glob("*.json")}
    assert 3 <= len(done) < 15
    assert not out.exists()
    subprocess.run([sys.executable, script, out, "2"], check=True)
    times = json.loads((tmp_path / "times.json").read_text())
    assert all(times[path.name] == when for path, when in done.items())  # finished tasks are not repeated
    assert contents(out, without=()) == contents(tmp_path / "whole", without=())
    assert not (tmp_path / "out.partial").exists()


def test_result_is_independent_of_order(real_data: Path, tmp_path: Path) -> None:
    some = open_sketches(real_data, 2500)
    for seed in (1, 2):
        source = written(shuffled(some, seed), tmp_path / f"{seed}" / "some.corpus.jsonl")
        prepare([source], tmp_path / f"out{seed}", workers=1)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")


@pytest.mark.slow
def test_open_corpus(real_data: Path, tmp_path: Path) -> None:
    report = prepare([real_data / "open-sketches.jsonl.xz"], tmp_path / "out")
    assert report["found"] == 78_236
    assert 27_800 < report["kept"] < 28_116
    assert 2_600 < report["splits"]["test"] < 3_000
    assert np.abs(Dataset.open(tmp_path / "out").split("test").compact.params[..., :2]).max() <= 1 + 1e-6
