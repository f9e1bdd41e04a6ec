"""Runs a system on batches of noise and decodes the sketches.

A row depends on its own noise and on the shape of its batch, not on its place or its neighbors, so any samples may
share a batch. But rounding depends on the batch size, and the smallest difference leads to another sketch: of 64
sketches sampled in batches of 1 and of 16 with different rounding, 18 were equal. So on a CPU a batch has 1, 2, 4, 8 or
16 rows, as many as needed, and only a size that rounds as 16 rows do on this processor. A sample that is drawn again or
alone is then equal to the bit, for one model on one kind of processor. On a GPU all batches have the same size.
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

from sketchdnn.diffusion import Conditioning, Progress, SamplingOptions, Start, seeded_noise
from sketchdnn.diffusion.process import parts
from sketchdnn.errors import SketchError
from sketchdnn.networks.set_denoiser import SetDenoiser
from sketchdnn.representation import Decoded, SketchBatch, decode, from_flat
from sketchdnn.representation.batch import Prediction
from sketchdnn.systems import System
from sketchdnn.systems.baselines.latent import LatentDenoiser
from sketchdnn.systems.baselines.tokens.system import TokenDecoder
from sketchdnn.systems.devices import passive_threads
from sketchdnn.systems.sketchdnn import SketchDNNSystem

# Largest batch on a CPU: enough to keep two cores busy.
CPU_BATCH = 16
# A smaller batch leaves a GPU idle. Results depend on the batch size, so all batches are padded to it.
GPU_BATCH = 2_500
# The index of a sketch takes these bits of a noise id, and the attempt those above.
INDEX_BITS = 32
# Whether two batch sizes round alike: by the sizes, the precision and the number of threads.
_ROUNDING: WeakKeyDictionary[System, dict[tuple[int, int, str, int], bool]] = WeakKeyDictionary()
# Networks with float32 input and output layers, whatever the precision between them: all but the paper's.
_FLOAT32_ENDS = (SetDenoiser, LatentDenoiser, TokenDecoder)


@dataclass(frozen=True, slots=True)
class SampleId:
    """One attempt at the sketch of an index. Each attempt has its own noise."""

    index: int
    attempt: int = 0

    @property
    def noise_id(self) -> int:
        """The number that selects its noise."""
        return self.index + (self.attempt << INDEX_BITS)


# Called after every step with the samples of the batch; further rows of the batch are padding.
OnStep = Callable[[Sequence[SampleId], Progress], None]
ConditioningFor = Callable[[Int[Tensor, " batch"]], Conditioning | None]


@dataclass(slots=True)
class Engine:
    """Draws samples of one seed.

    Attributes:
        system: The model.
        seed: Selects the noise, together with the noise id of a sample.
        options: Of every batch. A start in them holds one sketch, from which all samples start.
        conditioning_for: Conditioning of the samples of some noise ids.
        max_batch: Largest batch; 0 means the size for the device.
    """

    system: System
    seed: int
    options: SamplingOptions
    conditioning_for: ConditioningFor = lambda noise_ids: None
    max_batch: int = 0

    def __post_init__(self) -> None:
        self.max_batch = self.max_batch or max_batch_size(device_of(self.system))

    def draw(self, samples: Sequence[SampleId], on_step: OnStep | None = None) -> list[Decoded]:
        """The decoded samples, in order."""
        return decode(self.sample(samples, on_step), self.system.rows.arc_scalar)

    def sample(self, samples: Sequence[SampleId], on_step: OnStep | None = None) -> SketchBatch:
        """The rows of samples, in order. If the device runs out of memory, batches are halved from then on."""
        batches: list[Tensor] = []
        first = 0
        while first < len(samples):
            chunk = samples[first : first + self.max_batch]
            try:
                batches.append(self._sample_batch(chunk, on_step)[: len(chunk)].flat())
            except torch.OutOfMemoryError as error:
                if self.max_batch == 1:
                    raise SketchError("this device has no memory for even one sketch; use --device cpu") from error
                self.max_batch = -(-self.max_batch // 2)
                torch.cuda.empty_cache()
                continue
            first += len(chunk)
        return from_flat(torch.cat(batches))

    def _sample_batch(self, samples: Sequence[SampleId], on_step: OnStep | None) -> SketchBatch:
        ids = [sample.noise_id for sample in samples]
        ids += [ids[-1]] * (choose_batch_size(self.system, len(ids), self.max_batch) - len(ids))
        noise_ids = torch.tensor(ids, device=device_of(self.system))
        start = self.options.start
        options = replace(
            self.options,
            conditioning=self.conditioning_for(noise_ids),
            start=start and Start(start.t, start.batch[torch.zeros_like(noise_ids)]),
            on_step=None if on_step is None else lambda progress: on_step(samples, progress),
        )
        with torch.no_grad(), fast_inference(self.system):
            return self.system.sample(seeded_noise(self.seed, noise_ids), options)


def device_of(system: System) -> torch.device:
    """The device of its weights."""
    return next(system.parameters()).device


def max_batch_size(device: torch.device) -> int:
    """The most sketches in a batch. It depends on the device, as the results of a seed do anyway."""
    return CPU_BATCH if device.type == "cpu" else GPU_BATCH


def pads_batches(system: System) -> bool:
    """Whether all batches have the largest size: on a GPU, and for systems without steps to compare rounding with."""
    return device_of(system).type != "cpu" or system.max_steps is None


def choose_batch_size(system: System, count: int, largest: int) -> int:
    """Number of rows for so many samples: a power of two that rounds as `largest` rows do, or else `largest`."""
    size = 1 << (count - 1).bit_length()
    while size < largest and (pads_batches(system) or not _rounds_alike(system, size, largest)):
        size *= 2
    return min(size, largest)


def precision(system: System) -> str:
    """Precision of matrix products: bfloat16 where the device supports it and the network's ends stay in float32.

    The paper's network has no float32 ends: coordinates of three digits would leave gaps.
    """
    narrow = _supports_bfloat16(device_of(system)) and isinstance(getattr(system, "network", None), _FLOAT32_ENDS)
    return "bfloat16" if narrow else "float32"


@contextmanager
def fast_inference(system: System) -> Iterator[None]:
    """Use the fastest safe precision for a system; on a CPU, waiting threads sleep."""
    kind = device_of(system).type
    with (
        passive_threads() if kind == "cpu" else nullcontext(),
        torch.autocast(kind, torch.bfloat16, enabled=precision(system) == "bfloat16"),
    ):
        yield


def compile_denoiser(system: System, **options: Any) -> System:
    """A copy of the system, with the same weights, whose denoiser is compiled to one CUDA graph a shape.

    Compilation takes about a minute. A system without a denoiser is returned unchanged.

    Args:
        system: The system.
        options: Of `torch.compile`, in place of ours.
    """
    name = "denoise_latent" if hasattr(system, "denoise_latent") else "denoise"
    if not hasattr(system, name):
        return system
    step: Any = torch.compile(getattr(system, name), **{"mode": "reduce-overhead", "dynamic": False, **options})

    def denoise(*args: Any, **kwargs: Any) -> Prediction | Tensor:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        output: Prediction | Tensor = step(*args, **kwargs)
        # A CUDA graph reuses its output buffers, and a sampler may keep an earlier prediction.
        return output.clone() if isinstance(output, Tensor) else Prediction(*(part.clone() for part in parts(output)))

    fast = copy.copy(system)
    fast.__dict__[name] = denoise
    if isinstance(fast, SketchDNNSystem) and fast.student is not None:
        student = compile_denoiser(fast.student, **options)
        fast.attach_student(student if isinstance(student, SketchDNNSystem) else None)
    return fast


def _rounds_alike(system: System, size: int, largest: int) -> bool:
    """Whether one step of batches of both sizes is equal to the bit. Computed once."""
    results = _ROUNDING.setdefault(system, {})
    key = size, largest, precision(system), torch.get_num_threads()
    if key not in results:
        results[key] = torch.equal(_one_step(system, size), _one_step(system, largest)[:size])
    return results[key]


def _one_step(system: System, rows: int) -> Tensor:
    noise = seeded_noise(0, torch.arange(rows, device=device_of(system)))
    with torch.no_grad(), fast_inference(system):
        return system.sample(noise, SamplingOptions(next(iter(system.samplers)), steps=1)).flat()


def _supports_bfloat16(device: torch.device) -> bool:
    """Natively: emulated bfloat16 is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, probe, bool)() for probe in probes)
