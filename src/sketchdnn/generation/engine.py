"""Numbers of sketches in, what the model drew of them out: in batches of few sizes, as quickly as does no harm.

What a row becomes depends on its own noise and on the shape of its batch, not on its place in it nor on its neighbors.
So any sketches may share a batch. The smallest difference in rounding makes another sketch in the end: of 64 sketches
that were drawn in batches of 1 and of 16 and rounded otherwise, 18 were alike. So on a CPU a batch has 1, 2, 4, 8 or 16
rows, as many as are needed, but only a size that is found to round as 16 does on this processor. A sketch that is drawn
again or alone then comes out the same to the bit: by one model on one kind of processor, since others may round
otherwise. On a GPU all batches have one size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Int
from torch import Tensor

from sketchdnn.diffusion.conditioning import Conditioning
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start
from sketchdnn.errors import SketchError
from sketchdnn.networks.latent_denoiser import LatentDenoiser
from sketchdnn.networks.set_denoiser import SetDenoiser
from sketchdnn.networks.token_decoder import TokenDecoder
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import decode
from sketchdnn.representation.decoding import Decoded
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems import System
from sketchdnn.systems.threads import patient_threads

# The most sketches in a batch on a CPU, enough for two cores to work well on.
CHUNK = 16
# A GPU idles on fewer. What it draws depends on the size of a batch, so batches are padded to it.
GPU_CHUNK = 2_500
# Attempts count above this bit of a sample's number, which no sketch of a seed reaches.
NUMBER_BITS = 32
# What was found of batch sizes: by the sizes, the precision and the number of threads.
_TRIED: WeakKeyDictionary[System, dict[tuple[int, int, str, int], bool]] = WeakKeyDictionary()
# Networks that take in and put out float32, whatever is in between: all but the paper's.
_WHOLE_AT_BOTH_ENDS = (SetDenoiser, LatentDenoiser, TokenDecoder)


@dataclass(frozen=True, slots=True)
class Ask:
    """A sketch by its number, and how often it was drawn before: each attempt has noise of its own."""

    number: int
    attempt: int = 0

    @property
    def sample(self) -> int:
        """The number of its noise."""
        return self.number + (self.attempt << NUMBER_BITS)


# Hears every step of a batch, and what is in it; rows beyond are padding.
OnStep = Callable[[Sequence[Ask], Progress], None]
GivenOf = Callable[[Int[Tensor, " batch"]], Conditioning | None]


@dataclass(slots=True)
class Engine:
    """Draws any sketches of a seed. `given_of` says what is given of the samples with these numbers.

    With a start in the options, which holds one sketch, all are variations of it.
    """

    system: System
    seed: int
    options: SamplingOptions
    given_of: GivenOf = lambda samples: None
    chunk: int = 0  # as the device likes it

    def __post_init__(self) -> None:
        self.chunk = self.chunk or chunk_size(device_of(self.system))

    @property
    def pads(self) -> bool:
        """Whether every batch is padded to the largest, so that rows to spare cost nothing."""
        return pads(self.system)

    def draw(self, asks: Sequence[Ask], on_step: OnStep | None = None) -> list[Decoded]:
        """What was asked for, in that order. A GPU that is too small for a batch takes smaller ones from then on."""
        drawn: list[Decoded] = []
        while len(drawn) < len(asks):
            some = asks[len(drawn) : len(drawn) + self.chunk]
            try:
                batch = self._batch(some, on_step)
            except torch.OutOfMemoryError as error:
                if self.chunk == 1:
                    raise SketchError("this device has no memory for even one sketch; use --device cpu") from error
                self.chunk = -(-self.chunk // 2)
                torch.cuda.empty_cache()
                continue
            drawn += decode(batch[: len(some)], self.system.rows.arc_scalar)
        return drawn

    def _batch(self, asks: Sequence[Ask], on_step: OnStep | None) -> SketchBatch:
        numbers = [ask.sample for ask in asks]
        device = device_of(self.system)
        padded = numbers + [numbers[-1]] * (batch_size(self.system, len(numbers), self.chunk) - len(numbers))
        samples = torch.tensor(padded, device=device)
        start = self.options.start and Start(self.options.start.t, self.options.start.batch[torch.zeros_like(samples)])
        options = replace(
            self.options,
            conditioning=self.given_of(samples),
            start=start,
            on_step=None if on_step is None else lambda progress: on_step(asks, progress),
        )
        with torch.no_grad(), quick(self.system):
            return self.system.sample(seeded_noise(self.seed, samples), options)


def device_of(system: System) -> torch.device:
    """Where its weights are."""
    return next(system.parameters()).device


def chunk_size(device: torch.device) -> int:
    """How many sketches are drawn at once. It may depend on the device, since what a seed draws does so anyway."""
    return CHUNK if device.type == "cpu" else GPU_CHUNK


def pads(system: System) -> bool:
    """Whether a system draws in batches of one size: on a GPU, and where it has no step to try others with."""
    return device_of(system).type != "cpu" or system.max_steps is None


def batch_size(system: System, count: int, most: int) -> int:
    """With how many rows so many sketches are drawn: a power of two that rounds as `most` rows do, or else `most`."""
    size = 1 << (count - 1).bit_length()
    while size < most and (pads(system) or not _rounds_alike(system, size, most)):
        size *= 2
    return min(size, most)


def precision(system: System) -> str:
    """What the inner products are computed in: bfloat16 where the device has it and both ends stay in float32.

    The paper's network has no such ends: coordinates to three digits would leave gaps.
    """
    narrow = _has_bfloat16(device_of(system)) and isinstance(getattr(system, "network", None), _WHOLE_AT_BOTH_ENDS)
    return "bfloat16" if narrow else "float32"


@contextmanager
def quick(system: System) -> Iterator[None]:
    """The quickest arithmetic that does a system no harm, for as long as this lasts; threads sleep while they wait."""
    kind = device_of(system).type
    with (
        patient_threads() if kind == "cpu" else nullcontext(),
        torch.autocast(kind, torch.bfloat16, enabled=precision(system) == "bfloat16"),
    ):
        yield


def compiled(system: System, **options: Any) -> System:
    """The same system with its denoiser compiled to one CUDA graph a shape: for many batches, since it takes a minute.

    `options` are those of `torch.compile`. A system without a denoiser comes back as it is.
    """
    name = next((name for name in ("denoise", "denoise_latent") if hasattr(system, name)), None)
    if name is None:
        return system
    chosen: dict[str, Any] = {"mode": "reduce-overhead", "dynamic": False, **options}
    step: Any = torch.compile(getattr(system, name), **chosen)

    def denoise(*args: Any, **kwargs: Any) -> Prediction | Tensor:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        said: Prediction | Tensor = step(*args, **kwargs)
        # A graph writes to the same place every time, and a sampler may remember what it heard before.
        if isinstance(said, Tensor):
            return said.clone()
        return Prediction(said.construction_logits.clone(), said.kind_logits.clone(), said.params.clone())

    fast = copy.copy(system)  # of the same weights
    fast.__dict__[name] = denoise
    return fast


def _rounds_alike(system: System, size: int, most: int) -> bool:
    """Whether batches of both sizes come out the same to the bit after a step. It is tried once."""
    tried = _TRIED.setdefault(system, {})
    key = size, most, precision(system), torch.get_num_threads()
    if key not in tried:
        tried[key] = torch.equal(_one_step(system, size), _one_step(system, most)[:size])
    return tried[key]


def _one_step(system: System, rows: int) -> Tensor:
    noise = seeded_noise(0, torch.arange(rows, device=device_of(system)))
    with torch.no_grad(), quick(system):
        return system.sample(noise, SamplingOptions(next(iter(system.samplers)), steps=1)).flat()


def _has_bfloat16(device: torch.device) -> bool:
    """Natively: emulated, it is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, probe, bool)() for probe in probes)
