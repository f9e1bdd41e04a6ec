"""Figures of labels: their survival under a schedule (the paper's figure 2), their distribution on the simplex, and
the bias of the reverse mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.oracles import Estimate, RowTarget, entropy, estimate
from sketchdnn.diffusion import gaussian_softmax
from sketchdnn.diffusion.gaussian import Level, Schedule, augment, cosine
from sketchdnn.diffusion.gaussian_softmax import REVERSE_LOGITS_METHODS, ReverseLogitsMethod
from sketchdnn.diffusion.likelihood import elbo
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.samplers import sample_ancestral
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.diffusion.timesteps import draw_steps
from sketchdnn.io import atomic_write
from sketchdnn.render.figures import BLUE, GRAY, GREEN, INK, ORANGE, plot_style, save_figure
from sketchdnn.representation import layout


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
    def target(self) -> Float[Tensor, " steps"]:
        """The target of the augmentation: ᾱ + (1 − ᾱ)/D, the survival under multinomial diffusion."""
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
    # The label stays while √ᾱ·height + √(1 − ᾱ)·(its noise − the largest other noise) > 0.
    lead = (noise[:, 0] - noise[:, 1:].amax(dim=1)).sort().values
    low = (1 - label_smoothing) / num_categories
    height = math.log((label_smoothing + low) / low)

    def kept(schedule: Schedule) -> Tensor:
        threshold = -height * Level(schedule.alpha_bar, schedule.var).snr.sqrt()
        return 1 - torch.searchsorted(lead, threshold, right=True) / samples

    return Survival(num_categories, label_smoothing, raw.alpha_bar, augmented.alpha_bar, kept(raw), kept(augmented))


def write_schedule(folder: Path, survival: Survival) -> list[Path]:
    """Write PNG, SVG and CSV of the figure."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(8.4, 3.3), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        _draw_survival(axes[0], survival.alpha_bar, survival.kept_raw, survival.target, "Raw: ᾱ of the cosine schedule")
        _draw_survival(axes[1], survival.b_bar, survival.kept_augmented, survival.target, "Augmented: b̄")
        axes[0].set_ylabel("level or probability")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        paths = save_figure(figure, folder, "schedule")
    header = ("t", "alpha_bar", "kept_raw", "b_bar", "kept_augmented", "target")
    columns = (survival.alpha_bar, survival.kept_raw, survival.b_bar, survival.kept_augmented, survival.target)
    rows: list[tuple[object, ...]] = [
        (t, *(f"{value:.6f}" for value in row)) for t, row in enumerate(torch.stack(columns, dim=1).tolist())
    ]
    return [*paths, save_csv(folder, "schedule", header, rows)]


def _draw_survival(axes: Any, level: Tensor, kept: Tensor, target: Tensor, title: str) -> None:
    t = range(len(level))
    axes.plot(t, target, color=GRAY, linewidth=1.1, linestyle=(0, (4, 3)), label="target: ᾱ + (1 − ᾱ)/D")
    axes.plot(t, level, color=ORANGE, label="schedule")
    axes.plot(t, kept, color=BLUE, label="P(label unchanged)")
    axes.set(title=title, xlabel="t", xlim=(0, len(level) - 1), ylim=(0, 1.02))


# The corners of the triangle, the first at the top.
CORNERS = torch.tensor([[0.5, math.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
SHARES_OF_T = (0.0005, 0.05, 0.15, 0.35, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class LabelSamples:
    """Samples y_t of one label at several t, under one schedule."""

    name: str
    steps: tuple[int, ...]
    samples: Float[Tensor, "step sample 3"]


def sample_labels(
    *, num_steps: int = 2000, label_smoothing: float = 0.99, samples: int = 700, seed: int = 0
) -> tuple[LabelSamples, LabelSamples]:
    """The first of three labels, noised by the raw and by the augmented schedule with the same noise."""
    steps = tuple(max(1, round(share * num_steps)) for share in SHARES_OF_T)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(samples, 1, 3, generator=generator, dtype=torch.float64)
    y0 = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).expand(samples, 1, 3)

    def diffuse(name: str, schedule: Schedule) -> LabelSamples:
        noisy = [gaussian_softmax.diffuse(y0, noise, schedule.at(t), label_smoothing)[:, 0] for t in steps]
        return LabelSamples(name, steps, torch.stack(noisy))

    raw = cosine(num_steps)
    return diffuse("raw cosine", raw), diffuse("augmented", augment(raw, 3, label_smoothing))


def write_simplex(folder: Path, rows: tuple[LabelSamples, ...]) -> list[Path]:
    """Write PNG and SVG: a row of triangles per schedule, points colored by their argmax."""
    with plot_style() as new_figure:
        columns = len(rows[0].steps)
        figure = new_figure(figsize=(1.5 * columns, 1.75 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False)
        for label, row in zip(rows, axes, strict=True):
            for step, samples, panel in zip(label.steps, label.samples, row, strict=True):
                _draw_triangle(panel, samples)
                kept = float((samples.argmax(dim=-1) == 0).double().mean())
                panel.set_title(f"t = {step}", fontsize=8.5, fontweight="normal", loc="center", pad=2)
                panel.text(0.5, -0.1, f"{kept:.0%} kept", ha="center", va="top", fontsize=7.5, color=GRAY)
            row[0].text(-0.16, 0.45, label.name, rotation=90, ha="right", va="center", fontsize=9, fontweight="bold")
        return save_figure(figure, folder, "simplex")


def _draw_triangle(panel: Any, samples: Float[Tensor, "sample 3"]) -> None:
    colors = [(ORANGE, BLUE, GREEN)[label] for label in samples.argmax(dim=-1).tolist()]
    x, y = (samples @ CORNERS).T
    outline = torch.cat([CORNERS, CORNERS[:1]])
    panel.plot(outline[:, 0], outline[:, 1], color=GRAY, linewidth=0.8)
    panel.scatter(x, y, c=colors, s=3.0, alpha=0.55, linewidths=0, rasterized=True)
    panel.set(xlim=(-0.06, 1.06), ylim=(-0.2, 0.93), aspect="equal")
    panel.axis("off")


SHARES = (0.55, 0.25, 0.12, 0.06, 0.02)
NAMES: dict[ReverseLogitsMethod, str] = {
    "log": "log ŷ₀ (paper)",
    "2log": "2·log ŷ₀ (authors)",
    "expected": "Σ ŷ₀[c]·log y′₀(c) (ours)",
}
_COLORS: dict[ReverseLogitsMethod, str] = {"log": ORANGE, "2log": GREEN, "expected": BLUE}


@dataclass(frozen=True, slots=True)
class LogitsBias:
    """One choice of reverse logits: the shares of sampled labels, and the bound on the nats of a label."""

    logits: ReverseLogitsMethod
    shares: tuple[float, ...]
    nats: Estimate
    labels: int


def measure_bias(
    *,
    num_steps: int = 2000,
    label_smoothing: float = 0.99,
    samples: int = 1000,
    draws: int = 32,
    seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> list[LogitsBias]:
    """Sample sketches of 16 independent labels with a perfect denoiser and every choice of reverse logits.

    Args:
        num_steps: T; every step is taken.
        label_smoothing: k.
        samples: Sketches per choice.
        draws: Monte Carlo draws of the bound.
        seed: Seed of all random numbers.
        on_step: Called after each step.
    """
    target = RowTarget(SHARES)
    biases = []
    for logits in REVERSE_LOGITS_METHODS:
        process = replace(our_process(num_steps, label_smoothing), reverse_logits=logits)
        denoise = target.denoiser(process)
        noise = seeded_noise(seed, torch.arange(samples))
        options = SamplingOptions(on_step=(lambda _: on_step()) if on_step else None)
        drawn = sample_ancestral(denoise, process, noise, options, labels="logit")
        counts = torch.bincount(drawn.kind.argmax(dim=-1).flatten(), minlength=layout.NUM_KINDS)
        generator = torch.Generator().manual_seed(seed)
        x0 = target.sample(samples, generator=generator, dtype=torch.float64)
        steps = draw_steps(process, samples, draws, generator)
        exact = seeded_noise(seed + 1, torch.arange(samples), dtype=torch.float64)
        bound = elbo(denoise, process, x0, exact, steps)
        nats = estimate((bound.prior.kind + bound.diffusion.kind + bound.reconstruction.kind) / layout.MAX_PRIMITIVES)
        biases.append(LogitsBias(logits, tuple((counts / counts.sum()).tolist()), nats, int(counts.sum())))
    return biases


def write_bias(folder: Path, biases: list[LogitsBias]) -> list[Path]:
    """Write PNG, SVG and CSV of the comparison."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(8.4, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
        _draw_shares(left, biases)
        _draw_bounds(right, biases)
        paths = save_figure(figure, folder, "bias")
    header = ("logits", "bound_nats", "standard_error", "labels", *(f"share_{i}" for i in range(len(SHARES))))
    rows: list[tuple[object, ...]] = [("target", f"{entropy(SHARES):.4f}", "", "", *SHARES)]
    rows += [
        (
            bias.logits,
            f"{bias.nats.mean:.4f}",
            f"{bias.nats.standard_error:.4f}",
            bias.labels,
            *(f"{share:.4f}" for share in bias.shares),
        )
        for bias in biases
    ]
    return [*paths, save_csv(folder, "bias", header, rows)]


def _draw_shares(axes: Any, biases: list[LogitsBias]) -> None:
    width = 0.8 / len(biases)
    for i, bias in enumerate(biases):
        positions = [label + (i - (len(biases) - 1) / 2) * width for label in range(len(SHARES))]
        axes.bar(positions, bias.shares, width * 0.9, color=_COLORS[bias.logits], label=NAMES[bias.logits])
    for label, share in enumerate(SHARES):
        axes.hlines(share, label - 0.44, label + 0.44, color=INK, linewidth=1.2, label=None if label else "target")
    axes.set(title="Labels drawn by a perfect denoiser", ylabel="share", xlabel="label", xticks=range(len(SHARES)))
    axes.legend(fontsize=8)


def _draw_bounds(axes: Any, biases: list[LogitsBias]) -> None:
    target = entropy(SHARES)
    for y, bias in enumerate(reversed(biases)):
        axes.hlines(y, target, bias.nats.mean, color=_COLORS[bias.logits], linewidth=2.5)
        axes.plot(bias.nats.mean, y, "o", color=_COLORS[bias.logits], markersize=8)
        axes.text(bias.nats.mean * 1.22, y, f"{bias.nats.mean:.3g}", va="center", fontsize=8.5)
    axes.axvline(target, color=INK, linewidth=1.2)
    axes.text(target * 1.1, len(biases) - 0.5, f"entropy {target:.3f}", va="center", fontsize=8.5)
    axes.set(title="Bound on −log p of a label", xlabel="nats", xscale="log", xlim=(0.9, 200))
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_ylim(-0.6, len(biases) - 0.2)
    axes.set_yticks(range(len(biases)), [bias.logits for bias in reversed(biases)])
    axes.tick_params(axis="y", length=0)


def save_csv(folder: Path, name: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> Path:
    """Write the numbers of a figure as CSV."""
    path = folder / f"{name}.csv"
    with atomic_write(path) as temporary:
        lines = [",".join(map(str, row)) for row in [header, *rows]]
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
