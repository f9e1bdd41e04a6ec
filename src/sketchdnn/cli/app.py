"""The command line: all commands, and errors as one sentence on stderr with exit code 2."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Annotated

import typer

import sketchdnn
from sketchdnn.errors import SketchError, display_path, quoted

from .console import stderr_console
from .presets import presets
from .signals import SignalHandler

# The commands in the order of --help, with _ for -. Each has a module, with a function of its name and an `EPILOG`.
COMMANDS = (
    "generate",
    "complete",
    "trace",
    "constrain",
    "convert",
    "view",
    "prepare",
    "train",
    "distill",
    "train_image",
    "evaluate",
    "export_onnx",
    "studio",
    "serve",
    "mcp",
)

# Longest error message, in characters: it may quote file names and contents.
_MAX_ERROR = 2000

app = typer.Typer(
    name="sketchdnn",
    help="Generate, convert and study parametric CAD sketches.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _show_version(show: bool) -> None:
    if show:
        typer.echo(f"sketchdnn {sketchdnn.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


for _name in COMMANDS:
    _module = importlib.import_module(f"sketchdnn.cli.{_name}")
    app.command(_name.replace("_", "-"), epilog=_module.EPILOG)(getattr(_module, _name))
app.add_typer(presets, name="presets", epilog="Example: sketchdnn presets copy tiny mine.toml")


def main() -> None:
    """Run the command line of the package."""
    run(app, "sketchdnn")


def run(app: typer.Typer, name: str) -> None:
    """Run a command line. Errors of the user become one sentence on stderr and exit code 2, never a traceback.

    Args:
        app: The commands.
        name: The program's name in its help; shell completion is installed under it.
    """
    # Idle threads sleep instead of spinning, which is twenty times slower beside another busy process.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signals = SignalHandler()
    signals.install()
    # A terminal may know ASCII alone; what it cannot show becomes a question mark.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        app(prog_name=name)
    except SystemExit as end:
        raise SystemExit(signals.exit_code(end.code)) from None
    except SketchError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as error:
        name = display_path(error.filename or "")
        _fail(f"{name}: {error.strerror or error}" if name else str(error))


def _fail(sentence: str) -> None:
    stderr_console().print(f"sketchdnn: {quoted(sentence, _MAX_ERROR)}")
    raise SystemExit(2)
