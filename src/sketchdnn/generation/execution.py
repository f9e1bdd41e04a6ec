"""Where the work of a request is done: by default in the thread of the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .engine import PartSampler


def call_here(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function in this thread."""
    return function(*arguments)


@dataclass(frozen=True, slots=True)
class Execution:
    """Where samples are drawn and results are repaired. A server does both elsewhere.

    Attributes:
        sample_part: Draws a batch; None means by the system itself.
        call: Calls a function that takes a core for long and needs no model. The function, its arguments and its
            result can be pickled.
    """

    sample_part: PartSampler | None = None
    call: Callable[..., Any] = call_here


DEFAULT_EXECUTION = Execution()
