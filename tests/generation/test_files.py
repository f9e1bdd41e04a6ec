"""Files of sketches: formats, page and manifest; what stays when a run stops, and what a second run removes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from support.commands import refused, run
from support.pages import Page
from support.strategies import assert_same

from sketchdnn import read
from sketchdnn.data import Procedural, prepare
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import convert
from sketchdnn.formats import manifest as manifest_format
from sketchdnn.formats import write as write_file
from sketchdnn.generation import GeneratedSketch, OutputOptions, OutputSummary, write_sketches
from sketchdnn.generation import files as files_module
from sketchdnn.generation.files import check_not_replaced, render_page
from sketchdnn.generation.manifest import EntryLog, ProcessShare, read_entries
from sketchdnn.generation.repair import RepairReport
from sketchdnn.geometry import Circle, Line, Sketch

SKETCH = Sketch((Line((0, 0), (80, 0)), Line((80, 0), (0, 60)), Circle((40, 20), 5, True)), units="mm")
PLATES = [Sketch((Line((0, 0), (80, 0)), Circle((40, 20), 5.0 + n)), units="mm") for n in range(3)]
NAMES = ["sketch-0000", "sketch-0001", "sketch-0002"]
GALLERY = ["gallery.html", "gallery.png", "manifest.json"]
REPAIRED = RepairReport(("an end was snapped", "two lines were merged"), ("snap", "merge"), 0.0123456, 9)


def sketches(count: int) -> Iterator[GeneratedSketch]:
    return (GeneratedSketch(index, SKETCH) for index in range(count))


def write(
    generated: Iterable[GeneratedSketch] | int,
    folder: Path,
    formats: str = "json",
    *,
    stop: int = 10,
    facts: dict[str, Any] | None = None,
    **options: Any,
) -> OutputSummary:
    """Write sketches, or so many of them."""
    generated = sketches(generated) if isinstance(generated, int) else generated
    return write_sketches(generated, stop, OutputOptions(folder, formats.split(","), **options), facts)


def manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stopping(count: int, end: type[BaseException] | BaseException) -> Iterator[GeneratedSketch]:
    yield from sketches(count)
    raise end


def test_every_sketch_is_written_in_every_format_under_a_long_name(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    assert write(2, out, "json,svg,dxf,fcstd").sketches == 2
    files = [f"sketch-000{n}.{suffix}" for n in (0, 1) for suffix in ("FCStd", "dxf", "json", "svg")]
    assert names(out) == GALLERY + files
    for suffix in ("json", "dxf", "FCStd", "svg"):
        (sketch,) = read(out / f"sketch-0001.{suffix}").sketches
        assert_same(SKETCH, sketch.in_units("mm"), tolerance=1e-4, construction=suffix != "dxf")
    write((GeneratedSketch(index, SKETCH) for index in (0, 123_456)), tmp_path, stop=200_000)
    assert {path.name for path in tmp_path.glob("sketch*")} == {"sketch-000000.json", "sketch-123456.json"}


def test_manifest_has_an_entry_for_each_sketch(tmp_path: Path) -> None:
    odd = GeneratedSketch(
        7, SKETCH, 3, ("a line of no length",), ("made a semicircle",), "it has 3 primitives, not 4", 0.12345
    )
    few = GeneratedSketch(8, SKETCH, score=0.5, best_of_shortfall="it is the best of 2, not of 9")
    unsolved = RepairReport(dof=12, warning="no solution was found")
    facts = {"seed": 5, "count": 2, "model": {"name": "ours", "sha256": "abc"}, "seconds": {"loading": 1.0}}
    repaired, failed = (GeneratedSketch(9, SKETCH, repair=REPAIRED), GeneratedSketch(10, SKETCH, repair=unsolved))
    drawn = [GeneratedSketch(6, SKETCH), odd, few, repaired, failed]
    summary = write(drawn, tmp_path, "json,svg", facts=facts)
    assert (summary.sketches, summary.short.total(), summary.few) == (5, 1, 1)
    assert summary.unrepaired == {"not repaired: no solution was found": 1}
    content = manifest(tmp_path)
    assert content["model"] == {"name": "ours", "sha256": "abc"}
    assert (content["seed"], content["finished"]) == (5, True)
    assert set(content["seconds"]) == {"loading", "drawing", "writing"}
    entries = content["sketches"]
    for entry in entries:
        files = [(tmp_path / name).read_bytes() for name in entry["files"]]
        assert entry.pop("sha256") == [hashlib.sha256(data).hexdigest() for data in files]
    first = {"number": 6, "seed": 5, "files": ["sketch-0006.json", "sketch-0006.svg"], "primitives": 3, "attempts": 1}
    assert entries[0] == {**first, "repaired": [], "rejected": [], "shortfall": None}
    second = {**first, "number": 7, "files": ["sketch-0007.json", "sketch-0007.svg"], "attempts": 3, "score": 0.1235}
    reasons = {"repaired": ["made a semicircle"], "rejected": ["a line of no length"]}
    assert entries[1] == {**second, **reasons, "shortfall": "it has 3 primitives, not 4"}
    assert entries[2]["fewer"] == "it is the best of 2, not of 9"
    repair = {"summary": REPAIRED.summary, "actions": list(REPAIRED.actions), "displacement": 0.0123}
    assert entries[3]["repair"] == {**repair, "dof": 9, "warning": None}
    words = Page((tmp_path / "gallery.html").read_text()).words
    assert "repaired: 1 joined, 1 merged; nothing moved by more than 1.23 %; 9 degrees of freedom" in words
    assert "not repaired: no solution was found" in words
    assert words.count("it is the best of 2, not of 9") == 1


def test_second_run_replaces_the_files_of_the_first_once_a_sketch_is_drawn(tmp_path: Path) -> None:
    write(5, tmp_path, "json,svg,fcstd")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sketch-0099.dxf").write_text("mine too, since no manifest lists it")
    assert (write(1, tmp_path / "other").removed, write(2, tmp_path).removed) == (0, 15)
    mine = ["notes.txt", "other", "sketch-0099.dxf"]
    assert names(tmp_path) == sorted([*GALLERY, "sketch-0000.json", "sketch-0001.json", *mine])
    write(3, tmp_path / "third")
    before = contents(tmp_path / "third")
    with pytest.raises(SketchError):
        write(stopping(0, SketchError("the model drew nothing")), tmp_path / "third")
    assert contents(tmp_path / "third") == before


@pytest.mark.parametrize("name", ["sketch-0001.json", "gallery.html", "sketch-0003.json"])
def test_changed_files_are_kept_unless_forced(tmp_path: Path, name: str) -> None:
    write(2, tmp_path, "json,svg")
    (tmp_path / name).write_text("mine")  # changed, or the user's own
    before = names(tmp_path)
    with pytest.raises(FormatError, match=f"{name}: .*--force"):
        write(4, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    if name != "sketch-0003.json":
        assert names(tmp_path) == before  # refused before anything was drawn
    write(4, tmp_path, force=True)
    assert (tmp_path / name).read_text() != "mine"
    assert manifest(tmp_path)["finished"]


def test_changed_folders_without_hashes_and_foreign_manifests_are_kept_unless_forced(tmp_path: Path) -> None:
    """An earlier version wrote none."""
    write(2, tmp_path)
    content = manifest(tmp_path)
    for entry in (content["gallery"], *content["sketches"]):
        del entry["sha256"]
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(FormatError, match="--force"):
        write(1, tmp_path)
    assert write(1, tmp_path, force=True).removed == 2
    for content in ("", "{", "[" * 100_000, '{"files": 3}', "\xff\n[1]\n", "null"):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(FormatError, match="--force"):
            write(1, tmp_path)
        assert (tmp_path / "manifest.json").read_text() == content
        write(1, tmp_path, force=True)
        assert manifest(tmp_path)["finished"]


def test_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from sketchdnn.generation import GeneratedSketch, OutputOptions, files, write_sketches
from sketchdnn.geometry import Line, Sketch
sketch = Sketch((Line((0, 0), (80, 0)),))
def killed(file, path):
    if path.name == "sketch-0001.svg":  # between the two files of a sketch
        os.kill(os.getpid(), signal.SIGKILL)
    file.replace(path)
files._move = killed
sketches = (GeneratedSketch(index, sketch) for index in range(3))
write_sketches(sketches, 3, OutputOptions(Path(sys.argv[1]), ["json", "svg"]))
"""
    assert subprocess.run([sys.executable, "-c", program, tmp_path], check=False).returncode == -signal.SIGKILL
    assert "sketch-0001.json" in names(tmp_path)
    assert [name for name in names(tmp_path) if name.startswith(".")]
    assert (write(1, tmp_path, "dxf").removed, names(tmp_path)) == (3, [*GALLERY, "sketch-0000.dxf"])


def test_folders_in_use_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    def meanwhile() -> Iterator[GeneratedSketch]:
        with pytest.raises(FormatError, match=f"in use by another run .process {os.getpid()}."):
            write(1, tmp_path)
        yield from sketches(2)

    assert write(meanwhile(), tmp_path).sketches == 2
    for formats in ("stl", "", "json,jsonl", " "):
        with pytest.raises(SketchError, match="json, svg, dxf, fcstd"):
            OutputOptions(tmp_path, formats.split(","))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FormatError, match="file"):
        write(1, tmp_path / "file")


def test_source_file_is_not_replaced(tmp_path: Path) -> None:
    write(2, tmp_path)
    part = tmp_path / "sketch-0001.json"
    check_not_replaced(part, tmp_path, "completion")
    assert write(1, tmp_path, stem="completion").removed == 0
    assert part.is_file()
    (tmp_path / "beside").mkdir()
    (linked := tmp_path / "beside" / "symbolic.json").symlink_to(part)
    (hard := tmp_path / "beside" / "hard.json").hardlink_to(part)
    for name in (part, linked, hard, tmp_path / "beside"):
        with pytest.raises(FormatError, match="name another output"):
            check_not_replaced(name, tmp_path / "." / "", "sketch")


@pytest.mark.parametrize("force", [False, True])
def test_manifest_cannot_have_other_files_removed(tmp_path: Path, force: bool) -> None:
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    mine = [tmp_path / "beside.txt", out / "notes.txt", out / "sub" / "sketch-0001.json"]
    for path in mine:
        path.write_text("mine")
    hostile = ["../beside.txt", "/etc/hostname", "notes.txt", "sub/sketch-0001.json", ".", "", 7]
    for name in (*hostile, "sketch-0001.json/../notes.txt"):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(out, tmp_path / "copy")
        entry = {"files": [name], "sha256": [hashlib.sha256(b"mine").hexdigest()]}
        content = {"program": "sketchdnn 0", "sketches": [entry]}
        (tmp_path / "copy" / "manifest.json").write_text(json.dumps(content) + "\n")
        assert write(1, tmp_path / "copy", force=force).removed == 0
        kept = [tmp_path / "beside.txt", *(tmp_path / "copy" / path.relative_to(out) for path in mine[1:])]
        assert all(path.read_text() == "mine" for path in kept)


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SketchError("the model drew nothing"), MemoryError()])
def test_finished_sketches_stay_when_a_run_stops(tmp_path: Path, end: BaseException) -> None:
    with pytest.raises(type(end)):
        write(stopping(2, end), tmp_path / "some", facts={"count": 5})
    assert names(tmp_path / "some") == [*GALLERY, "sketch-0000.json", "sketch-0001.json"]
    content = manifest(tmp_path / "some")
    assert (content["finished"], [entry["number"] for entry in content["sketches"]]) == (False, [0, 1])
    assert "Stopped early: 5 were asked for" in (tmp_path / "some" / "gallery.html").read_text()
    (tmp_path / "none").mkdir()
    with pytest.raises(type(end)):
        write(stopping(0, end), tmp_path / "none")
    assert names(tmp_path / "none") == []


@pytest.mark.parametrize("end", [KeyboardInterrupt(), FormatError("disk", "cannot be written (No space left)")])
@pytest.mark.parametrize("step", ["write", "_move"])
def test_sketch_is_written_in_all_formats_or_in_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException, step: str
) -> None:
    original = getattr(files_module, step)

    def failing(*arguments: Any) -> None:
        if any(getattr(each, "name", "") == "sketch-0001.dxf" for each in arguments):
            raise end
        original(*arguments)

    monkeypatch.setattr(files_module, step, failing)
    with pytest.raises(type(end)):
        write(3, tmp_path, "json,dxf,svg")
    assert names(tmp_path) == [*GALLERY, "sketch-0000.dxf", "sketch-0000.json", "sketch-0000.svg"]


def test_full_disk_is_reported_once_and_leaves_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the sketch nor the page can be written: the first error is raised, and no part of a file stays."""

    def full(*_: object) -> None:
        raise FormatError(tmp_path / "sketch", "cannot be written (No space left on device)")

    def late() -> Iterator[GeneratedSketch]:
        yield from sketches(1)
        monkeypatch.setattr(files_module, "write", full)
        monkeypatch.setattr(files_module, "_write_bytes", full)
        yield from sketches(1)

    with pytest.raises(FormatError, match="sketch: cannot be written"):
        write(late(), tmp_path)
    assert not [name for name in names(tmp_path) if name.startswith(".")]
    # Its files are removed, and the space they leave must not let it in after all.
    log = EntryLog(tmp_path)
    log.add({"number": 0})
    disk = log._file

    class Full:
        close = disk.close

        def write(self, line: bytes) -> int:
            return disk.write(line[: len(line) // 2])

    log._file = Full()  # type: ignore[assignment]
    with pytest.raises(FormatError, match="No space left"):
        log.add({"number": 1})
    log.close()
    assert list(read_entries([log.path])) == [{"number": 0}]


def test_page_is_self_contained_and_links_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(3, tmp_path, "json,svg,dxf,fcstd", facts={"seed": 4, "count": 3})
    text = (tmp_path / "gallery.html").read_text()
    page = Page(text)
    assert set(page.addresses) == set(names(tmp_path)) - {"gallery.html", "gallery.png"}
    assert page.tags.count("figure") == page.tags.count("svg") == 3
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in text
    assert re.search(r"Sketch 2\s*seed 4", page.words)
    monkeypatch.setattr(files_module, "MAX_ON_PAGE", 2)
    write(3, tmp_path, "svg", facts={"count": 3})
    page = Page((tmp_path / "gallery.html").read_text())
    assert page.tags.count("figure") == 2
    assert "3 sketches" in page.words
    assert "The first 2 are shown" in page.words
    assert len(manifest(tmp_path)["sketches"]) == 3


def test_page_escapes_hostile_words() -> None:
    hostile = "<script>alert(1)</script>\"'&\u202e\n"
    odd = Sketch(SKETCH.primitives, extra={"id": hostile})
    facts = {"seed": 0, "model": {"name": hostile, "sha256": ""}, "sampler": hostile, "steps": 3}
    facts |= {"conditions": {hostile: hostile}}
    entry = {"number": 0, "files": [f"{hostile}.svg"], "shortfall": hostile, "repair": {"summary": hostile}}
    page = Page(render_page([(odd, entry)], facts, 1))
    assert "script" not in page.tags
    assert page.words.count("<script>alert(1)</script>") == 6
    assert all("<" not in link and '"' not in link for link in page.addresses)


def test_several_processes_write_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads stand in for them."""
    barrier = Barrier(2, timeout=30)
    monkeypatch.setattr(ProcessShare, "wait", lambda share: barrier.wait())

    def write_share(rank: int) -> OutputSummary:
        share = ProcessShare(rank, 2)
        mine = []
        for n in share.select(range(5)):
            repair = replace(REPAIRED, warning="too large" if n == 4 else None)
            reasons = {"shortfall": "short" if n > 1 else None, "best_of_shortfall": "few" if n else None}
            mine.append(GeneratedSketch(n, SKETCH, repair=repair, **reasons))
        return write(mine, tmp_path, "dxf,svg", facts={"count": 5}, share=share)

    with ThreadPoolExecutor(2) as pool:
        first, _ = pool.map(write_share, range(2))
    assert (first.sketches, first.short, first.few) == (5, {"short": 3}, 4)
    assert first.unrepaired == {"repaired in part: too large": 1}
    assert [entry["number"] for entry in manifest(tmp_path)["sketches"]] == list(range(5))
    page = Page((tmp_path / "gallery.html").read_text())
    assert page.tags.count("figure") == page.words.count("repaired") == 5
    assert not [name for name in names(tmp_path) if name.startswith(".")]


@pytest.fixture
def plates(tmp_path: Path) -> Path:
    write(map(GeneratedSketch, range(3), PLATES), tmp_path / "plates", "json,svg,dxf,fcstd")
    return tmp_path / "plates"


def test_each_sketch_is_read_and_viewed_once_under_its_name(plates: Path) -> None:
    (plates / ".sketchdnn-manifest-00000.part").write_text("{}")  # of a run that is not finished
    reading = read(plates.parent)  # also in a folder above
    assert not reading.skipped
    assert [sketch.extra["id"] for sketch in reading] == NAMES
    assert [replace(sketch, extra={}) for sketch in reading] == PLATES
    result = convert(plates, plates.parent / "drawings", format="dxf")
    assert (result.written, not result.skipped) == (3, True)
    assert sorted(path.stem for path in (plates.parent / "drawings").iterdir()) == NAMES
    report = prepare([plates], plates.parent / "corpus", parts=Procedural(20), workers=1)
    assert (report["found"], report["files"], report["files_not_read"]) == (23, 3, {})
    shutil.copytree(plates, plates.parent / "copies" / "of")
    assert [sketch.extra["id"] for sketch in read(plates.parent / "copies")] == NAMES
    out = plates.parent / "view.html"
    assert run("view", plates, "--out", out).stderr == f"{out}: 3 sketches\n"
    assert all(out.read_text().count(f"{name}<") == 1 for name in NAMES)
    before = contents(plates)
    assert "is an input" in refused("view", plates, "--out", plates / "sketch-0001.svg")
    assert contents(plates) == before


def test_folders_of_old_and_other_programs_are_read(plates: Path) -> None:
    old = {"program": "sketchdnn 0.1.0", "first": 0, "like": "a.dxf", "way": "given", "room": [1, 2], "tries": 4}
    old = manifest(plates) | old
    for content in (b"", b"{", b"[" * 100_000, b"null", b'{"program": "another", "sketches": []}'):
        (plates / "manifest.json").write_bytes(content)
        assert len(read(plates)) == 12
    (plates / "manifest.json").write_text(json.dumps(old))
    assert ([sketch.extra["id"] for sketch in read(plates)], write(1, plates).removed) == (NAMES, 12)


def test_changed_and_own_files_are_read_back(plates: Path) -> None:
    changed = Sketch((Circle((0, 0), 1),), units="mm")
    write_file(changed, plates / "sketch-0001.dxf")  # as from a CAD program
    write_file(changed, plates / "mine.json")
    (plates / "sketch-0002.json").unlink()
    reading = list(read(plates))
    assert [sketch.extra.get("id") for sketch in reading] == [*NAMES, None]
    assert [len(sketch) for sketch in reading] == [2, 1, 2, 1]


def test_hostile_manifest_leads_to_no_other_file(plates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = plates.parent / "outside.json"
    write_file(PLATES[0], outside)
    (plates / "linked.json").symlink_to(outside)
    (plates / "deep").mkdir()
    write_file(PLATES[0], plates / "deep" / "own.json")
    hostile = ["../outside.json", str(outside), "linked.json", "deep/own.json", "..", "", "\0", "\ud800", 7, None, {}]
    hostile += ["sketch-0000.json"] * 1000
    entries = [{"files": [name]} for name in hostile] + [{"files": 3}, [], None, {"files": hostile, "sha256": "x"}]
    (plates / "manifest.json").write_text(json.dumps({**manifest(plates), "sketches": entries}))
    opened: list[Path] = []
    original = Path.open

    def recorded(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", recorded)
    reading = list(read(plates))
    assert not {outside, plates / "linked.json"} & set(opened)
    assert opened.count(plates / "sketch-0000.json") <= 4  # however often it is listed
    # Unlisted files are read as in any folder: two sketches in four formats, and the one below.
    assert sum(sketch.extra.get("id") is None for sketch in reading) == 2 * 4 + 3 + 1


def test_changed_and_large_folders_are_read_back(plates: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(manifest_format, "LARGEST_WHOLE", 100)
    monkeypatch.setattr(manifest_format, "LONGEST_LINE", 2000)
    path = plates / "manifest.json"
    path.write_text(path.read_text() + "x" * 1_000_000)
    assert [sketch.extra["id"] for sketch in read(plates)] == NAMES
    assert write(map(GeneratedSketch, range(1), PLATES), plates).removed == 12
    # Generated sketches have an id such as "seed 0, sketch 1", which is no name for a file.
    drawn = [replace(sketch, extra={"id": f"seed 0, sketch {index}"}) for index, sketch in enumerate(PLATES)]
    write(map(GeneratedSketch, range(3), drawn), tmp_path / "plates", "json,dxf")
    convert(tmp_path / "plates", tmp_path / "drawings", format="svg")
    assert sorted(path.stem for path in (tmp_path / "drawings").iterdir()) == NAMES
