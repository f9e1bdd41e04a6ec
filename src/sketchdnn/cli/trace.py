"""`sketchdnn trace`: from a picture of a drawing to a constrained sketch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from sketchdnn import formats
from sketchdnn.errors import FormatError, display_path
from sketchdnn.formats.archives import check_no_overwrite
from sketchdnn.geometry.quantities import parse_length
from sketchdnn.io import atomic_write, load_json, remove_abandoned

from .console import stderr_console
from .options import Device, Round, RoundOrigin, path_argument, path_option, round_options

if TYPE_CHECKING:
    from sketchdnn.tracing import TraceOptions, TraceResult

EPILOG = "Example: sketchdnn trace photo.jpg --out part.FCStd --size 120mm"
SIZE = "The larger side of the drawing: 120mm, 4in, …; sets the scale."
CLOSE = "In a drawing by hand: close outlines by lines, make open curves beside closed ones construction."
NETWORK = "Candidates of the model beside those of geometry, if it has an image encoder."
_CONFIG = "config.json"
OVERLAY = "The picture with the result drawn over it."


def trace(
    picture: Annotated[Path, path_argument(metavar="PICTURE", help="A PNG, JPEG, BMP, TIFF or PDF of a drawing.")],
    out: Annotated[Path, path_option(help="A file, whose suffix gives the format: .FCStd, .dxf, .svg, .json, …")],
    size: Annotated[str, Option(help=SIZE)] = "100mm",
    constrain: Annotated[bool, Option(help="Close gaps, infer constraints and solve them; or only fit curves.")] = True,
    close: Annotated[bool, Option(help=CLOSE)] = True,
    round_: Round = None,
    round_origin: RoundOrigin = "auto",
    overlay: Annotated[Path | None, path_option(help=OVERLAY, show_default="NAME-overlay.png")] = None,
    network: Annotated[bool, Option(help=NETWORK)] = True,
    model: Annotated[str, Option(help="The model: a folder, or the name of one of the package.")] = "ours",
    device: Device = "auto",
    page: Annotated[int, Option(min=1, help="The page of a PDF.")] = 1,
    format: Annotated[str | None, Option(help="The format, if the suffix does not give it.")] = None,  # noqa: A002
) -> None:
    """Trace a photo, scan or screenshot of a drawing: lines, arcs, circles and points, with constraints.

    Dashed strokes become construction. The result is drawn over the picture in a second file; look at it first.
    """
    from sketchdnn.constraints import round_dimensions
    from sketchdnn.geometry import profile
    from sketchdnn.render import describe
    from sketchdnn.tracing import TraceOptions
    from sketchdnn.tracing import overlay as draw_overlay

    console = stderr_console()
    number, units = parse_length(size)
    rounding = round_options(round_, round_origin)
    formats.find_writer(out, format, {})
    shown = overlay or out.with_name(f"{out.stem}-overlay.png")
    if shown.suffix.lower() != ".png":
        raise FormatError(shown, "is no name for the overlay; it must end in .png")
    check_no_overwrite([picture], [out, shown])
    remove_abandoned(out.parent)
    with console.status("Tracing …"):
        result = _tracer(network, model, device)(picture, TraceOptions(number, units, page, constrain, close))
        sketch = round_dimensions(result.sketch, rounding).sketch if rounding else result.sketch
    formats.write(sketch, out, format)
    with atomic_write(shown) as temporary:
        draw_overlay(result, side_by_side=True).save(temporary, format="png")
    shape = profile(sketch)
    outline = "closed" if shape.is_extrudable else "not closed"
    console.print(f"{display_path(out)}: {describe(sketch)}; {outline}; {result.dof} degrees of freedom")
    console.print(f"{display_path(shown)}: the result over the picture")
    best = ", the model's is the best" if result.is_proposal else ""
    compared = f"{result.candidates} candidates compared{best}"
    console.print(f"ink is {result.distance:.1%} of the size from the curves; {compared}")
    if not shape.is_extrudable:
        console.print(f"to extrude it: {' '.join(shape.reasons)}")
    if result.warning:
        console.print(f"constraints: {result.warning}")


def _tracer(network: bool, model: str, device: str) -> Callable[[Path, TraceOptions], TraceResult]:
    """The function that traces: with the model, or by geometry alone."""
    from sketchdnn.tracing import trace as trace_picture

    if not network or not _may_have_encoder(model):
        return trace_picture
    from sketchdnn.generation import SketchDNN
    from sketchdnn.generation.trace import trace

    return partial(trace, SketchDNN.from_pretrained(model, device=device).system)


def _may_have_encoder(model: str) -> bool:
    """Whether a model may have an image encoder, by its file alone: loading torch takes longer than geometry."""
    folder = Path(model)
    config = folder / _CONFIG if folder.exists() else Path(str(files("sketchdnn") / "weights" / model / _CONFIG))
    try:
        facts = load_json(config)
    except (OSError, ValueError):
        return True  # from elsewhere, or damaged: loading the model tells
    return not isinstance(facts, dict) or facts.get("image") is not None
