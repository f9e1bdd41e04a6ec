"""`sketchdnn export-onnx`: the denoiser of a model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from sketchdnn.errors import SketchError, display_path

from . import gallery_command
from .console import stderr_console
from .options import path_option

EPILOG = """Example: sketchdnn export-onnx --model ours --out ours.onnx

Then: sketchdnn generate --onnx ours.onnx --out sketches"""


def export_onnx(
    out: Annotated[Path, path_option(help="The .onnx file to write.")],
    model: gallery_command.Model = "ours",
    student: Annotated[bool, Option("--student", help="Export the student of the model.")] = False,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export the denoiser of a model, for onnxruntime and other programs. Needs the extra onnx; takes a minute.

    The file holds one evaluation of the network with all of its inputs, for any number of sketches (docs/python.md).
    """
    if out.suffix != ".onnx":
        raise SketchError(f"{display_path(out)}: an export is an .onnx file; name it {out.stem}.onnx")
    if out.exists() and not force:
        raise SketchError(f"{display_path(out)} exists; name another file, or use --force")
    # Imported here: torch takes seconds to load, and --help should not.
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.onnx_file import export_onnx as export

    export(from_pretrained(model), out, student=student)
    size = out.stat().st_size / 1e6
    stderr_console().print(f"{display_path(out)}: the denoiser of {display_path(model)}, {size:,.0f} MB")
