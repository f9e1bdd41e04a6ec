"""Completion: the part stays exactly as it is, and the model adds primitives that may have been left out.

More candidates are sampled than are asked for. From each, additions that cannot stay are removed (`goals`); the rest is
repaired and scored (`design`). Of candidates with the same idea the best is kept (`distinct`). The suggestions are
sorted, the best first.

The result holds the user's own values of the part, equal to the bit. Only added primitives are converted from frame
coordinates to the user's (`framing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from sketchdnn.constraints import infer
from sketchdnn.diffusion.noise import uniform
from sketchdnn.diffusion.sampling import SamplingOptions, Start
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind, Placement, Sketch, Vec, bounds
from sketchdnn.representation import layout
from sketchdnn.systems import System

from .completion_request import CompleteRequest, added_to
from .conditioning import choose_added_kinds, encode_sketches
from .conditions import format_range, trained_range
from .context import CONTEXT_SIZES, MAX_CONTEXT, Context, choose_context
from .engine import Engine, SampleId, device_of
from .execution import DEFAULT_EXECUTION, Execution
from .framing import (
    CompletedPart,
    FramedPart,
    check_method,
    decode_completions,
    frame_part,
    sample_parts,
)
from .generate import GeneratedSketch
from .goals import open_ends, resolve_goal
from .quality import number_of_steps
from .repair import OnProgress, ignore
from .suggestions import Finisher

# The fewest candidates of a round.
_MIN_CANDIDATES = 8
# Rounds of candidates; another one follows if fewer than this share of `count` suggestions meet the request.
MAX_ROUNDS, _ENOUGH = 2, 0.6
# Constraints of the part are inferred where they hold but for rounding, as a fraction of the size.
_EXACT = 1e-9
# How much "more like this" changes: the fraction of the denoising steps that are run.
_LIKE_STRENGTH = 0.5
# Most primitives to add inside a closed outline, if their number is not asked for.
_MAX_FEATURES = 6
# Numbers of holes that candidates for inside add in turn; 0 leaves the kinds to the model.
_HOLES = (0, 1, 0, 2, 0, 4)
# Noise indices that no sampler reaches.
_COUNT_NOISE, _KIND_NOISE, _PLACE_NOISE = (2**31 - each for each in (2, 3, 4))


def complete(
    system: System,
    request: CompleteRequest,
    on_progress: OnProgress = ignore,
    execution: Execution = DEFAULT_EXECUTION,
) -> Iterator[GeneratedSketch]:
    """Suggest completions of a part, the best first. The first primitives of each result are the part's own.

    Args:
        system: The model.
        request: What to complete.
        on_progress: Called with the number of suggestions' worth of work that is done.
        execution: Where the work is done.

    Raises:
        SketchError: If the model cannot do it, before anything is sampled, or if it adds nothing that can stay.
    """
    completion = Completion(system, request, execution)
    finisher = completion.finisher
    candidates = finisher.finish(*finisher.geometric_candidates())
    suggestions: list[GeneratedSketch] = []
    for number in range(MAX_ROUNDS):
        # The first round is most of the work, and often all.
        start, end = (request.count * (1 - 0.1**k) for k in (number, number + 1))
        parts = completion.plan(number)
        completed = completion.sample(parts, partial(_report, on_progress, start, end))
        candidates += execution.call(finisher.finish, parts, completed)
        suggestions = execution.call(finisher.choose, candidates)
        if has_enough(request, suggestions):
            break
    if not suggestions:
        tries = f"in {MAX_ROUNDS * completion.pool} tries"
        raise SketchError(f"the model added nothing that can stay {tries}; use another goal, more steps or a scale")
    on_progress(float(request.count))
    yield from suggestions


def has_enough(request: CompleteRequest, suggestions: Sequence[GeneratedSketch]) -> bool:
    """Whether so many suggestions meet the request that no further round of candidates follows."""
    return sum(each.shortfall is None for each in suggestions) >= _ENOUGH * request.count


class Completion:
    """Plans and samples the candidates of a completion. Its `finisher` turns them into suggestions."""

    def __init__(self, system: System, request: CompleteRequest, execution: Execution = DEFAULT_EXECUTION) -> None:
        check_method(system, request.method)
        self.system, self.request = system, request
        self.goal = resolve_goal(request.part, request.goal)
        self.pool = max(request.candidates * request.count, _MIN_CANDIDATES)
        options = request.sampling(system)
        self._check_number(request.conditions.primitives)
        self.like = None
        if request.like is not None:
            added = added_to(request.part, request.like)
            self.like = replace(request.part, primitives=request.part.primitives + added, constraints=())
            options = self._start_from(self.like, options)
        self.engine = Engine(system, request.seed, options, sample_part=execution.sample_part)
        self.part = request.part
        if request.repair and not self.part.constraints:
            # Repair constrains only what it may move: without this, corners of the part would come apart.
            self.part = replace(self.part, constraints=infer(self.part, _EXACT))
        self.finisher = Finisher(request, self.part, self.goal)

    def plan(self, number: int) -> list[FramedPart]:
        """The framed parts of a round of candidates, each with noise of its own."""
        request = self.request
        samples = [SampleId(index) for index in range(number * self.pool, (number + 1) * self.pool)]
        noise_ids = torch.tensor([sample.noise_id for sample in samples])
        scales = request.resolve_scales(self.goal)
        if self.like is not None:
            frame = _smallest_frame(self.like)
            parts = [FramedPart(self.part, frame, sample) for sample in samples]
        else:
            parts = frame_part(self.part, scales, samples, request.seed, self._contexts(noise_ids))
        return self._fix_kinds(parts, noise_ids)

    def sample(self, parts: Sequence[FramedPart], on_progress: OnProgress = ignore) -> list[CompletedPart]:
        """The completed parts, in order. `on_progress` is called with the fraction that is done."""
        batch = sample_parts(self.engine, parts, self.request.method, on_progress)
        return list(decode_completions(parts, batch, self.system.rows.arc_scalar))

    def _check_number(self, limits: tuple[int, int] | None) -> None:
        if limits is None:
            return
        least, most = trained_range(self.system)
        num_given = len(self.request.part)
        if num_given > MAX_CONTEXT:
            least, most = num_given + 1, num_given + layout.MAX_PRIMITIVES - min(CONTEXT_SIZES)
        least, most = max(least, num_given + 1), max(most, num_given + 1)
        if not least <= limits[0] <= limits[1] <= most:
            allowed = f"with {num_given} given, this model can be asked for {least} to {most} primitives in all"
            raise SketchError(f"{allowed}, not {format_range(limits, '..')}")

    def _start_from(self, like: Sketch, options: SamplingOptions) -> SamplingOptions:
        """The options of variations of a suggestion: they begin with noise added to it."""
        if len(like) > layout.MAX_PRIMITIVES:
            raise SketchError(
                f"a suggestion of {len(like)} primitives cannot be varied: at most {layout.MAX_PRIMITIVES}"
            )
        if self.system.max_steps is None:
            raise SketchError(f"a '{self.system.name}' does not denoise, so it cannot vary a suggestion")
        framed = FramedPart(like, _smallest_frame(like), SampleId(0)).known
        batch = encode_sketches([framed], self.system.rows, device_of(self.system))
        start = Start(max(1, round(_LIKE_STRENGTH**2 * self.system.max_steps)), batch)
        steps = min(start.t, max(1, round(number_of_steps(options) * _LIKE_STRENGTH)))
        return replace(options, start=start, steps=steps)

    def _contexts(self, noise_ids: torch.Tensor) -> list[Context] | None:
        """The input of the model for a large part: what is near the open ends, or near a random place in the box."""
        request, box = self.request, self.request.box or bounds(self.part)
        if len(self.part) <= MAX_CONTEXT:
            return None
        ends = open_ends(self.part) if self.goal == "close" and request.box is None else []
        chances = uniform(request.seed, noise_ids, _PLACE_NOISE, (2,)).tolist()
        places: list[Vec] = [(box.low[0] + x * box.width, box.low[1] + y * box.height) for x, y in chances]
        return [
            choose_context(self.part, ends or [place], CONTEXT_SIZES[number % len(CONTEXT_SIZES)], outline=not ends)
            for number, place in enumerate(places)
        ]

    def _fix_kinds(self, parts: list[FramedPart], noise_ids: torch.Tensor) -> list[FramedPart]:
        """The kinds to add, where they are asked for; for features inside, of most candidates."""
        request, seed = self.request, self.request.seed
        chances = uniform(seed, noise_ids, _KIND_NOISE, (1,))[:, 0].double().numpy()
        if request.added_kinds is not None:
            kinds = tuple(kind for kind, number in sorted(request.added_kinds.items()) for _ in range(number))
            return [replace(part, added_kinds=kinds[: layout.MAX_PRIMITIVES - len(part.known)]) for part in parts]
        limits = request.conditions.primitives
        if limits is None and self.goal != "inside":
            return parts
        num_given = len(self.part)
        low, high = limits or (num_given + 1, num_given + _MAX_FEATURES)
        number_chances = uniform(seed, noise_ids, _COUNT_NOISE, (1,))[:, 0].tolist()
        fixed = []
        for number, (part, chance) in enumerate(zip(parts, number_chances, strict=True)):
            known = part.known
            if limits is None and number % 2 == 1:
                holes = min(_HOLES[number // 2 % len(_HOLES)], layout.MAX_PRIMITIVES - len(known))
                fixed.append(replace(part, added_kinds=(Kind.CIRCLE,) * holes or None))
                continue
            add = low + int(chance * (high - low + 1)) - num_given
            total = min(len(known) + add, layout.MAX_PRIMITIVES)
            (kinds,) = choose_added_kinds(known, total, chances[number : number + 1], self.system.training_index)
            fixed.append(replace(part, added_kinds=kinds or None))
        return fixed


def _report(on_progress: OnProgress, start: float, end: float, done: float) -> None:
    on_progress(start + done * (end - start))


def _smallest_frame(sketch: Sketch) -> Placement:
    box = bounds(sketch)
    return Placement(box.center, box.size / 2)
