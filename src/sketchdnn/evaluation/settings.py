"""What to measure and how much of it: the sizes of a full evaluation, of a fast one, and of what the data allows."""

from __future__ import annotations

from dataclasses import dataclass

from sketchdnn.errors import SketchError

# The split of held-out real sketches that samples are compared with.
REFERENCES = ("test", "validation")

# The fewest that every score can be had of: density looks at five neighbors of each.
FEWEST = 6
# FID fits a Gaussian in this many dimensions: fewer samples leave its covariance singular.
DIMENSIONS = 2048


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults are the full evaluation. `seed` chooses references; sketches have a seed of their own.

    `against_test` sketches are compared with as many of the test split, `against_train` with as many of the training
    split (0: not at all). `validity` sketches of each set are looked at one by one. Likelihoods are taken of the whole
    test split unless `likelihood_sketches` says how many. `repaired`: the samples are also scored after repair.

    `split`: "validation" takes the place of the test split everywhere. Choose models and samplers by it, so that the
    test split stays unseen until the end.
    """

    count: int = 10_000
    against_test: int = 2_000
    against_train: int = 10_000
    validity: int = 2_000
    seed: int = 0
    likelihood: bool = True
    likelihood_sketches: int | None = None
    likelihood_draws: int = 16
    corruption: bool = True
    fast: bool = False
    repaired: bool = False
    split: str = "test"

    def __post_init__(self) -> None:
        if self.split not in REFERENCES:
            raise SketchError(f"'{self.split}' cannot be compared with; use {' or '.join(REFERENCES)}")


FAST = Settings(
    count=500,
    against_test=500,
    against_train=0,
    validity=500,
    likelihood_sketches=64,
    likelihood_draws=4,
    corruption=False,
    fast=True,
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many sketches are compared with how many, both sides alike."""

    test: int
    train: int


def sizes_for(settings: Settings, samples: int, test: int, train: int) -> Sizes:
    """What was wished for, as far as there are sketches: both sides of a comparison shrink together."""
    with_test = min(settings.against_test, samples, test, train)
    # Two halves that share no sketch must be had of the training split.
    with_train = min(settings.against_train, samples, train // 2)
    if with_test < FEWEST:
        raise SketchError(
            f"there is too little to compare: {samples:,} samples, {test:,} test and {train:,} training sketches, "
            f"and scores need at least {FEWEST} of each"
        )
    return Sizes(with_test, with_train if with_train >= FEWEST else 0)


def warnings_about(settings: Settings, sizes: Sizes, samples: int) -> list[str]:
    """What a reader must know before quoting a number."""
    found = []
    if settings.fast:
        found.append("This is the fast form: few samples, few references, no comparison with the training split.")
    for wanted, used, split in (
        (settings.against_test, sizes.test, settings.split),
        (settings.against_train, sizes.train, "training"),
    ):
        if used < wanted:
            found.append(
                f"{wanted:,} sketches were to be compared with the {split} split; there are enough for {used:,} "
                f"({samples:,} samples), so both sides were cut to that."
            )
    small = sorted({size for size in (sizes.test, sizes.train) if 0 < size < DIMENSIONS})
    if small:
        found.append(
            f"FID from {' and '.join(f'{size:,}' for size in small)} sketches rests on fewer than the {DIMENSIONS:,} "
            "dimensions of its features: its covariance is singular and the score too high by an amount that depends "
            "on the size. Compare it only with scores of the same protocol, and with the floor beside it."
        )
    return found
