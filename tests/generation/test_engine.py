"""The engine: a sketch comes out the same in whatever company it is drawn, and arithmetic is narrow only where told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from sketchdnn.generation import draw
from sketchdnn.generation.engine import (
    CHUNK,
    GPU_CHUNK,
    Ask,
    Engine,
    chunk_size,
    compiled,
    precision,
)
from sketchdnn.geometry import SketchError
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


def mixed(asks: Sequence[Ask]) -> list[Ask]:
    return [asks[place] for place in torch.randperm(len(asks), generator=torch.Generator().manual_seed(1)).tolist()]


def in_any_company(system: System, steps: int) -> None:
    asks = [Ask(number, attempt) for number in (0, 3, 70_000, 2**32 - 1) for attempt in (0, 5)]
    others = [Ask(number) for number in range(100, 100 + CHUNK - 4)]
    engine = Engine(system, 7, steps, "ancestral")
    together = dict(zip(asks, engine.draw(asks), strict=True))
    moved = mixed([*asks, *others])  # in other places, beside others, some in a second batch
    found = dict(zip(moved, engine.draw(moved), strict=True))
    assert {ask: found[ask] for ask in asks} == together
    assert engine.draw(asks[3:4]) == [together[asks[3]]]
    assert len({decoded.sketch for decoded in together.values()}) == len(asks)


def test_neither_place_nor_neighbours_matter(system: System) -> None:
    in_any_company(system, steps=6)


def test_neither_place_nor_neighbours_matter_to_the_bundled_model() -> None:
    in_any_company(from_pretrained(), steps=2)


def test_steps_are_heard_with_what_they_are_steps_of(system: System) -> None:
    heard: list[tuple[Sequence[Ask], int]] = []
    asks = [Ask(number) for number in range(CHUNK + 2)]
    Engine(system, 0, 3, "ddim").draw(asks, lambda some, progress: heard.append((some, progress.number)))
    assert heard == [(some, step) for some in (asks[:CHUNK], asks[CHUNK:]) for step in (1, 2, 3)]


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
    drawn = engine.draw([Ask(number) for number in range(11)])
    assert engine.chunk == 4
    plain = Engine(system, 0, 3, "ancestral", chunk=4).draw([Ask(number) for number in range(11)])
    assert drawn == plain


def test_a_device_too_small_for_one_is_a_sentence(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> SketchBatch:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(system, "sample", full, raising=False)
    with pytest.raises(SketchError, match="no memory for even one sketch"):
        Engine(system, 0, 3, "ancestral").draw([Ask(0)])


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # torch warns of itself
def test_compiled_it_draws_the_same(system: System) -> None:
    asks = [Ask(number) for number in range(4)]
    fast = compiled(system, backend="eager", mode=None)
    assert fast is not system
    plain = Engine(system, 0, 3, "dpm++").draw(asks)  # which remembers what it heard before
    assert Engine(fast, 0, 3, "dpm++").draw(asks) == plain


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_compiled_latents_are_the_same() -> None:
    system = load_preset("tiny", "latent").make().eval()
    fast = compiled(system, backend="eager", mode=None)
    assert fast is not system
    drawn = [Engine(one, 0, 3, "dpm++").draw([Ask(0), Ask(1)]) for one in (system, fast)]
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
    assert chunk_size(torch.device("cpu")) == CHUNK < GPU_CHUNK == chunk_size(torch.device("cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_sketches_do_not_depend_on_what_is_asked_for_beside_them() -> None:
    """Kinds are equal and coordinates agree to 1e-3 of the size for 99 of 100 sketches."""
    gpu = from_pretrained(device="cuda")
    whole = [drawing.sketch for drawing in draw(gpu, 400, size=2.0)]
    parts = [drawing.sketch for first in range(0, 400, 50) for drawing in draw(gpu, 50, first=first, size=2.0)]
    alike = sum(_alike(a.primitives, b.primitives) for a, b in zip(whole, parts, strict=True))
    assert alike >= 0.99 * len(whole)


def _alike(a: Sequence[object], b: Sequence[object]) -> bool:
    if [type(p) for p in a] != [type(p) for p in b]:
        return False
    pairs = zip(map(_numbers, a), map(_numbers, b), strict=True)
    return all(abs(x - y) <= 2e-3 for p, q in pairs for x, y in zip(p, q, strict=True))  # of a size of 2


def _numbers(primitive: object) -> list[float]:
    values = [getattr(primitive, name) for name in ("start", "end", "center", "at") if hasattr(primitive, name)]
    return [number for value in values for number in value] + [getattr(primitive, "radius", 0.0)]
