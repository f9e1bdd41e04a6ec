"""The console of the commands: messages go to standard error, so that standard output holds results only."""

from __future__ import annotations

from rich.console import Console


def stderr_console(*, quiet: bool = False) -> Console:
    """Return a console that prints plain text to standard error, or nothing if `quiet`."""
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=quiet)
