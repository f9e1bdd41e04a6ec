"""What a walk went through: some of its states, kept as they were, and all that each of them may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch.nn.functional import one_hot

from sketchdnn.diffusion.sampling import Progress
from sketchdnn.geometry import Kind
from sketchdnn.render.superposed import Likely
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import decode
from sketchdnn.representation.decoding import Decoded

from .engine import Ask

# Where a walk is looked at, as shares of T: where something can be seen to happen.
SHARES_OF_T = (1.0, 0.75, 0.55, 0.4, 0.25, 0.12, 0.03)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """X_t of one sketch, in the model's own coordinates. At t = 0 it is what was drawn, and certain."""

    t: int
    rows: SketchBatch
    arc_scalar: layout.ArcScalar

    def likely(self) -> list[Likely]:
        """All that it may be."""
        return list((superposed if self.t else certain)(self.rows, self.arc_scalar))


@dataclass(slots=True)
class Recorder:
    """Keeps up to `count` moments of every walk, the last of them its end, until they are taken.

    Where a sketch goes back to more noise and is drawn again, what it had come to meanwhile is left out: its moments
    go from noise to the end all the same.
    """

    count: int
    arc_scalar: layout.ArcScalar
    moments: dict[Ask, list[Moment]] = field(default_factory=dict)

    def hear(self, asks: Sequence[Ask], progress: Progress) -> None:
        wanted = {round(k * progress.total / self.count) for k in range(1, self.count + 1)}
        if progress.number in wanted or progress.s == 0:
            batch = progress.batch[: len(asks)].to("cpu")
            active = [True] * len(asks) if progress.active is None else progress.active.tolist()
            for index, ask in enumerate(asks):
                if not active[index]:
                    continue
                kept = self.moments.setdefault(ask, [])
                while kept and kept[-1].t <= progress.s:
                    kept.pop()  # it went back
                kept.append(Moment(progress.s, batch[index : index + 1], self.arc_scalar))

    def taken(self, ask: Ask) -> tuple[Moment, ...]:
        return tuple(self.moments.pop(ask, ()))

    def forget(self) -> None:
        """What nobody took."""
        self.moments.clear()


def nearest(times: Sequence[int], wanted: Iterable[float]) -> list[int]:
    """Which of some times are nearest to those wanted, each once, in their order.

    >>> nearest([90, 40, 10, 0], [100, 80, 12])
    [0, 2]
    """
    return sorted({min(range(len(times)), key=lambda index: abs(times[index] - t)) for t in wanted})


def superposed(rows: SketchBatch, arc_scalar: layout.ArcScalar) -> Iterator[Likely]:
    """All that one sketch may be: every row as each kind in turn, solid and dashed, unless that makes no primitive."""
    for kind in Kind:
        for construction in (False, True):
            chance = rows.kind[0, :, kind] * rows.construction[0, :, int(construction)]
            sure = SketchBatch(
                one_hot(torch.full_like(chance, int(construction), dtype=torch.long)[None], layout.NUM_CONSTRUCTION),
                one_hot(torch.full_like(chance, kind, dtype=torch.long)[None], layout.NUM_KINDS),
                rows.params,
            )
            for item in certain(sure, arc_scalar):
                yield Likely(item.primitive, float(chance[item.row]), item.row)


def certain(rows: SketchBatch, arc_scalar: layout.ArcScalar) -> Iterator[Likely]:
    """What one sketch most likely is, as if there were no doubt."""
    (read,) = decode(rows, arc_scalar)
    for row, primitive in zip(kept_rows(rows.kind[0].argmax(dim=-1).tolist(), read), read.sketch, strict=True):
        yield Likely(primitive, 1.0, row)


def kept_rows(kinds: Sequence[int], read: Decoded) -> tuple[int, ...]:
    """The rows that became primitives, of rows of these kinds."""
    lost = {issue.row for issue in read.rejects}
    return tuple(row for row, kind in enumerate(kinds) if kind != layout.NONE and row not in lost)
