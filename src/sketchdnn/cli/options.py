"""Options that several commands share, and lengths and readers' options as they are written there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sketchdnn.errors import SketchError
from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions
from sketchdnn.geometry import MM_PER_UNIT
from sketchdnn.geometry.quantities import parse_length, parse_step

if TYPE_CHECKING:
    from sketchdnn.constraints.rounding import RoundOptions

FLATTEN = f"{DEFAULT_READ_OPTIONS.curve_tolerance_mm:g}mm"

# Of files and folders: reading one reports why it cannot be read.
path_option = partial(typer.Option, readable=False)
path_argument = partial(typer.Argument, readable=False)
_reading_option = partial(typer.Option, rich_help_panel="Reading drawings")

Flatten = Annotated[
    str,
    _reading_option(
        help="Tolerance of the lines and arcs that replace splines, Béziers and ellipses; 'off' skips such curves."
    ),
]
AssumeUnits = Annotated[
    str | None, _reading_option(help="The unit of a file that names none: mm, cm, m, in, …", show_default="mm")
]
Round = Annotated[
    str | None,
    typer.Option(
        "--round", help="Round the free dimensions: auto, or a step such as 0.5, 0.5mm or 1/16in.", metavar="auto|STEP"
    ),
]
RoundOrigin = Annotated[
    str, typer.Option(help="With --round: put the origin at a corner or the center, or keep it; auto, as fits.")
]
Quality = Annotated[str, typer.Option(help="best, or fast: few steps, for a quick look.")]
Steps = Annotated[
    int | None,
    typer.Option(help="Denoising steps: fewer are faster, more leave fewer gaps.", show_default="50 for best"),
]
SamplerName = Annotated[
    str | None,
    typer.Option(
        help="restart, predictor_corrector, ancestral, ddim, dpm++ or authors.", show_default="the model's own for best"
    ),
]
Precision = Annotated[str, typer.Option(help="auto, float32 or bfloat16; seeds draw the same sketches with auto only.")]
Onnx = Annotated[
    Path | None, path_option(help="Let onnxruntime compute the network: a file of `sketchdnn export-onnx`.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="The number of processes; by default one per core.")]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1, …")]


def read_options(flatten: str, assume_units: str | None) -> ReadOptions:
    """The options of readers, from `--flatten` and `--assume-units`."""
    is_off = flatten.strip().lower() == "off"
    return ReadOptions(None if is_off else millimeters(flatten, "--flatten"), assume_units)


def millimeters(text: str, option: str) -> float:
    """A length such as `5mm` or `0.25in` in millimeters."""
    number, units = parse_length(text, option)
    return number * MM_PER_UNIT[units]


def round_options(text: str | None, origin: str = "auto") -> RoundOptions | None:
    """The options of rounding, from `--round` and `--round-origin`; None without `--round`."""
    from sketchdnn.constraints.rounding import Origin, RoundOptions

    if origin not in list(Origin):
        raise SketchError(f"--round-origin is {', '.join(Origin)}, not '{origin}'")
    if text is None:
        if origin != Origin.AUTO:
            raise SketchError("--round-origin needs --round")
        return None
    if text.strip().lower() == "auto":
        return RoundOptions(origin=Origin(origin))
    step, units = parse_step(text)
    return RoundOptions(step, units, Origin(origin))
