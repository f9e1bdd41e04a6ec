"""Processor time of repair: by stage, and against another version of the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import sketchdnn
from sketchdnn.constraints import repair
from sketchdnn.constraints.repair.batch import single_threaded
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, ratio_estimate
from sketchdnn.geometry import Sketch

from .results import OnStage, ignore_stage

# Sketches that each version repairs in turn.
_BLOCK = 5
# The stages, and the functions whose time they are, each as the module that calls it and its name there.
_STAGES = {
    "canonical form": (("pipeline", "Canonical"),),
    "slivers, duplicates, pieces": (("pipeline", "deduplicate"),),
    "noise and joins": (("states", "drawn_noise"), ("states", "noise_estimate"), ("states", "find_joins")),
    "symmetry": (("states", "find_intent"),),
    "inference": (("infer_solve", "infer"),),
    "solution": (("infer_solve", "solve"),),
    "profiles": (("states", "profile"), ("pipeline", "profile"), ("pipeline", "close_profile")),
    "redundant constraints, freedom": (("pipeline", "_without_redundant"), ("pipeline", "_result")),
}
OTHER_STAGE = "all else"


@dataclass(frozen=True, slots=True)
class VersionComparison:
    """Processor milliseconds a sketch of this version and another one, and how many results are equal to the bit."""

    count: int
    here: float
    there: float
    ratio: Estimate  # how many times as long the other version takes, over all sketches
    median_ratio: float  # of the median times
    num_equal: int

    def sentence(self) -> str:
        ratio = f"{self.ratio.value:.2f} ({self.ratio.low:.2f}–{self.ratio.high:.2f})"
        return (
            f"Against the other version, in turns on the same {self.count:,} sketches: {self.there:.1f} ms a sketch "
            f"before, {self.here:.1f} ms now, {ratio} times as fast; by the median, {self.median_ratio:.2f} times. "
            f"Of the results, {self.num_equal:,} are equal to the bit."
        )


def measure_stages(sketches: Sequence[Sketch]) -> dict[str, float]:
    """Processor milliseconds a sketch in each stage; time in a stage within another one counts for the inner one."""
    spent: defaultdict[str, float] = defaultdict(float)
    open_stages: list[str] = []
    last = time.process_time()

    def switch() -> None:
        """Count the time since the last switch for the innermost open stage."""
        nonlocal last
        now = time.process_time()
        spent[open_stages[-1] if open_stages else OTHER_STAGE] += now - last
        last = now

    def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function, updated=())
        def run(*args: Any, **options: Any) -> Any:
            switch()
            open_stages.append(stage)
            try:
                return function(*args, **options)
            finally:
                switch()
                open_stages.pop()

        return run

    with ExitStack() as stack:
        for stage, functions in _STAGES.items():
            for name, attribute in functions:
                module = import_module(f"sketchdnn.constraints.repair.{name}")
                stack.enter_context(patch.object(module, attribute, timed(stage, getattr(module, attribute))))
        last = time.process_time()
        for sketch in sketches:
            repair(sketch)
        switch()
    return {stage: 1e3 * spent[stage] / len(sketches) for stage in (*_STAGES, OTHER_STAGE)}


def compare_versions(sketches: Sequence[Sketch], other: Path, *, on_stage: OnStage = ignore_stage) -> VersionComparison:
    """Repair sketches with this version and with that in a folder of sources, a few at a time in turns.

    Each version runs in a process of its own with one thread. Only processor time counts.

    Raises:
        SketchError: If there is no such version, or it fails.
    """
    if not (other / "sketchdnn" / "constraints" / "repair").is_dir():
        raise SketchError(f"{other} holds no other version; name the folder src of one")
    times: list[list[float]] = [[], []]
    hashes: list[list[str]] = [[], []]
    with _process(Path(sketchdnn.__file__).parents[1]) as here, _process(other) as there:
        both = (here, there)
        for run in both:
            run(sketches[:_BLOCK])  # imports, and first calls
        for start in range(0, len(sketches), _BLOCK):
            on_stage(f"repairing with both versions: {start:,} of {len(sketches):,}")
            for version in (0, 1) if start // _BLOCK % 2 else (1, 0):
                for seconds, digest in both[version](sketches[start : start + _BLOCK]):
                    times[version].append(1e3 * seconds)
                    hashes[version].append(digest)
    new, old = map(np.array, times)
    num_equal = sum(a == b for a, b in zip(*hashes, strict=True))
    medians = float(np.median(old) / np.median(new))
    ratio = ratio_estimate(old, new)
    return VersionComparison(len(sketches), float(new.mean()), float(old.mean()), ratio, medians, num_equal)


Run = Callable[[Sequence[Sketch]], list[tuple[float, str]]]


@contextmanager
def _process(source: Path) -> Iterator[Run]:
    """A process that repairs sketches with the library in a folder of sources."""
    command = [sys.executable, str(Path(__file__).with_name("repair_process.py"))]
    with single_threaded():
        environment = os.environ | {"PYTHONPATH": str(source.resolve())}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:  # noqa: S603

        def run(sketches: Sequence[Sketch]) -> list[tuple[float, str]]:
            if process.stdin is None or process.stdout is None:
                raise SketchError("the process has no pipes")
            process.stdin.write(json.dumps([sketch.to_dict() for sketch in sketches]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                raise SketchError(f"the version in {source} failed; its message is above")
            return [(seconds, digest) for seconds, digest in json.loads(answer)]

        try:
            yield run
        finally:
            if process.stdin is not None:
                process.stdin.close()
