"""Runs a system on batches of noise and decodes the sketches.

A row depends on its own noise and on the shape of its batch, not on its place or its neighbors, so any samples may
share a batch. But rounding depends on the batch size, and the smallest difference leads to another sketch: of 64
sketches sampled in batches of 1 and of 16 with different rounding, 18 were equal. So on a CPU a batch has 1, 2, 4, 8 or
16 rows, as many as needed, and only a size that rounds as 16 rows do on this processor. A sample that is drawn again or
alone is then equal to the bit, for one model on one kind of processor. On a GPU all batches have the same size.

On a CPU the blocks of our network are packed (`networks.packed`) where that rounds as the network itself does, or where
a precision was asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Int
from torch import Tensor

from sketchdnn.diffusion import Conditioning, Progress, SamplingOptions, Start, seeded_noise
from sketchdnn.diffusion.process import parts
from sketchdnn.errors import SketchError
from sketchdnn.networks.dit import DiT
from sketchdnn.networks.packed import can_pack, pack, packs_alike
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
# Precisions of matrix products; `auto` is what a seed was always drawn in.
PRECISIONS = ("auto", "float32", "bfloat16")
# The masks of conditioning.
_MASKS = ("construction", "kind", "params")
# Networks with float32 input and output layers, whatever the precision between them.
_FLOAT32_ENDS = (SetDenoiser, DiT, LatentDenoiser, TokenDecoder)


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


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Samples of one seed that are drawn together, perhaps in a batch with parts of other engines.

    Attributes:
        seed: Selects the noise.
        samples: The samples.
        options: Sampler, number of steps, and start and conditioning of these samples.
        on_step: Called after every step.
    """

    seed: int
    samples: Sequence[SampleId]
    options: SamplingOptions
    on_step: OnStep | None = None

    @property
    def key(self) -> Hashable:
        """Parts with the same key may share a batch. Without conditioning, nothing is known."""
        start, known = self.options.start, self.options.conditioning
        method = ("conditional", 1, 1) if known is None else (known.method, known.resamples, known.jump)
        return self.options.sampler, self.options.steps, start and start.t, method


# Draws a part. A server fills batches with parts of several requests.
PartSampler = Callable[[BatchPart], SketchBatch]


def sample_together(system: System, parts: Sequence[BatchPart], max_batch: int = 0) -> list[SketchBatch]:
    """The rows of parts with the same key, drawn in one batch; they are equal to those of each part alone.

    Several parts need a system that denoises rows.

    Args:
        system: The model.
        parts: The parts.
        max_batch: Largest batch; 0 means the size for the device.
    """
    counts = [len(part.samples) for part in parts]
    padding = choose_batch_size(system, sum(counts), max_batch or max_batch_size(device_of(system))) - sum(counts)
    ids = [sample.noise_id for part in parts for sample in part.samples]
    seeds = [part.seed for part in parts for _ in part.samples]
    index = torch.cat([torch.arange(len(ids)), torch.full((padding,), len(ids) - 1)]).to(device_of(system))
    noise_ids = torch.tensor(ids, device=device_of(system))[index]
    conditioning, start = _concat_conditioning(parts, counts), _concat_starts(parts)
    options = replace(
        parts[0].options,
        conditioning=conditioning and _select_known(conditioning, index),
        start=start and Start(start.t, start.batch[index]),
        on_step=_report_to(parts, counts),
    )
    one_seed = len(set(seeds)) == 1
    with torch.no_grad(), fast_inference(system):
        noise = seeded_noise(seeds[0] if one_seed else seeds + seeds[-1:] * padding, noise_ids)
        rows = inference_system(system).sample(noise, options)
    return [rows[first : first + count] for first, count in zip(accumulate(counts, initial=0), counts, strict=False)]


@dataclass(slots=True)
class Engine:
    """Draws samples of one seed.

    Attributes:
        system: The model.
        seed: Selects the noise, together with the noise id of a sample.
        options: Of every batch. A start in them holds one sketch, from which all samples start.
        conditioning_for: Conditioning of the samples of some noise ids.
        max_batch: Largest batch; 0 means the size for the device.
        sample_part: Draws each batch; by default alone.
    """

    system: System
    seed: int
    options: SamplingOptions
    conditioning_for: ConditioningFor = lambda noise_ids: None
    max_batch: int = 0
    sample_part: PartSampler | None = None

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
        noise_ids = torch.tensor([sample.noise_id for sample in samples], device=device_of(self.system))
        start = self.options.start
        options = replace(
            self.options,
            conditioning=self.conditioning_for(noise_ids),
            start=start and Start(start.t, start.batch[torch.zeros_like(noise_ids)]),
        )
        part = BatchPart(self.seed, samples, options, on_step)
        if self.sample_part is not None:
            return self.sample_part(part)
        (rows,) = sample_together(self.system, [part], self.max_batch)
        return rows


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
    """Precision of matrix products: that of the system, or by default bfloat16 where it is fast and safe.

    It is where the device supports it and the network's ends stay in float32: else coordinates would lose digits.
    """
    if system.precision != "auto":
        return system.precision
    narrow = _supports_bfloat16(device_of(system)) and isinstance(getattr(system, "network", None), _FLOAT32_ENDS)
    return "bfloat16" if narrow else "float32"


def set_precision(system: System, name: str) -> None:
    """Choose the precision of matrix products. Another one than `auto` draws other sketches of the same seeds.

    Args:
        system: The model, on its device.
        name: `auto`, `float32` or `bfloat16`.

    Raises:
        SketchError: There is no such precision, or it is slow or unsafe here.
    """
    if name not in PRECISIONS:
        raise SketchError(f"'{name}' is no precision; use {', '.join(PRECISIONS)}")
    if name == "bfloat16" and not isinstance(getattr(system, "network", None), _FLOAT32_ENDS):
        raise SketchError("this network would lose digits of its coordinates in bfloat16: use auto or float32")
    if name == "bfloat16" and not _supports_bfloat16(device_of(system)):
        raise SketchError("this processor has no bfloat16, and emulation is slow: use auto or float32")
    system.precision = name


def inference_system(system: System) -> System:
    """The system with packed blocks, which share its other weights; or the system itself where they do not help.

    By default they must round as its own blocks do, so that a seed draws the same sketches.
    """
    network, dtype = getattr(system, "network", None), getattr(torch, precision(system))
    if not isinstance(network, SetDenoiser) or device_of(system).type != "cpu" or system.training or not can_pack():
        return system
    if "denoise" in system.__dict__:  # it does not use the blocks
        return system
    if system.precision == "auto" and not packs_alike(network, dtype, (1, CPU_BATCH)):
        return system
    fast = copy.copy(system)
    fast.__dict__["_modules"] = {**system._modules, "network": pack(network, dtype)}
    if isinstance(fast, SketchDNNSystem) and fast.student is not None:
        fast.student.precision = system.precision
        student = inference_system(fast.student)
        fast.attach_student(student if isinstance(student, SketchDNNSystem) else None)
    return fast


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


def _report_to(parts: Sequence[BatchPart], counts: Sequence[int]) -> Callable[[Progress], None] | None:
    """Report each step to the parts, each with its own rows."""
    if all(part.on_step is None for part in parts):
        return None

    def on_step(progress: Progress) -> None:
        for part, first, count in zip(parts, accumulate(counts, initial=0), counts, strict=False):
            if part.on_step is not None:
                part.on_step(part.samples, progress if len(parts) == 1 else _progress_of(progress, first, count))

    return on_step


def _progress_of(progress: Progress, first: int, count: int) -> Progress:
    rows = slice(first, first + count)
    prediction = Prediction(*(part[rows] for part in parts(progress.prediction)))
    active = None if progress.active is None else progress.active[rows]
    return replace(progress, batch=progress.batch[rows], prediction=prediction, active=active)


def _concat_starts(parts: Sequence[BatchPart]) -> Start | None:
    starts = [part.options.start for part in parts if part.options.start is not None]
    return Start(starts[0].t, from_flat(torch.cat([start.batch.flat() for start in starts]))) if starts else None


def _concat_conditioning(parts: Sequence[BatchPart], counts: Sequence[int]) -> Conditioning | None:
    each = [part.options.conditioning for part in parts]
    first = next((one for one in each if one is not None), None)
    if first is None or len(each) == 1:
        return first
    known = [_nothing_known(first, count) if one is None else one for one, count in zip(each, counts, strict=True)]
    masks: dict[str, Any] = {name: torch.cat([getattr(one, name) for one in known]) for name in _MASKS}
    return replace(first, batch=from_flat(torch.cat([one.batch.flat() for one in known])), **masks)


def _nothing_known(like: Conditioning, count: int) -> Conditioning:
    """Conditioning of the same form without known values, for samples in a batch with conditioned ones."""
    first = torch.zeros(count, dtype=torch.long, device=like.kind.device)
    selected = _select_known(like, first)
    nothing: dict[str, Any] = {name: torch.zeros_like(getattr(selected, name)) for name in _MASKS}
    return replace(selected, **nothing)


def _select_known(conditioning: Conditioning, index: Int[Tensor, " batch"]) -> Conditioning:
    masks: dict[str, Any] = {name: getattr(conditioning, name)[index] for name in _MASKS}
    return replace(conditioning, batch=conditioning.batch[index], **masks)


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
        return inference_system(system).sample(noise, SamplingOptions(next(iter(system.samplers)), steps=1)).flat()


def _supports_bfloat16(device: torch.device) -> bool:
    """Natively: emulated bfloat16 is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, probe, bool)() for probe in probes)
