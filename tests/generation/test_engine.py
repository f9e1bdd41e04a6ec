"""The engine: a sample does not depend on the rest of its batch, and precision is reduced only where it is safe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from support.generation import copy_as, draw, randomized

from benchmarks.api import agree
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start
from sketchdnn.errors import SketchError
from sketchdnn.generation import Conditions
from sketchdnn.generation.conditioning import encode_sketches
from sketchdnn.generation.engine import (
    CPU_BATCH,
    BatchPart,
    Engine,
    SampleId,
    choose_batch_size,
    compile_denoiser,
    precision,
    sample_together,
)
from sketchdnn.generation.framing import condition_on_parts, frame_part
from sketchdnn.geometry import Line, Sketch
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems import System, from_pretrained, load_preset
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


@pytest.fixture(scope="module")
def system() -> System:
    return randomized(load_preset("tiny").make())


def engine_of(system: System, sampler: str = "ancestral", steps: int = 3, **options: Any) -> Engine:
    return Engine(system, 0, SamplingOptions(sampler, steps), **options)


@pytest.mark.parametrize("bundled", [False, True])
def test_samples_do_not_depend_on_place_or_neighbors(system: System, bundled: bool) -> None:
    samples = [SampleId(index, attempt) for index in (0, 3, 70_000, 2**32 - 1) for attempt in (0, 5)]
    others = [SampleId(index) for index in range(100, 100 + CPU_BATCH - 4)]
    engine = engine_of(from_pretrained() if bundled else system, steps=2 if bundled else 6)
    together = dict(zip(samples, engine.draw(samples), strict=True))
    order = torch.randperm(len(samples + others), generator=torch.Generator().manual_seed(1)).tolist()
    mixed = [(samples + others)[place] for place in order]  # some in a second batch
    again = dict(zip(mixed, engine.draw(mixed), strict=True))
    assert {sample: again[sample] for sample in samples} == together
    assert engine.draw(samples[3:4]) == [together[samples[3]]]
    assert len({decoded.sketch for decoded in together.values()}) == len(samples)


def test_parts_of_several_engines_share_a_batch(system: System) -> None:
    """Parts with and without conditioning, of several seeds, and variations of several sketches."""
    outline = (Line((-1, -1), (1, -1)), Line((1, -1), (1, 1)))
    parts: list[BatchPart] = []
    for seed in range(3):
        framed = frame_part(Sketch(outline[: 1 + seed % 2]), (1.5, 2.0), [SampleId(seed), SampleId(9)], seed)
        conditioning = condition_on_parts(framed, system.rows, "conditional")
        options = SamplingOptions("ancestral", 4, conditioning=conditioning if seed else None)
        parts.append(BatchPart(seed, [part.sample for part in framed], options))
    assert len({part.key for part in parts}) == 1
    reports: list[tuple[int, ...]] = []

    def on_step(samples: Sequence[SampleId], progress: Progress) -> None:
        reports.append((len(samples), len(progress.batch), len(progress.prediction.params)))

    together = sample_together(system, [*parts[:2], replace(parts[2], on_step=on_step)])
    for part, rows in zip(parts, together, strict=True):
        assert torch.equal(rows.flat(), sample_together(system, [part])[0].flat())
    assert reports == [(2, 2, 2)] * 4

    starts = [encode_sketches([Sketch(outline)] * 2, system.rows), encode_sketches([Sketch(outline[:1])], system.rows)]
    ids = [SampleId(0), SampleId(1)]
    varied = [
        BatchPart(7, ids[: len(batch)], SamplingOptions("restart", 6, start=Start(20, batch))) for batch in starts
    ]
    assert varied[0].key == varied[1].key != parts[0].key
    for part, rows in zip(varied, sample_together(system, varied), strict=True):
        assert torch.equal(rows.flat(), sample_together(system, [part])[0].flat())


def batch_rows(system: System, count: int, **options: Any) -> list[int]:
    """The number of rows of each batch of a request."""
    rows: list[int] = []

    class Counting(SketchDNNSystem):
        def sample(self, noise: Any, *options: Any) -> SketchBatch:
            batch = super().sample(noise, *options)
            rows.append(len(batch))
            return batch

    counting = copy_as(Counting, system)
    for size in (1, 2, 4, 8):
        choose_batch_size(counting, size, CPU_BATCH)  # compares rounding
    rows.clear()
    list(draw(counting, count, **options))
    return rows


def test_batches_are_small_if_they_round_alike_and_attempts_double(system: System) -> None:
    assert (batch_rows(system, 1, steps=3), batch_rows(system, 3, steps=3)) == ([1], [4])
    assert batch_rows(system, CPU_BATCH + 2, steps=3) == [CPU_BATCH, 2]
    never = Conditions(aspect=(1e-9, 2e-9))
    assert batch_rows(system, 1, steps=2, conditions=never) == [1, 1, 2, 4, 8, 8]
    assert batch_rows(system, 1, steps=2, conditions=Conditions(best_of=4)) == [4]
    other = copy_as(RoundsOtherwise, system)
    assert [choose_batch_size(other, count, CPU_BATCH) for count in (1, 3, 8, 9)] == [8, 8, 8, CPU_BATCH]
    assert [choose_batch_size(system, count, CPU_BATCH) for count in (1, 3, 8, 9)] == [1, 4, 8, CPU_BATCH]


class RoundsOtherwise(SketchDNNSystem):
    """A processor on which batches of fewer than eight round otherwise."""

    def sample(self, *arguments: Any) -> SketchBatch:
        batch = super().sample(*arguments)
        return replace(batch, params=batch.params * (1 + 1e-6)) if len(batch) < 8 else batch


def test_steps_are_reported_and_batches_shrink_to_the_memory_of_the_device(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[tuple[Sequence[SampleId], int]] = []
    samples = [SampleId(index) for index in range(CPU_BATCH + 2)]
    engine_of(system, "ddim").draw(samples, lambda chunk, progress: reports.append((chunk, progress.number)))
    assert reports == [(chunk, step) for chunk in (samples[:CPU_BATCH], samples[CPU_BATCH:]) for step in (1, 2, 3)]
    engine = engine_of(copy_as(SmallDevice, system))
    samples = [SampleId(index) for index in range(11)]
    assert (engine.draw(samples), engine.max_batch) == (engine_of(system, max_batch=4).draw(samples), 4)

    def fail(*_: object) -> SketchBatch:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(system, "sample", fail, raising=False)
    with pytest.raises(SketchError, match="no memory for even one sketch"):
        engine_of(system).draw([SampleId(0)])


class SmallDevice(SketchDNNSystem):
    """A device with memory for five sketches."""

    def sample(self, *arguments: Any) -> SketchBatch:
        batch = super().sample(*arguments)
        if len(batch) > 5:
            raise torch.OutOfMemoryError
        return batch


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # torch warns of itself
@pytest.mark.parametrize("name", ["sketchdnn", "latent"])
def test_compiled_denoiser_draws_the_same(system: System, name: str) -> None:
    plain = system if name == "sketchdnn" else load_preset("tiny", name).make().eval()
    fast = compile_denoiser(plain, backend="eager", mode=None)
    assert fast is not plain
    samples = [SampleId(index) for index in range(4)]
    # This sampler keeps the prediction of the step before.
    assert engine_of(fast, "dpm++").draw(samples) == engine_of(plain, "dpm++").draw(samples)


def test_precision_is_reduced_only_with_float32_ends(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True, raising=False)
    assert precision(system) == "bfloat16"
    for name in ("latent", "vitruvion", "sketchgen"):
        assert precision(load_preset("tiny", name).make()) == "bfloat16"
    network = DiTConfig(width=16, depth=1, heads=2, num_steps=10)
    paper = SketchDNNSystem(SketchDNNConfig(network=network, num_steps=10))
    assert precision(paper) == "bfloat16"
    paper.network = torch.nn.Linear(1, 1)  # type: ignore[assignment]  # a network that promises nothing
    assert precision(paper) == "float32"
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False, raising=False)
    assert precision(system) == "float32"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_sketches_do_not_depend_on_the_request() -> None:
    """Kinds are equal and coordinates agree to 1e-3 of the size for 99 of 100 sketches."""
    gpu = from_pretrained(device="cuda")
    whole = [each.sketch for each in draw(gpu, 400, size=2.0)]
    parts = [each.sketch for first in range(0, 400, 50) for each in draw(gpu, 50, start_index=first, size=2.0)]
    assert sum(agree(a, b) for a, b in zip(whole, parts, strict=True)) >= 0.99 * len(whole)
