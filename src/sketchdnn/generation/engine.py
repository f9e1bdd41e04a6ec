"""Numbers of sketches in, what the model drew of them out: in batches of few sizes, as quickly as does no harm.

What a row becomes depends on its own noise and on the shape of its batch, not on its place in it nor on its neighbours.
So any sketches may share a batch. On a CPU a batch has 1, 2, 4, 8 or 16 rows, as many as are needed: sizes of which
each row comes out the same to the bit where matrix products sum in one order, as on the processors that we know. No
more is promised than that 99 of 100 sketches have equal kinds and numbers within 1e-3 in batches of any size, by one
model on one kind of processor. On a GPU all batches have one size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.walk import Progress, Start
from sketchdnn.geometry import SketchError
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
GivenOf = Callable[[Int[Tensor, " batch"]], Given | None]


@dataclass(slots=True)
class Engine:
    """Draws any sketches of a seed. `given_of` says what is given of the samples with these numbers.

    With a `start`, which holds one sketch, all are variations of it.
    """

    system: System
    seed: int
    steps: int
    sampler: str
    given_of: GivenOf = lambda samples: None
    start: Start | None = None
    chunk: int = 0  # as the device likes it

    def __post_init__(self) -> None:
        self.chunk = self.chunk or chunk_size(device_of(self.system))

    @property
    def pads(self) -> bool:
        """Whether every batch is padded to the largest, so that rows to spare cost nothing."""
        return device_of(self.system).type != "cpu"

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
        padded = numbers + [numbers[-1]] * (batch_size(len(numbers), self.chunk, device) - len(numbers))
        samples = torch.tensor(padded, device=device)
        start = self.start and Start(self.start.t, self.start.batch[torch.zeros_like(samples)])
        with torch.no_grad(), quick(self.system):
            return self.system.sample(
                seeded_noise(self.seed, samples),
                sampler=self.sampler,
                steps=self.steps,
                given=self.given_of(samples),
                start=start,
                on_step=None if on_step is None else lambda progress: on_step(asks, progress),
            )


def device_of(system: System) -> torch.device:
    """Where its weights are."""
    return next(system.parameters()).device


def chunk_size(device: torch.device) -> int:
    """How many sketches are drawn at once. It may depend on the device, since what a seed draws does so anyway."""
    return CHUNK if device.type == "cpu" else GPU_CHUNK


def batch_size(count: int, most: int, device: torch.device) -> int:
    """With how many rows so many sketches are drawn: the next power of two on a CPU, always the most on a GPU.

    >>> [batch_size(count, 16, torch.device("cpu")) for count in (1, 2, 3, 9, 16)]
    [1, 2, 4, 16, 16]
    """
    return min(most, 1 << (count - 1).bit_length()) if device.type == "cpu" else most


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


def _has_bfloat16(device: torch.device) -> bool:
    """Natively: emulated, it is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, probe, bool)() for probe in probes)
