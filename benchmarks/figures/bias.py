"""What the logits in the discrete reverse mean do to labels, with a perfect denoiser: measured shares and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.oracles import Estimate, RowTarget, entropy, estimate
from sketchdnn.diffusion.gaussian_softmax import REVERSE_LOGITS, ReverseLogits
from sketchdnn.diffusion.likelihood import elbo
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.samplers import sample_ancestral
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.diffusion.timesteps import draw_steps
from sketchdnn.render.figures import BLUE, GREEN, INK, ORANGE, plot_style, save_csv, save_figure
from sketchdnn.representation import layout

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
