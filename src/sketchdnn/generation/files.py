"""Writes generated sketches to a folder: files named by index, a gallery as a page and a picture, and a manifest.

A sketch appears as soon as it is generated, in all of its formats or in none. Whatever stops the run, the sketches that
are done stay and are in the gallery and the manifest.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import find_writer, read, write
from sketchdnn.formats.archives import check_no_overwrite
from sketchdnn.formats.manifest import GALLERY, MANIFEST, PAGE, PREFERRED_SUFFIXES, file_sha256
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write, flush_to_disk, temporary_folder
from sketchdnn.render import Style, describe, gallery_png, svg
from sketchdnn.render.html import Card, gallery_page

from .generate import GeneratedSketch
from .manifest import EntryLog, ProcessShare, locked_folder, log_path, read_entries, remove_earlier_run, write_manifest
from .trajectory import write_trajectory

FORMATS = ("json", "svg", "dxf", "fcstd")
# More sketches would make the picture too large to look at, and the page too large to load.
MAX_IN_PICTURE = 100
MAX_ON_PAGE = 400
_MIN_DIGITS = 4

# The entries of a manifest, and one of its entries with the sketch.
Facts = Mapping[str, Any]
Shown = tuple[Sketch, Facts]


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Where sketches are written, and how.

    Attributes:
        folder: The folder; the sketches of an earlier run there are replaced.
        formats: Names of file formats, of `FORMATS`.
        stem: What the name of every file begins with.
        style: Of the pictures in the gallery.
        share: The share of this process. Each writes its own sketches, and the first one gathers.
        force: Also replace files that were changed, or that no earlier run wrote.
    """

    folder: Path
    formats: Sequence[str] = FORMATS
    stem: str = "sketch"
    style: Style | None = None
    share: ProcessShare = field(default_factory=ProcessShare)
    force: bool = False

    def __post_init__(self) -> None:
        names = list(dict.fromkeys(name.strip().lower() for name in self.formats if name.strip()))
        if unknown := set(names) - set(FORMATS):
            raise SketchError(f"'{min(unknown)}' is no format that sketches are written in; use {', '.join(FORMATS)}")
        if not names:
            raise SketchError(f"name at least one format: {', '.join(FORMATS)}")
        object.__setattr__(self, "formats", names)


@dataclass(slots=True)
class OutputSummary:
    """What was written.

    Attributes:
        sketches: Number of sketches.
        short: How many of them fail a condition, counted by what they lack.
        few: How many are the best of fewer than `best_of`.
        unrepaired: Incomplete repairs, counted by their summary.
        removed: Number of files of an earlier run that were removed.
        seconds: Time spent on drawing and on writing.
    """

    sketches: int = 0
    short: Counter[str] = field(default_factory=Counter)
    few: int = 0
    unrepaired: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"drawing": 0.0, "writing": 0.0})

    def count(self, entry: Mapping[str, Any]) -> None:
        """Count the entry of one more sketch."""
        self.sketches += 1
        if entry["shortfall"] is not None:
            self.short[entry["shortfall"]] += 1
        self.few += entry.get("fewer") is not None
        if (repair := entry.get("repair", {})).get("warning"):
            self.unrepaired[repair["summary"]] += 1


def create_folder(folder: Path) -> None:
    """Create a folder to write to, with its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(folder, f"cannot be made a folder ({error.strerror})") from error


def check_not_replaced(source: Path, folder: Path, stem: str = "sketch") -> None:
    """Refuse to write where the source file would be replaced."""
    if folder.is_dir():
        check_no_overwrite([source], [path for path in folder.iterdir() if path.name.startswith(f"{stem}-")])


def write_sketches(
    sketches: Iterable[GeneratedSketch], stop: int, options: OutputOptions, facts: Facts | None = None
) -> OutputSummary:
    """Write each sketch as it comes, and at the end the page, the picture and the manifest.

    Args:
        sketches: The sketches of this process.
        stop: One more than the largest index of all processes: names are long enough for it.
        options: Where and how.
        facts: Entries of the manifest: what was requested.

    Raises:
        FormatError: If another run writes there, or if a file to be replaced is not as an earlier run wrote it.
    """
    return _Writer(options, dict(facts or {}), max(_MIN_DIGITS, len(str(stop - 1)))).run(sketches)


class _Writer:
    def __init__(self, options: OutputOptions, facts: dict[str, Any], digits: int) -> None:
        self.options, self.facts, self.digits = options, facts, digits
        self.summary = OutputSummary()
        self.shown: list[Shown] = []

    def run(self, sketches: Iterable[GeneratedSketch]) -> OutputSummary:
        folder, share, stem, force = self.options.folder, self.options.share, self.options.stem, self.options.force
        with locked_folder(folder, stem, share, force=force), temporary_folder(folder) as staging:
            log = EntryLog(folder, share.rank)
            try:
                stream = iter(sketches)
                with self._timed("drawing"):
                    generated = next(stream, None)
                # Once the first sketch is there, and before any process writes.
                if share.is_first:
                    self.summary.removed = remove_earlier_run(folder, stem, force=force)
                share.wait()
                while generated is not None:
                    with self._timed("writing"):
                        self._write_sketch(generated, staging, log)
                    with self._timed("drawing"):
                        generated = next(stream, None)
                log.close()
                share.wait()
                if share.is_first:
                    self._gather(finished=True)
                share.wait()
                return self.summary
            except BaseException:
                log.close()
                if share.is_alone:
                    # A second failure, as on a full disk, must not hide the first.
                    with suppress(SketchError):
                        self._gather(finished=False)
                raise
            finally:
                log.path.unlink(missing_ok=True)

    def _write_sketch(self, generated: GeneratedSketch, staging: Path, log: EntryLog) -> None:
        """Write all files to the staging folder, then move them to their names, or leave none."""
        folder = self.options.folder
        stem = staging / f"{self.options.stem}-{generated.index:0{self.digits}d}"
        paths: list[Path] = []
        for name in self.options.formats:
            paths.append(stem.with_name(stem.name + find_writer("", name).suffixes[0]))
            write(generated.sketch, paths[-1], name)
        if generated.trajectory:
            caption = "the sketch" if generated.repair is None else "before repair"
            paths += write_trajectory(generated.trajectory, stem, caption)
        hashes = {path.name: file_sha256(path) for path in paths}
        for path in [folder / name for name in hashes]:
            if not self.options.force and os.path.lexists(path):  # the user's own: those of an earlier run are gone
                raise FormatError(path, "is in the way; move it, name another folder, or replace it with --force")
        log.add({"files": list(hashes), "sha256": list(hashes.values())})  # before they appear
        entry = _to_entry(generated, hashes, self.facts.get("seed"))
        try:
            for path in paths:
                _move(path, folder / path.name)
            log.add(entry)
        except BaseException:
            for path in paths:
                if not path.exists():
                    (folder / path.name).unlink(missing_ok=True)
            raise
        self.summary.count(entry)
        if len(self.shown) < MAX_ON_PAGE:
            self.shown.append((generated.sketch, entry))

    def _gather(self, *, finished: bool) -> None:
        """Write the manifest, the picture and the page of all processes; nothing without sketches."""
        folder, share = self.options.folder, self.options.share
        logs = [log_path(folder, rank) for rank in range(share.world)]
        if not share.is_alone:
            self.shown = [(_read_sketch(entry, folder), entry) for entry in islice(read_entries(logs), MAX_ON_PAGE)]
            self.summary = OutputSummary(removed=self.summary.removed, seconds=self.summary.seconds)
            for entry in read_entries(logs):
                self.summary.count(entry)
        if not self.shown:
            return
        seconds = {**self.facts.pop("seconds", {}), **self.summary.seconds}
        page = render_page(self.shown, self.facts, self.summary.sketches, self.options.style)
        picture = _render_picture(self.shown[:MAX_IN_PICTURE], self.options.style)
        gallery = {GALLERY: picture, PAGE: page.encode()}
        hashes = {name: sha256(content).hexdigest() for name, content in gallery.items()}
        facts = {**self.facts, "finished": finished, "seconds": {name: round(s, 3) for name, s in seconds.items()}}
        # Before the gallery: it matters most if the disk is nearly full.
        write_manifest(folder, facts, read_entries(logs), hashes)
        for name, content in gallery.items():
            _write_bytes(folder / name, content)
        flush_to_disk(folder)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.summary.seconds[name] += time.perf_counter() - start


def _to_entry(generated: GeneratedSketch, hashes: Mapping[str, str | None], seed: object) -> dict[str, Any]:
    entry: dict[str, Any] = {"number": generated.index, "seed": seed}
    entry |= {"files": list(hashes), "sha256": list(hashes.values()), "primitives": len(generated.sketch)}
    entry |= {name: getattr(generated, name) for name in ("attempts", "repaired", "rejected", "shortfall")}
    if generated.repair is not None:
        entry["repair"] = generated.repair.to_json()
    optional = {"score": generated.score, "fewer": generated.best_of_shortfall, "scale": generated.scale}
    optional |= {"origin": generated.origin}
    rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in optional.items()}
    return entry | {name: value for name, value in rounded.items() if value is not None}


def _read_sketch(entry: Mapping[str, Any], folder: Path) -> Sketch:
    """A sketch that another process wrote."""
    by_suffix = {Path(name).suffix: name for name in entry["files"] if len(Path(name).suffixes) == 1}
    name = next(by_suffix[suffix] for suffix in PREFERRED_SUFFIXES if suffix in by_suffix)
    return read(folder / name).sketches[0]


def render_page(sketches: Sequence[Shown], facts: Facts, num_written: int, style: Style | None = None) -> str:
    """`gallery.html`: a card for each sketch and its manifest entry, with links to its files."""
    count = int(facts.get("count", num_written))
    lead = [_describe_request(facts)]
    if num_written < count and "part" not in facts:  # a completion may have fewer ideas
        lead.append(f"Stopped early: {count:,} were asked for.")
    if len(sketches) < num_written:
        lead.append(f"The first {len(sketches):,} are shown; the others lie beside this page.")
    lead.append(Markup(f'Details of each are in <a href="{MANIFEST}">{MANIFEST}</a>.'))  # noqa: S704 - no input
    cards = [
        Card(
            picture=svg(sketch, 300, style=style),
            title=f"Sketch {entry['number']}",
            label="" if facts.get("seed") is None else f"seed {facts['seed']}",
            lines=(describe(sketch), entry.get("repair", {}).get("summary", "")),
            warning=entry["shortfall"] or entry.get("fewer") or "",
            links={_format_label(name): quote(name) for name in entry["files"]},
            anchor=str(entry["number"]),
        )
        for sketch, entry in sketches
    ]
    return gallery_page(f"{num_written:,} sketch{'es' * (num_written != 1)}", cards, lead=lead)


def _describe_request(facts: Mapping[str, Any]) -> str:
    """The request in one line."""
    words = []
    if "init_sketch" in facts:
        words.append(f"variations of {Path(facts['init_sketch']).name}, strength {facts['strength']:g}")
    if "part" in facts:
        words += [f"completions of {Path(facts['part']).name}, the part in black", f"goal {facts['goal']}"]
    if facts.get("model"):
        words.append(f"model {facts['model']['name']}")
    if "steps" in facts:
        no_steps = facts["steps"] is None  # an autoregressive system
        words.append("drawn token by token" if no_steps else f"{facts['sampler']}, {facts['steps']} steps")
    if "size" in facts:
        words.append(f"{facts['size']:g} {facts['units']} across")
    for name, value in facts.get("conditions", {}).items():
        words.append(name.replace("_", " ") + ("" if value is True else f" {value}"))
    return " · ".join(words)


def _format_label(name: str) -> str:
    """The text of a link to a file.

    >>> _format_label("sketch-0001.FCStd"), _format_label("sketch-0001.trajectory.svg")
    ('FCStd', 'trajectory SVG')
    """
    *more, suffix = (part.removeprefix(".") for part in Path(name).suffixes)
    return " ".join([*more, suffix if suffix == "FCStd" else suffix.upper()])


def _render_picture(sketches: Sequence[Shown], style: Style | None) -> bytes:
    data = BytesIO()
    captions = [str(entry["number"]) for _, entry in sketches]
    gallery_png([sketch for sketch, _ in sketches], captions=captions, style=style).save(data, format="png")
    return data.getvalue()


def _move(file: Path, path: Path) -> None:
    try:
        file.replace(path)
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error


def _write_bytes(path: Path, content: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
