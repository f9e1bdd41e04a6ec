"""What to complete: the options of a completion, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sketchdnn.constraints import RoundOptions
from sketchdnn.diffusion.sampling import ConditioningMethod, SamplingOptions
from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import Box, Kind, Primitive, Sketch, bounds
from sketchdnn.geometry.quantities import parse_box, parse_kind_counts, parse_range
from sketchdnn.render import Style
from sketchdnn.representation import layout
from sketchdnn.systems import System

from .conditioning import drop_tiny
from .conditions import Conditions
from .distinct import difference
from .framing import MAX_SCALE, check_scale
from .generate import check_seed_and_count
from .goals import SCALES, Goal, resolve_goal
from .quality import check_quality, choose_sampling

# Candidates for each suggestion.
CANDIDATES = 3
# The largest part.
MAX_PART = 64
PART_COLOR, ADDED_COLOR = "#1a1a1a", "#0072b2"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteRequest:
    """What to complete: up to `count` distinct suggestions for a part, in the part's own coordinates and units.

    Attributes:
        part: The sketch to complete, of at most 64 primitives.
        count: Number of suggestions. There are fewer if the model has fewer ideas.
        seed: Selects the suggestions; another seed gives others.
        goal: `close` finishes an open part, `inside` adds features to a closed one, `extend` adds outlines beside or
            around it. None means `close` for a part with open ends, else `inside`.
        kinds: Exact number of added primitives of each kind, construction not counted, such as "circle=2".
        closed: Suggestions that can be extruded come first; others count as failing.
        inside: Box that additions must lie in, as a `Box` or "x0,y0,x1,y1".
        primitives: Number of primitives in all, a range of it, or words such as "8..16".
        like: A suggestion to vary ("more like this"): the part, followed by what was added.
        unlike: Suggestions not to repeat ("something else").
        candidates: Number of candidates that are sampled for each suggestion.
        geometry: Also suggest what follows from the geometry of the part without the model (`geometric_ideas`).
        method: `conditional` for a network trained for it, `repaint` for any.
        scale: Finished size over that of the part, a range of it, or words such as "1..2"; None means that of the goal.
        quality: `best`, or `fast` for few steps of the network (`quality`).
        steps: Number of denoising steps; None means those of the quality.
        sampler: Name of the sampler; None means that of the quality.
        repair: Repair what was added. The part does not change; without constraints of its own it gets those that hold
            exactly.
        rounding: Round the dimensions of what was added; the part does not move.
        workers: Number of processes that repair large batches.
    """

    stem: ClassVar[str] = "completion"

    part: Sketch
    count: int = 8
    seed: int = 0
    goal: str | None = None
    kinds: Mapping[Kind, int] | Mapping[str, int] | str | None = None
    closed: bool = False
    inside: Box | str | None = None
    primitives: int | tuple[int, int] | str | None = None
    like: Sketch | None = None
    unlike: Sequence[Sketch] = ()
    candidates: int = CANDIDATES
    geometry: bool = True
    method: ConditioningMethod = "conditional"
    scale: float | tuple[float, float] | str | None = None
    quality: str = "best"
    steps: int | None = None
    sampler: str | None = None
    repair: bool = True
    rounding: RoundOptions | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        check_seed_and_count(self.seed, self.count)
        check_quality(self.quality, self.steps, self.sampler)
        _check_part(self.part)
        if self.rounding and not self.repair:
            raise SketchError("rounding needs the constraints of a repair: leave repair on")
        if self.candidates < 1:
            raise SketchError(f"each suggestion takes at least one candidate, not {self.candidates}")
        for other in (*([] if self.like is None else [self.like]), *self.unlike):
            added_to(self.part, other)
        _ = self.conditions, self.added_kinds, self.box  # refuses invalid words
        self.resolve_scales(resolve_goal(self.part, self.goal))

    @property
    def indices(self) -> range:
        """The indices of the suggestions."""
        return range(self.count)

    @property
    def box(self) -> Box | None:
        """The box that additions must lie in."""
        return parse_box(self.inside, "inside") if isinstance(self.inside, str) else self.inside

    @property
    def added_kinds(self) -> Mapping[Kind, int] | None:
        """The number of added primitives of each kind."""
        return None if self.kinds is None else parse_kind_counts(self.kinds, "kinds")

    @property
    def conditions(self) -> Conditions:
        """The condition on the number of primitives."""
        return Conditions.parse(primitives=self.primitives)

    def sampling(self, system: System) -> SamplingOptions:
        """The sampler and its steps for a model."""
        return choose_sampling(system, self.quality, self.steps, self.sampler)

    def resolve_scales(self, goal: Goal) -> tuple[float, float]:
        """The range of scales to try."""
        if self.scale is None:
            return SCALES[goal]
        scale = parse_range(self.scale, "scale", "1..2") if isinstance(self.scale, str) else self.scale
        return check_scale(*(scale if isinstance(scale, tuple) else (scale, scale)))

    @property
    def style(self) -> Style:
        """The style of pictures: the part and what was added have different colors."""
        return Style(palette=(PART_COLOR,) * len(self.part) + (ADDED_COLOR,) * layout.MAX_PRIMITIVES)

    def to_json(self, system: System, source: Path | None = None) -> dict[str, Any]:
        """The entries of a manifest. `source` is the file of the part."""
        content = {"part": display_path(source.name if source else ""), "num_given": len(self.part)}
        goal = resolve_goal(self.part, self.goal)
        names = ("count", "seed", "closed", "candidates", "geometry", "method", "repair", "quality")
        options = self.sampling(system)
        scale = list(self.resolve_scales(goal))
        content |= {name: getattr(self, name) for name in names}
        kinds = None if self.added_kinds is None else {kind.label: n for kind, n in self.added_kinds.items()}
        box = None if self.box is None else [*self.box.low, *self.box.high]
        content |= {"goal": goal, "kinds": kinds, "inside": box, "like": self.like is not None}
        content |= {"rounding": self.rounding.to_json()} if self.rounding else {}
        return content | {
            "sampler": options.sampler_name,
            "steps": options.steps,
            "scale": scale,
            "primitives": self.conditions.primitives,
        }


def _check_part(part: Sketch) -> None:
    if not len(part):
        raise SketchError("the part is empty: there is nothing to complete; `sketchdnn generate` makes new sketches")
    if len(part) > MAX_PART:
        raise SketchError(
            f"the part has {len(part)} primitives, and at most {MAX_PART} can be completed; take some away"
        )
    box = bounds(part)
    if not box.size > 0:
        raise SketchError("the part has no extent, so the size of the sketch is unknown; add a line")
    if not len(drop_tiny(part, MAX_SCALE * box.size / 2)):
        raise SketchError("every primitive of the part is too small beside its size; add a longer line")


def added_to(part: Sketch, suggestion: Sketch) -> tuple[Primitive, ...]:
    """What a suggestion, perhaps read from a file, adds to a part.

    Raises:
        SketchError: If it does not begin with the part, or adds nothing.
    """
    if part.units is not None:
        suggestion = suggestion.in_units(part.units)
    own, added = suggestion.primitives[: len(part)], suggestion.primitives[len(part) :]
    size = bounds(part).size
    alike = all(a.kind is b.kind and difference([a], [b], size) == 0 for a, b in zip(part, own, strict=False))
    if not added or not alike:
        raise SketchError("a suggestion begins with the primitives of the part, and adds some to them")
    return added
