"""Sketches for people to judge by eye: pictures of several sources in a random order, and what they accepted.

Among the sketches to judge are real ones and deliberately corrupted ones. A person who refuses too many real sketches,
or accepts too many corrupted ones, has not judged: the look is void.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random, SystemRandom
from typing import NamedTuple

import numpy as np

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.generation import CompleteRequest, complete
from sketchdnn.geometry import Arc, Circle, Line, Primitive, Sketch, Vec, profile
from sketchdnn.io import atomic_write
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System

from .completion_cases import JOINED, OPEN_OUTLINE, SYMMETRIC_HALF, Case, find_cases, held_out_sketches
from .corruptions import CorruptionKind, corrupt
from .results import OnStage, ignore_stage, percent

REAL, CORRUPTED = "real", "corrupted"
# A look that accepts fewer real sketches, or more corrupted ones, is void.
LEAST_REAL, MOST_CORRUPTED = 0.9, 0.3
# Corrupted in one of these ways each.
KINDS = (
    CorruptionKind.MOVED_HOLE,
    CorruptionKind.DROPPED_SIDE,
    CorruptionKind.SHIFTED_IMAGE,
    CorruptionKind.SHAPE_BESIDE,
    CorruptionKind.CIRCLE_ACROSS,
    CorruptionKind.LINE_ACROSS,
)
CELL, COLUMNS, ROWS = 300, 6, 4
# Of sheets that show which suggestions belong together.
SHEET_CELL = 200
KEY = "key.json"
_SYSTEM_RNG = SystemRandom()


class Cell(NamedTuple):
    """A sketch to judge.

    Attributes:
        source: Where it comes from.
        sketch: The sketch.
        num_given: The number of its first primitives that were given: they are black, the others blue. If there are
            none, all is black.
    """

    source: str
    sketch: Sketch
    num_given: int = 0


@dataclass(frozen=True, slots=True)
class LookScore:
    """The accepted share of each source."""

    accepted: dict[str, Estimate]

    @property
    def is_void(self) -> bool:
        shares = self.accepted
        return shares[REAL].value < LEAST_REAL or shares[CORRUPTED].value > MOST_CORRUPTED

    def sentences(self) -> Iterator[str]:
        yield from (f"{source}: {percent(share)} accepted" for source, share in self.accepted.items())
        if self.is_void:
            yield f"the look is void: it takes {LEAST_REAL:.0%} of the real and at most {MOST_CORRUPTED:.0%} corrupted"


def completion_cells(
    system: System,
    data: Path,
    parts: Sequence[Sketch],
    more: int,
    count: int,
    controls: int,
    *,
    steps: int = 50,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> list[Cell]:
    """Suggestions for some parts and for `more` of the test split, every other one finished, and the controls."""
    chosen, rest = choose_parts(data, more, controls, seed)
    rows = suggest(system, [*parts, *chosen], count, steps=steps, seed=seed, on_stage=on_stage)
    cells = [cell for row in rows for cell in row]
    return cells + _controls(((_original(case), len(case.part)) for case in rest), controls, seed)


def choose_parts(data: Path, count: int, controls: int = 0, seed: int = 0) -> tuple[list[Sketch], list[Case]]:
    """`count` parts of the test split, the first half finished and the others open, and other cases for controls."""
    originals = held_out_sketches(data, (8, 16), seed)
    finished = list(islice((sketch for sketch in originals if profile(sketch, JOINED).is_extrudable), count // 2))
    num_open = count - len(finished)
    cases = find_cases(originals, 2 * num_open + 4 * controls, seed)
    order = np.random.default_rng(seed).permutation(len(cases))
    shuffled = [cases[number] for number in order]
    opened = [case for case in shuffled if case.task in (OPEN_OUTLINE, SYMMETRIC_HALF)][:num_open]
    return [*finished, *(case.part for case in opened)], [case for case in shuffled if case not in opened]


def suggest(
    system: System,
    parts: Sequence[Sketch],
    count: int,
    *,
    steps: int = 50,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> Iterator[list[Cell]]:
    """The suggestions for each part, best first; none where the model adds nothing that can stay."""
    for number, part in enumerate(parts):
        on_stage(f"completing part {number + 1} of {len(parts)}")
        request = CompleteRequest(part=part, count=count, steps=steps, seed=seed)
        cells: list[Cell] = []
        with suppress(SketchError):
            cells += (Cell("suggestion", each.sketch, len(part)) for each in complete(system, request))
        yield cells


def slotted_plate() -> Sketch:
    """A finished plate with a slot in the middle and a hole at each side."""
    corners: list[Vec] = [(0, 0), (100, 0), (100, 60), (0, 60)]
    outline: list[Primitive] = [Line(corners[i - 1], corners[i]) for i in range(4)]
    slot: list[Primitive] = [Line((35, 24), (65, 24)), Arc((65, 30), 6, -math.pi / 2, math.pi)]
    slot += [Line((65, 36), (35, 36)), Arc((35, 30), 6, math.pi / 2, math.pi)]
    return Sketch((*outline, *slot, Circle((15, 30), 5), Circle((85, 30), 5)), units="mm")


def write_sheet(path: Path, parts: Sequence[Sketch], rows: Sequence[Sequence[Cell]], count: int) -> None:
    """A picture with a row for each part: the part, and its suggestions in order."""
    cells: list[Cell] = []
    captions: list[str] = []
    for number, (part, row) in enumerate(zip(parts, rows, strict=True)):
        cells += [Cell("part", part), *row[:count]]
        captions += [f"part {number + 1}", *(str(place + 1) for place in range(len(row[:count])))]
        missing = count - len(row[:count])
        cells += [Cell("nothing", Sketch(()))] * missing
        captions += ["no further idea"] * missing
    _write_sheet(path, cells, captions, columns=count + 1, cell=SHEET_CELL)


def control_sketches(data: Path, count: int, seed: int = 0) -> list[Cell]:
    """`count` real sketches that can be extruded, and as many corrupted ones."""
    originals = held_out_sketches(data, (8, 16), seed)
    return _controls(((s, 0) for s in originals if profile(s, JOINED).is_extrudable), count, seed)


def _original(case: Case) -> Sketch:
    """The part, followed by what was hidden."""
    return replace(case.part, primitives=case.part.primitives + case.hidden)


def _controls(originals: Iterable[tuple[Sketch, int]], count: int, seed: int) -> list[Cell]:
    """Real and corrupted cells in turn, each from another original with its number of given primitives."""
    rng = np.random.default_rng(seed)
    real: list[Cell] = []
    corrupted: list[Cell] = []
    for sketch, num_given in originals:
        if len(corrupted) <= len(real) and len(corrupted) < count:
            kinds = rng.permutation(np.array(KINDS))
            changed = (corrupt(sketch, str(kind), rng, num_given) for kind in kinds)
            if (cell := next(filter(None, changed), None)) is not None:
                corrupted.append(Cell(CORRUPTED, cell, num_given))
        elif len(real) < count:
            real.append(Cell(REAL, sketch, num_given))
        else:
            return real + corrupted
    raise SketchError(f"a look takes {count} real and {count} corrupted sketches, and there are too few originals")


def write_look(folder: Path, cells: Sequence[Cell], *, rng: Random = _SYSTEM_RNG) -> list[Path]:
    """Write numbered cells in a random order, some on each sheet, and the key. The order is in no seed."""
    order = rng.sample(range(len(cells)), len(cells))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    per_sheet = COLUMNS * ROWS
    for sheet in range(math.ceil(len(order) / per_sheet)):
        numbers = order[sheet * per_sheet : (sheet + 1) * per_sheet]
        path = folder / f"look-{sheet + 1}.png"
        captions = [str(sheet * per_sheet + place + 1) for place in range(len(numbers))]
        _write_sheet(path, [cells[number] for number in numbers], captions)
        written.append(path)
    key = {str(place + 1): cells[number].source for place, number in enumerate(order)}
    with atomic_write(folder / KEY) as temporary:
        temporary.write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")
    return [*written, folder / KEY]


def score_look(key: Path, accepted: Iterable[int]) -> LookScore:
    """The accepted share of each source, of the sheets of a key.

    Args:
        key: The file that `write_look` wrote.
        accepted: The numbers of the accepted cells.
    """
    try:
        sources = {int(number): str(source) for number, source in json.loads(key.read_text(encoding="utf-8")).items()}
    except (ValueError, AttributeError) as error:
        raise FormatError(key, "is not the key of a look") from error
    chosen = set(accepted)
    if unknown := chosen - sources.keys():
        raise SketchError(f"the sheets have no cell {min(unknown)}")
    totals, hits = Counter(sources.values()), Counter(sources[number] for number in chosen)
    return LookScore({source: share_estimate(hits[source], total) for source, total in sorted(totals.items())})


def _write_sheet(
    path: Path, cells: Sequence[Cell], captions: Sequence[str], *, columns: int = COLUMNS, cell: int = CELL
) -> None:
    from sketchdnn.generation.completion_request import ADDED_COLOR, PART_COLOR
    from sketchdnn.render import gallery_png

    given = [each.num_given or len(each.sketch) for each in cells]
    palettes = [(PART_COLOR,) * number + (ADDED_COLOR,) * MAX_PRIMITIVES for number in given]
    sketches = [each.sketch for each in cells]
    with atomic_write(path) as temporary:
        page = gallery_png(sketches, columns=columns, captions=captions, cell=cell, palettes=palettes)
        page.quantize(64).save(temporary, format="png", optimize=True)
