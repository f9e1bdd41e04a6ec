"""The paper's figure 2: how long a label survives under the raw and under the augmented schedule."""

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
from sketchdnn.diffusion.gaussian_softmax import REVERSE_LOGITS, ReverseLogits
from sketchdnn.diffusion.likelihood import elbo
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.samplers import sample_ancestral
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.diffusion.schedule import Level, Schedule, augment, cosine
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
        return save_figure(figure, folder, "simplex")


def _triangle(panel: Any, samples: Float[Tensor, "sample 3"]) -> None:
    colors = [(ORANGE, BLUE, GREEN)[label] for label in samples.argmax(dim=-1).tolist()]
    x, y = (samples @ CORNERS).T
    outline = torch.cat([CORNERS, CORNERS[:1]])
    panel.plot(outline[:, 0], outline[:, 1], color=GRAY, linewidth=0.8)
    panel.scatter(x, y, c=colors, s=3.0, alpha=0.55, linewidths=0, rasterized=True)
    panel.set(xlim=(-0.06, 1.06), ylim=(-0.2, 0.93), aspect="equal")
    panel.axis("off")


SHARES = (0.55, 0.25, 0.12, 0.06, 0.02)
NAMES: dict[ReverseLogits, str] = {
    "log": "log ŷ₀ (paper)",
    "2log": "2·log ŷ₀ (authors)",
    "expected": "Σ ŷ₀[c]·log y′₀(c) (ours)",
}
_COLORS: dict[ReverseLogits, str] = {"log": ORANGE, "2log": GREEN, "expected": BLUE}


@dataclass(frozen=True, slots=True)
class Measured:
    """One form of logits: the shares of labels it draws, and the bound on the nats of a label."""

    form: ReverseLogits
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
) -> list[Measured]:
    """Draw `samples` sketches of 16 independent labels by each form, through every step, and bound their likelihood."""
    target = RowTarget(SHARES)
    measured = []
    for form in REVERSE_LOGITS:
        process = replace(our_process(num_steps, label_smoothing), reverse_logits=form)
        denoise = target.denoiser(process)
        noise = seeded_noise(seed, torch.arange(samples))
        options = SamplingOptions(on_step=(lambda _: on_step()) if on_step else None)
        drawn = sample_ancestral(denoise, process, noise, options, labels="mean")
        counts = torch.bincount(drawn.kind.argmax(dim=-1).flatten(), minlength=layout.NUM_KINDS)
        generator = torch.Generator().manual_seed(seed)
        x0 = target.sample(samples, generator=generator, dtype=torch.float64)
        steps = draw_steps(process, samples, draws, generator)
        exact = seeded_noise(seed + 1, torch.arange(samples), dtype=torch.float64)
        bound = elbo(denoise, process, x0, exact, steps)
        nats = estimate((bound.prior.kind + bound.diffusion.kind + bound.reconstruction.kind) / layout.MAX_PRIMITIVES)
        measured.append(Measured(form, tuple((counts / counts.sum()).tolist()), nats, int(counts.sum())))
    return measured


def write_bias(folder: Path, measured: list[Measured]) -> list[Path]:
    """PNG, SVG and CSV of the comparison."""
    with plot_style() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.1), width_ratios=(1.7, 1), constrained_layout=True)
        _draw_shares(left, measured)
        _draw_bounds(right, measured)
        paths = save_figure(figure, folder, "bias")
    header = ("logits", "bound_nats", "standard_error", "labels", *(f"share_{i}" for i in range(len(SHARES))))
    rows: list[tuple[object, ...]] = [("target", f"{entropy(SHARES):.4f}", "", "", *SHARES)]
    rows += [
        (
            m.form,
            f"{m.nats.mean:.4f}",
            f"{m.nats.standard_error:.4f}",
            m.labels,
            *(f"{share:.4f}" for share in m.shares),
        )
        for m in measured
    ]
    return [*paths, save_csv(folder, "bias", header, rows)]


def _draw_shares(axes: Any, measured: list[Measured]) -> None:
    width = 0.8 / len(measured)
    for i, one in enumerate(measured):
        places = [label + (i - (len(measured) - 1) / 2) * width for label in range(len(SHARES))]
        axes.bar(places, one.shares, width * 0.9, color=_COLORS[one.form], label=NAMES[one.form])
    for label, share in enumerate(SHARES):
        axes.hlines(share, label - 0.44, label + 0.44, color=INK, linewidth=1.2, label=None if label else "target")
    axes.set(title="Labels drawn by a perfect denoiser", ylabel="share", xlabel="label", xticks=range(len(SHARES)))
    axes.legend(fontsize=8)


def _draw_bounds(axes: Any, measured: list[Measured]) -> None:
    target = entropy(SHARES)
    for place, one in enumerate(reversed(measured)):
        axes.hlines(place, target, one.nats.mean, color=_COLORS[one.form], linewidth=2.5)
        axes.plot(one.nats.mean, place, "o", color=_COLORS[one.form], markersize=8)
        axes.text(one.nats.mean * 1.22, place, f"{one.nats.mean:.3g}", va="center", fontsize=8.5)
    axes.axvline(target, color=INK, linewidth=1.2)
    axes.text(target * 1.1, len(measured) - 0.5, f"entropy {target:.3f}", va="center", fontsize=8.5)
    axes.set(title="Bound on −log p of a label", xlabel="nats", xscale="log", xlim=(0.9, 200))
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_ylim(-0.6, len(measured) - 0.2)
    axes.set_yticks(range(len(measured)), [one.form for one in reversed(measured)])
    axes.tick_params(axis="y", length=0)


def save_csv(folder: Path, name: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> Path:
    """Write the numbers of a figure as CSV."""
    path = folder / f"{name}.csv"
    with atomic_write(path) as temporary:
        lines = [",".join(map(str, row)) for row in [header, *rows]]
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
