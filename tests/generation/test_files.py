"""Files of sketches: names, formats, the page and the manifest, and what is left when drawing stops."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sketchdnn.generation.page import Card, gallery_page
from support.strategies import assert_same

from sketchdnn import read
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.generation import GeneratedSketch, write_sketches
from sketchdnn.generation import files as files_room
from sketchdnn.generation.files import OutputSummary, check_not_replaced
from sketchdnn.generation.manifest import EntryLog, ProcessShare, read_entries
from sketchdnn.generation.repair import RepairReport
from sketchdnn.geometry import Circle, Line, Sketch

SKETCH = Sketch((Line((0, 0), (80, 0)), Line((80, 0), (0, 60)), Circle((40, 20), 5, True)), units="mm")
BESIDE = ["gallery.html", "gallery.png", "manifest.json"]
MINE = hashlib.sha256(b"mine").hexdigest()


def drawings(count: int) -> Iterator[GeneratedSketch]:
    return (GeneratedSketch(number, SKETCH) for number in range(count))


def manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_sketch_is_written_in_every_format(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    written = write_sketches(drawings(2), 2, out, ["json", "svg", "dxf", "fcstd"])
    assert written.sketches == 2
    files = [f"sketch-000{n}.{suffix}" for n in (0, 1) for suffix in ("FCStd", "dxf", "json", "svg")]
    assert names(out) == BESIDE + files
    for suffix in ("json", "dxf", "FCStd", "svg"):
        found = read(out / f"sketch-0001.{suffix}").sketches
        assert_same(SKETCH, found[0].in_units("mm"), tolerance=1e-4, construction=suffix != "dxf")


def test_the_manifest_tells_what_became_of_each(tmp_path: Path) -> None:
    odd = GeneratedSketch(
        7, SKETCH, 3, ("a line of no length",), ("made a semicircle",), "it has 3 primitives, not 4", 0.12345
    )
    facts = {"seed": 5, "count": 2, "model": {"name": "ours", "sha256": "abc"}, "seconds": {"loading": 1.0}}
    written = write_sketches([GeneratedSketch(6, SKETCH), odd], 8, tmp_path, ["json", "svg"], facts=facts)
    told = manifest(tmp_path)
    assert told["model"] == {"name": "ours", "sha256": "abc"}
    assert (told["seed"], told["finished"]) == (5, True)
    assert set(told["seconds"]) == {"loading", "drawing", "writing"}
    for entry in told["sketches"]:
        contents = [(tmp_path / name).read_bytes() for name in entry["files"]]
        assert entry.pop("sha256") == [hashlib.sha256(content).hexdigest() for content in contents]
    assert told["sketches"][0] == {
        "number": 6,
        "seed": 5,
        "files": ["sketch-0006.json", "sketch-0006.svg"],
        "primitives": 3,
        "attempts": 1,
        "repaired": [],
        "rejected": [],
        "shortfall": None,
    }
    assert told["sketches"][1] == {
        **told["sketches"][0],
        "number": 7,
        "files": ["sketch-0007.json", "sketch-0007.svg"],
        "attempts": 3,
        "repaired": ["made a semicircle"],
        "rejected": ["a line of no length"],
        "shortfall": "it has 3 primitives, not 4",
        "score": 0.1235,
    }
    assert (written.sketches, written.short) == (2, 1)


MENDED = RepairReport(("an end was snapped", "two lines were merged"), ("snap", "merge"), 0.0123456, 9)


def test_repairs_are_in_the_manifest_and_shortly_on_the_page(tmp_path: Path) -> None:
    unsolved = RepairReport(dof=12, warning="no solution was found")
    drawn = [
        GeneratedSketch(0, SKETCH, repair=MENDED),
        GeneratedSketch(1, SKETCH, repair=unsolved),
        GeneratedSketch(2, SKETCH),
    ]
    written = write_sketches(drawn, 3, tmp_path, ["json"])
    assert written.unrepaired == {"not repaired: no solution was found": 1}
    told = manifest(tmp_path)["sketches"]
    assert told[0]["repair"] == {
        "summary": MENDED.summary,
        "actions": ["an end was snapped", "two lines were merged"],
        "displacement": 0.0123,
        "dof": 9,
        "warning": None,
    }
    assert told[1]["repair"]["warning"] == "no solution was found"
    assert "repair" not in told[2]
    words = Page((tmp_path / "gallery.html").read_text()).words
    assert "repaired: 1 joined, 1 merged; nothing moved by more than 1.23 %; 9 degrees of freedom" in words
    assert "not repaired: no solution was found" in words


def test_the_best_of_fewer_is_told_and_counted(tmp_path: Path) -> None:
    drawn = [
        GeneratedSketch(0, SKETCH, score=0.5, fewer="it is the best of 2, not of 9"),
        GeneratedSketch(1, SKETCH, score=1.0),
    ]
    written = write_sketches(drawn, 2, tmp_path, ["json"])
    assert (written.fewer, written.short) == (1, 0)
    assert [entry.get("fewer") for entry in manifest(tmp_path)["sketches"]] == ["it is the best of 2, not of 9", None]
    assert Page((tmp_path / "gallery.html").read_text()).words.count("it is the best of 2, not of 9") == 1


def test_a_second_run_leaves_no_sketch_of_the_first(tmp_path: Path) -> None:
    write_sketches(drawings(5), 5, tmp_path, ["json", "svg", "fcstd"])
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sketch-0099.dxf").write_text("mine too, since no manifest lists it")
    assert write_sketches(drawings(1), 1, tmp_path / "other", ["json"]).removed == 0
    written = write_sketches(drawings(2), 2, tmp_path, ["json"])
    assert written.removed == 15
    mine = ["notes.txt", "other", "sketch-0099.dxf"]
    assert names(tmp_path) == sorted([*BESIDE, "sketch-0000.json", "sketch-0001.json", *mine])


@pytest.mark.parametrize("name", ["sketch-0001.json", "gallery.html", "sketch-0003.json"])
def test_changed_files_are_kept_unless_forced(tmp_path: Path, name: str) -> None:
    write_sketches(drawings(2), 2, tmp_path, ["json", "svg"])
    (tmp_path / name).write_text("mine")  # changed, or of the user's own making
    before = names(tmp_path)
    with pytest.raises(FormatError, match=f"{name}: .*--force"):
        write_sketches(drawings(4), 4, tmp_path, ["json"])
    assert (tmp_path / name).read_text() == "mine"
    if name != "sketch-0003.json":
        assert names(tmp_path) == before  # it was refused before anything was drawn
    write_sketches(drawings(4), 4, tmp_path, ["json"], force=True)
    assert (tmp_path / name).read_text() != "mine"
    assert manifest(tmp_path)["finished"]


def test_folders_without_hashes_are_kept_unless_forced(tmp_path: Path) -> None:
    """An earlier version noted none."""
    write_sketches(drawings(2), 2, tmp_path, ["json"])
    told = manifest(tmp_path)
    for entry in (told["gallery"], *told["sketches"]):
        del entry["sha256"]
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    with pytest.raises(FormatError, match="--force"):
        write_sketches(drawings(1), 1, tmp_path, ["json"])
    assert write_sketches(drawings(1), 1, tmp_path, ["json"], force=True).removed == 2


def test_what_a_killed_run_left_is_cleared(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from sketchdnn.generation import Drawing, files, write_sketches
from sketchdnn.geometry import Line, Sketch
sketch = Sketch((Line((0, 0), (80, 0)),))
def killed(file, path):
    if path.name == "sketch-0001.svg":  # between the two files of a sketch
        os.kill(os.getpid(), signal.SIGKILL)
    file.replace(path)
files._move = killed
write_sketches((Drawing(number, sketch) for number in range(3)), 3, Path(sys.argv[1]), ["json", "svg"])
"""
    assert subprocess.run([sys.executable, "-c", program, tmp_path], check=False).returncode == -signal.SIGKILL
    assert "sketch-0001.json" in names(tmp_path)
    assert [name for name in names(tmp_path) if name.startswith(".")]
    written = write_sketches(drawings(1), 1, tmp_path, ["dxf"])
    assert written.removed == 3
    assert names(tmp_path) == [*BESIDE, "sketch-0000.dxf"]


def test_second_run_into_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    def meanwhile() -> Iterator[GeneratedSketch]:
        with pytest.raises(FormatError, match=f"in use by another run .process {os.getpid()}."):
            write_sketches(drawings(1), 1, tmp_path, ["json"])
        yield from drawings(2)

    assert write_sketches(meanwhile(), 2, tmp_path, ["json"]).sketches == 2


def test_completions_of_a_sketch_leave_it_where_it_is(tmp_path: Path) -> None:
    write_sketches(drawings(2), 2, tmp_path, ["json"])
    part = tmp_path / "sketch-0001.json"
    check_not_replaced(part, tmp_path, "completion")
    assert write_sketches(drawings(1), 1, tmp_path, ["json"], stem="completion").removed == 0
    assert part.is_file()
    (tmp_path / "beside").mkdir()
    (linked := tmp_path / "beside" / "symbolic.json").symlink_to(part)
    (hard := tmp_path / "beside" / "hard.json").hardlink_to(part)
    for name in (part, linked, hard, tmp_path / "beside"):
        with pytest.raises(FormatError, match="name another output"):
            check_not_replaced(name, tmp_path / "." / "", "sketch")


def test_what_is_there_stays_until_something_is_drawn(tmp_path: Path) -> None:
    def stopped() -> Iterator[GeneratedSketch]:
        raise SketchError("the model drew nothing")
        yield from drawings(1)

    write_sketches(drawings(3), 3, tmp_path, ["json"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SketchError):
        write_sketches(stopped(), 2, tmp_path, ["json"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "listed",
    [
        "../beside.txt",
        "/etc/hostname",
        "notes.txt",
        "sub/sketch-0001.json",
        "sketch-0001.json/../notes.txt",
        ".",
        "",
        7,
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_manifest_cannot_have_anything_else_removed(tmp_path: Path, listed: object, force: bool) -> None:
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    kept = [tmp_path / "beside.txt", out / "notes.txt", out / "sub" / "sketch-0001.json"]
    for path in kept:
        path.write_text("mine")
    told = {"program": "sketchdnn 0", "sketches": [{"files": [listed], "sha256": [MINE]}]}
    (out / "manifest.json").write_text(json.dumps(told) + "\n")
    assert write_sketches(drawings(1), 1, out, ["json"], force=force).removed == 0
    assert all(path.read_text() == "mine" for path in kept)


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, '{"files": 3}', "\xff\n[1]\n", "null"])
def test_another_programs_manifest_is_kept_unless_forced(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(FormatError, match="--force"):
        write_sketches(drawings(1), 1, tmp_path, ["json"])
    assert (tmp_path / "manifest.json").read_text() == content
    write_sketches(drawings(1), 1, tmp_path, ["json"], force=True)
    assert manifest(tmp_path)["finished"]


def test_names_are_long_enough_for_all(tmp_path: Path) -> None:
    late = (GeneratedSketch(number, SKETCH) for number in (0, 123_456))
    write_sketches(late, 200_000, tmp_path, ["json"])
    assert {path.name for path in tmp_path.glob("sketch*")} == {"sketch-000000.json", "sketch-123456.json"}


def test_sketches_appear_as_they_come(tmp_path: Path) -> None:
    def looking() -> Iterator[GeneratedSketch]:
        for drawing in drawings(3):
            assert len(list(tmp_path.glob("sketch-*.json"))) == drawing.index
            yield drawing

    write_sketches(looking(), 3, tmp_path, ["json"])


@pytest.mark.parametrize("end", [KeyboardInterrupt, SketchError("the model drew nothing"), MemoryError])
def test_what_is_done_stays_when_drawing_stops(tmp_path: Path, end: type[BaseException] | BaseException) -> None:
    def stopped() -> Iterator[GeneratedSketch]:
        yield from drawings(2)
        raise end

    with pytest.raises(end if isinstance(end, type) else type(end)):
        write_sketches(stopped(), 5, tmp_path, ["json"], facts={"count": 5})
    assert names(tmp_path) == [*BESIDE, "sketch-0000.json", "sketch-0001.json"]
    told = manifest(tmp_path)
    assert (told["finished"], [entry["number"] for entry in told["sketches"]]) == (False, [0, 1])
    assert "Stopped early: 5 were asked for" in (tmp_path / "gallery.html").read_text()


def test_nothing_is_left_if_there_was_nothing(tmp_path: Path) -> None:
    def stopped() -> Iterator[GeneratedSketch]:
        raise KeyboardInterrupt
        yield from drawings(1)

    with pytest.raises(KeyboardInterrupt):
        write_sketches(stopped(), 5, tmp_path, ["json"])
    assert names(tmp_path) == []


@pytest.mark.parametrize("end", [KeyboardInterrupt(), FormatError("disk", "cannot be written (No space left)")])
def test_a_sketch_is_there_in_all_formats_or_in_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    def full(sketch: Sketch, path: Path, name: str) -> None:
        if path.name == "sketch-0001.dxf":
            raise end
        write(sketch, path, name)

    write = files_room.write
    monkeypatch.setattr(files_room, "write", full)
    with pytest.raises(type(end)):
        write_sketches(drawings(3), 3, tmp_path, ["json", "dxf", "svg"])
    assert names(tmp_path) == [*BESIDE, "sketch-0000.dxf", "sketch-0000.json", "sketch-0000.svg"]


def test_a_full_disk_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sketch nor page fits: the first complaint is the one to hear, and no part of a file is left."""

    def full(*_: object) -> None:
        raise FormatError(tmp_path / "sketch", "cannot be written (No space left on device)")

    def late() -> Iterator[GeneratedSketch]:
        yield from drawings(1)
        monkeypatch.setattr(files_room, "write", full)
        monkeypatch.setattr(files_room, "_write", full)
        yield from drawings(1)

    with pytest.raises(FormatError, match="sketch: cannot be written"):
        write_sketches(late(), 3, tmp_path, ["json"])
    assert not [name for name in names(tmp_path) if name.startswith(".")]


def test_an_entry_that_a_full_disk_cut_short_is_not_told(tmp_path: Path) -> None:
    """The files of its sketch go, and the room they leave must not let it in after all."""
    spool = EntryLog(tmp_path)
    spool.add({"number": 0})
    disk = spool._file

    class Full:
        close = disk.close

        def write(self, line: bytes) -> int:
            return disk.write(line[: len(line) // 2])

    spool._file = Full()  # type: ignore[assignment]
    with pytest.raises(FormatError, match="No space left"):
        spool.add({"number": 1})
    spool.close()
    assert list(read_entries([spool.path])) == [{"number": 0}]


def test_more_may_be_written_of_each(tmp_path: Path) -> None:
    def note(drawing: GeneratedSketch, stem: Path) -> Sequence[Path]:
        path = stem.with_name(stem.name + ".note.txt")
        path.write_text(str(drawing.index))
        return [path]

    write_sketches(drawings(2), 2, tmp_path, ["svg"], also=note)
    assert (tmp_path / "sketch-0001.note.txt").read_text() == "1"
    assert manifest(tmp_path)["sketches"][1]["files"] == ["sketch-0001.svg", "sketch-0001.note.txt"]
    assert '<a href="sketch-0001.note.txt">note TXT</a>' in (tmp_path / "gallery.html").read_text()


@pytest.mark.parametrize("formats", [["stl"], [], ["json", "jsonl"], [" "]])
def test_unknown_formats_are_refused_before_anything_is_written(tmp_path: Path, formats: list[str]) -> None:
    with pytest.raises(SketchError, match="json, svg, dxf, fcstd"):
        write_sketches(drawings(1), 1, tmp_path / "out", formats)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FormatError, match="file"):
        write_sketches(drawings(1), 1, tmp_path / "file", ["json"])


class Page(HTMLParser):
    """What a page consists of: its tags, where its links lead, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_needs_nothing_but_itself_and_leads_to_every_file(tmp_path: Path) -> None:
    write_sketches(drawings(3), 3, tmp_path, ["json", "svg", "dxf", "fcstd"], facts={"seed": 4, "count": 3})
    text = (tmp_path / "gallery.html").read_text()
    page = Page(text)
    assert set(page.links) == {path.name for path in tmp_path.iterdir()} - {"gallery.html", "gallery.png"}
    assert page.tags.count("article") == page.tags.count("svg") == 3
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in text
    assert re.search(r"Sketch 2\s*seed 4", page.words)


HOSTILE = "<script>alert(1)</script>\"'&\u202e\n"


def test_hostile_words_are_only_words() -> None:
    odd = Sketch(SKETCH.primitives, extra={"id": HOSTILE})
    facts = {
        "seed": 0,
        "model": {"name": HOSTILE, "sha256": ""},
        "sampler": HOSTILE,
        "steps": 3,
        "conditions": {HOSTILE: HOSTILE},
    }
    card = Card(0, odd, (f"{HOSTILE.strip()}.svg",), HOSTILE, HOSTILE)
    page = Page(gallery_page([card], facts))
    assert "script" not in page.tags
    assert page.words.count("<script>alert(1)</script>") == 6
    assert all("<" not in link and '"' not in link for link in page.links)


def test_a_page_has_room_for_some(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files_room, "MOST_ON_PAGE", 2)
    write_sketches(drawings(3), 3, tmp_path, ["svg"], facts={"count": 3})
    page = Page((tmp_path / "gallery.html").read_text())
    assert page.tags.count("article") == 2
    assert "3 sketches" in page.words
    assert "The first 2 are shown" in page.words
    assert len(manifest(tmp_path)["sketches"]) == 3


def test_several_processes_make_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads stand in for them, and wait for one another as they do."""
    barrier = Barrier(2, timeout=30)
    monkeypatch.setattr(ProcessShare, "wait", lambda share: barrier.wait())

    def write(rank: int) -> OutputSummary:
        share = ProcessShare(rank, 2)
        mine = (
            GeneratedSketch(
                n,
                SKETCH,
                shortfall="short" if n > 1 else None,
                fewer="few" if n else None,
                repair=replace(MENDED, warning="too large" if n == 4 else None),
            )
            for n in share.of(range(5))
        )
        return write_sketches(mine, 5, tmp_path, ["dxf", "svg"], facts={"count": 5}, share=share)

    with ThreadPoolExecutor(2) as pool:
        start_index, _ = pool.map(write, range(2))
    assert (start_index.sketches, start_index.short, start_index.fewer) == (5, 3, 4)
    assert start_index.unrepaired == {"repaired in part: too large": 1}
    assert [entry["number"] for entry in manifest(tmp_path)["sketches"]] == list(range(5))
    page = Page((tmp_path / "gallery.html").read_text())
    assert page.tags.count("article") == page.words.count("repaired") == 5
    assert not [name for name in names(tmp_path) if name.startswith(".")]
