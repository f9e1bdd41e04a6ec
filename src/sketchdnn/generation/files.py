"""Writes generated sketches to a folder: files named by index, a gallery as a page and a picture, and a manifest.

A sketch appears as soon as it is generated, in all of its formats or in none. Whatever stops the run, the sketches that
are done stay and are in the gallery and the manifest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import read, write, writer_of
from sketchdnn.formats.containers import check_not_read
from sketchdnn.formats.manifest import GALLERY, PAGE, READ_BACK, hash_of
from sketchdnn.geometry import Sketch
from sketchdnn.io import flush_to_disk, replacing, temporary_folder
from sketchdnn.render import Style

from .gallery import GalleryCard, gallery_page
from .generate import GeneratedSketch
from .manifest import (
    ALONE,
    EntryLog,
    ProcessShare,
    check_absent,
    locked_folder,
    log_paths,
    read_entries,
    remove_earlier_run,
    write_manifest,
)
from .trajectory import write_trajectory

FORMATS = ("json", "svg", "dxf", "fcstd")
# More sketches would make the picture too large to look at, and the page too large to load.
MAX_IN_PICTURE = 100
MAX_ON_PAGE = 400
_MIN_DIGITS = 4


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
    share: ProcessShare = ALONE
    force: bool = False

    def __post_init__(self) -> None:
        names = list(dict.fromkeys(name.strip().lower() for name in self.formats if name.strip()))
        for name in names:
            if name not in FORMATS:
                raise SketchError(f"'{name}' is no format that sketches are written in; use {', '.join(FORMATS)}")
        if not names:
            raise SketchError(f"name at least one format: {', '.join(FORMATS)}")
        object.__setattr__(self, "formats", names)


@dataclass(slots=True)
class OutputSummary:
    """What was written.

    Attributes:
        sketches: Number of sketches.
        short: How many of them fail a condition.
        few: How many are the best of fewer than `best_of`.
        unrepaired: Incomplete repairs, counted by their summary.
        removed: Number of files of an earlier run that were removed.
        seconds: Time spent on drawing and on writing.
    """

    sketches: int = 0
    short: int = 0
    few: int = 0
    unrepaired: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"drawing": 0.0, "writing": 0.0})

    def count(self, entry: Mapping[str, Any]) -> None:
        """Count the entry of one more sketch."""
        self.sketches += 1
        self.short += entry["shortfall"] is not None
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
        check_not_read([source], [path for path in folder.iterdir() if path.name.startswith(f"{stem}-")])


def write_sketches(
    sketches: Iterable[GeneratedSketch], stop: int, options: OutputOptions, facts: Mapping[str, Any] | None = None
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
        self.cards: list[GalleryCard] = []

    def run(self, sketches: Iterable[GeneratedSketch]) -> OutputSummary:
        folder, share = self.options.folder, self.options.share
        with (
            locked_folder(folder, self.options.stem, share, force=self.options.force),
            temporary_folder(folder) as staging,
        ):
            log = EntryLog(folder, share.rank)
            try:
                for generated in self._after_removal(self._timed(sketches)):
                    self._write_sketch(generated, staging, log)
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
            paths.append(stem.with_name(stem.name + writer_of("", name).suffixes[0]))
            write(generated.sketch, paths[-1], name)
        if generated.trajectory:
            caption = "the sketch" if generated.repair is None else "before repair"
            paths += write_trajectory(generated.trajectory, stem, caption)
        hashes = {path.name: hash_of(path) for path in paths}
        if not self.options.force:
            check_absent(folder / name for name in hashes)
        log.announce(hashes)
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
        if len(self.cards) < MAX_ON_PAGE:
            self.cards.append(_to_card(entry, generated.sketch))

    def _gather(self, *, finished: bool) -> None:
        """Write the manifest, the picture and the page of all processes; nothing without sketches."""
        folder, share = self.options.folder, self.options.share
        logs = log_paths(folder, share.world)
        if not share.is_alone:
            self.cards = [_read_card(entry, folder) for entry in islice(read_entries(logs), MAX_ON_PAGE)]
            summary = OutputSummary(removed=self.summary.removed, seconds=self.summary.seconds)
            for entry in read_entries(logs):
                summary.count(entry)
            self.summary = summary
        if not self.cards:
            return
        seconds = {**self.facts.pop("seconds", {}), **self.summary.seconds}
        gallery = {
            GALLERY: _picture(self.cards[:MAX_IN_PICTURE], self.options.style),
            PAGE: gallery_page(self.cards, self.facts, self.summary.sketches, self.options.style).encode(),
        }
        hashes = {name: sha256(content).hexdigest() for name, content in gallery.items()}
        facts = {**self.facts, "finished": finished, "seconds": {name: round(s, 3) for name, s in seconds.items()}}
        # Before the gallery: it matters most if the disk is nearly full.
        write_manifest(folder, facts, read_entries(logs), hashes)
        for name, content in gallery.items():
            _write_bytes(folder / name, content)
        flush_to_disk(folder)

    def _after_removal(self, sketches: Iterator[GeneratedSketch]) -> Iterator[GeneratedSketch]:
        """The sketches. When the first one is there, and before any process writes, an earlier run is removed."""
        first, options = next(sketches, None), self.options
        if options.share.is_first:
            self.summary.removed = remove_earlier_run(options.folder, options.stem, force=options.force)
        options.share.wait()
        if first is not None:
            yield first
            yield from sketches

    def _timed(self, sketches: Iterable[GeneratedSketch]) -> Iterator[GeneratedSketch]:
        """The sketches. The time to generate and the time to write each are recorded."""
        seconds, stream = self.summary.seconds, iter(sketches)
        while True:
            start = time.perf_counter()
            try:
                generated = next(stream)
            except StopIteration:
                return
            finally:
                seconds["drawing"] += time.perf_counter() - start
            start = time.perf_counter()
            yield generated
            seconds["writing"] += time.perf_counter() - start


def _to_entry(generated: GeneratedSketch, hashes: Mapping[str, str | None], seed: object) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "number": generated.index,
        "seed": seed,
        "files": list(hashes),
        "sha256": list(hashes.values()),
        "primitives": len(generated.sketch),
        "attempts": generated.attempts,
        "repaired": generated.repaired,
        "rejected": generated.rejected,
        "shortfall": generated.shortfall,
    }
    if generated.repair is not None:
        entry["repair"] = generated.repair.to_json()
    optional = {"score": generated.score, "fewer": generated.best_of_shortfall, "scale": generated.scale}
    for name, value in optional.items():
        if value is not None:
            entry[name] = round(value, 4) if isinstance(value, float) else value
    return entry


def _to_card(entry: Mapping[str, Any], sketch: Sketch) -> GalleryCard:
    repair, shortfall = entry.get("repair", {}).get("summary"), entry["shortfall"] or entry.get("fewer")
    return GalleryCard(entry["number"], sketch, tuple(entry["files"]), shortfall, repair)


def _read_card(entry: Mapping[str, Any], folder: Path) -> GalleryCard:
    """The card of a sketch that another process wrote."""
    by_suffix = {Path(name).suffix: name for name in entry["files"] if len(Path(name).suffixes) == 1}
    name = next(by_suffix[suffix] for suffix in READ_BACK if suffix in by_suffix)
    return _to_card(entry, read(folder / name).sketches[0])


def _picture(cards: Sequence[GalleryCard], style: Style | None) -> bytes:
    from sketchdnn.render import gallery_png

    data = BytesIO()
    captions = [str(card.index) for card in cards]
    gallery_png([card.sketch for card in cards], captions=captions, style=style).save(data, format="png")
    return data.getvalue()


def _move(file: Path, path: Path) -> None:
    try:
        file.replace(path)
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error


def _write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)
