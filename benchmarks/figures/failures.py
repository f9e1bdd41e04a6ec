"""The paper's figure 5: where the model goes wrong, found by measuring all samples and not by looking for bad ones.

| the paper | score | marked |
|---|---|---|
| gaps between primitives | ends that meet no other end and lie on no other curve, then the widest gap | rings |
| extraneous primitives | length that is drawn twice | both curves, one as a wide band |
| no discernible pattern | places where curves cross, as far as that can be measured | crosses |

Lengths are those of a sketch whose larger side is 2, as everywhere in `evaluation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.curves import end_gaps
from sketchdnn.evaluation.validity import GAP_LOOSE as GAP
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE as TOLERANCE
from sketchdnn.geometry import Arc, Line, Point, Sketch, Vec, normalize, overlaps, profile, tessellate
from sketchdnn.render import Style, strokes
from sketchdnn.render.figures import (
    BLUE,
    INK,
    ORANGE,
    Panel,
    draw_sketch,
    draw_stroke,
    panel_of_sketch,
    polyline,
    save_figure,
    sheet,
)
from sketchdnn.representation import encode

SIDE, BETWEEN, HEAD, CAPTION, BELOW = 108.0, 18.0, 30.0, 34.0, 10.0
# How finely a curve is followed to see whether an end lies on it.
_FINE = 1e-3
_PALE = "#b4bac1"


@dataclass(frozen=True, slots=True)
class Case:
    """A sketch that fails, how badly, what to say of it, and where the fault is.

    That is at some places, or in pairs of primitives, the longer of each first.
    """

    number: int
    sketch: Sketch
    score: tuple[float, ...]
    caption: str
    places: tuple[Vec, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    mark: str = "o"  # what is drawn at the places, as matplotlib names it


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to fail, how it is scored, in how many sketches it was found, and the worst of them."""

    name: str
    scored_by: str
    found: int
    worst: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """What went wrong in how many sketches."""

    sketches: int
    modes: tuple[Mode, ...]


def find_failures(sketches: Sequence[Sketch], *, each: int = 4) -> Failures:
    """The `each` worst of some sketches in every way to fail; fewer if fewer fail."""
    if not sketches:
        raise SketchError("there are no samples to look for failures in")
    if each < 1:
        raise SketchError(f"at least one case of each must be shown, not {each}")
    plain = [replace(normalize(sketch, 1.0)[0], extra={}) for sketch in sketches]
    modes = []
    for (name, scored_by), judge in _JUDGES.items():
        cases = [case for number, sketch in enumerate(plain) if (case := judge(number, sketch)) is not None]
        cases.sort(key=lambda case: (tuple(-part for part in case.score), case.number))
        modes.append(Mode(name, scored_by, len(cases), tuple(cases[:each])))
    return Failures(len(sketches), tuple(modes))


def write_failures(folder: Path, failures: Failures) -> list[Path]:
    """PNG and SVG: a row of the worst for each way to fail, with the fault marked and measured."""
    columns = max(1, *(len(mode.worst) for mode in failures.modes))
    row_height = HEAD + SIDE + CAPTION
    width, height = columns * (SIDE + BETWEEN) - BETWEEN, len(failures.modes) * row_height - BELOW
    with sheet(width, height) as (figure, axes):
        for number, mode in enumerate(failures.modes):
            top = height - number * row_height
            axes.text(0, top - 9, mode.name, fontsize=9.5, fontweight="bold", va="center", color=INK)
            words = f"{mode.found} of {failures.sketches} samples; {mode.scored_by}"
            axes.text(0, top - 20, words, fontsize=7, va="center", color="#555555")
            for column, case in enumerate(mode.worst):
                x, y = column * (SIDE + BETWEEN) + SIDE / 2, top - HEAD - SIDE / 2
                _draw_case(axes, case, panel_of_sketch(case.sketch, x, y, SIDE))
                look = {"fontsize": 7, "ha": "center", "va": "top", "color": INK, "linespacing": 1.3}
                axes.text(x, y - SIDE / 2 - 2, case.caption, **look)
        return save_figure(figure, folder, "failures")


def open_ends(number: int, sketch: Sketch) -> Case | None:
    """Ends of lines and arcs further than 0.02 from every other end, and from every other curve.

    Construction is not judged, since a center line may end anywhere; but an end that meets it is not open.
    """
    solid = [isinstance(item, Line | Arc) and not item.construction for item in sketch]
    gaps = end_gaps(encode([sketch], max_primitives=len(sketch)))[0]
    found: list[tuple[Vec, float]] = []
    for index, item in enumerate(sketch):
        if solid[index] and isinstance(item, Line | Arc):
            for at, gap in zip((item.start, item.end), gaps[index].tolist(), strict=True):
                if gap > GAP and (away := min(gap, _distance(at, sketch, index))) > GAP:
                    found.append((at, away))
    if not found:
        return None
    widest = max(away for _, away in found)
    reach = f"widest gap {widest:.2f}" if math.isfinite(widest) else "nothing else to meet"
    caption = f"{len(found)} of {2 * sum(solid)} ends open\n{reach}"
    return Case(number, sketch, (len(found), widest), caption, tuple(at for at, _ in found))


def drawn_twice(number: int, sketch: Sketch) -> Case | None:
    """Curves that lie along one another, both construction or both not."""
    items = list(sketch)
    found = [o for o in overlaps(sketch, TOLERANCE) if not isinstance(items[o.first], Point)]
    if not found:
        return None
    length = sum(overlap.length for overlap in found)
    caption = f"{_count(len(found), 'pair')} on top of each other\n{length:.2f} drawn twice"
    pairs = [sorted((o.first, o.second), key=lambda i: -items[i].length) for o in found]
    return Case(number, sketch, (length,), caption, pairs=tuple((longer, shorter) for longer, shorter in pairs))


def crossings(number: int, sketch: Sketch) -> Case | None:
    """Curves, construction aside, that cross away from their ends."""
    found = [meeting.at for meeting in profile(sketch, TOLERANCE).meetings if meeting.crosses]
    if not found:
        return None
    return Case(number, sketch, (len(found),), _count(len(found), "crossing"), tuple(found), mark="x")


_JUDGES: Mapping[tuple[str, str], Callable[[int, Sketch], Case | None]] = {
    ("Gaps", f"worst by number of ends further than {GAP} from any other end or curve, larger side = 2"): open_ends,
    ("Redundant primitives", "worst by length drawn twice, blue on orange; larger side = 2"): drawn_twice,
    ("Crossing curves", "worst by number of places where curves cross, construction aside"): crossings,
}


def _distance(at: Vec, sketch: Sketch, own: int) -> float:
    """From a place to the nearest curve other than number `own`."""
    nearest = math.inf
    for index, item in enumerate(sketch):
        if index != own and not isinstance(item, Point):
            path = tessellate(item, _FINE)
            start, along = path[:-1], np.diff(path, axis=0)
            share = ((np.array(at) - start) * along).sum(axis=1) / (along**2).sum(axis=1)
            foot = start + np.clip(share, 0, 1)[:, None] * along
            nearest = min(nearest, float(np.hypot(*(foot - at).T).min()))
    return nearest


def _draw_case(axes: Any, case: Case, panel: Panel) -> None:
    style = Style().sized(panel.side)
    draw_sketch(axes, case.sketch, panel, replace(style, palette=(_PALE if case.pairs else "#5b6770",)))
    drawn = {id(stroke.primitive): stroke for stroke in strokes(case.sketch, panel.view, style)}
    items = list(case.sketch)
    for longer in {longer for longer, _ in case.pairs}:
        below = zip(*polyline(items[longer], panel), strict=True)
        axes.plot(*below, color=ORANGE, linewidth=4 * style.width, alpha=0.45, solid_capstyle="round")
    for _, shorter in case.pairs:
        stroke = drawn[id(items[shorter])]
        draw_stroke(axes, replace(stroke, color=BLUE, width=1.4 * stroke.width), panel)
    for at in case.places:
        x, y = panel.to_sheet(at)
        size = 8.0 if case.mark == "o" else 4.5
        axes.plot([x], [y], case.mark, color=ORANGE, markersize=size, markerfacecolor="none", markeredgewidth=1.1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
