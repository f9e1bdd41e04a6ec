"""`python -m benchmarks NAME`: speed, quality, figures and the tables of the paper."""

from __future__ import annotations

import typer

from benchmarks.commands import figures, looks, quality, reproduce, speed, tracing, trials
from sketchdnn.cli.app import run

app = typer.Typer(
    name="benchmarks",
    help="Measure speed and quality, draw the figures, reproduce the paper's tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (speed, quality, looks, tracing, figures, reproduce, trials):
    module.register(app)


def main() -> None:
    """Run the command line; errors of the user are one sentence and exit code 2."""
    run(app, "python -m benchmarks")


if __name__ == "__main__":
    main()
