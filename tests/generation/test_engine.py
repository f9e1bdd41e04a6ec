"""The engine: a sketch comes out the same in whatever company it is drawn, and arithmetic is narrow only where told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from benchmarks.api import are_alike, count_alike
from sketchdnn.errors import SketchError
from sketchdnn.generation import Conditions, draw
from sketchdnn.generation.engine import (
    CPU_BATCH,
    GPU_BATCH,
    Engine,
    SampleId,
    choose_batch_size,
    compile_denoiser,
    max_batch_size,
    precision,
)
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems import System, from_pretrained, load_preset
from sketchdnn.systems.sketchdnn import SketchDNN


@pytest.fixture(scope="module")
def system() -> System:
    """Untrained, but moved off its start, so that what it draws depends on all of the noise."""
    torch.manual_seed(0)
    system = load_preset("tiny").make()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return system.eval()


def mixed(asks: Sequence[SampleId]) -> list[SampleId]:
    return [asks[place] for place in torch.randperm(len(asks), generator=torch.Generator().manual_seed(1)).tolist()]


def in_any_company(system: System, steps: int) -> None:
    asks = [SampleId(number, attempt) for number in (0, 3, 70_000, 2**32 - 1) for attempt in (0, 5)]
    others = [SampleId(number) for number in range(100, 100 + CPU_BATCH - 4)]
    engine = Engine(system, 7, steps, "ancestral")
    together = dict(zip(asks, engine.draw(asks), strict=True))
    moved = mixed([*asks, *others])  # in other places, beside others, some in a second batch
    found = dict(zip(moved, engine.draw(moved), strict=True))
    assert {ask: found[ask] for ask in asks} == together
    assert engine.draw(asks[3:4]) == [together[asks[3]]]
    assert len({decoded.sketch for decoded in together.values()}) == len(asks)


def test_neither_place_nor_neighbors_matter(system: System) -> None:
    in_any_company(system, steps=6)


def test_neither_place_nor_neighbors_matter_to_the_bundled_model() -> None:
    in_any_company(from_pretrained(), steps=2)


def rows_of_batches(system: System, count: int, **options: Any) -> list[int]:
    """How many rows each batch has that a request is drawn in."""
    rows: list[int] = []

    class Counting(type(system)):  # type: ignore[misc]
        def sample(self, noise: Any, **is_restrictive: Any) -> SketchBatch:
            batch: SketchBatch = super().sample(noise, **is_restrictive)
            rows.append(len(batch))
            return batch

    counted = Counting(system.config).eval()
    counted.load_state_dict(system.state_dict())
    choose_batch_size(counted, 1, CPU_BATCH)  # tries them out
    for count_of_two in (2, 4, 8):
        choose_batch_size(counted, count_of_two, CPU_BATCH)
    rows.clear()
    list(draw(counted, count, **options))
    return rows


def test_small_requests_are_drawn_in_small_batches(system: System) -> None:
    assert rows_of_batches(system, 1, steps=3) == [1]
    assert rows_of_batches(system, 3, steps=3) == [4]
    assert rows_of_batches(system, CPU_BATCH + 2, steps=3) == [CPU_BATCH, 2]


def test_attempts_ahead_are_drawn_as_they_pay(system: System) -> None:
    """Twice as many rows each time, not sixteen at once; and all that the best is chosen of."""
    never = Conditions(aspect=(1e-9, 2e-9))
    assert rows_of_batches(system, 1, steps=2, conditions=never) == [1, 1, 2, 4, 8, 8]
    assert rows_of_batches(system, 1, steps=2, conditions=Conditions(best_of=4)) == [4]


def test_conditions_choose_the_same_attempt_in_any_batch(system: System) -> None:
    for conditions in (Conditions(aspect=(0.9, 1.2)), Conditions(aspect=(0.9, 1.2), best_of=2)):
        together = list(draw(system, 8, steps=3, conditions=conditions))
        assert max(drawing.attempts for drawing in together) > 2
        alone = [next(draw(system, 1, start_index=number, steps=3, conditions=conditions)) for number in range(8)]
        assert alone == together


class RoundsOtherwise(SketchDNN):
    """A processor on which batches of fewer than eight round otherwise."""

    def sample(self, noise: object, **options: object) -> SketchBatch:
        batch = super().sample(noise, **options)  # type: ignore[arg-type]
        return replace(batch, params=batch.params * (1 + 1e-6)) if len(batch) < 8 else batch


def test_a_size_that_rounds_otherwise_is_not_used(system: System) -> None:
    other = RoundsOtherwise(system.config).eval()
    other.load_state_dict(system.state_dict())
    assert [choose_batch_size(other, count, CPU_BATCH) for count in (1, 3, 8, 9)] == [8, 8, 8, CPU_BATCH]
    assert [choose_batch_size(system, count, CPU_BATCH) for count in (1, 3, 8, 9)] == [1, 4, 8, CPU_BATCH]


@pytest.mark.slow
def test_a_thousand_sketches_are_alike_in_batches_of_one_and_sixteen() -> None:
    assert count_alike(from_pretrained(), 1_000) >= 990


def test_steps_are_heard_with_what_they_are_steps_of(system: System) -> None:
    heard: list[tuple[Sequence[SampleId], int]] = []
    asks = [SampleId(number) for number in range(CPU_BATCH + 2)]
    Engine(system, 0, 3, "ddim").draw(asks, lambda some, progress: heard.append((some, progress.number)))
    assert heard == [(some, step) for some in (asks[:CPU_BATCH], asks[CPU_BATCH:]) for step in (1, 2, 3)]


class Small(SketchDNN):
    """A device with room for five sketches."""

    def sample(self, noise: object, **options: object) -> SketchBatch:
        batch = super().sample(noise, **options)  # type: ignore[arg-type]
        if len(batch) > 5:
            raise torch.OutOfMemoryError
        return batch


def test_batches_shrink_to_what_fits(system: System) -> None:
    small = Small(system.config)
    small.load_state_dict(system.state_dict())
    engine = Engine(small, 0, 3, "ancestral")
    drawn = engine.draw([SampleId(number) for number in range(11)])
    assert engine.chunk == 4
    plain = Engine(system, 0, 3, "ancestral", chunk=4).draw([SampleId(number) for number in range(11)])
    assert drawn == plain


def test_a_device_too_small_for_one_is_a_sentence(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> SketchBatch:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(system, "sample", full, raising=False)
    with pytest.raises(SketchError, match="no memory for even one sketch"):
        Engine(system, 0, 3, "ancestral").draw([SampleId(0)])


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # torch warns of itself
def test_compiled_it_draws_the_same(system: System) -> None:
    asks = [SampleId(number) for number in range(4)]
    fast = compile_denoiser(system, backend="eager", mode=None)
    assert fast is not system
    plain = Engine(system, 0, 3, "dpm++").draw(asks)  # which remembers what it heard before
    assert Engine(fast, 0, 3, "dpm++").draw(asks) == plain


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_compiled_latents_are_the_same() -> None:
    system = load_preset("tiny", "latent").make().eval()
    fast = compile_denoiser(system, backend="eager", mode=None)
    assert fast is not system
    drawn = [Engine(one, 0, 3, "dpm++").draw([SampleId(0), SampleId(1)]) for one in (system, fast)]
    assert drawn[0] == drawn[1]


def test_only_a_network_with_whole_ends_is_computed_narrowly(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True, raising=False)
    assert precision(system) == "bfloat16"
    for name in ("latent", "vitruvion", "sketchgen"):
        assert precision(load_preset("tiny", name).make()) == "bfloat16"
    assert precision(_paper()) == "float32"
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False, raising=False)
    assert precision(system) == "float32"


def _paper() -> System:
    from sketchdnn.networks.dit import DiTConfig
    from sketchdnn.systems.sketchdnn import SketchDNNConfig

    return SketchDNN(SketchDNNConfig(network=DiTConfig(width=16, depth=1, heads=2, num_steps=10), num_steps=10))


def test_batches_are_as_the_device_likes_them() -> None:
    assert max_batch_size(torch.device("cpu")) == CPU_BATCH < GPU_BATCH == max_batch_size(torch.device("cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_sketches_do_not_depend_on_what_is_asked_for_beside_them() -> None:
    """Kinds are equal and coordinates agree to 1e-3 of the size for 99 of 100 sketches."""
    gpu = from_pretrained(device="cuda")
    whole = [drawing.sketch for drawing in draw(gpu, 400, size=2.0)]
    parts = [
        drawing.sketch
        for start_index in range(0, 400, 50)
        for drawing in draw(gpu, 50, start_index=start_index, size=2.0)
    ]
    alike = sum(are_alike(a, b) for a, b in zip(whole, parts, strict=True))
    assert alike >= 0.99 * len(whole)
