"""Model calls: from the body of a request to the work of a job, whose results are JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from sketchdnn.errors import SketchError
from sketchdnn.generation import CompleteRequest, GenerateRequest
from sketchdnn.generation.complete import complete
from sketchdnn.generation.execution import Execution
from sketchdnn.generation.generate import GeneratedSketch, stream
from sketchdnn.geometry import Box, Sketch, bounds, profile
from sketchdnn.geometry.primitives import transformed
from sketchdnn.geometry.records import primitive_to_dict
from sketchdnn.render.style import MIN_PROBABILITY
from sketchdnn.systems import System

from .batching import ModelThread
from .jobs import Job
from .limits import Limits
from .responses import ApiError
from .schema import CompleteBody, ConditionsBody, GenerateBody, SketchModel, TrajectoryBody, VariationsBody
from .tasks import parse, rounding_of
from .workers import WorkerPool

Record = dict[str, Any]
Work = Callable[[Job], Iterator[Record]]

_CONDITIONS = tuple(ConditionsBody.model_fields)


class ModelCalls:
    """Makes the work of jobs from requests.

    Attributes:
        system: The model.
        model: The thread that runs it.
        pool: Processes that repair and score results.
        limits: What a request may ask for.
    """

    def __init__(self, system: System, model: ModelThread, pool: WorkerPool, limits: Limits) -> None:
        self.system, self.model, self.pool, self.limits = system, model, pool, limits

    def generate(self, body: GenerateBody) -> Work:
        """New sketches."""
        self._check(body.count, body.best_of)
        names = ("count", "seed", "start_index", "quality", "steps", "sampler", "size", "units", "repair")
        return partial(self._generate, GenerateRequest.parse(**_own(body, names), rounding=rounding_of(body.round)))

    def variations(self, body: VariationsBody) -> Work:
        """Variations of a sketch."""
        self._check(body.count, body.best_of)
        names = ("count", "seed", "start_index", "quality", "steps", "sampler", "strength", "repair")
        sketch = self._parse(body.init_sketch)
        options = _own(body, names) | {"init_sketch": sketch, "rounding": rounding_of(body.round)}
        return partial(self._generate, GenerateRequest.parse(**options))

    def trajectory(self, body: TrajectoryBody) -> Work:
        """The denoising steps of a sketch."""
        self._check(1, body.best_of)
        if body.frames > self.limits.frames:
            raise SketchError(f"a trajectory has at most {self.limits.frames} frames, not {body.frames}")
        names = ("seed", "quality", "steps", "sampler", "size", "units", "repair")
        options = _own(body, names) | {"start_index": body.index, "trajectory_frames": body.frames}
        return partial(self._trajectory, GenerateRequest.parse(**options))

    def complete(self, body: CompleteBody) -> Work:
        """Suggestions for a part."""
        self._check(body.count, body.candidates)
        names = (
            "count",
            "seed",
            "goal",
            "kinds",
            "closed",
            "candidates",
            "method",
            "quality",
            "steps",
            "sampler",
            "repair",
        )
        options = {name: getattr(body, name) for name in names}
        inside, scale = body.inside, body.scale
        request = CompleteRequest(
            **options,
            part=self._parse(body.part),
            inside=Box(inside[:2], inside[2:]) if isinstance(inside, tuple) else inside,
            primitives=body.primitives,
            like=None if body.like is None else self._parse(body.like),
            unlike=[self._parse(each) for each in body.unlike],
            scale=float(scale) if isinstance(scale, int) else scale,
            rounding=rounding_of(body.round),
        )
        return partial(self._complete, request, body.part.record()["primitives"])

    def _generate(self, request: GenerateRequest, job: Job) -> Iterator[Record]:
        for generated in stream(self.system, request, _progress(job, request.count), self._execution(job)):
            yield self.pool.call(result_record, generated)

    def _complete(self, request: CompleteRequest, given: Sequence[Record], job: Job) -> Iterator[Record]:
        for generated in complete(self.system, request, _progress(job, request.count), self._execution(job)):
            record = self.pool.call(result_record, generated)
            # As they were sent: an angle may change in its last digit when it is read and written.
            primitives = record["sketch"]["primitives"]
            primitives[: len(given)] = [{**own, **sent} for own, sent in zip(primitives, given, strict=False)]
            yield record

    def _trajectory(self, request: GenerateRequest, job: Job) -> Iterator[Record]:
        (generated,) = stream(self.system, request, _progress(job, 1), self._execution(job))
        yield self.pool.call(trajectory_record, generated, request.resolve_size()[0])

    def _execution(self, job: Job) -> Execution:
        """Samples are drawn by the model's thread, and results repaired by the pool, while the job may run."""

        def call(function: Callable[..., Any], *arguments: Any) -> Any:
            job.check()
            return self.pool.call(function, *arguments, seconds=job.seconds_left())

        return Execution(partial(self.model.sample, check=job.check), call)

    def _check(self, count: int, candidates: int) -> None:
        limits = self.limits
        if count > limits.count:
            raise SketchError(f"one request is for at most {limits.count} sketches, not {count}")
        if candidates > limits.candidates:
            raise SketchError(f"at most {limits.candidates} candidates are drawn for a sketch, not {candidates}")

    def _parse(self, model: SketchModel) -> Sketch:
        check_size(model, self.limits.drag_primitives, self.limits)
        return parse(model.record())


def check_size(sketch: SketchModel, most: int, limits: Limits) -> None:
    """Refuse a sketch that is too large for a call."""
    if len(sketch.primitives) > most:
        raise ApiError(413, f"the sketch has {len(sketch.primitives):,} primitives; this takes at most {most:,}")
    if len(sketch.constraints) > limits.constraints:
        raise ApiError(413, f"the sketch has more than {limits.constraints:,} constraints")


def result_record(generated: GeneratedSketch) -> Record:
    """A result as JSON."""
    report = generated.repair
    record: Record = {
        "index": generated.index,
        "sketch": generated.sketch.to_dict(),
        "repair": report and {"summary": report.summary, "dof": report.dof, "warning": report.warning},
        "shortfall": generated.shortfall or generated.best_of_shortfall,
        "profile": {"is_extrudable": profile(generated.sketch).is_extrudable},
    }
    if generated.score is not None:
        record["score"] = generated.score
    return record | ({"num_given": generated.num_given} if generated.num_given else {})


def trajectory_record(generated: GeneratedSketch, size: float) -> Record:
    """The frames of a sketch, in the place and the size of the sketch."""
    frames = [(frame.t, frame.likely()) for frame in generated.trajectory]
    frames = [(t, [item for item in items if item.probability >= MIN_PROBABILITY]) for t, items in frames]
    last = [item.primitive for item in frames[-1][1]] if frames else []
    box = bounds(last) if last else None
    scale = size / box.size if box is not None and box.size > 0 else size / 2
    center = (0.0, 0.0) if box is None else box.center

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return scale * (point[0] - center[0]), scale * (point[1] - center[1])

    def record(item: Any) -> Record:
        primitive = transformed(item.primitive, place, lambda radius: scale * radius)
        return {"primitive": primitive_to_dict(primitive), "probability": item.probability, "row": item.row}

    return {
        "frames": [{"t": t, "items": list(map(record, items))} for t, items in frames],
        "sketch": generated.sketch.to_dict(),
    }


def _own(body: ConditionsBody, names: Sequence[str]) -> dict[str, Any]:
    """The named options and the conditions."""
    return {name: getattr(body, name) for name in (*names, *_CONDITIONS)}


def _progress(job: Job, count: int) -> Callable[[float], None]:
    return lambda done: job.report(done / count)
