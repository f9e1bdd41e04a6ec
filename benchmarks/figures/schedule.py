"""The paper's figure 2: how long a label survives under the raw and under the augmented schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.diffusion.schedule import Level, Schedule, augment, cosine
from sketchdnn.render.figures import BLUE, GRAY, ORANGE, plot_style, save_csv, save_figure


@dataclass(frozen=True, slots=True)
class Survival:
    """For each t in 0..T: both schedules, and the share of labels that each leaves unchanged."""

    num_categories: int
    label_smoothing: float
    alpha_bar: Float[Tensor, " steps"]
    b_bar: Float[Tensor, " steps"]
    kept_raw: Float[Tensor, " steps"]
    kept_augmented: Float[Tensor, " steps"]

    @property
    def asked(self) -> Float[Tensor, " steps"]:
        """What the augmentation aims at: ᾱ + (1 − ᾱ)/D, the survival under multinomial diffusion."""
        return self.alpha_bar + (1 - self.alpha_bar) / self.num_categories


def label_survival(
    *,
    num_steps: int = 2000,
    num_categories: int = 5,
    label_smoothing: float = 0.99,
    samples: int = 100_000,
    seed: int = 0,
) -> Survival:
    """P(argmax y_t is still the label), by Monte Carlo with the same samples at every t."""
    raw = cosine(num_steps)
    augmented = augment(raw, num_categories, label_smoothing)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(samples, num_categories, generator=generator, dtype=torch.float64)
    # The label stays while √ᾱ·height + √(1 − ᾱ)·(its noise − the largest other noise) > 0: one number a sample decides.
    lead = (noise[:, 0] - noise[:, 1:].amax(dim=1)).sort().values
    low = (1 - label_smoothing) / num_categories
    height = math.log((label_smoothing + low) / low)

    def kept(schedule: Schedule) -> Tensor:
        threshold = -height * Level(schedule.alpha_bar, schedule.var).snr.sqrt()
        return 1 - torch.searchsorted(lead, threshold, right=True) / samples

    return Survival(num_categories, label_smoothing, raw.alpha_bar, augmented.alpha_bar, kept(raw), kept(augmented))


def write_schedule(folder: Path, survival: Survival) -> list[Path]:
    """PNG, SVG and CSV of the figure."""
    with plot_style() as plt:
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.3), sharey=True, constrained_layout=True)
        _panel(axes[0], survival.alpha_bar, survival.kept_raw, survival.asked, "Raw: ᾱ of the cosine schedule")
        _panel(axes[1], survival.b_bar, survival.kept_augmented, survival.asked, "Augmented: b̄")
        axes[0].set_ylabel("level or probability")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        paths = save_figure(figure, folder, "schedule")
    header = ("t", "alpha_bar", "kept_raw", "b_bar", "kept_augmented", "asked")
    columns = (survival.alpha_bar, survival.kept_raw, survival.b_bar, survival.kept_augmented, survival.asked)
    rows: list[tuple[object, ...]] = [
        (t, *(f"{value:.6f}" for value in row)) for t, row in enumerate(torch.stack(columns, dim=1).tolist())
    ]
    return [*paths, save_csv(folder, "schedule", header, rows)]


def _panel(axes: Any, level: Tensor, kept: Tensor, asked: Tensor, title: str) -> None:
    t = range(len(level))
    axes.plot(t, asked, color=GRAY, linewidth=1.1, linestyle=(0, (4, 3)), label="what is asked for: ᾱ + (1 − ᾱ)/D")
    axes.plot(t, level, color=ORANGE, label="schedule")
    axes.plot(t, kept, color=BLUE, label="P(label unchanged)")
    axes.set(title=title, xlabel="t", xlim=(0, len(level) - 1), ylim=(0, 1.02))
