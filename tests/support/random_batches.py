"""Random batches of rows for tests of diffusion and networks: the labels of real rows, parameters of the right size."""

import torch
from torch.nn.functional import one_hot

from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant


def clean_batch(
    count: int, rows: int = layout.MAX_PRIMITIVES, seed: int = 0, dtype: torch.dtype = torch.float32
) -> SketchBatch:
    """One-hot labels of every kind, NONE included, and zeros in the parameters of other kinds."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(layout.NUM_KINDS, (count, rows), generator=generator)
    construction = torch.randint(layout.NUM_CONSTRUCTION, (count, rows), generator=generator)
    params = torch.rand(count, rows, layout.NUM_PARAMS, generator=generator, dtype=dtype) * 2 - 1
    labels = (one_hot(construction, layout.NUM_CONSTRUCTION).to(dtype), one_hot(kind, layout.NUM_KINDS).to(dtype))
    return SketchBatch(*labels, params * relevant(kind))


def normal_batch(
    count: int, rows: int = layout.MAX_PRIMITIVES, seed: int = 1, dtype: torch.dtype = torch.float32
) -> SketchBatch:
    generator = torch.Generator().manual_seed(seed)
    widths = (layout.NUM_CONSTRUCTION, layout.NUM_KINDS, layout.NUM_PARAMS)
    return SketchBatch(*(torch.randn(count, rows, width, generator=generator, dtype=dtype) for width in widths))


def random_prediction(count: int, rows: int = layout.MAX_PRIMITIVES, seed: int = 2) -> Prediction:
    noise = normal_batch(count, rows, seed)
    return Prediction(noise.construction, noise.kind, noise.params)
