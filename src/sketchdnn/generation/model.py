"""The model as a designer sees it: load it, ask for sketches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelHubMixin

from sketchdnn.geometry import Kind, Sketch
from sketchdnn.geometry.quantities import parse_int_range, parse_kind_counts, parse_range
from sketchdnn.systems import System, from_pretrained, save_pretrained
from sketchdnn.systems.pretrained import BUNDLED

from .complete import complete
from .conditions import Conditions
from .generate import SIZE, STEPS, UNITS, Drawing, draw
from .like import STRENGTH, draw_like

Range = tuple[float, float] | str


class SketchDNN(ModelHubMixin, library_name="sketchdnn", license="mit", tags=["cad", "sketch", "diffusion"]):
    """A trained system and what may be asked of it.

    `model = SketchDNN.from_pretrained()` is the one that comes with the package; no network is needed. It saves itself
    with `save_pretrained(folder)` and, given an account there, goes to the Hub with `push_to_hub(name)`.
    """

    def __init__(self, system: System) -> None:
        self.system = system

    @classmethod
    def from_pretrained(cls, model: str | Path = BUNDLED, *, device: str = "auto") -> SketchDNN:  # type: ignore[override]
        """Load a folder, a bundled model by its name, or hub:OWNER/NAME from the Hub.

        `device` is auto (a GPU where there is one), cpu, cuda or cuda:1, as on the command line.
        """
        return cls(from_pretrained(model, device))

    def generate(
        self,
        count: int = 1,
        *,
        seed: int = 0,
        first: int = 0,
        steps: int = STEPS,
        sampler: str | None = None,
        size: float | str = SIZE,
        units: str = UNITS,
        primitives: int | tuple[int, int] | str | None = None,
        kinds: Mapping[str, int] | Mapping[Kind, int] | str | None = None,
        count_construction: bool = False,
        construction: Range | None = None,
        aspect: Range | None = None,
        closed: bool = False,
        unique: bool = False,
        novel: bool = False,
        best_of: int = 1,
        repair: bool = True,
    ) -> list[Sketch]:
        """Sketches first..first+count−1 of a seed, the larger side of each `size` in `units`, or "4in" in words.

        Sketch i of a seed is the same whatever the count. Conditions may be combined: `primitives=12` or `(8, 16)`,
        `kinds={"line": 8, "circle": 2}` besides construction (with `count_construction` in all), the share of
        `construction` and the `aspect` (width over height) as ranges, only `closed` sketches, which can be extruded, no
        two alike (`unique`), none of the training corpus (`novel`), and for each the best of several. The words of the
        command line will do as well: `primitives="8..16"`, `kinds="line=8,circle=2"`. A sketch that comes only close is
        among them: `draw` says what it lacks.

        They are repaired, as those of the command are: near ends meet, nothing is there twice, and each carries the
        constraints that hold in it. `repair=False` gives what the model drew, which is what its scores are of.
        """
        conditions = Conditions(
            primitives=_whole_range(primitives),
            kinds=None if kinds is None else parse_kind_counts(kinds, "kinds"),
            count_construction=count_construction,
            construction=parse_range(construction, "construction", "0.1..0.3")
            if isinstance(construction, str)
            else construction,
            aspect=parse_range(aspect, "aspect", "0.5..2") if isinstance(aspect, str) else aspect,
            closed=closed,
            unique=unique,
            novel=novel,
            best_of=best_of,
        )
        drawn = self.draw(
            count,
            seed=seed,
            first=first,
            steps=steps,
            sampler=sampler,
            size=size,
            units=units,
            conditions=conditions,
            repair=repair,
        )
        return [drawing.sketch for drawing in drawn]

    def draw(self, count: int = 1, *, repair: bool = True, **options: Any) -> Iterator[Drawing]:
        """The same one by one as they are drawn, each with an account of it; for a million, and for the curious.

        Takes the options of `sketchdnn.generation.draw`.
        """
        return draw(self.system, count, repair=repair, **options)

    def vary(
        self,
        sketch: Sketch,
        count: int = 8,
        *,
        seed: int = 0,
        strength: float = STRENGTH,
        steps: int = STEPS,
        sampler: str | None = None,
        repair: bool = True,
    ) -> list[Sketch]:
        """Variations of a sketch, in its place and at its size: the greater the `strength`, up to 1, the freer."""
        options: dict[str, Any] = {"seed": seed, "strength": strength, "steps": steps, "sampler": sampler}
        drawn = draw_like(self.system, sketch, count, repair=repair, **options)
        return [drawing.sketch for drawing in drawn]

    def complete(
        self, sketch: Sketch, count: int = 8, seed: int = 0, *, repair: bool = True, **options: Any
    ) -> list[Sketch]:
        """A part with what may have been left out: its primitives come first, as they are, and then what was added.

        With `repair` what was added is brought to what was there. Takes the options of `sketchdnn.generation.complete`.
        """
        done = complete(self.system, sketch, count, seed=seed, repair=repair, **options)
        return [completion.sketch for completion in done]

    def _save_pretrained(self, save_directory: Path) -> None:
        save_pretrained(self.system, save_directory)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **_: Any) -> SketchDNN:
        return cls.from_pretrained(model_id)


def _whole_range(number: int | tuple[int, int] | str | None) -> tuple[int, int] | None:
    if isinstance(number, str):
        return parse_int_range(number, "primitives", "8..16")
    return (number, number) if isinstance(number, int) else number
