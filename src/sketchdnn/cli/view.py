"""`sketchdnn view`: a picture of a sketch, or a gallery of many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from sketchdnn.errors import FormatError, SketchError, display_path, quoted
from sketchdnn.formats import Note, ReadOptions, Skipped, scan
from sketchdnn.formats.archives import Member, check_no_overwrite, folder_members
from sketchdnn.formats.format import ReasonCounts
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write, remove_abandoned
from sketchdnn.render.annotations import ConstraintStatus

from .annotations import annotate, summary_lines
from .console import report_reading, stderr_console
from .options import FLATTEN, AssumeUnits, Flatten, path_argument, path_option, read_options

EPILOG = "Example: sketchdnn view part.dxf parts.jsonl --out parts.svg --random"
SUFFIXES = (".png", ".svg", ".html")
SINGLE_SIZE, CARD_SIZE, ANNOTATED_SIZE = 640, 200, 320
SIZE = f"Pixels a side; by default {SINGLE_SIZE}, in a gallery {CARD_SIZE}, or {ANNOTATED_SIZE} with constraints."
CONSTRAINTS = "Draw constraints, those of the file or else inferred ones, and color by freedom."

Named = tuple[str, Sketch]


def view(
    files: Annotated[list[Path], path_argument(metavar="FILE", help="Files, folders or archives.")],
    out: Annotated[Path | None, path_option(help="A .png, .svg or .html; by default NAME-view.png here.")] = None,
    limit: Annotated[int, Option(min=1, help="Show at most this many: the first, unless --random.")] = 64,
    columns: Annotated[int | None, Option(min=1, help="Columns of the gallery; by default about square.")] = None,
    size: Annotated[int | None, Option(min=32, max=4000, help=SIZE)] = None,
    at_random: Annotated[bool, Option("--random", help="Show a random sample.")] = False,
    seed: Annotated[int, Option(help="Which random sample.")] = 0,
    constraints: Annotated[bool, Option("--constraints", help=CONSTRAINTS)] = False,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Draw one sketch, or a gallery of many: a color for each primitive, construction dashed."""
    out = out or Path(f"{files[0].resolve().name.split('.')[0] or 'sketches'}-view.png")
    if out.suffix.lower() not in SUFFIXES:
        raise FormatError(out, f"is no name for a picture; it must end in {', '.join(SUFFIXES)}")
    # An earlier picture in a folder that is read may be overwritten, unless it is an SVG, which is read as a sketch.
    check_no_overwrite([file for file in files if out.suffix.lower() == ".svg" or not file.is_dir()], [out])
    remove_abandoned(out.parent)
    console = stderr_console()
    skipped, notes = ReasonCounts(), ReasonCounts()
    with console.status("Reading …"):
        stream = _read(files, read_options(flatten, assume_units), skipped, notes)
        chosen, which = _random_sample(stream, limit, seed) if at_random else _first(stream, limit)
    report_reading(console, skipped, notes)
    if not chosen:
        raise SketchError(f"there is nothing to show: no sketch could be read from {display_path(files[0])}")
    statuses = None
    if constraints:
        with console.status("Solving …"):
            annotated = [annotate(sketch) for _, sketch in chosen]
        chosen = [(name, item.sketch) for (name, _), item in zip(chosen, annotated, strict=True)]
        statuses = [item.status for item in annotated]
        for line in summary_lines(annotated):
            console.print(line)
    with atomic_write(out) as temporary:
        temporary.write_bytes(_picture(chosen, out.suffix.lower(), which, columns, size, statuses))
    console.print(f"{display_path(out)}: {which}")


def _read(files: list[Path], options: ReadOptions, skipped: ReasonCounts, notes: ReasonCounts) -> Iterator[Named]:
    """Sketches with the names of their cards. A file that cannot be read is counted, unless it is the only one."""
    members = [member for file in files for member in _members(file)]
    for member in members:
        number, name = 0, display_path(member.path) if len(members) > 1 else ""
        try:
            for item in scan(member.path, options):
                if isinstance(item, Skipped):
                    skipped.add(item.reason, item.count, name)
                elif isinstance(item, Note):
                    notes.add(item.text, item.count, name)
                else:
                    number += 1
                    yield quoted(item.extra.get("id") or member.name or f"{member.path.name} {number}"), item
        except FormatError as error:
            if len(members) == 1 and not number:
                raise
            skipped.add(str(error))  # it names the file


def _members(file: Path) -> list[Member]:
    """The files of a folder, or a file; a folder that cannot be listed is left to its reader's error."""
    try:
        return folder_members(file) if file.is_dir() else [Member(file)]
    except FormatError:
        return [Member(file)]


def _first(stream: Iterator[Named], limit: int) -> tuple[list[Named], str]:
    chosen = list(islice(stream, limit))
    more = next(stream, None) is not None
    return chosen, f"the first {_sketches(len(chosen))}; there are more" if more else _sketches(len(chosen))


def _random_sample(stream: Iterator[Named], limit: int, seed: int) -> tuple[list[Named], str]:
    """A uniform sample of a stream in its order (reservoir sampling)."""
    rng = random.Random(seed)
    sample: list[tuple[int, Named]] = []
    total = 0
    for total, named in enumerate(stream, start=1):
        if total <= limit:
            sample.append((total, named))
        elif (index := rng.randrange(total)) < limit:
            sample[index] = (total, named)
    sample.sort(key=lambda item: item[0])
    return [named for _, named in sample], _sketches(len(sample)) + (f" of {total:,}" if total > limit else "")


def _sketches(count: int) -> str:
    return f"{count:,} sketch{'es' * (count != 1)}"


def _picture(
    named: list[Named],
    suffix: str,
    subtitle: str,
    columns: int | None,
    size: int | None,
    statuses: list[ConstraintStatus] | None,
) -> bytes:
    """One sketch alone, or a gallery of many; with statuses, their constraints."""
    from sketchdnn.render import gallery_html, gallery_png, gallery_svg, png, svg

    names, sketches = [name for name, _ in named], [sketch for _, sketch in named]
    is_single = len(sketches) == 1
    size = size or (SINGLE_SIZE if is_single else ANNOTATED_SIZE if statuses else CARD_SIZE)
    options: dict[str, Any] = {"columns": columns, "captions": names, "cell": size, "statuses": statuses}
    status = statuses[0] if statuses else None
    if suffix == ".html":
        return gallery_html(sketches, subtitle=subtitle, **options).encode()
    if suffix == ".svg":
        return (svg(sketches[0], size, status=status) if is_single else gallery_svg(sketches, **options)).encode()
    data = BytesIO()
    (png(sketches[0], size, status=status) if is_single else gallery_png(sketches, **options)).save(data, format="png")
    return data.getvalue()
