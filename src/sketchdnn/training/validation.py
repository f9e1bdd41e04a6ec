"""Loss on sketches that are not trained on, at fixed noise levels with fixed noise: numbers that can be compared."""

from __future__ import annotations

import torch

from sketchdnn.representation.batch import from_flat
from sketchdnn.systems import System
from sketchdnn.systems.system import sample_condition_mask

from .config import TrainConfig
from .corpus import Corpus
from .run import precision
from .step import draw

# Shares of T: dense where gaps close, then even.
LEVELS = (0.0025, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
# Enough sketches for two digits.
MOST = 1024
# Apart from any seed that a run is likely to have: validation must not see the noise of training.
_SEED = 0x76616C6964


def validate(system: System, corpus: Corpus, config: TrainConfig) -> dict[int, float]:
    """The mean loss at each level t, nothing given and nothing turned; without levels there is one mean, at 1."""
    device = corpus.params.device
    count = min(len(corpus), MOST)
    size = min(count, max(1, config.batch_size))
    most = system.max_steps
    steps = [1] if most is None else sorted({max(1, round(share * most)) for share in LEVELS})
    sums = torch.zeros(len(steps), dtype=torch.float64, device=device)
    training = system.training
    system.eval()
    with torch.no_grad(), precision(device):
        for start in range(0, count, size):
            index = torch.arange(start, min(start + size, count), device=device)
            draws = draw(_SEED, index, corpus.kind.shape[1])
            x0 = corpus.batch(index, torch.zeros_like(index), system.rows)
            given = sample_condition_mask(draws.choices[:, 2:], corpus.kind[index], 0.0)
            for place, t in enumerate(steps):
                loss = system.loss(x0, torch.full_like(index, t), from_flat(draws.noise), given)
                sums[place] += loss.per_sample.sum()
    system.train(training)
    return dict(zip(steps, (sums / count).tolist(), strict=True))
