"""Suggestions from sampled candidates: remove additions that cannot stay; repair, score and sort the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from sketchdnn.constraints import round_dimensions, solve
from sketchdnn.constraints.rounding import Origin
from sketchdnn.design import DesignScore, score_design
from sketchdnn.geometry import Kind, Placement, Primitive, Sketch, bounds
from sketchdnn.geometry.proximity import TOLERANCE

from .completion_request import CompleteRequest, added_to
from .conditions import Shortfall, closure_faults, find_shortfall, joint_tolerance, outlines_of
from .context import MAX_CONTEXT, choose_context
from .distinct import choose_distinct
from .engine import SampleId
from .framing import CompletedPart, FramedPart
from .generate import GeneratedSketch
from .geometric_ideas import geometric_ideas
from .goals import Goal, additions, open_ends, prune, without_new_construction
from .order import WEIGHTS, OrderFeatures
from .repair import RepairReport, repair_sketches
from .variants import regular_variants, symmetry_axes

# A group of additions is removed if the score is higher by this without it.
_MIN_GAIN = 0.02
# Candidates whose score is below this share of the best are no suggestions.
_LEAST_SCORE = 0.75


class Candidate(NamedTuple):
    """A candidate after repair.

    Attributes:
        part: The part in the frame that it was sampled in.
        completed: The part and what was added.
        features: What it is ordered by, the design score among them.
        shortfall: Which of the requirements it fails.
        repair: What repair changed.
    """

    part: FramedPart
    completed: CompletedPart
    features: OrderFeatures
    shortfall: Shortfall | None
    repair: RepairReport | None

    @property
    def sketch(self) -> Sketch:
        return self.completed.sketch


@dataclass(frozen=True)
class Finisher:
    """Turns candidates into suggestions. It needs no model.

    Attributes:
        request: What was asked for.
        part: The part, with the constraints to use in repair.
        goal: The goal.
    """

    request: CompleteRequest
    part: Sketch
    goal: Goal

    def geometric_candidates(self) -> tuple[list[FramedPart], list[CompletedPart]]:
        """Candidates that follow from the geometry of the part, if they are asked for."""
        if not self.request.geometry or self.request.like is not None:
            return [], []
        ideas = geometric_ideas(self.part, self.goal)
        box = bounds(self.part)
        frame = Placement(box.center, box.size / 2)
        parts = [FramedPart(self.part, frame, SampleId(0), context=self._context(idea)) for idea in ideas]
        return parts, [CompletedPart(self._with(idea), len(idea), 0.0, origin="geometry") for idea in ideas]

    def finish(self, parts: Sequence[FramedPart], completed: Sequence[CompletedPart]) -> list[Candidate]:
        """The candidates that add something: without what cannot stay, repaired and scored."""
        num_given, window = len(self.part), self.request.box
        kept: list[tuple[FramedPart, CompletedPart]] = []
        for part, each in zip(parts, completed, strict=True):
            drawn = self._without_points(each.sketch)
            pruned = self._with_sketch(each, prune(drawn, num_given, self.goal, window, final=False))
            if not pruned.num_added:
                continue
            kept.append((part, pruned))
            if self.request.geometry and self.request.added_kinds is None:
                variants = regular_variants(pruned.sketch, num_given)
                kept += [(part, self._with_sketch(pruned, self._with(added))) for added in variants]
        candidates = []
        for (part, each), (repaired, report) in zip(kept, self._repair(kept), strict=True):
            whole = without_new_construction(each.sketch, repaired, num_given)
            whole = prune(whole, num_given, self.goal, window, final=self.request.repair)
            value, whole = self._without_defects(whole, _score(whole.primitives, len(self.part)))
            if self._adds_enough(whole):
                shortfall = self._find_shortfall(whole)
                if shortfall is not None and each.origin == "geometry":
                    continue  # only the model's candidates may fail the request
                finished = self._with_sketch(each, whole)
                candidates.append(Candidate(part, finished, self._features(part, finished, value), shortfall, report))
        return candidates

    def choose(self, candidates: Sequence[Candidate]) -> list[GeneratedSketch]:
        """The best candidate of each idea, best first."""
        chosen = _balanced(self.rank(candidates), self.request.count)
        return [self._to_result(index, candidate) for index, candidate in enumerate(chosen)]

    def rank(self, candidates: Sequence[Candidate], weights: OrderFeatures = WEIGHTS) -> list[Candidate]:
        """The best candidate of each idea, best first, with its agreement."""
        request, num_given, size = self.request, len(self.part), bounds(self.part).size
        least = _LEAST_SCORE * max((candidate.features.score for candidate in candidates), default=0.0)
        candidates = [candidate for candidate in candidates if candidate.features.score >= least]
        added = [_curves(candidate.sketch.primitives[num_given:]) for candidate in candidates]
        taken = [_curves(added_to(request.part, other)) for other in request.unlike]
        if request.like is not None:
            taken.append(_curves(added_to(request.part, request.like)))

        def rank(candidate: Candidate) -> tuple[float, float]:
            distance = candidate.shortfall.distance if candidate.shortfall else 0.0
            return distance, -candidate.features.merit(weights)

        ranking = sorted(range(len(candidates)), key=lambda number: rank(candidates[number]))
        sampled = {self._sample(candidate) for candidate in candidates} - {None}
        ideas = []
        for number, members in choose_distinct(added, size, ranking, taken).items():
            agreeing = {self._sample(candidates[member]) for member in members} - {None}
            features = candidates[number].features._replace(agreement=len(agreeing) / max(len(sampled), 1))
            ideas.append(candidates[number]._replace(features=features))
        return sorted(ideas, key=rank)

    def _repair(
        self, candidates: Sequence[tuple[FramedPart, CompletedPart]]
    ) -> list[tuple[Sketch, RepairReport | None]]:
        """The candidates after repair, if the request includes it. Of a large part, repair takes only the context."""
        results: list[tuple[Sketch, RepairReport | None]] = [(each.sketch, None) for _, each in candidates]
        if not self.request.repair:
            return results
        num_fixed = [len(self.part) if part.context is None else len(part.context) for part, _ in candidates]
        for number in sorted(set(num_fixed)):
            group = [i for i, each in enumerate(num_fixed) if each == number]
            sketches = [self._local(*candidates[i]) for i in group]
            repaired = repair_sketches(sketches, number, workers=self.request.workers)
            for i, (local, report) in zip(group, repaired, strict=True):
                results[i] = (self._whole(candidates[i][0], local), report)
        return results

    def _without_points(self, sketch: Sketch) -> Sketch:
        """Without added points, unless they are asked for: those of the model mark nothing that a part needs."""
        num_given, kinds = len(self.part), self.request.added_kinds
        if kinds is not None and kinds.get(Kind.POINT):
            return sketch
        kept = [n for n, p in enumerate(sketch) if n < num_given or p.kind is not Kind.POINT]
        return sketch if len(kept) == len(sketch) else sketch.select(kept)

    def _adds_enough(self, sketch: Sketch) -> bool:
        """Whether anything was added; construction alone is enough only where kinds are asked for."""
        added = sketch.primitives[len(self.part) :]
        return bool(added) if self.request.added_kinds is not None else any(not p.construction for p in added)

    def _features(self, part: FramedPart, completed: CompletedPart, score: float) -> OrderFeatures:
        """What orders a candidate, but for the agreement with others."""
        sketch, num_given = completed.sketch, len(self.part)
        features = OrderFeatures(score, axes=len(symmetry_axes(sketch.primitives)), misfit=completed.misfit)
        if not self.request.repair:
            return features
        added = sketch.primitives[num_given:] if completed.origin == "model" else ()
        curves = sum(not p.construction and p.kind is not Kind.POINT for p in added)
        known = range(num_given) if part.context is None else part.context
        free = solve(sketch.select([*known, *range(num_given, len(sketch))])).dof - _freedom(self.part, tuple(known))
        return features._replace(freedom=max(free, 0), curves=curves)

    def _sample(self, candidate: Candidate) -> SampleId | None:
        """The sample of the model that a candidate is, or is a variant of."""
        return candidate.part.sample if candidate.completed.origin == "model" else None

    def _context(self, idea: Sequence[Primitive]) -> tuple[int, ...] | None:
        """The primitives of a large part that are near to the additions, as the input of repair; None means all."""
        if len(self.part) <= MAX_CONTEXT:
            return None
        return choose_context(self.part, [bounds([p]).center for p in idea]).primitives

    def _with(self, added: Sequence[Primitive]) -> Sketch:
        return replace(self.part, primitives=(*self.part.primitives, *added))

    def _with_sketch(self, completed: CompletedPart, sketch: Sketch) -> CompletedPart:
        return replace(completed, sketch=sketch, num_added=len(sketch) - len(self.part))

    def _local(self, part: FramedPart, completed: CompletedPart) -> Sketch:
        """The input of repair: the context and what was added."""
        if part.context is None:
            return completed.sketch
        return completed.sketch.select([*part.context, *range(len(self.part), len(completed.sketch))])

    def _whole(self, part: FramedPart, local: Sketch) -> Sketch:
        """The whole part with what was added to its context."""
        if part.context is None:
            return local
        num_known, num_given = len(part.context), len(self.part)
        number_of = dict(enumerate(part.context))
        number_of |= {number: number - num_known + num_given for number in range(num_known, len(local))}
        constraints = [c.renumber(number_of) for c in local.constraints]
        own = set(self.part.constraints)
        constraints = [*self.part.constraints, *(c for c in constraints if c not in own)]
        primitives = self.part.primitives + local.primitives[num_known:]
        return replace(self.part, primitives=primitives, constraints=tuple(constraints))

    def _without_defects(self, sketch: Sketch, score: DesignScore) -> tuple[float, Sketch]:
        """The score without groups of additions whose removal raises it, and that sketch. `score` is of all."""
        num_given = len(self.part)
        groups = sorted(additions(sketch, num_given), key=min) if len(sketch) > num_given else []
        defective = {number for defect in score.defects for number in defect.primitives}
        candidates = [group for group in groups if group & defective] if len(groups) > 1 else []
        num_open = len(open_ends(sketch)) if candidates else 0
        options: list[tuple[DesignScore, Sketch]] = []
        for group in candidates:
            rest = sketch.select([number for number in range(len(sketch)) if number not in group])
            if len(open_ends(rest)) <= num_open:  # else it closes an outline
                options.append((_score(rest.primitives, num_given), rest))
        best, rest = max(options, key=lambda option: option[0].value, default=(score, sketch))
        return self._without_defects(rest, best) if best.value > score.value + _MIN_GAIN else (score.value, sketch)

    def _find_shortfall(self, sketch: Sketch) -> Shortfall | None:
        request, added = self.request, sketch.primitives[len(self.part) :]
        faults = [find_shortfall(request.conditions, sketch)]
        if request.added_kinds is not None:
            faults.append(_kinds_shortfall(request.added_kinds, added))
        if request.closed or self.goal == "close":
            # The part decides how large its outlines are.
            faults += list(closure_faults(sketch, self._closed_within, min_outline=0.0))
        found = [fault for fault in faults if fault is not None]
        if not found:
            return None
        return Shortfall("; ".join(fault.sentence for fault in found), sum(fault.distance for fault in found))

    @cached_property
    def _closed_within(self) -> float:
        """The tolerance for closed outlines: none after repair, if the joints of the part itself are exact."""
        near = joint_tolerance(self.part.primitives)
        primitives = self.part.primitives
        is_exact = len(outlines_of(primitives).chains) == len(outlines_of(primitives, near).chains)
        return TOLERANCE if self.request.repair and is_exact else near

    def _finish_chosen(self, sketch: Sketch, report: RepairReport | None) -> tuple[Sketch, RepairReport | None]:
        """The sketch after rounding, if it is asked for, and the report of the repair brought up to date."""
        if report is None:
            return sketch, None
        # Some of what was repaired has been removed since.
        report = replace(report, dof=solve(sketch).dof)
        if self.request.rounding is None:
            return sketch, report
        options = replace(self.request.rounding, num_fixed=len(self.part), origin=Origin.KEEP)
        result = round_dimensions(sketch, options)
        return result.sketch, replace(report, rounding=result.summary)

    def _to_result(self, index: int, candidate: Candidate) -> GeneratedSketch:
        (sketch, report), seed = self._finish_chosen(candidate.sketch, candidate.repair), self.request.seed
        return GeneratedSketch(
            index,
            replace(sketch, extra={**sketch.extra, "id": f"seed {seed}, completion {index}"}),
            rejected=candidate.completed.rejected,
            repaired=candidate.completed.repaired,
            shortfall=candidate.shortfall.sentence if candidate.shortfall else None,
            score=candidate.features.score,
            repair=report,
            num_given=len(self.part),
            scale=candidate.part.scale,
            origin=candidate.completed.origin,
        )


@lru_cache(maxsize=256)
def _score(primitives: tuple[Primitive, ...], num_given: int) -> DesignScore:
    """The design score of a sketch; the last ones are kept, since several candidates become the same sketch."""
    return score_design(Sketch(primitives), num_given)


@lru_cache(maxsize=64)
def _freedom(part: Sketch, known: tuple[int, ...]) -> int:
    """The degrees of freedom of some primitives of a part, the same for many candidates."""
    return solve(part.select(known)).dof


def _balanced(ideas: Sequence[Candidate], count: int) -> list[Candidate]:
    """The first `count`; at most half of them are of geometry, if there are enough of the model."""
    from_model = [idea.completed.origin == "model" for idea in ideas]
    most_others = max(count // 2, count - sum(from_model))
    others = [idea for idea, is_model in zip(ideas, from_model, strict=True) if not is_model][:most_others]
    models = [idea for idea, is_model in zip(ideas, from_model, strict=True) if is_model][: count - len(others)]
    return [idea for idea in ideas if any(idea is each for each in (*others, *models))]


def _curves(added: Sequence[Primitive]) -> Sequence[Primitive]:
    """The additions that ideas are compared by: the curves, or all if there are none."""
    return [p for p in added if not p.construction and p.kind is not Kind.POINT] or added


def _kinds_shortfall(required: Mapping[Kind, int], added: Sequence[Primitive]) -> Shortfall | None:
    counts = {kind: sum(p.kind is kind and not p.construction for p in added) for kind in Kind}
    off = sum(abs(counts[kind] - required.get(kind, 0)) for kind in Kind)
    if not off:
        return None
    words = ", ".join(f"{kind.label}={number}" for kind, number in counts.items() if number)
    return Shortfall(f"it adds {words or 'only construction'}, not what was asked for", float(off))
