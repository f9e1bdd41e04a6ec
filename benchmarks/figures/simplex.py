"""Samples of the Gaussian-Softmax distribution on the triangle, as a label dissolves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.diffusion import gaussian_softmax
from sketchdnn.diffusion.schedule import Schedule, augment, cosine
from sketchdnn.render.figures import BLUE, GRAY, GREEN, ORANGE, plot_style, save_figure

# Where the three labels lie, the first at the top.
CORNERS = torch.tensor([[0.5, math.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
SHARES_OF_T = (0.0005, 0.05, 0.15, 0.35, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Clouds:
    """Samples y_t of one label at several t, under one schedule."""

    name: str
    steps: tuple[int, ...]
    samples: Float[Tensor, "step sample 3"]


def label_clouds(
    *, num_steps: int = 2000, label_smoothing: float = 0.99, samples: int = 700, seed: int = 0
) -> tuple[Clouds, Clouds]:
    """The first of three labels, noised by the raw and by the augmented schedule with the same noise."""
    steps = tuple(max(1, round(share * num_steps)) for share in SHARES_OF_T)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(samples, 1, 3, generator=generator, dtype=torch.float64)
    y0 = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).expand(samples, 1, 3)

    def clouds(name: str, schedule: Schedule) -> Clouds:
        drawn = [gaussian_softmax.diffuse(y0, noise, schedule.at(t), label_smoothing)[:, 0] for t in steps]
        return Clouds(name, steps, torch.stack(drawn))

    raw = cosine(num_steps)
    return clouds("raw cosine", raw), clouds("augmented", augment(raw, 3, label_smoothing))


def write_simplex(folder: Path, rows: tuple[Clouds, ...]) -> list[Path]:
    """PNG and SVG: a row of triangles for each schedule, points colored by the label they would be read as."""
    with plot_style() as plt:
        columns = len(rows[0].steps)
        figure, axes = plt.subplots(
            len(rows), columns, figsize=(1.5 * columns, 1.75 * len(rows)), squeeze=False, constrained_layout=True
        )
        for clouds, row in zip(rows, axes, strict=True):
            for step, samples, panel in zip(clouds.steps, clouds.samples, row, strict=True):
                _triangle(panel, samples)
                kept = float((samples.argmax(dim=-1) == 0).double().mean())
                panel.set_title(f"t = {step}", fontsize=8.5, fontweight="normal", loc="center", pad=2)
                panel.text(0.5, -0.1, f"{kept:.0%} kept", ha="center", va="top", fontsize=7.5, color=GRAY)
            row[0].text(-0.16, 0.45, clouds.name, rotation=90, ha="right", va="center", fontsize=9, fontweight="bold")
        return save_figure(figure, folder, "gs")


def _triangle(panel: Any, samples: Float[Tensor, "sample 3"]) -> None:
    colors = [(ORANGE, BLUE, GREEN)[label] for label in samples.argmax(dim=-1).tolist()]
    x, y = (samples @ CORNERS).T
    outline = torch.cat([CORNERS, CORNERS[:1]])
    panel.plot(outline[:, 0], outline[:, 1], color=GRAY, linewidth=0.8)
    panel.scatter(x, y, c=colors, s=3.0, alpha=0.55, linewidths=0, rasterized=True)
    panel.set(xlim=(-0.06, 1.06), ylim=(-0.2, 0.93), aspect="equal")
    panel.axis("off")
