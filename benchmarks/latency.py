"""Latency of what a person waits for: one sketch, sixteen, and eight completions, by quality, precision and engine.

No student ships yet. The time of a step does not depend on the values of the weights, so a student is timed as
`sketchdnn distill` starts it: with the weights of its teacher. Its sketches are worse than those of a trained one, so
repair is timed on those of the teacher in few steps.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from rich.table import Table
from torch import Tensor

from sketchdnn.diffusion import seeded_noise
from sketchdnn.diffusion.process import parts
from sketchdnn.errors import SketchError
from sketchdnn.generation import CompleteRequest, GenerateRequest
from sketchdnn.generation.complete import complete
from sketchdnn.generation.engine import (
    PRECISIONS,
    BatchPart,
    device_of,
    inference_system,
    precision,
    sample_together,
    set_precision,
)
from sketchdnn.generation.execution import Execution
from sketchdnn.generation.generate import stream
from sketchdnn.generation.quality import STEPS, STUDENT_STEPS
from sketchdnn.networks.packed import can_pack
from sketchdnn.representation import SketchBatch
from sketchdnn.representation.batch import Prediction
from sketchdnn.systems import System
from sketchdnn.systems.devices import usable_cores
from sketchdnn.systems.onnx_file import with_onnx
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.students import make_student

from .completion_speed import PARTS
from .results import OnStage, ignore_stage, markdown_table, rich_table

ONE, SIXTEEN, OPEN, FINISHED = "1 sketch", "16 sketches", "8 completions, open part", "8 completions, finished part"
# Seconds that the student may take.
GOALS = {ONE: 0.25, SIXTEEN: 1.5, OPEN: 1.5, FINISHED: 1.5}
_COLUMNS = ("path", "precision", "task", "sampling, s", "repair and rest, s", "all, s", "share of rest", "speedup")


@dataclass(frozen=True, slots=True)
class LatencyTiming:
    """The fastest of several rounds; `rest` is all but sampling: repair, scores and choice."""

    path: str
    precision: str
    task: str
    sampling: float
    rest: float

    @property
    def total(self) -> float:
        return self.sampling + self.rest


@dataclass(frozen=True, slots=True)
class EvaluationTiming:
    """Milliseconds of one core for one evaluation of the network, by the size of the batch."""

    computed_by: str
    milliseconds: tuple[float, ...]
    error: float  # largest difference from float32, relative to the largest output

    def row(self) -> tuple[str, ...]:
        return (self.computed_by, *(f"{number:.1f}" for number in self.milliseconds), f"{self.error:.1e}")


@dataclass(frozen=True, slots=True)
class Latency:
    """All timings of a run. The first path is the one that others are compared with."""

    rounds: int
    cores: int
    untrained: bool
    timings: tuple[LatencyTiming, ...]
    evaluations: tuple[EvaluationTiming, ...] = ()

    def speedup(self, timing: LatencyTiming) -> float:
        """How many times as fast as the best quality for the same task."""
        best = next(each for each in self.timings if each.task == timing.task)
        return best.total / timing.total

    def rows(self) -> Iterator[tuple[str, ...]]:
        for each in self.timings:
            seconds = (f"{number:.3f}" for number in (each.sampling, each.rest, each.total))
            share, speedup = f"{each.rest / each.total:.0%}", f"{self.speedup(each):.2f}×"
            yield (each.path, each.precision, each.task, *seconds, share, speedup)

    def sentences(self) -> Iterator[str]:
        for each in self.timings:
            if each.path == _STUDENT:
                goal = GOALS[each.task]
                verdict = "met" if each.total <= goal else "missed"
                share = f"{each.rest / each.total:.0%} of it is not sampling"
                yield f"{each.task} in {STUDENT_STEPS} steps: {each.total:.2f} s, goal {goal:g} s {verdict}; {share}."

    def table(self) -> Table:
        title = f"Latency on {self.cores} cores, model loaded, best of {self.rounds}"
        return rich_table(title, _COLUMNS, self.rows())

    def markdown(self, command: str) -> str:
        untrained = _UNTRAINED.format(fast=_FAST) if self.untrained else ""
        page = _PAGE.format(command=command, cores=self.cores, rounds=self.rounds, steps=STEPS, untrained=untrained)
        goals = "\n".join(f"- {sentence}" for sentence in self.sentences())
        evaluations = markdown_table(_EVALUATION_COLUMNS, (each.row() for each in self.evaluations))
        return "\n\n".join([page, markdown_table(_COLUMNS, self.rows()), goals, _EVALUATIONS, evaluations]) + "\n"


_EVALUATION_ROUNDS = 5
BATCHES = (1, 4, 16, 32)
_EVALUATION_COLUMNS = ("computed by", *(f"{batch} × 16 rows" for batch in BATCHES), "difference")
_EVALUATIONS = """## One evaluation of the network

Milliseconds of one core, the best of five. The difference is the largest from float32, relative to the largest
output."""
_STUDENT = f"student, {STUDENT_STEPS} steps"
_FAST = "fast, without a student"
_PAGE = """# Latency

`{command}` on {cores} cores of a CPU: what a person waits for, from the loaded model to the result, repair included.
Each row is the best of {rounds} rounds of one run. Speedup is that over the first row of the same task, which is
`best`, {steps} steps. {untrained}"""
_UNTRAINED = """The model has no student: the one that is timed has the weights of its teacher, as
`sketchdnn distill` starts. Sampling takes as long as with a trained one. Its sketches are worse and take longer to
repair, so "repair and rest" of its rows is that of `{fast}`."""


@dataclass(slots=True)
class _Clock:
    """The seconds of sampling of one run."""

    system: System
    sampling: float = 0.0
    execution: Execution = field(init=False)

    def __post_init__(self) -> None:
        self.execution = Execution(self._sample)

    def _sample(self, part: BatchPart) -> SketchBatch:
        start = time.perf_counter()
        (rows,) = sample_together(self.system, [part])
        self.sampling += time.perf_counter() - start
        return rows


Run = Callable[[System, dict[str, Any], Execution], object]


def _generate(count: int) -> Run:
    return lambda system, options, execution: list(
        stream(system, GenerateRequest.parse(count=count, **options), execution=execution)
    )


def _complete(name: str) -> Run:
    part = PARTS[name]()
    return lambda system, options, execution: list(
        complete(system, CompleteRequest(part=part, count=8, **options), execution=execution)
    )


def time_latency(
    system: System,
    onnx: Path | None = None,
    *,
    rounds: int = 5,
    tasks: Sequence[str] = tuple(GOALS),
    on_stage: OnStage = ignore_stage,
) -> Latency:
    """Time every path of a model on the CPU.

    Args:
        system: The model.
        onnx: A file of `sketchdnn export-onnx`, to time onnxruntime too.
        rounds: Rounds, of which the fastest counts.
        tasks: What is timed.
        on_stage: Called with the name of each stage.
    """
    if not isinstance(system, SketchDNNSystem) or device_of(system).type != "cpu":
        raise SketchError("latency is that of a model of the system sketchdnn on a CPU")
    untrained = system.student is None
    with_student, in_float32, teacher = copy.copy(system), copy.copy(system), copy.copy(system)
    student = system.student or make_student(system, "moment_matching").eval()
    for each in (with_student, in_float32):
        each.attach_student(copy.copy(student))
    teacher.attach_student(None)
    set_precision(in_float32, "float32")
    both, fast = tuple(tasks), {"quality": "fast"}
    short = tuple(task for task in tasks if task in (ONE, SIXTEEN))
    timings = _time_path("best", teacher, {}, both, rounds, on_stage)
    timings += _time_path(_FAST, teacher, fast, both, rounds, on_stage)
    timings += _time_path(_STUDENT, with_student, fast, both, rounds, on_stage)
    timings += _time_path(f"{_STUDENT}, float32", in_float32, fast, both, rounds, on_stage)
    with mock.patch("sketchdnn.generation.engine.can_pack", return_value=False):
        timings += _time_path("best, weights not packed", teacher, {}, short, rounds, on_stage)
        timings += _time_path(f"{_STUDENT}, weights not packed", with_student, fast, short, rounds, on_stage)
    if onnx is not None:
        run_by_onnx = with_onnx(teacher, onnx)
        timings += _time_path("fast, onnxruntime", run_by_onnx, fast, both, rounds, on_stage, "float32")
    if untrained:
        rest = {each.task: each.rest for each in timings if each.path == _FAST}
        timings = [replace(e, rest=rest[e.task]) if e.path.startswith(_STUDENT) else e for e in timings]
    on_stage("one evaluation of the network")
    with torch.no_grad():
        evaluations = tuple(_time_evaluations(teacher, onnx))
    return Latency(rounds, usable_cores(), untrained, tuple(timings), evaluations)


def _time_evaluations(system: SketchDNNSystem, onnx: Path | None) -> Iterator[EvaluationTiming]:
    """One evaluation by every kind of weights and precision, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        inputs = {batch: _Inputs.draw(system, batch) for batch in BATCHES}
        expected = system.denoise(*inputs[BATCHES[-1]])
        for name in PRECISIONS[1:]:
            chosen = copy.copy(system)
            try:
                set_precision(chosen, name)
            except SketchError:  # this processor does not have it
                continue
            for packed in (False, True) if can_pack() else (False,):
                fast = inference_system(chosen) if packed else chosen
                with torch.autocast("cpu", torch.bfloat16, enabled=name == "bfloat16"):
                    yield _time_evaluation(f"{name}, packed" if packed else name, fast, inputs, expected)
        if onnx is not None:
            yield _time_evaluation("onnxruntime, float32", with_onnx(system, onnx, threads=1), inputs, expected)
    finally:
        torch.set_num_threads(threads)


class _Inputs(NamedTuple):
    """The arguments of `RowDenoiser.denoise`."""

    batch: SketchBatch
    t: Tensor
    mask: None
    previous: Prediction

    @classmethod
    def draw(cls, system: SketchDNNSystem, batch: int) -> _Inputs:
        """Noise as the state, and the prediction that is made from it as the previous one."""
        noise = seeded_noise(0, torch.arange(batch))(0)
        t = torch.full((batch,), system.config.num_steps // 2)
        state = SketchBatch(noise.construction.softmax(dim=-1), noise.kind.softmax(dim=-1), noise.params)
        return cls(state, t, None, system.denoise(state, t))


def _time_evaluation(
    name: str, system: System, inputs: Mapping[int, _Inputs], expected: Prediction
) -> EvaluationTiming:
    assert isinstance(system, SketchDNNSystem)  # noqa: S101
    milliseconds = []
    for arguments in inputs.values():
        found = system.denoise(*arguments)
        seconds = []
        for _ in range(_EVALUATION_ROUNDS):
            start = time.process_time()
            system.denoise(*arguments)
            seconds.append(time.process_time() - start)
        milliseconds.append(1e3 * min(seconds))
    pairs = zip(parts(found), parts(expected), strict=True)
    error = max(float((a.float() - b).abs().max() / b.abs().max()) for a, b in pairs)
    return EvaluationTiming(name, tuple(milliseconds), error)


_TASKS: dict[str, Run] = {
    ONE: _generate(1),
    SIXTEEN: _generate(16),
    **dict(zip((OPEN, FINISHED), map(_complete, PARTS), strict=True)),
}


def _time_path(
    path: str,
    system: System,
    options: dict[str, Any],
    tasks: Sequence[str],
    rounds: int,
    on_stage: OnStage,
    computed_in: str | None = None,
) -> list[LatencyTiming]:
    timings = []
    for task in tasks:
        on_stage(f"{path}: {task}")
        found = []
        for _ in range(rounds):
            clock = _Clock(system)
            start = time.perf_counter()
            _TASKS[task](system, options, clock.execution)
            found.append((time.perf_counter() - start, clock.sampling))
        total, sampling = min(found)
        timings.append(LatencyTiming(path, computed_in or precision(system), task, sampling, total - sampling))
    return timings
