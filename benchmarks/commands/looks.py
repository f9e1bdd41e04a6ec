"""`python -m benchmarks look-completions`, `look-closed` and `look-score`: pictures for people to judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import progress, stages

from . import Corpus, Device, Model, Seed, Steps

Out = Annotated[Path, typer.Option(help="The folder of the sheets and their key.")]
Controls = Annotated[int, typer.Option(min=1, help="Real sketches to mix in, and as many corrupted ones.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    examples: dict[Callable[..., None], str] = {
        look_completions: "look-completions --data prepared --part plate.json --out look",
        look_closed: "look-closed --data prepared --out look",
        completion_sheet: "completion-sheet --data prepared --out docs/results/completion.png",
        look_score: 'look-score look --accepted "1 2 5"',
    }
    for command, example in examples.items():
        app.command(epilog=f"Example: python -m benchmarks {example}")(command)


def look_completions(
    data: Corpus,
    out: Out,
    part: Annotated[list[Path] | None, typer.Option(help="A file with a part to complete; may be repeated.")] = None,
    parts: Annotated[int, typer.Option(min=0, help="Further parts, from the test split; half of them finished.")] = 10,
    count: Annotated[int, typer.Option(min=1, help="Suggestions for each part.")] = 4,
    controls: Controls = 20,
    model: Model = "ours",
    device: Device = "auto",
    steps: Steps = 50,
    seed: Seed = 0,
) -> None:
    """Suggestions for parts, given in black and added in blue, among real and corrupted completions."""
    from benchmarks.blind_look import completion_cells, write_look
    from sketchdnn.formats import read
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    files = [sketch for path in part or () for sketch in read(path).sketches]
    system = from_pretrained(model, find_device(device))
    with stages() as on_stage:
        cells = completion_cells(system, data, files, parts, count, controls, steps=steps, seed=seed, on_stage=on_stage)
    _print_paths(write_look(out, cells))


def look_closed(
    data: Corpus,
    out: Out,
    count: Annotated[int, typer.Option(min=1, help="Sketches of `generate --closed`.")] = 64,
    controls: Controls = 32,
    model: Model = "ours",
    device: Device = "auto",
    steps: Steps = 50,
    seed: Seed = 0,
) -> None:
    """Sketches of `generate --closed` among real and corrupted ones."""
    from benchmarks.blind_look import Cell, control_sketches, write_look
    from sketchdnn.generation import GenerateRequest, stream
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    system = from_pretrained(model, find_device(device))
    request = GenerateRequest.parse(count=count, closed=True, steps=steps, seed=seed)
    with progress(Console(stderr=True), "generating", total=count) as bar:
        cells = [Cell("generated", each.sketch) for each in stream(system, request, bar.update)]
    _print_paths(write_look(out, [*cells, *control_sketches(data, controls, seed)]))


def completion_sheet(
    data: Corpus,
    out: Annotated[Path, typer.Option(help="The picture, a PNG.")],
    parts: Annotated[int, typer.Option(min=2, help="Parts of the test split; half of them finished.")] = 10,
    count: Annotated[int, typer.Option(min=1, help="Suggestions for each part.")] = 4,
    model: Model = "ours",
    device: Device = "auto",
    steps: Steps = 50,
    seed: Seed = 0,
) -> None:
    """Suggestions for a plate with a slot and for real parts, a row each, given in black and added in blue."""
    from benchmarks.blind_look import choose_parts, slotted_plate, suggest, write_sheet
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    system = from_pretrained(model, find_device(device))
    chosen = [slotted_plate(), *choose_parts(data, parts, seed=seed)[0]]
    with stages() as on_stage:
        rows = list(suggest(system, chosen, count, steps=steps, seed=seed, on_stage=on_stage))
    write_sheet(out, chosen, rows, count)
    _print_paths([out])


def look_score(
    folder: Annotated[Path, typer.Argument(help="The folder of the sheets.")],
    accepted: Annotated[str, typer.Option(help="The numbers of the accepted cells.")],
) -> None:
    """Which share of each source was accepted, and whether the look counts."""
    from benchmarks.blind_look import KEY, score_look

    numbers = [int(word) for word in accepted.replace(",", " ").split()]
    for sentence in score_look(folder / KEY, numbers).sentences():
        Console().print(sentence)


def _print_paths(paths: list[Path]) -> None:
    for path in paths:
        Console().print(str(path), soft_wrap=True)
