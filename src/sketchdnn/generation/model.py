"""The model as a designer sees it: load it, ask for sketches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from huggingface_hub import ModelHubMixin

from sketchdnn.geometry import Sketch
from sketchdnn.systems import System, from_pretrained, save_pretrained
from sketchdnn.systems.pretrained import BUNDLED

from .generate import SIZE, STEPS, UNITS, draw


class SketchDNN(ModelHubMixin, library_name="sketchdnn", license="mit", tags=["cad", "sketch", "diffusion"]):
    """A trained system and what may be asked of it.

    `model = SketchDNN.from_pretrained()` is the one that comes with the package; no network is needed. It saves itself
    with `save_pretrained(folder)` and, given an account there, goes to the Hub with `push_to_hub(name)`.
    """

    def __init__(self, system: System) -> None:
        self.system = system

    @classmethod
    def from_pretrained(cls, model: str | Path = BUNDLED) -> SketchDNN:  # type: ignore[override]
        """Load a folder, a bundled model by its name, or, if no such folder exists, OWNER/NAME from the Hub."""
        return cls(from_pretrained(model))

    def generate(
        self,
        count: int = 1,
        *,
        seed: int = 0,
        steps: int = STEPS,
        sampler: str = "ancestral",
        size: float = SIZE,
        units: str = UNITS,
    ) -> list[Sketch]:
        """Sketches 0..count−1 of a seed, the larger side of each `size` in `units`.

        Sketch i of a seed is the same whatever the count.
        """
        drawn = draw(self.system, count, seed=seed, steps=steps, sampler=sampler, size=size, units=units)
        return [drawing.sketch for drawing in drawn]

    def _save_pretrained(self, save_directory: Path) -> None:
        save_pretrained(self.system, save_directory)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **_: Any) -> SketchDNN:
        return cls.from_pretrained(model_id)
