"""What a score means: everything that it depends on beside the sketches themselves, under one name.

Two scores may be compared if their protocols agree in how sketches are measured. How a system drew them, how many, by
which sampler in how many steps, is its own affair: it is part of the name, but no hindrance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError

# Raised whenever a score is computed otherwise than before, so that old reports are not compared with new ones.
VERSION = 1
_OF_LIKELIHOOD = ("likelihood_sketches", "likelihood_draws")
# Sketches of a corpus that are hashed at a time.
_AT_ONCE = 1 << 14
# How sketches are measured. Their number, sampler, steps and seed are not here.
_WORDS = {
    "version": "the version of the scores",
    "size": "the size of the pictures",
    "stroke": "the width of the strokes",
    "margin": "the margin of the pictures",
    "point_radius": "how large points are drawn",
    "construction_ink": "how dark construction is drawn",
    "extractor": "the network that features come from",
    "data": "the corpus",
    "against_test": "how many sketches are compared with held-out ones",
    "against_train": "how many sketches are compared with the training split",
    "validity": "how many sketches are looked at one by one",
    "seed": "the seed that chooses references",
    "likelihood_sketches": "how many sketches likelihoods are taken of",
    "likelihood_draws": "how many draws a likelihood is taken from",
    "fast": "whether it is the fast form",
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """Renderer, extractor, corpus, sizes, seeds; and how many sketches there are and how they were drawn, blank where
    they came in a file."""

    version: int
    size: int
    stroke: float
    margin: float
    point_radius: float
    construction_ink: float
    extractor: str
    data: str
    against_test: int
    against_train: int
    validity: int
    seed: int
    likelihood_sketches: int
    likelihood_draws: int
    fast: bool
    samples: int = 0
    sampler: str = ""
    steps: int = 0
    sample_seed: int = 0

    @property
    def id(self) -> str:
        """Short enough to stand with every number: resolution, sizes, and eight digits for all the rest."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]
        sizes = f"{self.against_test}t" + (f"-{self.against_train}" if self.against_train else "")
        return f"{'fast-' if self.fast else ''}{self.size}px-{sizes}-{digest}"

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}

    @staticmethod
    def from_json(facts: Any) -> Protocol:
        """What `to_json` gave; refuses anything else."""
        if not isinstance(facts, dict):
            raise SketchError("its protocol is none")
        try:
            protocol = Protocol(**{name: value for name, value in facts.items() if name != "id"})
        except TypeError as error:
            raise SketchError("its protocol is of another version of the program") from error
        if protocol.id != facts.get("id"):
            raise SketchError("its protocol is not the one it is named by; evaluate again")
        return protocol

    def differences(self, other: Protocol) -> list[str]:
        """What keeps scores of the two from being compared, in words."""
        return [
            f"{words} ({_shown(getattr(self, name))} and {_shown(getattr(other, name))})"
            for name, words in _WORDS.items()
            if getattr(self, name) != getattr(other, name) and not (name in _OF_LIKELIHOOD and self._lacks_bits(other))
        ]

    def _lacks_bits(self, other: Protocol) -> bool:
        """Sketches from a file have no likelihood, and nothing to disagree in."""
        return not (self.likelihood_sketches and other.likelihood_sketches)


def refuse_unlike(protocols: dict[str, Protocol]) -> None:
    """Refuses to compare what was not measured alike, naming what differs."""
    (first, one), *others = protocols.items()
    for name, other in others:
        if differing := one.differences(other):
            raise SketchError(f"{first} and {name} cannot be compared: they differ in {'; '.join(differing)}")


def in_words(facts: Mapping[str, Any], *, of_tokens: bool = False) -> list[tuple[str, str]]:
    """A protocol as people read it, from what `to_json` gave. What draws token by token has no steps to tell of."""
    others = {
        "id": "id",
        "samples": "how many sketches there are",
        "sampler": "the sampler",
        "steps": "its steps",
        "sample_seed": "the seed of the sketches",
    }
    named = {**_WORDS, **others}
    if of_tokens:
        facts = {name: value for name, value in facts.items() if name != "steps"} | {"sampler": "token by token"}
    yes_or_no = {True: "yes", False: "no"}
    return [
        (named.get(name, name), yes_or_no[value] if isinstance(value, bool) else str(value))
        for name, value in facts.items()
        if facts.get("sampler") or name not in ("sampler", "steps", "sample_seed")
    ]


def data_hash(dataset: Dataset, reference: str = "test") -> str:
    """What a corpus is known by: the SHA-256 of the rows that scores depend on.

    Parameters to a millionth: what two machines prepare of the same files may differ in its last bits.
    """
    digest = hashlib.sha256()
    for name in ("train", reference):
        rows = dataset.split(name).compact
        for array in (rows.kind, rows.construction):
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array)  # type: ignore[arg-type]  # an array is a buffer
        digest.update(f"{rows.params.shape}".encode())
        for start in range(0, len(rows), _AT_ONCE):
            millionths = np.rint(rows.params[start : start + _AT_ONCE] * 2**20).astype(np.int64)
            digest.update(millionths)  # type: ignore[arg-type]
    return digest.hexdigest()


def _shown(value: object) -> str:
    words = str(value)
    return words if len(words) <= 16 else words[:12] + "…"
