"""A system of your own: it trains, saves, loads and generates like those of the package.

    python examples/own_system.py OUT

The system treats the 21 numbers of a row as plain coordinates: Gaussian diffusion, and one small network for all rows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from sketchdnn.data.procedural import procedural
from sketchdnn.diffusion import SamplingOptions, cosine, seeded_noise, step_sequence
from sketchdnn.diffusion.gaussian import diffuse, posterior
from sketchdnn.diffusion.loss import Loss
from sketchdnn.geometry import normalize
from sketchdnn.representation import decode, encode
from sketchdnn.representation.batch import SketchBatch, from_flat
from sketchdnn.systems import RowForm, System, from_pretrained, register_system, save_pretrained
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.corpus import to_device
from sketchdnn.training.loop import train

DEFAULT = SamplingOptions()


@dataclass(frozen=True)
class PlainConfig:
    width: int = 128


@register_system
class PlainDiffusion(System):
    """Gaussian diffusion of flat rows, with a perceptron that sees a row, the mean of all rows, and the noise level."""

    name: ClassVar[str] = "plain"
    config_class: ClassVar[type[Any]] = PlainConfig
    max_steps = 100
    rows = RowForm()

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.config, self.schedule = config, cosine(self.max_steps)
        self.network = nn.Sequential(nn.Linear(43, config.width), nn.SiLU(), nn.Linear(config.width, 21))

    def to_device(self, device: torch.device | str) -> PlainDiffusion:
        self.schedule = self.schedule.to(device)
        return self.to(device)

    def denoise(self, x_t: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        mean, level = x_t.mean(dim=1, keepdim=True).expand_as(x_t), (t / self.max_steps)[:, None, None]
        return self.network(torch.cat([x_t, mean, level.expand(*x_t.shape[:2], 1)], dim=-1))

    def loss(self, x0: SketchBatch, t: torch.Tensor, noise: SketchBatch, mask: Any) -> Loss:
        clean = x0.flat()
        error = self.denoise(diffuse(clean, noise.flat(), self.schedule.at(t)), t) - clean
        zero = torch.zeros_like(error[:, 0, 0])
        return Loss(error.square().mean(dim=(1, 2)), zero, zero)

    def sample(self, noise: Any, options: SamplingOptions = DEFAULT) -> SketchBatch:
        steps, x = self.resolve(options).timesteps(self.max_steps), noise(0).flat()
        with torch.no_grad():
            for number, (t, s) in enumerate(pairwise(steps), start=1):
                x0 = self.denoise(x, torch.full((len(x),), t, device=x.device))
                mean, std = posterior(x0, x, self.schedule.at(s), self.schedule.at(t))
                x = mean + std * noise(number).flat()
        return from_flat(x)

    def likelihood(self, *_: Any, **__: Any) -> None:
        return None  # neither exact nor bounded


def main(out: Path) -> None:
    sketches = [normalize(procedural(0, number))[0] for number in range(200)]
    corpus = to_device(encode([sketch for sketch in sketches if len(sketch) <= 16]), "cpu")
    system = train(PlainDiffusion(PlainConfig()), corpus, TrainConfig(steps=20, batch_size=32), out / "run").model
    save_pretrained(system, out / "model")
    loaded = from_pretrained(out / "model")
    batch = loaded.sample(seeded_noise(0, torch.arange(4)), SamplingOptions(steps=step_sequence(100, 20)))
    for decoded in decode(batch, loaded.rows.arc_scalar):
        print(f"{len(decoded.sketch)} primitives")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
