"""`sketchdnn constrain`: from primitives to a sketch that a CAD program accepts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sketchdnn.errors import SketchError
from sketchdnn.formats import ReadItem, convert
from sketchdnn.geometry import MM_PER_UNIT, Sketch, bounds
from sketchdnn.geometry.quantities import parse_length

from .constrained import Findings
from .convert import report
from .drawing import stderr
from .progress import progress
from .reading import FLATTEN, AssumeUnits, Flatten, read_options

if TYPE_CHECKING:
    from sketchdnn.constraints.constrain import Constrained

# Fewer sketches than this are done sooner than other processes have started.
_FEW = 64
# How many are read before they are shared out, and how many go to a process at a time.
_BATCH, _CHUNK = 16_384, 16
_MOST_SHARE = 0.03


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="Example: sketchdnn constrain drawing.dxf --out part.FCStd --tolerance 0.1mm")(constrain)


def constrain(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file, folder or tar archive of sketches.", readable=False)
    ],
    out: Annotated[str, typer.Option(help="A file, its format told by its suffix; or a folder.", show_default=False)],
    format: Annotated[  # noqa: A002
        str | None, typer.Option(help="The format, where the suffix does not tell it.", show_default=False)
    ] = None,
    repair: Annotated[
        bool, typer.Option(help="Close gaps, drop what is there twice, square up; or only infer and solve.")
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
        typer.Option("--close", help="Let a repair add the line that an open outline lacks, and set strays aside."),
    ] = False,
    all_inferred: Annotated[
        bool, typer.Option("--all-inferred", help="With --no-repair, keep also what is found to follow from the rest.")
    ] = False,
    dimensions: Annotated[
        bool, typer.Option("--dimensions", help="Add lengths, radii and distances until nothing is free to move.")
    ] = False,
    origin: Annotated[
        bool | None,
        typer.Option(
            help="Put places near the origin or an axis there. By default where the origin means something: FreeCAD, "
            "Onshape, SketchGraphs and our own JSON files.",
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
    if all_inferred and repair:
        raise SketchError("--all-inferred goes with --no-repair: a repaired sketch says nothing twice")
    if close and not repair:
        raise SketchError("--close is part of a repair: leave out --no-repair")
    reading = read_options(flatten, assume_units)
    tied = _has_origin(source) if origin is None else origin
    task = Task(_tolerance(tolerance), repair, close, all_inferred, dimensions, tied)
    console = stderr()
    findings = Findings()
    files: deque[str] = deque()  # of the sketches that were read and are not yet done
    with progress(console, "constraining") as bar:
        name = ""

        def begin(file: str) -> None:
            nonlocal name
            name = file

        def count(found: ReadItem) -> None:
            if isinstance(found, Sketch):
                files.append(name)

        def change(sketches: Iterator[Sketch]) -> Iterator[Sketch]:
            for before, done in _each(sketches, task, workers or os.cpu_count() or 1):
                findings.add(before, done, files.popleft())
                bar.advance()
                yield done.sketch

        result = convert(
            source,
            out,
            format=format,
            units=units,
            read_options=reading,
            on_item=count,
            on_file=begin,
            transform=change,
        )
    report(result, console)
    findings.show(console)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A share of the size, or a length in millimeters; neither, where the default is meant."""

    share: float | None = None
    mm: float | None = None

    def of(self, sketch: Sketch) -> float | None:
        """As a share of a sketch's size."""
        if self.mm is None or not len(sketch):
            return self.share
        size = bounds(sketch).size * MM_PER_UNIT[sketch.units or "mm"]
        share = self.mm / size if size > 0 else 0.0
        if not 0 < share <= _MOST_SHARE:
            raise SketchError(
                f"a tolerance of {self.mm:g} mm is {share:.2g} times the size of the sketch, {size:.4g} mm; "
                f"at most {_MOST_SHARE:.0%} makes sense"
            )
        return share


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done with each sketch; it can be sent to another process."""

    tolerance: Tolerance
    repair: bool
    close: bool
    every: bool
    dimensions: bool
    origin: bool

    def __call__(self, sketch: Sketch) -> Constrained:
        from sketchdnn.constraints.constrain import Constrained
        from sketchdnn.constraints.constrain import constrain as run

        try:
            share = self.tolerance.of(sketch)
        except SketchError as error:
            return Constrained(sketch, warning=str(error))
        how = {"close": self.close, "every": self.every, "dimensioned": self.dimensions, "origin": self.origin}
        return run(sketch, share, repairing=self.repair, **how)


@dataclass(frozen=True, slots=True)
class _Chunk:
    number: int
    sketches: list[Sketch]
    task: Task


def _each(sketches: Iterator[Sketch], task: Task, workers: int) -> Iterator[tuple[Sketch, Constrained]]:
    """Each sketch and what became of it, in their order; many on all cores."""
    few = list(islice(sketches, _FEW))
    for sketch in few:
        yield sketch, task(sketch)
    if len(few) < _FEW:
        return
    from sketchdnn.data.workers import run_all

    while batch := list(islice(sketches, _BATCH)):
        chunks = [_Chunk(k, batch[k : k + _CHUNK], task) for k in range(0, len(batch), _CHUNK)]
        waiting: dict[int, list[Constrained]] = {}
        following = 0
        for number, done in run_all(_do, chunks, workers):
            waiting[number] = done
            while following in waiting:
                ready = waiting.pop(following)
                yield from zip(batch[following : following + _CHUNK], ready, strict=True)
                following += _CHUNK


def _do(chunk: _Chunk) -> tuple[int, list[Constrained]]:
    return chunk.number, [chunk.task(sketch) for sketch in chunk.sketches]


def _has_origin(source: Path) -> bool:
    """Whether the origin of sketches in a file is the designer's own, as far as its name tells."""
    return source.name.lower().endswith((".fcstd", ".npy", ".json", ".jsonl", ".jsonl.gz", ".jsonl.xz"))


def _tolerance(words: str | None) -> Tolerance:
    """What was typed, as a share or as a length."""
    if words is None:
        return Tolerance()
    example = f"--tolerance is a share of the size up to {_MOST_SHARE:.0%} such as 0.5%, or a length such as 0.1mm"
    if words.strip().endswith("%"):
        try:
            share = float(words.strip()[:-1]) / 100
        except ValueError:
            share = 0.0
        if not 0 < share <= _MOST_SHARE:
            raise SketchError(f"{example}, not '{words}'")
        return Tolerance(share=share)
    if not words.strip()[-1:].isalpha():
        raise SketchError(f"{example}, not '{words}'")
    number, unit = parse_length(words, "--tolerance")
    return Tolerance(mm=number * MM_PER_UNIT[unit])
