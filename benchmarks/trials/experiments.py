"""The experiments as data: what is trained, on which corpus, and how samples are drawn from it.

A corpus is a folder beside the others (docs/reproduce.md has the commands):

ours        preset ours: rows sorted, smaller end of a line first
drawn       the same sketches and splits, with rows and line ends in the order of the source
drawn-half  the same in the paper's frame, the unit square
wide        preset ours with 5 to 16 primitives, for auxiliary samples
paper       preset paper
authors     preset authors
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Draw:
    """Samples of a trained model.

    Attributes:
        name: Of the file.
        label: In tables.
        sampler: None is the model's own.
        averaged: Whether the weights are the averaged ones, or the last ones.
        settings: Settings of the system that have no effect on training.
    """

    name: str
    label: str
    steps: int = 50
    sampler: str | None = None
    averaged: bool = True
    settings: Mapping[str, Any] = field(default_factory=lambda: _NONE)


@dataclass(frozen=True, slots=True)
class Trial:
    """One training. `overrides` are settings in place of the preset's, as for `sketchdnn train --set`."""

    name: str
    preset: str
    corpus: str
    draws: Sequence[Draw]
    overrides: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """Trainings with one budget, each with every seed.

    Attributes:
        reference: The corpus whose test split samples are scored against.
        form: `ladder`: each row is compared with the row above. `seeds`: mean and spread over the seeds.
    """

    name: str
    title: str
    minutes: float
    reference: str
    trials: Sequence[Trial]
    seeds: Sequence[int] = (0,)
    form: Literal["plain", "ladder", "seeds"] = "plain"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all draws by name, in order."""
        return {draw.name: draw.label for trial in self.trials for draw in trial.draws}


def _own_sampler() -> tuple[Draw, ...]:
    """The preset's own sampler with both weights. The most important draws come first, in case time runs out."""
    return (
        Draw("averaged-50", "averaged weights, 50 steps", 50),
        Draw("last-50", "last weights, 50 steps", 50, averaged=False),
        Draw("averaged-2000", "averaged weights, 2,000 steps", 2000),
        Draw("averaged-200", "averaged weights, 200 steps", 200),
        Draw("last-200", "last weights, 200 steps", 200, averaged=False),
        Draw("last-2000", "last weights, 2,000 steps", 2000, averaged=False),
    )


# The averaging does not affect training. Its length is about a sixth of the steps of 24 minutes.
_AVERAGING = ("training.ema=0.9995",)
_PAPER = Experiment(
    "paper",
    "The paper's settings, trained for 24 minutes",
    24.0,
    "paper",
    (Trial("paper", "paper", "paper", _own_sampler(), _AVERAGING),),
)
_AUTHORS = Experiment(
    "authors",
    "The settings of the authors' code, trained for 24 minutes",
    24.0,
    "authors",
    (Trial("authors", "authors", "authors", _own_sampler(), _AVERAGING),),
)

# Settings of the ladder, each added to those before it. The networks are 256 wide and 8 deep.
_SIZE = ("system.network.width=256", "system.network.depth=8", "system.network.heads=4", "training.ema=0.999")
_REPRESENTATION = ("system.arc_scalar=sweep", "system.canonical_lines=true")
_RATE = (
    "training.batch_size=2048",
    "training.learning_rate=8e-4",
    "training.betas=[0.9, 0.99]",
    "training.weight_decay=0.01",
    "training.clip=1.0",
    "training.warmup=500",
    "training.decay=0.7",
)
_NOISE = ("training.timestep_sampling=low_noise", "training.stratified=true")
_LOSS = ("system.variant=ours", "system.reverse_logits=log")
_NETWORK = (
    "system.network={type = 'SetDenoiser', width = 256, depth = 8, heads = 4, octaves = 0}",
    "system.preconditioned=false",
)
_PRECONDITIONED = ("system.preconditioned=true",)
_FOURIER = ("system.network.octaves=8",)
_EXPECTED = ("system.reverse_logits=expected", "system.superposition=expected")
_AUGMENTED = ("training.augment=true", "training.conditioning=0.25")
_INPUTS = ("system.network.self_conditioning=true", "system.network.proximity_features=true")
_AUXILIARY = (
    "system.network.auxiliary=true",
    "system.network.dropout=0.1",
    "training.min_primitives=8",
    "training.affine_augmentation=0.3",
    "training.timestep_sampling=mid_noise",
    "training.optimizer=muon",
    "training.learning_rate=4e-4",
    "training.weight_decay=0.1",
)


def _rung(name: str, label: str) -> tuple[Draw, ...]:
    return (Draw(name, label, 50, "ancestral"),)


def _ladder() -> tuple[Trial, ...]:
    """Every training is the one before it with further settings."""
    expected = {"reverse_logits": "expected", "superposition": "expected"}
    steps: tuple[tuple[str, tuple[str, ...], str, tuple[Draw, ...]], ...] = (
        (
            "paper",
            _SIZE,
            "drawn-half",
            (
                Draw("paper", "paper, in small", 50, "ancestral", averaged=False),
                Draw("averaging", "+ averaged weights", 50, "ancestral"),
            ),
        ),
        (
            "representation",
            _REPRESENTATION,
            "drawn",
            _rung("representation", "+ sweep for signed radius, canonical lines, frame [−1, 1]"),
        ),
        ("rate", _RATE, "drawn", _rung("rate", "+ higher rate with warm-up and decay, clipping, half the batch")),
        ("noise-levels", _NOISE, "drawn", _rung("noise-levels", "+ more training at low noise")),
        ("network", _NETWORK, "drawn", _rung("network", "+ our network, without the inputs below")),
        ("fourier", _FOURIER, "drawn", _rung("fourier", "+ Fourier features of coordinates")),
        ("preconditioned", _PRECONDITIONED, "drawn", _rung("preconditioned", "+ preconditioned output")),
        # After preconditioning: without it the weights at little noise leave nothing for labels.
        (
            "loss",
            _LOSS,
            "drawn",
            (
                *_rung("loss", "+ loss weights by noise level"),
                Draw("expected", "+ expected logits and parameters", 50, "ancestral", settings=expected),
            ),
        ),
        (
            "augmentation",
            (*_EXPECTED, *_AUGMENTED),
            "drawn",
            _rung("augmentation", "+ symmetries, known parts as inputs"),
        ),
        ("inputs", _INPUTS, "drawn", _rung("inputs", "+ self-conditioning, proximity features")),
        (
            "auxiliary",
            _AUXILIARY,
            "wide",
            (
                *_rung("auxiliary", "+ auxiliary samples, Muon, dropout"),
                Draw("restart", "+ sampler restart", 50, "restart"),
            ),
        ),
    )
    trials: list[Trial] = []
    settings: tuple[str, ...] = ()
    for name, added, corpus, draws in steps:
        settings += added
        trials.append(Trial(name, "paper", corpus, draws, settings))
    return tuple(trials)


_LADDER = Experiment(
    "ladder", "From the paper's settings to ours, one change at a time", 3.5, "ours", _ladder(), form="ladder"
)

# Readings of the paper's Cat.: the reverse step has the prediction ŷ_0 alone in place of y_0, and parameters are not
# superposed: they are those of one kind, or of all kinds without weights.
_CAT = (
    Draw("cat", "SketchDNN (Cat.)", 50, "ancestral"),
    Draw("cat-200", "Cat., 200 steps", 200, "ancestral"),
    Draw(
        "cat-predicted",
        "Cat., ŷ_0 alone, 200 steps",
        200,
        "ancestral",
        settings={"reverse": "predicted"},
    ),
    Draw(
        "cat-most-likely",
        "Cat., ŷ_0 alone, one kind, 200 steps",
        200,
        "ancestral",
        settings={"reverse": "predicted", "superposition": "most_likely"},
    ),
    Draw(
        "cat-unweighted",
        "Cat., ŷ_0 alone, no weights, 200 steps",
        200,
        "ancestral",
        settings={"reverse": "predicted", "superposition": "none"},
    ),
)
_SEEDS = Experiment(
    "seeds",
    "Three seeds of SketchDNN, Pos. and Cat.",
    3.5,
    "ours",
    (
        Trial("sketchdnn", "ours-base", "ours", (Draw("sketchdnn", "SketchDNN", 50, "ancestral"),)),
        Trial(
            "pos",
            "sketchdnn-pos",
            "ours",
            (Draw("pos", "SketchDNN (Pos.), rows sorted", 50, "ancestral"),),
        ),
        Trial(
            "pos-drawn",
            "sketchdnn-pos",
            "drawn",
            (Draw("pos-drawn", "SketchDNN (Pos.), rows as drawn", 50, "ancestral"),),
        ),
        Trial("cat", "sketchdnn-cat", "ours", _CAT),
    ),
    seeds=(0, 1, 2),
    form="seeds",
)

EXPERIMENTS: Mapping[str, Experiment] = {each.name: each for each in (_PAPER, _AUTHORS, _LADDER, _SEEDS)}
