"""Calls that run at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of calls that run at the same time, each in a thread."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [each.result() for each in [threads.submit(call) for call in calls]]
