"""Half of a real sketch given back to the model: does what it adds close the profile, and is it what was taken away?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from torch import Tensor

from benchmarks.packed_batches import packed, unpacked
from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.conditioning import ConditioningMethod
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.evaluation.clusters import clustered_share
from sketchdnn.evaluation.estimate import Estimate, share_estimate
from sketchdnn.evaluation.profiles import LOOSE, is_closed
from sketchdnn.evaluation.samples import normalized_split
from sketchdnn.generation.complete import frame_part, score_completion
from sketchdnn.generation.engine import device_of
from sketchdnn.generation.inpainting import (
    SCALES,
    CompletedPart,
    FramedPart,
    check_method,
    decode_completions,
    sample_completions,
)
from sketchdnn.geometry import Placement, Sketch, profile
from sketchdnn.systems import System

from .completion_page import CompletionBench, CompletionScore
from .draws import kept_draws, weights_fingerprint
from .half_hidden import Case, half_hidden
from .recovery import recovered

METHODS: tuple[ConditioningMethod, ...] = ("conditional", "repaint")
FRAMES = ("known", "unknown")
# Walks in one batch: all a large device needs to be busy, and none waits for a smaller one.
CHUNK = 4_000
CPU_CHUNK = 16
OnStage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CompletionTask:
    """What is to be completed, and how: the cases of a corpus, and the walks for each frame, case by case."""

    cases: tuple[Case, ...]
    mark: str
    best_of: int
    steps: int
    seed: int
    walks: Mapping[str, Sequence[FramedPart]]

    def facts(self, system: System) -> dict[str, str]:
        """By which draws that were kept are known."""
        facts = {"cases": self.mark, "best_of": self.best_of, "steps": self.steps, "seed": self.seed}
        return {
            "completion": json.dumps(facts | {"model": weights_fingerprint(system), "sampler": system.default_sampler})
        }


def plan_completion(
    data: Path, *, sketches: int = 500, best_of: int = 8, steps: int = 50, seed: int = 0
) -> CompletionTask:
    """Hide half of the primitives of test sketches, and choose frames for what is left."""
    corpus = Dataset.open(data)
    test = normalized_split(corpus.split("test").compact, already=corpus.half_extent == 1)
    cases, mark = half_hidden(test, sketches, seed)
    walks = {frame: _walks(cases, frame, best_of, seed) for frame in FRAMES}
    return CompletionTask(tuple(cases), mark, best_of, steps, seed, walks)


def draw_completions(
    system: System, task: CompletionTask, kept: Path | None = None, on_stage: OnStage = lambda stage: None
) -> tuple[Mapping[str, Tensor], float | None]:
    """Walk all walks both ways, or take what was kept of them; and the seconds that it took, if it did."""
    check_method(system, "conditional")
    size = CPU_CHUNK if device_of(system).type == "cpu" else CHUNK
    seconds: list[float] = []

    def draw() -> Mapping[str, Tensor]:
        start = time.perf_counter()
        tensors: dict[str, Tensor] = {}
        for method, frame in product(METHODS, FRAMES):
            on_stage(f"drawing: {method}, frame {frame}")
            walks = task.walks[frame]
            options = SamplingOptions(system.default_sampler, task.steps)
            batch = sample_completions(
                system, walks, seed=task.seed, method=method, options=options, max_batch=min(size, len(walks))
            )
            tensors |= {f"{method}.{frame}.{name}": tensor for name, tensor in packed(batch).items()}
        seconds.append(time.perf_counter() - start)
        return tensors

    drawn = kept_draws(kept, task.facts(system), draw)
    return drawn, seconds[0] if seconds else None


def judge_completions(
    task: CompletionTask,
    drawn: Mapping[str, Tensor],
    seconds: float | None,
    system: System,
    on_stage: OnStage = lambda stage: None,
) -> CompletionBench:
    """What came of each of this system's draws, held against the real sketches."""
    scores = []
    for method, frame in product(METHODS, FRAMES):
        on_stage(f"judging: {method}, frame {frame}")
        batch = unpacked({name: drawn[f"{method}.{frame}.{name}"] for name in ("kind", "construction", "params")})
        outcomes = list(decode_completions(task.walks[frame], batch, system.rows.arc_scalar))
        groups = [outcomes[i : i + task.best_of] for i in range(0, len(outcomes), task.best_of)]
        scores.append(judged(method, frame, task.cases, groups))
    return CompletionBench(
        task.cases,
        task.best_of,
        system.default_sampler,
        task.steps,
        seconds,
        _share([closes(case.truth) for case in task.cases]),
        _share([closes(case.part) for case in task.cases]),
        tuple(scores),
    )


def judged(
    method: str, frame: str, cases: Sequence[Case], groups: Sequence[Sequence[CompletedPart]]
) -> CompletionScore:
    """The best of each group by score, and the first, held against what was hidden."""
    best = [max(group, key=score_completion) for group in groups]
    first = [group[0] for group in groups]
    of = np.array([len(case.hidden) for case in cases])

    def back(chosen: Sequence[CompletedPart]) -> Estimate:
        pairs = zip(cases, chosen, strict=True)
        found = [recovered(case.hidden, one.sketch.primitives[len(case.part) :]) for case, one in pairs]
        return clustered_share(np.array(found), of)

    unchanged = [
        one.sketch.primitives[: len(case.part)] == case.part.primitives
        for case, group in zip(cases, groups, strict=True)
        for one in group
    ]
    return CompletionScore(
        method,
        frame,
        _share([closes(one.sketch) for one in best]),
        _share([closes(one.sketch) for one in first]),
        back(best),
        back(first),
        _share(unchanged),
        tuple(one.sketch for one in best),
    )


def closes(sketch: Sketch) -> bool:
    """Whether every curve that is not construction is part of a loop, ends 0.02 apart counting as joined."""
    return is_closed(profile(sketch, LOOSE))


def _walks(cases: Sequence[Case], frame: str, best_of: int, seed: int) -> list[FramedPart]:
    """The walks of each case in turn: in the frame of the real sketch, or in frames that `complete` would try."""
    walks = []
    for number, case in enumerate(cases):
        tried = frame_part(case.part, SCALES, seed=seed, index=number, num_frames=best_of)[1]
        if frame == "known":
            tried = [FramedPart(case.part, Placement((0.0, 0.0), 1.0), walk.noise_id) for walk in tried]
        walks += tried
    return walks


def _share(hits: Sequence[bool]) -> Estimate:
    return share_estimate(sum(hits), len(hits))
