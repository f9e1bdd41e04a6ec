"""`sketchdnn constrain`: from primitives to a sketch that a CAD program accepts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from sketchdnn.errors import SketchError
from sketchdnn.formats import ReadItem, convert
from sketchdnn.geometry import Sketch

from .console import stderr_console
from .constrain_report import ConstrainReport
from .convert import report
from .options import (
    FLATTEN,
    AssumeUnits,
    Flatten,
    Round,
    RoundOrigin,
    Workers,
    millimeters,
    path_argument,
    read_options,
    round_options,
)
from .progress import progress

if TYPE_CHECKING:
    from sketchdnn.constraints.constrain import ConstrainOptions, ConstrainResult

TOLERANCE = (
    "How far off things may be drawn: a share of the size such as 0.5%, or a length such as 0.1mm. By default 1% with "
    "repair, 0.5% without."
)
ORIGIN = "Put points near the origin or an axis there; by default if the format has a designer's origin: not DXF, SVG."
EPILOG = "Example: sketchdnn constrain drawing.dxf --out part.FCStd --tolerance 0.1mm"
# Fewer sketches are done sooner than other processes have started.
_FEW = 64


def constrain(
    source: Annotated[Path, path_argument(metavar="FILE", help="A file, folder or tar archive of sketches.")],
    out: Annotated[str, Option(help="A file, whose suffix gives the format, or a folder.")],
    format: Annotated[str | None, Option(help="The format, if the suffix does not give it.")] = None,  # noqa: A002
    repair: Annotated[bool, Option(help="Close gaps, drop duplicates, square up; or only infer and solve.")] = True,
    tolerance: Annotated[str | None, Option(help=TOLERANCE)] = None,
    close: Annotated[bool, Option("--close", help="Close outlines by lines; make open curves construction.")] = False,
    all_inferred: Annotated[bool, Option("--all-inferred", help="With --no-repair, keep redundant ones too.")] = False,
    dimensions: Annotated[bool, Option("--dimensions", help="Add dimensions until nothing is free to move.")] = False,
    origin: Annotated[bool | None, Option(help=ORIGIN)] = None,
    round_: Round = None,
    round_origin: RoundOrigin = "auto",
    units: Annotated[str | None, Option(help="Measure the result in mm, cm, m, in, …")] = None,
    workers: Workers = None,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Infer the constraints of sketches, move them as little as possible so that these hold, and repair them.

    Constraints that a file has are kept. Prints what was found, what moved, and what is still free.
    """
    from sketchdnn.constraints.constrain import ConstrainOptions

    if all_inferred and repair:
        raise SketchError("--all-inferred needs --no-repair: a repair drops redundant constraints")
    if close and not repair:
        raise SketchError("--close is part of a repair: leave out --no-repair")
    origin = _has_origin(source) if origin is None else origin
    limit = _parse_tolerance(tolerance)
    options = ConstrainOptions(
        repair=repair,
        close=close,
        keep_redundant=all_inferred,
        dimensions=dimensions,
        origin=origin,
        rounding=round_options(round_, round_origin),
        **limit,
    )
    console = stderr_console()
    results = ConstrainReport()
    files: deque[str] = deque([""])  # the file being read, after those of sketches that are not yet done
    with progress(console, "constraining") as bar:

        def start_file(name: str) -> None:
            files[-1] = name

        def count(item: ReadItem) -> None:
            if isinstance(item, Sketch):
                files.append(files[-1])

        def transform(sketches: Iterator[Sketch]) -> Iterator[Sketch]:
            for result, before in _constrain_all(sketches, options, workers or os.cpu_count() or 1):
                results.add(before, result, files.popleft())
                bar.advance()
                yield result.sketch

        conversion = convert(
            source,
            out,
            format=format,
            units=units,
            read_options=read_options(flatten, assume_units),
            on_item=count,
            on_file=start_file,
            transform=transform,
        )
    report(conversion, console)
    results.print(console)


def _constrain_all(
    sketches: Iterator[Sketch], options: ConstrainOptions, workers: int
) -> Iterator[tuple[ConstrainResult, Sketch]]:
    """The result of each sketch, and the sketch, in order; many on all cores."""
    from sketchdnn.constraints.constrain import constrain as constrain_sketch
    from sketchdnn.constraints.repair.batch import map_sketches

    task = partial(constrain_sketch, options=options)
    few = list(islice(sketches, _FEW))
    yield from zip(map(task, few), few, strict=True)
    if len(few) == _FEW:
        inputs, originals = tee(sketches)
        yield from zip(map_sketches(task, inputs, workers), originals, strict=True)


def _has_origin(source: Path) -> bool:
    """Whether the origin in a file is the designer's own, by the file's name."""
    return source.name.lower().endswith((".fcstd", ".npy", ".json", ".jsonl", ".jsonl.gz", ".jsonl.xz"))


def _parse_tolerance(text: str | None) -> dict[str, float]:
    """The tolerance as an argument of `ConstrainOptions`."""
    from sketchdnn.constraints.constrain import MAX_TOLERANCE

    if text is None:
        return {}
    value = text.strip()
    if value.endswith("%"):
        with suppress(ValueError):
            share = float(value[:-1]) / 100
            if 0 < share <= MAX_TOLERANCE:
                return {"tolerance": share}
    elif value[-1:].isalpha():
        return {"tolerance_mm": millimeters(text, "--tolerance")}
    example = f"--tolerance is a share of the size up to {MAX_TOLERANCE:.0%} such as 0.5%, or a length such as 0.1mm"
    raise SketchError(f"{example}, not '{text}'")
