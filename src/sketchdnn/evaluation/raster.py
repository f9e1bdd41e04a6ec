"""What a sketch looks like to a score: gray pixels from exact distances, the same on every device.

The definition, in pixels of a square picture of `size` whose pixel centers lie at half-integers:

- A place (x, y) of a normalized sketch lies at (size/2 + s·x, size/2 − s·y) with s = size · (1 − 2 · MARGIN) / 2, so
  that the sketch's larger side fills the frame but for a margin. What lies outside the frame is not drawn.
- The ink of a line, circle or arc at a pixel is clamp(0.5 + stroke/2 − d, 0, 1), where d is the exact distance from the
  pixel's center to the curve; a curve with ends counts them, so strokes end round. A point is a dot of radius
  POINT_RADIUS · stroke: its ink is clamp(0.5 + POINT_RADIUS · stroke − d, 0, 1).
- Construction is drawn with CONSTRUCTION_INK of that ink, or not at all.
- A pixel takes the most ink that any primitive gives it, so that their order does not matter. Its gray is
  255 · (1 − ink), rounded: 255 is paper, 0 is ink.

Only the pixels near a curve are looked at; `strips` says which and why none is missed. What is smaller than a
ten-thousandth of a pixel may be left out: an arc that strays so little from its chord is drawn as a line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Kind
from sketchdnn.representation import Compact, layout

from .strips import Canvas, Rounds, Strokes, draw_dots, draw_lines, draw_rounds, joined

SIZE = 299  # what the FID Inception takes
STROKE = 1.75
MARGIN = 0.05  # of the picture, on every side
POINT_RADIUS = 1.5  # in strokes
CONSTRUCTION_INK = 0.5

# How many rows times pixels of width are drawn at once. On a CPU, what is in hand then stays in its cache; a GPU wants
# much at once.
_AT_ONCE = {"cpu": 1 << 18, "cuda": 1 << 23}
# An arc that strays less than this from its chord, in pixels, is drawn as a line: its center is too far off.
_STRAIGHT = 1e-4
_TINY = 1e-300
# The directions in which a circle reaches furthest: left and down, right and up.
_EXTREMES = ((math.pi, -math.pi / 2), (0.0, math.pi / 2))


@torch.no_grad()
def rasterize(
    compact: Compact,
    *,
    device: str | torch.device = "cpu",
    size: int = SIZE,
    stroke: float = STROKE,
    construction: bool = True,
) -> UInt8[Tensor, "batch size size"]:
    """Pictures of normalized sketches by the definition above; an empty sketch is blank paper.

    >>> from sketchdnn.representation import encode
    >>> from sketchdnn.geometry import Circle, Sketch
    >>> picture = rasterize(encode([Sketch((Circle((0, 0), 1),))]), size=64)[0]
    >>> picture.shape, int(picture[32, 32]), int(picture[32].min())
    (torch.Size([64, 64]), 255, 0)
    """
    if size < 1 or not 0 < stroke < size:
        raise SketchError(f"a picture of {size} pixels cannot be drawn with a stroke of {stroke}")
    _refuse_impossible(compact)
    pages = torch.full((len(compact), size, size), 255, dtype=torch.uint8, device=device)
    at_once = _AT_ONCE.get(pages.device.type, _AT_ONCE["cpu"])
    step = max(1, at_once // (size * max(1, compact.kind.shape[1])))
    for start in range(0, len(compact), step):
        some = slice(start, start + step)
        _draw(Canvas(pages[some], stroke), compact[some], construction)
    return pages


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one kind: the page each is on, its share of ink, its numbers as places, as lengths and as they are."""

    page: Int[Tensor, " row"]
    ink: Float[Tensor, " row"]
    places: Float[Tensor, "row 5"]
    lengths: Float[Tensor, "row 5"]
    params: Float[Tensor, "row 5"]

    def __getitem__(self, which: Bool[Tensor, " row"]) -> _Rows:
        (index,) = which.nonzero(as_tuple=True)
        return _Rows(*(getattr(self, field.name).index_select(0, index) for field in fields(self)))

    @property
    def start(self) -> Float[Tensor, "row 2"]:
        """Also the center of a circle, and where a point is."""
        return self.places[:, layout.START]

    @property
    def end(self) -> Float[Tensor, "row 2"]:
        return self.places[:, layout.END]


def _draw(canvas: Canvas, compact: Compact, construction: bool) -> None:
    points, lines, circles, arcs = (
        _rows(canvas, compact, kind, construction) for kind in (Kind.POINT, Kind.LINE, Kind.CIRCLE, Kind.ARC)
    )
    chord = torch.linalg.vector_norm(arcs.end - arcs.start, dim=-1)
    flat = chord / 2 * torch.tan(arcs.params[:, layout.BEND] / 4) < _STRAIGHT
    straight = joined(_lines(lines), _lines(arcs[flat]))
    bent, bent_rounds = _arcs(arcs[~flat])
    whole, whole_rounds = _circles(circles)
    draw_lines(canvas, straight)
    draw_rounds(canvas, joined(bent, whole), joined(bent_rounds, whole_rounds))
    open_ended = joined(straight, bent)
    for end in (open_ended.start, open_ended.end):
        draw_dots(canvas, open_ended.page, open_ended.ink, end, canvas.stroke / 2)
    draw_dots(canvas, points.page, points.ink, points.start, POINT_RADIUS * canvas.stroke)


def _rows(canvas: Canvas, compact: Compact, kind: Kind, construction: bool) -> _Rows:
    drawn = compact.kind == kind
    if not construction:
        drawn &= ~compact.construction
    ink = np.where(compact.construction[drawn], np.float32(CONSTRUCTION_INK), np.float32(1))
    arrays = (np.nonzero(drawn)[0], ink, compact.params[drawn].astype(np.float64))
    page, ink_share, params = (torch.from_numpy(array).to(canvas.pages.device) for array in arrays)
    lengths = params * (canvas.size * (1 - 2 * MARGIN) / 2)
    return _Rows(page, ink_share, lengths + canvas.size / 2, lengths, params)


def _lines(rows: _Rows) -> Strokes:
    way = rows.end - rows.start
    way = way / torch.linalg.vector_norm(way, dim=-1, keepdim=True).clamp(min=_TINY)
    return Strokes(rows.page, rows.ink, rows.start, rows.end, way, way, torch.zeros_like(rows.ink, dtype=torch.bool))


def _circles(rows: _Rows) -> tuple[Strokes, Rounds]:
    center, radius = rows.start, rows.lengths[:, layout.RADIUS]
    none = torch.zeros_like(center)
    strokes = Strokes(rows.page, rows.ink, none, none, none, none, torch.zeros_like(rows.ink, dtype=torch.bool))
    return strokes, Rounds(center, radius, center - radius[:, None], center + radius[:, None])


def _arcs(rows: _Rows) -> tuple[Strokes, Rounds]:
    start, end, sweep = rows.start, rows.end, rows.params[:, layout.BEND]
    half_chord = (end - start) / 2
    sine, cosine = torch.sin(sweep / 2)[:, None], torch.cos(sweep / 2)[:, None]
    # To the left of the chord's middle, and past the semicircle to its right.
    center = (start + end) / 2 + _left(half_chord) * cosine / sine
    radius = torch.linalg.vector_norm(half_chord, dim=-1, keepdim=True) / sine
    out, out_end = (start - center) / radius, (end - center) / radius
    low, high = torch.minimum(start, end), torch.maximum(start, end)
    # The extremes of the circle count if the sweep passes them.
    begin = torch.atan2(out[:, 1], out[:, 0])[:, None]
    passed = [torch.remainder(begin.new_tensor(way) - begin, TAU) <= sweep[:, None] for way in _EXTREMES]
    low = torch.where(passed[0], center - radius, low)
    high = torch.where(passed[1], center + radius, high)
    strokes = Strokes(rows.page, rows.ink, start, end, _left(out), _left(out_end), sweep > math.pi)
    return strokes, Rounds(center, radius[:, 0], low, high)


def _left(vectors: Float[Tensor, "n 2"]) -> Float[Tensor, "n 2"]:
    """A quarter turn counter-clockwise."""
    return torch.stack([-vectors[:, 1], vectors[:, 0]], dim=-1)


def _refuse_impossible(compact: Compact) -> None:
    """Nothing that is no number is drawn, and nothing that is no arc or circle."""
    drawn = compact.kind != layout.NONE
    infinite = (drawn & ~np.isfinite(compact.params).all(axis=-1)).any(axis=1)
    if infinite.any():
        raise SketchError(
            f"{infinite.sum():,} of {len(compact):,} sketches hold a number that is not finite and cannot be drawn"
        )
    sweep = compact.params[..., layout.BEND].astype(np.float64)
    bad_arc = (compact.kind == Kind.ARC) & ~((sweep > 0) & (sweep < TAU))
    bad_circle = (compact.kind == Kind.CIRCLE) & (compact.params[..., layout.RADIUS] < 0)
    impossible = (bad_arc | bad_circle).any(axis=1)
    if impossible.any():
        raise SketchError(
            f"{impossible.sum():,} of {len(compact):,} sketches hold an arc or circle that cannot exist "
            "(a sweep not between 0 and 2π, or a radius below 0) and cannot be drawn"
        )
