"""How long infer and solve take, in a process that has one thread: matrices this small gain nothing by more."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sketchdnn.constraints import infer, solve
from sketchdnn.geometry import Sketch

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of one core for infer and solve, over sketches, the best of some rounds each."""

    sketches: int
    median: float
    slow: float  # 95 of 100 are quicker


def time_constraints(sketches: Sequence[Sketch], tolerance: float) -> Speed:
    """Time every sketch in a process of its own."""
    with one_thread(), multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds = pool.apply(_seconds, (sketches, tolerance))
    return Speed(len(seconds), float(np.median(seconds)), float(np.quantile(seconds, 0.95)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that start now have one thread each."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _seconds(sketches: Sequence[Sketch], tolerance: float) -> list[float]:
    """Of processor time, which is that of the clock where nothing else runs."""
    best = []
    for sketch in sketches:
        rounds = []
        for _ in range(ROUNDS):
            start = time.process_time()
            solve(sketch, infer(sketch, tolerance))
            rounds.append(time.process_time() - start)
        best.append(min(rounds))
    return best
