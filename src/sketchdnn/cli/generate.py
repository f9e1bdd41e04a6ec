"""`sketchdnn generate`: from nothing to CAD files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import Sketch, quantities

from . import drawing

_FRAMES = 40
_CONDITIONS, _VARIATIONS = "Conditions, which may be combined", "Variations"


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="Example: sketchdnn generate --count 16 --seed 0 --out sketches")(generate)


def generate(
    out: Annotated[
        Path,
        typer.Option(help="Folder to write to; the sketches of an earlier run there are replaced.", show_default=False),
    ],
    count: Annotated[int, typer.Option(help="How many sketches.")] = 16,
    seed: Annotated[int, typer.Option(help="Which sketches: the same seed gives the same.")] = 0,
    first: Annotated[int, typer.Option(help="Number of the first: --first 7 --count 1 draws sketch 7 alone.")] = 0,
    format: Annotated[str, typer.Option(help="Files to write for each sketch.")] = "json,svg,dxf,fcstd",  # noqa: A002
    size: Annotated[
        str | None, typer.Option(help="Larger side of every sketch: 100mm, 4in, …", show_default="100mm")
    ] = None,
    steps: Annotated[int, typer.Option(help="Denoising steps: fewer are quicker, more close gaps.")] = 50,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="restart, predictor_corrector, ancestral, ddim, dpm++ or authors.", show_default="the model's own"
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    compile: Annotated[  # noqa: A002
        bool, typer.Option("--compile", help="On a GPU: quicker after a minute, for 100,000 sketches or more.")
    ] = False,
    repair: Annotated[
        bool, typer.Option(help="Close gaps, drop what is there twice, add constraints; in all formats alike.")
    ] = True,
    primitives: Annotated[
        str | None,
        typer.Option(help="How many primitives: 12 or 8..16.", rich_help_panel=_CONDITIONS, show_default=False),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="How many of each kind, besides construction: line=8,circle=2.",
            rich_help_panel=_CONDITIONS,
            show_default=False,
        ),
    ] = None,
    count_construction: Annotated[
        bool,
        typer.Option("--count-construction", help="--kinds counts construction too.", rich_help_panel=_CONDITIONS),
    ] = False,
    construction: Annotated[
        str | None,
        typer.Option(help="Share of construction geometry: 0.1..0.3.", rich_help_panel=_CONDITIONS, show_default=False),
    ] = None,
    aspect: Annotated[
        str | None,
        typer.Option(help="Width over height: 0.5..2, or 1..1.1.", rich_help_panel=_CONDITIONS, show_default=False),
    ] = None,
    closed: Annotated[
        bool, typer.Option("--closed", help="Only sketches that can be extruded.", rich_help_panel=_CONDITIONS)
    ] = False,
    unique: Annotated[bool, typer.Option("--unique", help="No two alike.", rich_help_panel=_CONDITIONS)] = False,
    novel: Annotated[
        bool, typer.Option("--novel", help="None that is in the training corpus.", rich_help_panel=_CONDITIONS)
    ] = False,
    best_of: Annotated[
        int, typer.Option(help="Draw so many for each and keep the one that is cleanest.", rich_help_panel=_CONDITIONS)
    ] = 1,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Variations of the sketch in this file.",
            rich_help_panel=_VARIATIONS,
            show_default=False,
            readable=False,
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="With --like: how much to change, above 0 to 1.", rich_help_panel=_VARIATIONS, show_default="0.3"
        ),
    ] = None,
    trajectory: Annotated[
        bool,
        typer.Option("--trajectory", help="Also write how each emerges from noise, before repair: SVG, GIF, strip."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help=drawing.FORCE)] = False,
) -> None:
    """Draw new sketches and write them as CAD files, with a gallery to look at.

    Sketch number i of a seed is the same whatever is asked for beside it.

    Several processes share the work: torchrun --nproc-per-node 8 -m sketchdnn generate …
    """
    asked = _asked(primitives, kinds, count_construction, construction, aspect, closed, unique, novel, best_of)
    length, units = quantities.length(size or "100mm")
    # Refused first, since the rooms that draw take seconds to load.
    if count < 1:
        raise SketchError(f"--count must be at least 1, not {count}")
    original = _original(like, strength, size)
    begun = time.perf_counter()

    from sketchdnn.diffusion.sampling import SamplingOptions
    from sketchdnn.generation.conditions import Conditions
    from sketchdnn.generation.engine import device_of, precision
    from sketchdnn.generation.files import check_formats, check_not_replaced
    from sketchdnn.generation.generate import check_request
    from sketchdnn.generation.like import STRENGTH
    from sketchdnn.generation.repairs import cores
    from sketchdnn.generation.share import joined
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device
    from sketchdnn.systems.pretrained import check_model_sampling, model_hash

    formats = check_formats(format.split(","))
    if like is not None:
        check_not_replaced(like, out)
    check_request(count, seed, length, first)
    check_model_sampling(model, SamplingOptions(sampler, steps))
    conditions = Conditions(**asked)
    if find_device(device) == "cpu" and compile:
        raise SketchError("--compile is for a GPU: name one with --device, or leave it out")
    with joined() as share:
        if unique and not share.alone:
            raise SketchError("--unique compares every sketch with all before it: leave it out, or use one process")
        system = from_pretrained(model, device, local=share.local)
        sampler = system.resolve(SamplingOptions(sampler)).sampler_name
        facts: dict[str, Any] = {
            "model": {"name": display_path(model), "sha256": model_hash(model)},
            "seed": seed,
            "first": first,
            "count": count,
            "sampler": sampler,
            "steps": steps if system.max_steps is not None else None,
            "size": length,
            "units": units,
            "formats": formats,
            "conditions": _told(asked),
            "repair": repair,
            "device": str(device_of(system)),
            "precision": precision(system),
            "seconds": {"loading": time.perf_counter() - begun},
        }
        options: dict[str, Any] = {"seed": seed, "steps": steps, "sampler": sampler, "conditions": conditions}
        options |= {"frames": _FRAMES if trajectory else 0, "compile": compile}
        options |= {"repair": repair, "workers": cores(share.world)}
        if original is None:
            options |= {"size": length, "units": units}
        else:
            options |= {} if strength is None else {"strength": strength}
            facts |= {"like": display_path(like or ""), "strength": options.get("strength", STRENGTH)}
            del facts["size"], facts["units"]
        _run(system, range(first, first + count), options, original, out, formats, facts, share, force)


def _run(
    system: Any,
    numbers: range,
    options: dict[str, Any],
    original: Sketch | None,
    out: Path,
    formats: list[str],
    facts: dict[str, Any],
    share: Any,
    force: bool,
) -> None:
    """Draw and write, with a bar; what Ctrl-C leaves is said."""
    from sketchdnn.generation.files import Drawn, write_sketches
    from sketchdnn.generation.generate import draw
    from sketchdnn.generation.like import draw_like
    from sketchdnn.generation.trajectory import write_trajectory

    mine = share.of(numbers)
    console = drawing.stderr(quiet=not share.leads)
    with drawing.progress_bar(console, "drawing", len(mine), out) as on_progress:
        options |= {"first": mine.start, "on_progress": on_progress}
        if not mine:
            drawings: Iterable[Drawn] = ()
        elif original is None:
            drawings = draw(system, len(mine), **options)
        else:
            drawings = draw_like(system, original, len(mine), **options)
        also = write_trajectory if options["frames"] else None
        how: dict[str, Any] = {"facts": facts, "also": also, "share": share, "force": force}
        written = write_sketches(drawings, numbers.stop, out, formats, **how)
    drawn = f"{len(numbers):,} sketch{'es' * (len(numbers) != 1)}"
    drawing.tell_end(console, out, drawn, formats, "look at gallery.html", written)


def _asked(
    primitives: str | None,
    kinds: str | None,
    count_construction: bool,
    construction: str | None,
    aspect: str | None,
    closed: bool,
    unique: bool,
    novel: bool,
    best_of: int,
) -> dict[str, Any]:
    """The fields of `Conditions` that were asked for."""
    asked: dict[str, Any] = {}
    if primitives is not None:
        asked["primitives"] = quantities.whole_span(primitives, "--primitives", "8..16")
    if kinds is not None:
        asked["kinds"] = quantities.kind_counts(kinds)
    if count_construction:
        if kinds is None:
            raise SketchError("--count-construction says what --kinds counts: name kinds as well, or leave it out")
        asked["count_construction"] = True
    if construction is not None:
        asked["construction"] = quantities.span(construction, "--construction", "0.1..0.3")
    if aspect is not None:
        asked["aspect"] = quantities.span(aspect, "--aspect", "0.5..2")
    if best_of != 1:
        asked["best_of"] = best_of
    return asked | {name: True for name, on in (("closed", closed), ("unique", unique), ("novel", novel)) if on}


def _told(asked: dict[str, Any]) -> dict[str, Any]:
    """Conditions as the manifest has them: ranges as they are typed, kinds by name."""
    told = dict(asked)
    for name, value in asked.items():
        if isinstance(value, tuple):
            told[name] = f"{value[0]:g}" if value[0] == value[1] else f"{value[0]:g}..{value[1]:g}"
        elif name == "kinds":
            told[name] = ",".join(f"{kind.label}={number}" for kind, number in value.items())
    return told


def _original(like: Path | None, strength: float | None, size: str | None) -> Sketch | None:
    """The sketch to vary, if one is named; it keeps its size."""
    if like is None:
        if strength is not None:
            raise SketchError("--strength says how much to change a sketch: name its file with --like")
        return None
    if size is not None:
        raise SketchError("--like draws variations at the size of their sketch; leave --size out")
    return drawing.one_sketch(like, drawing.stderr())
