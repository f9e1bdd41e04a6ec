"""`python -m benchmarks constraints`, `bench repair` and `bench solids`: how good what a CAD program gets is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import stages

from .page import check_file, of_model, write_page

_SAMPLES = "Raw sketches in a file or folder, as `sketchdnn generate --no-repair` writes them."


def add(bench: typer.Typer) -> None:
    """Add the commands to `python -m benchmarks`."""
    example = "python -m benchmarks constraints --data sg_subset.npy --out docs/results/constraints.md"
    bench.command(epilog=f"Example: {example}")(constraints)
    example = "python -m benchmarks constraint-speed --files parts/ --out docs/results/constraint_speed.md"
    bench.command(epilog=f"Example: {example}")(constraint_speed)
    bench.command(epilog="Example: python -m benchmarks repair --out docs/results/repair.md")(repair)
    bench.command(epilog="Example: python -m benchmarks solids --data prepared --out docs/results/solids.md")(solids)


def constraints(
    data: Annotated[
        Path, typer.Option(help="A SketchGraphs file with constraints.", show_default=False, readable=False)
    ],
    count: Annotated[int, typer.Option(min=1, help="Sketches to shake.")] = 1000,
    timed: Annotated[int, typer.Option(min=1, help="Sketches of 16 primitives to time.")] = 100,
    freecad: Annotated[bool, typer.Option(help="Also FreeCAD's autoconstraint on the same sketches.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Shake real sketches and find their constraints again, beside FreeCAD's own autoconstraint."""
    from benchmarks.constraints import measure_constraints

    check_file(out)
    with stages() as on_stage:
        bench = measure_constraints(data, count=count, timed=timed, freecad=freecad, on_stage=on_stage)
    console = Console()
    console.print(bench.table())
    for sentence in bench.sentences():
        console.print(sentence)
    if out is not None:
        command = f"python -m benchmarks constraints --data {data.name} --count {count} --timed {timed}"
        write_page(out, bench.markdown(command + ("" if freecad else " --no-freecad")))


def constraint_speed(
    files: Annotated[
        Path | None,
        typer.Option(help="FreeCAD files whose constraints are found again.", show_default=False, readable=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Time `constrain` on drawings of up to 4,000 lines, and count what it finds of the constraints of real files."""
    from benchmarks.constraint_recall import measure_authored
    from benchmarks.constraint_speed import page, time_large
    from sketchdnn.formats import scan
    from sketchdnn.geometry import Sketch

    check_file(out)
    with Console(stderr=True).status("timing") as status:
        large = time_large()
        status.update("reading")
        sketches = [found for found in scan(files) if isinstance(found, Sketch) and len(found)] if files else []
        authored = measure_authored(sketches)
    words = page(large, authored if sketches else [])
    Console().print(words, markup=False)
    if out is not None:
        write_page(out, words)


def repair(
    count: Annotated[int, typer.Option(min=1, help="Raw sketches to repair and look at.")] = 200,
    many: Annotated[int, typer.Option(min=1, help="Sketches to repair on all cores.")] = 10_000,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    samples: Annotated[Path | None, typer.Option(help=_SAMPLES, show_default="drawn now", readable=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Repair raw sketches of a model: which ends meet, what closes, how far things move, how quick it is."""
    from benchmarks.repair import measure_repair
    from benchmarks.samples import drawn_sketches

    check_file(out)
    with stages("drawing") as on_stage:
        sketches = drawn_sketches(count, model=model, seed=seed, samples=samples)
        bench = measure_repair(sketches, many=many, on_stage=on_stage)
    console = Console()
    console.print(bench.table())
    for sentence in bench.sentences():
        console.print(sentence)
    if out is not None:
        write_page(
            out, bench.markdown(f"python -m benchmarks repair --count {count} --many {many}{_drawn(model, seed)}")
        )


def solids(
    data: Annotated[
        Path, typer.Option(help="A prepared corpus, for real sketches.", show_default=False, readable=False)
    ],
    count: Annotated[int, typer.Option(min=1, help="Sketches of each set.")] = 200,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    samples: Annotated[Path | None, typer.Option(help=_SAMPLES, show_default="drawn now", readable=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Have FreeCAD open, solve and pad generated and real sketches, raw and repaired."""
    from benchmarks.freecad import find_freecad, measure_solids
    from benchmarks.samples import drawn_sketches, real_sketches

    check_file(out)
    find_freecad()
    real = real_sketches(data, count)
    with stages("drawing") as on_stage:
        generated = drawn_sketches(count, model=model, seed=seed, samples=samples)
        bench = measure_solids(generated, real, on_stage)
    console = Console()
    console.print(bench.table())
    for sentence in bench.sentences():
        console.print(sentence)
    if out is not None:
        command = f"python -m benchmarks solids --data {data.name} --count {count}{_drawn(model, seed)}"
        write_page(out, bench.markdown(command))


def _drawn(model: str, seed: int) -> str:
    """How the command says what was drawn; samples from a file are those that it draws itself."""
    return f" --seed {seed}{of_model(model)}"
