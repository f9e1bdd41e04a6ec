"""Token systems learn: ten sketches by heart, and after a stop as if there had been none."""

import math
from pathlib import Path

import pytest
import torch
from support.toys import untokenize
from support.training import assert_resume_is_exact, part_corpus

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.systems import load_preset
from sketchdnn.systems.baselines.tokens.decoder import TokenDecoderConfig
from sketchdnn.systems.baselines.tokens.system import TokenSystem, Vitruvion, VitruvionConfig
from sketchdnn.systems.baselines.tokens.tokens import tokenize
from sketchdnn.training.config import TrainConfig, parse_train_config
from sketchdnn.training.loop import train


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

    def fresh() -> TokenSystem:
        torch.manual_seed(0)
        return Vitruvion(VitruvionConfig(network))

    assert_resume_is_exact(fresh, part_corpus(), config, tmp_path)
