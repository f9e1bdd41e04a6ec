"""The model's thread: parts of several requests share batches, are dropped when canceled, and fail alone."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from support.generation import copy_as
from support.small_systems import small_system
from support.threads import together

from sketchdnn.diffusion.sampling import Progress, SamplingOptions
from sketchdnn.generation.engine import BatchPart, SampleId, sample_together
from sketchdnn.representation import SketchBatch
from sketchdnn.server.batching import ModelThread
from sketchdnn.server.responses import ApiError
from sketchdnn.systems.baselines.tokens.system import Vitruvion
from sketchdnn.systems.sketchdnn import SketchDNNSystem

OPTIONS = SamplingOptions("ancestral", 6)


def part_of(seed: int, count: int = 2, **options: Any) -> BatchPart:
    return BatchPart(seed, [SampleId(index) for index in range(count)], replace(OPTIONS, **options))


def go_on() -> None:
    """The check of a request that is never canceled."""


class Recorded(SketchDNNSystem):
    """Records the number of rows of each batch, and waits before the first."""

    def prepare(self) -> None:
        self.batches: list[int] = []
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def sample(self, noise: Any, *options: Any) -> SketchBatch:
        self.begun.set()
        assert self.may_go_on.wait(20)
        rows = super().sample(noise, *options)
        self.batches.append(len(rows))
        return rows


@pytest.fixture
def system() -> Recorded:
    system = copy_as(Recorded, small_system())
    assert isinstance(system, Recorded)
    system.prepare()
    # Rounding of batch sizes is compared before anything is counted.
    system.may_go_on.set()
    sample_together(system, [part_of(0, 16)])
    for count in (1, 2, 4, 8):
        sample_together(system, [part_of(0, count)])
    system.prepare()
    return system


def sample_all(model: ModelThread, system: Recorded, parts: Sequence[BatchPart]) -> list[SketchBatch]:
    """The rows of parts that all wait while the model is busy with the first."""
    waiting = threading.Semaphore(0)

    def check() -> None:
        waiting.release()

    calls: list[Callable[[], SketchBatch]] = [partial(model.sample, part, check) for part in parts]

    def let_go() -> None:
        for _ in range(3 * len(parts)):
            assert waiting.acquire(timeout=20)
        system.may_go_on.set()

    return together([*calls, let_go])[: len(calls)]


def test_parts_share_batches_and_get_the_rows_they_get_alone(system: Recorded) -> None:
    model = ModelThread(system)
    parts = [part_of(seed, 1 + seed % 3) for seed in range(8)] + [part_of(2**64 - 1, 16), part_of(9, 3)]
    together_rows = sample_all(model, system, parts)
    assert sum(system.batches) < sum(len(part.samples) for part in parts) + 8
    assert len(system.batches) < len(parts) / 2
    for part, rows in zip(parts, together_rows, strict=True):
        (alone,) = sample_together(small_system(), [part])
        assert torch.equal(rows.flat(), alone.flat())
    model.close()


def test_parts_with_other_options_have_batches_of_their_own(system: Recorded) -> None:
    model = ModelThread(system)
    sample_all(model, system, [part_of(1), part_of(2, steps=5), part_of(3, sampler="ddim"), part_of(4)])
    assert sorted(system.batches) in ([2, 2, 2, 2], [2, 2, 4])
    model.close()


def test_canceled_part_leaves_the_batch_to_the_others(system: Recorded) -> None:
    model = ModelThread(system)
    canceled = threading.Event()

    def check() -> None:
        if canceled.is_set():
            raise ApiError(409, "canceled")

    steps: list[int] = []

    def on_step(_: Sequence[SampleId], progress: Progress) -> None:
        steps.append(progress.number)
        canceled.set()

    system.may_go_on.set()
    part = part_of(1)
    with pytest.raises(ApiError, match="canceled"):
        model.sample(replace(part, on_step=on_step), check)
    assert len(steps) < 6
    (alone,) = sample_together(small_system(), [part])
    assert torch.equal(model.sample(part, go_on).flat(), alone.flat())
    model.close()


def test_part_that_fails_does_not_fail_its_neighbors(system: Recorded) -> None:
    model = ModelThread(system)

    def fail(_: Sequence[SampleId], progress: Progress) -> None:
        raise ValueError("mine alone")

    parts = [part_of(0, 16), part_of(1), replace(part_of(2), on_step=fail), part_of(3)]
    calls = [partial(model.sample, part, go_on) for part in parts]

    def outcome(call: Callable[[], SketchBatch]) -> object:
        try:
            return call()
        except ValueError as error:
            return str(error)

    system.may_go_on.set()
    results = together([partial(outcome, call) for call in calls])
    assert results[2] == "mine alone"
    assert all(isinstance(result, SketchBatch) for number, result in enumerate(results) if number != 2)
    model.close()


def test_systems_that_do_not_denoise_rows_never_share() -> None:
    assert not issubclass(Vitruvion, SketchDNNSystem)
