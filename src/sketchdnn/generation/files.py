"""Sketches as files in a folder: each whole or not at all, named by its number, with a page, a picture and a manifest.

A sketch appears as soon as it is drawn. Whatever ends the work early, what was drawn stays, in all of its formats, and
is in the page, the picture and the manifest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import find_writer, read, write
from sketchdnn.formats.archives import check_no_overwrite
from sketchdnn.formats.manifest import GALLERY, PAGE, PREFERRED_SUFFIXES, file_sha256
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write, flush_to_disk, temporary_folder
from sketchdnn.render import Style

from .manifest import Spool, check_free, clear_earlier, entries, held, spools, write_manifest
from .page import Card, gallery_page
from .repairs import Repairs
from .share import ALONE, Share

FORMATS = ("json", "svg", "dxf", "fcstd")
# More would be too large a picture to look at, or a page to load.
MOST_IN_GALLERY = 100
MOST_ON_PAGE = 400
_DIGITS = 4


class Drawn(Protocol):
    """What is asked of a drawing: `Drawing` and `Completion` are such."""

    @property
    def number(self) -> int: ...
    @property
    def sketch(self) -> Sketch: ...
    @property
    def attempts(self) -> int: ...
    @property
    def rejected(self) -> tuple[str, ...]: ...
    @property
    def repaired(self) -> tuple[str, ...]: ...
    @property
    def shortfall(self) -> str | None: ...
    @property
    def repair(self) -> Repairs | None: ...


# Writes more about a drawing to files whose names begin so, and says which: the hook for trajectories.
Also = Callable[[Any, Path], Sequence[Path]]


@dataclass(slots=True)
class Written:
    """What came of it."""

    sketches: int = 0
    short: int = 0  # of what was asked for
    fewer: int = 0  # the best of fewer than were asked for
    unrepaired: Counter[str] = field(default_factory=Counter)  # by how far repair went, and why no further
    removed: int = 0  # files of an earlier run
    seconds: dict[str, float] = field(default_factory=lambda: {"drawing": 0.0, "writing": 0.0})


def check_formats(names: Iterable[str]) -> list[str]:
    """Formats by name, each once; refuses one that is none of `FORMATS`."""
    chosen = list(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    for name in chosen:
        if name not in FORMATS:
            raise SketchError(f"'{name}' is no format that sketches are drawn in; use {', '.join(FORMATS)}")
    if not chosen:
        raise SketchError(f"name at least one format: {', '.join(FORMATS)}")
    return chosen


def make_folder(folder: Path) -> None:
    """The folder to write to, made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(folder, f"cannot be made a folder ({error.strerror})") from error


def check_not_replaced(source: Path, folder: Path, stem: str = "sketch") -> None:
    """Refuses to write where the sketch that one begins with would be replaced."""
    if folder.is_dir():
        check_no_overwrite([source], [path for path in folder.iterdir() if path.name.startswith(f"{stem}-")])


def write_sketches(
    drawings: Iterable[Drawn],
    below: int,
    folder: Path,
    formats: Sequence[str],
    *,
    stem: str = "sketch",
    facts: Mapping[str, Any] | None = None,
    also: Also | None = None,
    style: Style | None = None,
    share: Share = ALONE,
    force: bool = False,
) -> Written:
    """Write each sketch as it comes, in every format, and at the end the page, the picture and the manifest.

    Numbers of the whole job lie `below` that one, and names are long enough for them. `facts` are the manifest's: what
    was asked for. Page and picture show sketches in that `style`. Of several processes each writes its own sketches,
    and the first gathers. Files that an earlier run wrote there go when the first sketch comes, those alone.

    Raises:
        FormatError: If another run writes there, or if a file that would go is not as an earlier run wrote it. With
            `force` such a file is replaced.
    """
    chosen = check_formats(formats)
    digits = max(_DIGITS, len(str(below - 1)))
    facts, written, cards = dict(facts or {}), Written(), list[Card]()
    with held(folder, stem, share, force=force), temporary_folder(folder) as aside:
        spool = Spool(folder, share.rank)
        try:
            for drawing in _in_its_place(_timed(drawings, written.seconds), folder, stem, written, share, force=force):
                path = aside / f"{stem}-{drawing.number:0{digits}d}"
                paths: list[Path] = []
                for name in chosen:
                    paths.append(path.with_name(path.name + find_writer("", name).suffixes[0]))
                    write(drawing.sketch, paths[-1], name)
                if also is not None:
                    paths += also(drawing, path)
                hashes = {each.name: file_sha256(each) for each in paths}
                if not force:
                    check_free(folder / name for name in hashes)
                spool.begin(hashes)
                with together() as named:
                    for each in paths:
                        named.append(folder / each.name)
                        _move(each, named[-1])
                    spool.add(_entry(drawing, hashes, facts.get("seed")))
                written.sketches += 1
                written.short += drawing.shortfall is not None
                fewer = getattr(drawing, "fewer", None)
                written.fewer += fewer is not None
                if drawing.repair is not None and drawing.repair.warning:
                    written.unrepaired[drawing.repair.summary] += 1
                if len(cards) < MOST_ON_PAGE:
                    repair = None if drawing.repair is None else drawing.repair.summary
                    cards.append(
                        Card(drawing.number, drawing.sketch, tuple(hashes), drawing.shortfall or fewer, repair)
                    )
            spool.close()
            share.wait()
            if share.leads:
                _gather(folder, facts, written, cards, style, share, finished=True)
            share.wait()
            return written
        except BaseException:
            spool.close()
            if share.alone:
                # The first thing that went wrong is what is told; a full disk does not take these either.
                with suppress(SketchError):
                    _gather(folder, facts, written, cards, style, share, finished=False)
            raise
        finally:
            spool.path.unlink(missing_ok=True)


def _move(file: Path, path: Path) -> None:
    try:
        file.replace(path)
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error


@contextmanager
def together() -> Iterator[list[Path]]:
    """Files of which all are written, or none is left: whatever happens, a sketch is there in all of its formats."""
    paths: list[Path] = []
    try:
        yield paths
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def _entry(drawing: Drawn, hashes: Mapping[str, str | None], seed: object) -> dict[str, Any]:
    entry = {
        "number": drawing.number,
        "seed": seed,
        "files": list(hashes),
        "sha256": list(hashes.values()),
        "primitives": len(drawing.sketch),
        "attempts": drawing.attempts,
        "repaired": drawing.repaired,
        "rejected": drawing.rejected,
        "shortfall": drawing.shortfall,
    }
    if drawing.repair is not None:
        entry["repair"] = drawing.repair.to_json()
    # What only some drawings have: the score of the best of several, and if these were few; the frame of a completion.
    for name in ("score", "fewer", "room"):
        value = getattr(drawing, name, None)
        if value is not None:
            entry[name] = round(value, 4) if isinstance(value, float) else value
    return entry


def _gather(
    folder: Path,
    facts: dict[str, Any],
    written: Written,
    cards: Sequence[Card],
    style: Style | None,
    share: Share,
    *,
    finished: bool,
) -> None:
    """Manifest, picture and page, of all processes. If there is nothing to tell of, nothing is told."""
    parts = spools(folder, share.world)
    if not share.alone:
        cards = [_read_back(entry, folder) for entry in islice(entries(parts), MOST_ON_PAGE)]
        counts = Counter(
            name for entry in entries(parts) for name in ("number", "shortfall", "fewer") if _told(entry, name)
        )
        written.sketches, written.short, written.fewer = (counts[each] for each in ("number", "shortfall", "fewer"))
        repairs = (entry.get("repair", {}) for entry in entries(parts))
        written.unrepaired = Counter(repair["summary"] for repair in repairs if repair.get("warning"))
    if not cards:
        return
    seconds = {name: round(value, 3) for name, value in {**facts.pop("seconds", {}), **written.seconds}.items()}
    # First, since it matters most if there is little room left.
    gallery = {
        GALLERY: _gallery(cards[:MOST_IN_GALLERY], style),
        PAGE: gallery_page(cards, facts, written.sketches, style=style).encode(),
    }
    hashes = {name: sha256(content).hexdigest() for name, content in gallery.items()}
    write_manifest(folder, {**facts, "finished": finished, "seconds": seconds}, entries(parts), hashes)
    for name, content in gallery.items():
        _write(folder / name, content)
    flush_to_disk(folder)


def _read_back(entry: Mapping[str, Any], folder: Path) -> Card:
    """What another process wrote."""
    named = {Path(name).suffix: name for name in entry["files"] if len(Path(name).suffixes) == 1}
    best = next(named[suffix] for suffix in PREFERRED_SUFFIXES if suffix in named)
    sketch, repair = read(folder / best).sketches[0], entry.get("repair", {}).get("summary")
    return Card(entry["number"], sketch, tuple(entry["files"]), entry["shortfall"] or entry.get("fewer"), repair)


def _told(entry: Mapping[str, Any], name: str) -> bool:
    return entry.get(name) is not None


def _gallery(cards: Sequence[Card], style: Style | None) -> bytes:
    from sketchdnn.render import gallery_png

    data = BytesIO()
    captions = [str(card.number) for card in cards]
    gallery_png([card.sketch for card in cards], captions=captions, style=style).save(data, format="png")
    return data.getvalue()


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def _in_its_place(
    drawings: Iterator[Drawn], folder: Path, stem: str, written: Written, share: Share, *, force: bool
) -> Iterator[Drawn]:
    """The drawings; once the first is there, what an earlier run left goes, before any process writes."""
    first = next(drawings, None)
    if share.leads:
        written.removed = clear_earlier(folder, stem, force=force)
    share.wait()
    if first is not None:
        yield first
        yield from drawings


def _timed(drawings: Iterable[Drawn], seconds: dict[str, float]) -> Iterator[Drawn]:
    """The drawings, with an account of the time until each came, and of the time until the next was asked for."""
    stream = iter(drawings)
    while True:
        begun = time.perf_counter()
        try:
            drawing = next(stream)
        except StopIteration:
            return
        finally:
            seconds["drawing"] += time.perf_counter() - begun
        begun = time.perf_counter()
        yield drawing
        seconds["writing"] += time.perf_counter() - begun
