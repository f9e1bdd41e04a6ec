"""The command line of the benchmarks."""

from __future__ import annotations

import typer

from sketchdnn.cli.app import run

from . import bench, figures, reproduce

app = typer.Typer(
    name="benchmarks",
    help="Measure speed and quality, draw the figures, reproduce the paper's tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _module in (bench, figures, reproduce):
    _module.register(app)


def main() -> None:
    """Run the command line; errors of the user are one sentence and exit code 2."""
    run(app, "python -m benchmarks")
