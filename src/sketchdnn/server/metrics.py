"""Counts of requests, jobs and batches, in the text format of Prometheus."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Upper bounds of the times of requests, in seconds.
_BOUNDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Metrics:
    """Counts of answers by method, route and status, and a histogram of times by route."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        with self._lock:
            self.requests[method, route, status] += 1
            buckets = self.seconds.setdefault(route, [0.0] * (len(_BOUNDS) + 2))
            for number, bound in enumerate(_BOUNDS):
                buckets[number] += float(seconds <= bound)
            buckets[-2] += 1.0
            buckets[-1] += seconds

    def lines(self) -> Iterable[str]:
        """The lines of these counts."""
        with self._lock:
            requests, seconds = dict(self.requests), {route: list(each) for route, each in self.seconds.items()}
        yield from describe("requests_total", "counter", "Answers by route and status.")
        for (method, route, status), number in sorted(requests.items()):
            yield line("requests_total", number, method=method, route=route, status=str(status))
        yield from describe("request_seconds", "histogram", "Time until an answer is complete.")
        for route, buckets in sorted(seconds.items()):
            for bound, below in zip((*_BOUNDS, "+Inf"), buckets[:-1], strict=True):
                yield line("request_seconds_bucket", below, route=route, le=str(bound))
            yield line("request_seconds_count", buckets[-2], route=route)
            yield line("request_seconds_sum", buckets[-1], route=route)


def describe(name: str, kind: str, words: str) -> tuple[str, str]:
    """The two lines before the values of a metric."""
    return f"# HELP sketchdnn_{name} {words}", f"# TYPE sketchdnn_{name} {kind}"


def line(name: str, value: float, **labels: str) -> str:
    """A value.

    >>> line("jobs_total", 3, state="done")
    'sketchdnn_jobs_total{state="done"} 3'
    """
    words = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"sketchdnn_{name}{f'{{{words}}}' if words else ''} {value:g}"


def gauges(values: Mapping[str, tuple[str, str, float]]) -> Iterable[str]:
    """The lines of metrics with one value each: by name, its type, words and value."""
    for name, (kind, words, value) in values.items():
        yield from describe(name, kind, words)
        yield line(name, value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
