"""The command line: one thin module a verb. Options in, one call into a room, one sentence out when it goes wrong."""

from .app import main

__all__ = ["main"]
