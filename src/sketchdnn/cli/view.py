"""`sketchdnn view`: a picture of a sketch, or a gallery of many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.errors import FormatError, SketchError, display_path, quoted
from sketchdnn.formats import Note, ReadOptions, Skipped, scan
from sketchdnn.formats.archives import Member, check_no_overwrite, folder_members
from sketchdnn.formats.format import ReasonCounts
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write, remove_abandoned
from sketchdnn.render.notes import Notes

from .annotations import annotate, summary_lines
from .reading import FLATTEN, AssumeUnits, Flatten, read_options, report_reading

SUFFIXES = (".png", ".svg", ".html")
ONE_SIZE, CARD_SIZE, NOTED_SIZE = 640, 200, 320

Named = tuple[str, Sketch]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="Example: sketchdnn view part.dxf parts.jsonl --out parts.svg --random")(view)


def view(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Files, folders or archives in any format that is read.", readable=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The picture: .png, .svg or .html. By default NAME-view.png in the current folder.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many: the first, unless --random.")] = 64,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Columns of the gallery; by default about square.", show_default=False)
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=32,
            max=4000,
            help=f"Pixels a side of each sketch; by default {ONE_SIZE} for one, {CARD_SIZE} in a gallery "
            f"({NOTED_SIZE} with constraints).",
            show_default=False,
        ),
    ] = None,
    at_random: Annotated[bool, typer.Option("--random", help="Show a random sample.")] = False,
    seed: Annotated[int, typer.Option(help="Which random sample.")] = 0,
    constraints: Annotated[
        bool,
        typer.Option(
            "--constraints", help="Draw constraints, those of the file or else inferred ones, and color by freedom."
        ),
    ] = False,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Draw one sketch, or a gallery of many: a color for each primitive, construction dashed."""
    out = out or _default_name(files[0])
    if out.suffix.lower() not in SUFFIXES:
        raise FormatError(out, f"is no name for a picture; it must end in {', '.join(SUFFIXES)}")
    # In a folder that is read, a picture is no sketch, and may be drawn again.
    check_no_overwrite([file for file in files if out.suffix.lower() == ".svg" or not file.is_dir()], [out])
    remove_abandoned(out.parent)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    skipped, notes_read = ReasonCounts(), ReasonCounts()
    with console.status("Reading …"):
        stream = _read(files, read_options(flatten, assume_units), skipped, notes_read)
        chosen, which = _random_sample(stream, limit, seed) if at_random else _first(stream, limit)
    report_reading(console, skipped, notes_read)
    if not chosen:
        raise SketchError(f"there is nothing to show: no sketch could be read from {display_path(files[0])}")
    notes = None
    if constraints:
        with console.status("Solving …"):
            annotated = [annotate(sketch) for _, sketch in chosen]
        chosen = [(name, item.sketch) for (name, _), item in zip(chosen, annotated, strict=True)]
        notes = [item.notes for item in annotated]
        for line in summary_lines(annotated):
            console.print(line)
    picture = _picture(chosen, out.suffix.lower(), which, columns, size, notes)
    with atomic_write(out) as temporary:
        temporary.write_bytes(picture)
    console.print(f"{display_path(out)}: {which}")


def _default_name(file: Path) -> Path:
    name = file.resolve().name.split(".")[0]
    return Path(f"{name or 'sketches'}-view.png")


def _read(files: list[Path], options: ReadOptions, skipped: ReasonCounts, notes: ReasonCounts) -> Iterator[Named]:
    """Each sketch with a name for its card. A file that cannot be read is counted, unless it is the only one."""
    each = [member for file in files for member in _members(file)]
    for member in each:
        number, name = 0, display_path(member.path) if len(each) > 1 else ""
        try:
            for found in scan(member.path, options):
                if isinstance(found, Skipped):
                    skipped.add(found.reason, found.count, name)
                elif isinstance(found, Note):
                    notes.add(found.text, found.count, name)
                else:
                    number += 1
                    yield quoted(found.extra.get("id") or member.name or f"{member.path.name} {number}"), found
        except FormatError as error:
            if len(each) == 1 and not number:
                raise
            skipped.add(str(error))  # which names the file


def _members(file: Path) -> list[Member]:
    """The files of a folder; a file alone, and a folder that cannot be listed, whose reader will say so."""
    try:
        return folder_members(file) if file.is_dir() else [Member(file)]
    except FormatError:
        return [Member(file)]


def _first(stream: Iterator[Named], limit: int) -> tuple[list[Named], str]:
    chosen = list(islice(stream, limit))
    more = next(stream, None) is not None
    return chosen, f"the first {_sketches(len(chosen))} of more" if more else _sketches(len(chosen))


def _random_sample(stream: Iterator[Named], limit: int, seed: int) -> tuple[list[Named], str]:
    """A fair sample of a stream of unknown length, in its order: each further sketch may take the place of another."""
    dice = random.Random(seed)
    kept: list[tuple[int, Named]] = []
    total = 0
    for total, named in enumerate(stream, start=1):
        if total <= limit:
            kept.append((total, named))
        elif (place := dice.randrange(total)) < limit:
            kept[place] = (total, named)
    kept.sort(key=lambda item: item[0])
    return [named for _, named in kept], _sketches(len(kept)) + (f" of {total:,}" if total > limit else "")


def _sketches(count: int) -> str:
    return f"{count:,} sketch{'es' * (count != 1)}"


def _picture(
    named: list[Named], kind: str, which: str, columns: int | None, size: int | None, notes: list[Notes] | None
) -> bytes:
    """One sketch alone, or a gallery of many; with notes, their constraints."""
    from sketchdnn.render import gallery_html, gallery_png, gallery_svg, png, svg

    names, sketches = [name for name, _ in named], [sketch for _, sketch in named]
    alone = len(sketches) == 1
    size = size or (ONE_SIZE if alone else NOTED_SIZE if notes else CARD_SIZE)
    note = notes[0] if notes else None
    if kind == ".html":
        page = gallery_html(sketches, subtitle=which, columns=columns, captions=names, cell=size, notes=notes)
        return page.encode()
    if kind == ".svg":
        if alone:
            return svg(sketches[0], size, notes=note).encode()
        return gallery_svg(sketches, columns=columns, captions=names, cell=size, notes=notes).encode()
    if alone:
        drawn = png(sketches[0], size, notes=note)
    else:
        drawn = gallery_png(sketches, columns=columns, captions=names, cell=size, notes=notes)
    data = BytesIO()
    drawn.save(data, format="png")
    return data.getvalue()
