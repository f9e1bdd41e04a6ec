"""The tiny preset learns eight sketches by heart, on a CPU, in under two minutes."""

import math
from pathlib import Path

import numpy as np
import torch
from support.outlines import backwards, rectangle
from support.strategies import numbers

from sketchdnn.diffusion import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.geometry import Circle, Primitive, Sketch
from sketchdnn.representation import decode, encode
from sketchdnn.systems import load_preset
from sketchdnn.training.config import parse_train_config
from sketchdnn.training.corpus import Corpus, to_device
from sketchdnn.training.loop import train
from sketchdnn.training.validation import validate

ROWS = 6
NEAR = 0.05


def _part(number: int) -> Sketch:
    """A plate with a hole: low or high, the hole left or right, small or large."""
    height, x, radius = (0.35, 0.9)[number & 1], (-0.5, 0.5)[number >> 1 & 1], (0.08, 0.25)[number >> 2]
    return Sketch((*rectangle(-1.0, -height, 2.0, 2 * height), Circle((x, 0.0), radius, True)))


def _apart(p: Primitive, q: Primitive) -> float:
    """The largest difference of two primitives; a line has no direction."""
    if type(p) is not type(q) or p.construction != q.construction:
        return math.inf
    return min(max(map(abs, np.subtract(numbers(p), numbers(way)))) for way in (q, backwards(q)))


def _alike(one: Sketch, other: Sketch) -> bool:
    """The same primitives in any order."""
    return len(one) == len(other) and all(
        min((_apart(p, q) for q in there), default=math.inf) < NEAR
        for here, there in ((one, other), (other, one))
        for p in here
    )


def test_tiny_learns_eight_sketches_by_heart(tmp_path: Path) -> None:
    sketches = [_part(number) for number in range(8)]
    whole = to_device(encode(sketches, canonical_lines=True), "cpu")
    corpus = Corpus(whole.kind[:, :ROWS], whole.construction[:, :ROWS], whole.params[:, :ROWS])
    preset = load_preset("tiny")
    torch.manual_seed(0)
    system = preset.make()
    settings = {"learning_rate": 4e-3, "ema": 0.98, "conditioning": 0.0, "augment": False}
    config = parse_train_config(preset.training, steps=1200, **settings)
    before = validate(system, corpus, config)
    model = train(system, corpus, config, tmp_path).model.eval()
    after = validate(model, corpus, config)
    lowest = min(before)
    assert after[lowest] < before[lowest] / 20
    batch = model.sample(seeded_noise(1, torch.arange(16), ROWS), SamplingOptions(steps=200))
    drawn = decode(batch, model.rows.arc_scalar)
    known = sum(any(_alike(sample.sketch, sketch) for sketch in sketches) for sample in drawn)
    assert known >= 12
