"""Systems learn a few sketches by heart on a CPU, token systems after a stop as if there had been none."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from support.outlines import backwards, rectangle
from support.strategies import numbers
from support.toys import untokenize
from support.training import assert_resume_is_exact, part_corpus

from sketchdnn.diffusion import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.geometry import Circle, Primitive, Sketch
from sketchdnn.representation import decode, encode
from sketchdnn.systems import load_preset
from sketchdnn.systems.baselines.tokens.system import TokenDecoderConfig, Vitruvion, VitruvionConfig
from sketchdnn.systems.baselines.tokens.tokens import tokenize
from sketchdnn.training.config import TrainConfig, parse_train_config
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
    pairs = [(p, there) for here, there in ((one, other), (other, one)) for p in here]
    return len(one) == len(other) and all(min(_apart(p, q) for q in there) < NEAR for p, there in pairs)


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


@pytest.mark.parametrize("name", ["vitruvion-tiny", "sketchgen-tiny"])
def test_ten_sketches_are_learnt_by_heart(name: str, tmp_path: Path) -> None:
    """Then a sketch costs what it takes to say which of the ten it is, and nothing else is drawn."""
    corpus = part_corpus(10, seed=5)
    preset = load_preset(name)
    torch.manual_seed(0)
    fresh = preset.make()
    config = parse_train_config(preset.training, steps=150, batch_size=10, warmup=10, ema=0.0, augment=False)
    system = train(fresh, corpus, config, tmp_path).model.eval()
    index = torch.arange(10)
    x0 = corpus.batch(index, torch.zeros_like(index), system.rows)
    with torch.no_grad():
        nats = system.likelihood(x0, seeded_noise(1, index))
    assert math.log(10) - 0.01 < float(nats.mean()) < math.log(10) + 0.3
    learnt = untokenize(tokenize(x0, system.syntax, system.config.order), system.syntax, 16)
    known = {row.numpy().tobytes() for row in learnt.flat()}
    drawn = [row.numpy().tobytes() for row in system.sample(seeded_noise(1, torch.arange(64))).flat()]
    assert sum(row in known for row in drawn) >= 60
    assert len(set(drawn) & known) >= 8


def test_a_run_with_dropout_goes_on_as_if_it_had_not_been_stopped(tmp_path: Path) -> None:
    config = TrainConfig(batch_size=8, steps=4, warmup=2, decay=0.0, log_every=2, checkpoint_minutes=0.0)
    network = TokenDecoderConfig(width=32, depth=2, heads=2, dropout=0.2)
    torch.manual_seed(0)
    system = Vitruvion(VitruvionConfig(network))
    assert_resume_is_exact(lambda: copy.deepcopy(system), part_corpus(), config, tmp_path)
