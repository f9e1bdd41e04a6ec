"""Token systems learn: ten sketches by heart, and after a stop as if there had been none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.toys import untokenize

from sketchdnn.data.procedural import procedural
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.geometry import normalize
from sketchdnn.representation import encode
from sketchdnn.systems import load_preset
from sketchdnn.systems.baselines.tokens.decoder import TokenDecoderConfig
from sketchdnn.systems.baselines.tokens.system import TokenSystem, Vitruvion, VitruvionConfig
from sketchdnn.systems.baselines.tokens.tokens import tokenize
from sketchdnn.training.config import TrainConfig, parse_train_config
from sketchdnn.training.corpus import to_device
from sketchdnn.training.loop import train


@pytest.mark.parametrize("name", ["vitruvion-tiny", "sketchgen-tiny"])
def test_ten_sketches_are_learnt_by_heart(name: str, tmp_path: Path) -> None:
    """Then a sketch costs what it takes to say which of the ten it is, and nothing else is drawn."""
    corpus = to_device(encode([normalize(procedural(5, i))[0] for i in range(10)], canonical_lines=True), "cpu")
    preset = load_preset(name)
    torch.manual_seed(0)
    fresh = preset.make()
    config = parse_train_config(preset.training, steps=150, batch_size=10, warmup=10, ema=0.0, augment=False)
    system = train(fresh, corpus, config, tmp_path).model.eval()
    assert isinstance(system, TokenSystem)
    index = torch.arange(10)
    x0 = corpus.batch(index, torch.zeros_like(index), system.rows)
    with torch.no_grad():
        nats = system.likelihood(x0, seeded_noise(1, index))
    assert nats is not None
    assert math.log(10) - 0.01 < float(nats.mean()) < math.log(10) + 0.3
    learnt = untokenize(tokenize(x0, system.syntax, system.config.order), system.syntax, 16)
    known = {row.numpy().tobytes() for row in learnt.flat()}
    drawn = [row.numpy().tobytes() for row in system.sample(seeded_noise(1, torch.arange(64))).flat()]
    assert sum(row in known for row in drawn) >= 60
    assert len(set(drawn) & known) >= 8


def test_a_run_with_dropout_goes_on_as_if_it_had_not_been_stopped(tmp_path: Path) -> None:
    sketches = [normalize(procedural(0, index))[0] for index in range(24)]
    corpus = to_device(encode([s for s in sketches if len(s) <= 16], canonical_lines=True), "cpu")
    config = TrainConfig(batch_size=8, steps=4, warmup=2, decay=0.0, log_every=2, checkpoint_minutes=0.0)
    network = TokenDecoderConfig(width=32, depth=2, heads=2, dropout=0.2)

    def fresh() -> TokenSystem:
        torch.manual_seed(0)
        return Vitruvion(VitruvionConfig(network))

    whole = train(fresh(), corpus, config, tmp_path / "whole").model
    train(fresh(), corpus, replace(config, steps=2), tmp_path / "half")
    resumed = train(fresh(), corpus, config, tmp_path / "half", resume=True).model
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name
