"""`sketchdnn constrain`: from primitives to a sketch that a CAD program accepts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sketchdnn.errors import SketchError
from sketchdnn.formats import ReadItem, convert
from sketchdnn.geometry import MM_PER_UNIT, Sketch, bounds
from sketchdnn.geometry.quantities import parse_length

from .constrain_report import ConstrainReport
from .convert import report
from .drawing import stderr
from .progress import progress
from .reading import FLATTEN, AssumeUnits, Flatten, read_options

if TYPE_CHECKING:
    from sketchdnn.constraints.constrain import ConstrainOptions, ConstrainResult

# Fewer sketches are done sooner than other processes have started.
_FEW = 64
_MAX_SHARE = 0.03


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sketchdnn constrain drawing.dxf --out part.FCStd --tolerance 0.1mm")(constrain)


def constrain(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file, folder or tar archive of sketches.", readable=False)
    ],
    out: Annotated[str, typer.Option(help="A file, whose suffix gives the format, or a folder.", show_default=False)],
    format: Annotated[  # noqa: A002
        str | None, typer.Option(help="The format, where the suffix does not give it.", show_default=False)
    ] = None,
    repair: Annotated[
        bool, typer.Option(help="Close gaps, drop duplicates, square up; or only infer and solve.")
    ] = True,
    tolerance: Annotated[
        str | None,
        typer.Option(
            help="How far off things may be drawn: a share of the size such as 0.5%, or a length such as 0.1mm. "
            "By default 1% with repair, 0.5% without.",
            show_default=False,
        ),
    ] = None,
    close: Annotated[
        bool,
        typer.Option("--close", help="Add the line that an open outline lacks, and make open curves construction."),
    ] = False,
    all_inferred: Annotated[
        bool, typer.Option("--all-inferred", help="With --no-repair, keep redundant constraints too.")
    ] = False,
    dimensions: Annotated[
        bool, typer.Option("--dimensions", help="Add lengths, radii and distances until nothing is free to move.")
    ] = False,
    origin: Annotated[
        bool | None,
        typer.Option(
            help="Put points near the origin or an axis there. By default for files with a meaningful origin: FreeCAD, "
            "Onshape, SketchGraphs and our own JSON.",
            show_default=False,
        ),
    ] = None,
    units: Annotated[str | None, typer.Option(help="Measure the result in mm, cm, m, in, …")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes for many sketches; by default one a core.", show_default=False)
    ] = None,
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
    reading = read_options(flatten, assume_units)
    options = ConstrainOptions(
        repair=repair,
        close=close,
        keep_redundant=all_inferred,
        dimensions=dimensions,
        origin=_has_origin(source) if origin is None else origin,
    )
    task = ConstrainTask(_parse_tolerance(tolerance), options)
    console = stderr()
    results = ConstrainReport()
    files: deque[str] = deque([""])  # the file being read, after those of sketches that are not yet done
    with progress(console, "constraining") as bar:

        def start_file(name: str) -> None:
            files[-1] = name

        def count(item: ReadItem) -> None:
            if isinstance(item, Sketch):
                files.append(files[-1])

        def transform(sketches: Iterator[Sketch]) -> Iterator[Sketch]:
            for result, before in _constrain_all(sketches, task, workers or os.cpu_count() or 1):
                results.add(before, result, files.popleft())
                bar.advance()
                yield result.sketch

        conversion = convert(
            source,
            out,
            format=format,
            units=units,
            read_options=reading,
            on_item=count,
            on_file=start_file,
            transform=transform,
        )
    report(conversion, console)
    results.print(console)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A share of the size, or a length in millimeters; neither for the default."""

    share: float | None = None
    mm: float | None = None

    def share_of(self, sketch: Sketch) -> float | None:
        """The tolerance as a share of a sketch's size."""
        if self.mm is None or not len(sketch):
            return self.share
        size = bounds(sketch).size * MM_PER_UNIT[sketch.units or "mm"]
        share = self.mm / size if size > 0 else 0.0
        if not 0 < share <= _MAX_SHARE:
            raise SketchError(
                f"a tolerance of {self.mm:g} mm is {share:.2g} times the size of the sketch, {size:.4g} mm; "
                f"at most {_MAX_SHARE:.0%} makes sense"
            )
        return share


@dataclass(frozen=True, slots=True)
class ConstrainTask:
    """Constrains a sketch; can be sent to another process."""

    tolerance: Tolerance
    options: ConstrainOptions

    def __call__(self, sketch: Sketch) -> ConstrainResult:
        from sketchdnn.constraints.constrain import ConstrainResult, constrain

        try:
            return constrain(sketch, replace(self.options, tolerance=self.tolerance.share_of(sketch)))
        except SketchError as error:
            return ConstrainResult(sketch, warning=str(error))


def _constrain_all(
    sketches: Iterator[Sketch], task: ConstrainTask, workers: int
) -> Iterator[tuple[ConstrainResult, Sketch]]:
    """The result of each sketch, and the sketch, in order; many on all cores."""
    few = list(islice(sketches, _FEW))
    yield from zip(map(task, few), few, strict=True)
    if len(few) == _FEW:
        from sketchdnn.constraints.repair.batch import map_sketches

        inputs, originals = tee(sketches)
        yield from zip(map_sketches(task, inputs, workers), originals, strict=True)


def _has_origin(source: Path) -> bool:
    """Whether the origin in a file is the designer's own, by the file's name."""
    return source.name.lower().endswith((".fcstd", ".npy", ".json", ".jsonl", ".jsonl.gz", ".jsonl.xz"))


def _parse_tolerance(text: str | None) -> Tolerance:
    if text is None:
        return Tolerance()
    value = text.strip()
    example = f"--tolerance is a share of the size up to {_MAX_SHARE:.0%} such as 0.5%, or a length such as 0.1mm"
    if value.endswith("%"):
        try:
            share = float(value[:-1]) / 100
        except ValueError:
            share = 0.0
        if 0 < share <= _MAX_SHARE:
            return Tolerance(share=share)
    elif value[-1:].isalpha():
        number, unit = parse_length(text, "--tolerance")
        return Tolerance(mm=number * MM_PER_UNIT[unit])
    raise SketchError(f"{example}, not '{text}'")
