"""The command line: one thin module a command. It parses options, calls one function, and prints."""

from .app import main

__all__ = ["main"]
