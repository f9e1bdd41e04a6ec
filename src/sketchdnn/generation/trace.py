"""Trace a picture of a drawing with a model: candidates of its image encoder beside those of geometry.

The model draws sketches in the frame of the picture. `tracing` fits them to the strokes, compares them with its own
candidates, and repairs the best. A model without an image encoder adds none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.diffusion.sampling import condition_on_image
from sketchdnn.geometry import Sketch
from sketchdnn.representation import decode
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems import System
from sketchdnn.systems.image_conditioned import ImageConditionedSystem
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.tracing import TraceOptions, TraceResult
from sketchdnn.tracing import trace as trace_picture
from sketchdnn.tracing.raster import Raster
from sketchdnn.tracing.reading import Picture

from .engine import device_of, fast_inference, inference_system, set_precision

# Sketches of fewer primitives are no candidates.
_MIN_PRIMITIVES = 1


@dataclass(frozen=True, slots=True)
class ProposalOptions:
    """How a model proposes sketches of a picture.

    Attributes:
        count: The number of sketches.
        steps: Steps of the sampler.
        seed: Selects the sketches.
    """

    count: int = field(default=8, metadata=within(1, 256))
    steps: int = field(default=16, metadata=within(1, 1000))
    seed: int = field(default=0, metadata=within(0, 2**63 - 1))

    def __post_init__(self) -> None:
        check_settings(self)


def trace(
    system: System | None,
    source: str | Path | bytes | Picture,
    options: TraceOptions | None = None,
    proposals: ProposalOptions | None = None,
) -> TraceResult:
    """Trace a photo, scan or screenshot of a drawing.

    Args:
        system: The model; without an image encoder, or None, geometry alone traces.
        source: A file, the content of a file, or an array of RGB pixels.
        options: Size, units and the like.
        proposals: Number of sketches of the model, and how they are sampled.

    Raises:
        SketchError: If it is no picture, or shows no drawing.
    """
    image = system.image if isinstance(system, SketchDNNSystem) else None
    if system is None or image is None:
        return trace_picture(source, options)
    if image.precision != system.precision:
        set_precision(image, system.precision)
    return trace_picture(source, options, partial(propose, image, proposals or ProposalOptions()))


def propose(image: ImageConditionedSystem, options: ProposalOptions, raster: Raster) -> Sequence[Sketch]:
    """Sketches of a picture, in its frame. The encoder computes its features once for all of them and all steps."""
    device = device_of(image)
    with torch.no_grad(), fast_inference(image):
        ink = torch.from_numpy(raster.ink).to(device)
        features = image.encode(_resized(ink, image.image_config.size)[None]).repeated(options.count)
        steps = min(options.steps, image.config.num_steps)
        noise = seeded_noise(options.seed, torch.arange(options.count, device=device))
        sampling = SamplingOptions("predictor_corrector", steps, condition_on_image(features))
        batch = inference_system(image).sample(noise, sampling)
    sketches = (decoded.sketch for decoded in decode(batch, image.rows.arc_scalar))
    return [sketch for sketch in sketches if len(sketch) >= _MIN_PRIMITIVES]


def _resized(ink: torch.Tensor, size: int) -> torch.Tensor:
    """The ink with so many pixels a side, where the encoder is of another size than the raster."""
    if len(ink) == size:
        return ink
    return torch.nn.functional.interpolate(ink[None, None], (size, size), mode="area")[0, 0]
