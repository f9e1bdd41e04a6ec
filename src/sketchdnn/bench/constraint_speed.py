"""How long infer and solve take, in a process that has one thread: matrices this small gain nothing by more."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.mending.many import one_thread_each
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
    with one_thread_each(), multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds = pool.apply(_seconds, (sketches, tolerance))
    return Speed(len(seconds), float(np.median(seconds)), float(np.quantile(seconds, 0.95)))


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
