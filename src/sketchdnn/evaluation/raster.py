"""Sketches as gray images for scores, from exact distances, the same on every device.

Definition, in pixels of a square image of `size` whose pixel centers lie at half-integers:

- A point (x, y) of a normalized sketch lies at (size/2 + s·x, size/2 − s·y) with s = size · (1 − 2 · MARGIN) / 2: the
  larger side fills the frame except for a margin. Parts outside the frame are not drawn.
- The ink of a line, circle or arc at a pixel is clamp(0.5 + stroke/2 − d, 0, 1), where d is the exact distance from the
  pixel center to the curve, ends included, so strokes have round ends. A point is a disc of radius
  POINT_RADIUS · stroke: its ink is clamp(0.5 + POINT_RADIUS · stroke − d, 0, 1).
- Construction has CONSTRUCTION_INK of that ink.
- A pixel takes the maximum ink of all primitives, so their order does not matter. Its gray is 255 · (1 − ink), rounded:
  255 is paper, 0 is ink.

An arc that deviates from its chord by less than a ten-thousandth of a pixel is drawn as a line.

Only pixels near a curve are computed. Let R = 0.5 + stroke/2 be the reach: a pixel farther than R from a curve gets no
ink. Pixels are visited in *strips*: one column of pixels after another, in each column a window of the same number of
pixels. A strip runs along x or along y; u counts along it and v across it, so a column is a step of u.

- **Line**, along the axis it is closer to. A pixel within R of the segment is within R of the infinite line, so within
  R/cos θ ≤ √2·R of it across, since the angle θ to the axis is at most 45°. A window has to span 2√2·R.
- **Circle**, four strips: the pixels above the center with |dx| ≤ dy from it, and so on. Relative to the
  center, a pixel with ink in the upper strip has u² + v² between (r−R)² and (r+R)², and v ≥ |u|. So v is at least
  w = max(√((r−R)² − u²), |u|), without the root if r < R or u > r−R, and √((r+R)² − u²) − w ≤ 2√2·R for every radius:
  a window that begins at w holds them all. And |u| ≤ (r+R)/√2.
- **Arc**: the strips of its circle, cut to the bounding box of the arc enlarged by R. Inked pixels of a strip are at
  least (r−R)/√2 from the center on its side; a box that does not reach there has none.
- **Ends** of lines and arcs are discs of their own, in square windows. A pixel whose nearest point is no end lies
  between the normals at the two ends, where the distance is that to the infinite line or the whole circle.

A window that sticks out of the frame is moved inside, where it still holds its part of the frame. Positions are in
pixels with y up and in float64; distances, small by then, are float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Kind
from sketchdnn.representation import Compact, layout

SIZE = 299  # the input size of the FID Inception
STROKE = 1.75
MARGIN = 0.05  # of the image, on every side
POINT_RADIUS = 1.5  # in strokes
CONSTRUCTION_INK = 0.5

# Rows times image width drawn at once: on a CPU the working set stays in its cache; a GPU needs large batches.
_CHUNK = {"cpu": 1 << 18, "cuda": 1 << 23}
# An arc that deviates less than this from its chord, in pixels, is drawn as a line: its center is too far away.
_STRAIGHT = 1e-4
_TINY = 1e-300
# No circle is drawn with a smaller radius, in pixels: it avoids a division by zero and is not visible.
_MIN_RADIUS = 1e-4
# Windows span this much more than needed, so that rounding cannot make them too short.
_SLACK = 1e-3
# The angles of the extreme points of a circle: left and bottom, right and top.
_EXTREMES = ((math.pi, -math.pi / 2), (0.0, math.pi / 2))


_Ints = Int[Tensor, " n"]
_Floats = Float[Tensor, " n"]
_Vectors = Float[Tensor, "n 2"]
_Mask = Bool[Tensor, " n"]


@torch.no_grad()
def rasterize(
    compact: Compact, *, device: str | torch.device = "cpu", size: int = SIZE, stroke: float = STROKE
) -> UInt8[Tensor, "batch size size"]:
    """Images of normalized sketches by the definition above; an empty sketch is blank paper.

    >>> from sketchdnn.representation import encode
    >>> from sketchdnn.geometry import Circle, Sketch
    >>> image = rasterize(encode([Sketch((Circle((0, 0), 1),))]), size=64)[0]
    >>> image.shape, int(image[32, 32]), int(image[32].min())
    (torch.Size([64, 64]), 255, 0)
    """
    if size < 1 or not 0 < stroke < size:
        raise SketchError(f"an image of {size} pixels cannot be drawn with a stroke of {stroke}")
    _refuse_invalid(compact)
    images = torch.full((len(compact), size, size), 255, dtype=torch.uint8, device=device)
    chunk = _CHUNK.get(images.device.type, _CHUNK["cpu"])
    step = max(1, chunk // (size * max(1, compact.kind.shape[1])))
    for start in range(0, len(compact), step):
        part = slice(start, start + step)
        _draw(_Canvas(images[part], stroke), compact[part])
    return images


class _Canvas:
    """Images to draw on, and the stroke width in pixels."""

    def __init__(self, images: UInt8[Tensor, "image size size"], stroke: float) -> None:
        self.images, self.size, self.stroke = images, int(images.shape[-1]), stroke
        self.reach = 0.5 + stroke / 2
        # The number of pixels of a column that a span of 2√2·R can hold.
        self.window = math.floor(2 * math.sqrt(2) * self.reach + _SLACK) + 1

    def darken(self, pixel: Int[Tensor, "*pixels"], ink: Float[Tensor, "*pixels"]) -> None:
        """Make pixels at least as dark as `ink`, from 0 to 255."""
        gray = (255.5 - ink).to(torch.uint8)
        self.images.view(-1).scatter_reduce_(0, pixel.view(-1), gray.view(-1), "amin")

    def corner(self, image: _Ints) -> _Ints:
        """The index of the lower left pixel of an image; the next is right of it, `size` less is above it."""
        return (image * self.size + self.size - 1) * self.size


class _Rows(NamedTuple):
    """Rows of one kind: the image of each, its ink, and its numbers in pixels."""

    image: _Ints
    ink: _Floats
    start: _Vectors  # also the center of a circle, and the position of a point
    end: _Vectors
    radius: _Floats
    sweep: _Floats

    def only(self, mask: _Mask) -> _Rows:
        (index,) = mask.nonzero(as_tuple=True)
        return _Rows(*(values.index_select(0, index) for values in self))


class _Strokes(NamedTuple):
    """Lines, or arcs and circles: the image of each, its ink, its ends and its directions there.

    The directions of a circle are 0, which puts every pixel between its ends.
    """

    image: _Ints
    ink: _Floats
    start: _Vectors
    end: _Vectors
    start_direction: _Vectors
    end_direction: _Vectors
    is_major: _Mask  # sweeps more than half a circle


class _Circles(NamedTuple):
    """The circles of arcs and circles, and the corners of the bounding box of the drawn part."""

    center: _Vectors
    radius: _Floats
    low: _Vectors
    high: _Vectors


_Curves = TypeVar("_Curves", _Strokes, _Circles)


def _concatenate(*parts: _Curves) -> _Curves:
    return type(parts[0])(*map(torch.cat, zip(*parts, strict=True)))


def _draw(canvas: _Canvas, compact: Compact) -> None:
    points, lines, circles, arcs = (
        _rows_of_kind(canvas, compact, kind) for kind in (Kind.POINT, Kind.LINE, Kind.CIRCLE, Kind.ARC)
    )
    chord = torch.linalg.vector_norm(arcs.end - arcs.start, dim=-1)
    flat = chord / 2 * torch.tan(arcs.sweep / 4) < _STRAIGHT
    straight = _concatenate(_line_strokes(lines), _line_strokes(arcs.only(flat)))
    arc_strokes, arc_circles = _arc_strokes(arcs.only(~flat))
    circle_strokes, full_circles = _circle_strokes(circles)
    _draw_lines(canvas, straight)
    _draw_circles(canvas, _concatenate(arc_strokes, circle_strokes), _concatenate(arc_circles, full_circles))
    open_strokes = _concatenate(straight, arc_strokes)
    for end in (open_strokes.start, open_strokes.end):
        _draw_discs(canvas, open_strokes.image, open_strokes.ink, end, canvas.stroke / 2)
    _draw_discs(canvas, points.image, points.ink, points.start, POINT_RADIUS * canvas.stroke)


def _rows_of_kind(canvas: _Canvas, compact: Compact, kind: Kind) -> _Rows:
    mask = compact.kind == kind
    ink = np.where(compact.construction[mask], np.float32(CONSTRUCTION_INK), np.float32(1))
    arrays = (np.nonzero(mask)[0], ink, compact.params[mask].astype(np.float64))
    image, inks, params = (torch.from_numpy(array).to(canvas.images.device) for array in arrays)
    lengths = params * (canvas.size * (1 - 2 * MARGIN) / 2)
    start, end = (lengths[:, part] + canvas.size / 2 for part in (layout.START, layout.END))
    return _Rows(image, inks, start, end, lengths[:, layout.RADIUS], params[:, layout.BEND])


def _line_strokes(rows: _Rows) -> _Strokes:
    direction = rows.end - rows.start
    direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True).clamp(min=_TINY)
    minor = torch.zeros_like(rows.ink, dtype=torch.bool)
    return _Strokes(rows.image, rows.ink, rows.start, rows.end, direction, direction, minor)


def _circle_strokes(rows: _Rows) -> tuple[_Strokes, _Circles]:
    center, radius = rows.start, rows.radius
    zero = torch.zeros_like(center)
    strokes = _Strokes(rows.image, rows.ink, zero, zero, zero, zero, torch.zeros_like(rows.ink, dtype=torch.bool))
    return strokes, _Circles(center, radius, center - radius[:, None], center + radius[:, None])


def _arc_strokes(rows: _Rows) -> tuple[_Strokes, _Circles]:
    start, end, sweep = rows.start, rows.end, rows.sweep
    half_chord = (end - start) / 2
    sine, cosine = torch.sin(sweep / 2)[:, None], torch.cos(sweep / 2)[:, None]
    # Left of the middle of the chord, and right of it for more than a semicircle.
    center = (start + end) / 2 + _quarter_turn(half_chord) * cosine / sine
    radius = torch.linalg.vector_norm(half_chord, dim=-1, keepdim=True) / sine
    start_normal, end_normal = (start - center) / radius, (end - center) / radius
    low, high = torch.minimum(start, end), torch.maximum(start, end)
    # An extreme point of the circle extends the box if the sweep passes it.
    begin = torch.atan2(start_normal[:, 1], start_normal[:, 0])[:, None]
    passed = [torch.remainder(begin.new_tensor(angle) - begin, TAU) <= sweep[:, None] for angle in _EXTREMES]
    low = torch.where(passed[0], center - radius, low)
    high = torch.where(passed[1], center + radius, high)
    directions = _quarter_turn(start_normal), _quarter_turn(end_normal)
    strokes = _Strokes(rows.image, rows.ink, start, end, *directions, sweep > math.pi)
    return strokes, _Circles(center, radius[:, 0], low, high)


def _quarter_turn(vectors: _Vectors) -> _Vectors:
    """Vectors rotated by 90° counter-clockwise."""
    return torch.stack([-vectors[:, 1], vectors[:, 0]], dim=-1)


def _draw_discs(canvas: _Canvas, image: _Ints, ink: _Floats, center: _Vectors, radius: float) -> None:
    """Points; and the round ends of strokes, with half the stroke as the radius."""
    reach = radius + 0.5
    width = min(canvas.size, math.floor(2 * reach + _SLACK) + 1)
    first = (center - (reach + 0.5)).ceil_().clamp_(0, canvas.size - width)
    count = torch.arange(width, device=center.device)
    offset = (first + 0.5 - center).float()[:, :, None] + count
    distance = (offset[:, 0, :, None].square() + offset[:, 1, None, :].square()).sqrt_()
    column, row = (first.long()[:, :, None] + count).unbind(1)
    pixel = (canvas.corner(image)[:, None] + column)[:, :, None] - (row * canvas.size)[:, None, :]
    canvas.darken(pixel, distance.neg_().add_(reach).clamp_(0, 1).mul_((255 * ink)[:, None, None]))


def _draw_lines(canvas: _Canvas, lines: _Strokes) -> None:
    """The part of each line between its ends; nothing for a line of length 0."""
    direction = lines.start_direction
    upright = direction[:, 0].abs() < direction[:, 1].abs()
    (u0, v0), (u1, _), (du, dv) = (_along_across(p, upright) for p in (lines.start, lines.end, direction))
    low, high = torch.minimum(u0, u1) - canvas.reach, torch.maximum(u0, u1) + canvas.reach
    columns = _make_columns(canvas, lines, upright, low, high.masked_fill_(du == 0, -math.inf))
    slope = dv / du
    v, slope, cos = columns.take(v0 - u0 * slope, slope, du.abs())
    v.addcmul_(columns.u, slope)
    first = (v - canvas.reach / cos - 0.5).ceil_()
    cos = cos.float()
    _draw_windows(canvas, columns, first, v, torch.ones_like(v), lambda offset: offset.mul_(cos).abs_())


def _draw_circles(canvas: _Canvas, strokes: _Strokes, circles: _Circles) -> None:
    """The part of each arc between its ends, and all of each circle."""
    # Four strips each: above, below, right and left of the center.
    (number,), reach = circles.radius.shape, canvas.reach
    quarter = torch.arange(4, device=circles.radius.device).repeat_interleave(number)
    upright, side = quarter >= 2, 1.0 - 2.0 * (quarter % 2).double()
    (cu, cv), (low, bottom), (high, top) = (
        _along_across(p.repeat(4, 1), upright) for p in (circles.center, circles.low, circles.high)
    )
    radius = circles.radius.clamp(min=_MIN_RADIUS).repeat(4)
    widest = (radius + reach) / math.sqrt(2)
    low, high = torch.maximum(cu - widest, low - reach), torch.minimum(cu + widest, high + reach)
    empty = torch.where(side > 0, top - cv, cv - bottom) + reach < (radius - reach) / math.sqrt(2)
    columns = _make_columns(canvas, _concatenate(*[strokes] * 4), upright, low, high.masked_fill_(empty, -math.inf))

    cu, cv, radius, side = columns.take(cu, cv, radius, side)
    u = (columns.u - cu).abs_()
    inner = (radius - reach).clamp_(min=0)
    w = torch.maximum(((inner - u) * (inner + u)).clamp_(min=0).sqrt_(), u)
    # Below the center a window ends at w.
    first = torch.where(side > 0, (cv + w - 0.5).ceil_(), (cv - w - 0.5).floor_() - (canvas.window - 1))
    square = (radius - u) * (radius + u)  # of the height of the circle in this column; negative outside the circle
    height = square.clamp(min=0).sqrt_()
    curvature, twice_cos = (1 / radius).float(), (2 * height / radius).float()
    outside = (square.clamp(max=0) / -radius).float()

    def distance(offset: Tensor) -> Tensor:
        """| √(u² + v²) − r | for v = height + offset, without subtracting large numbers for large r."""
        excess = (offset * curvature).add_(twice_cos).mul_(offset).add_(outside)  # (u² + v² − r²) / r
        return excess.div_((excess * curvature).add_(1).sqrt_().add_(1)).abs_()

    _draw_windows(canvas, columns, first, cv + side * height, side, distance)


class _Columns(NamedTuple):
    """Columns of pixels along strips: the strip and position of each, its first pixel, and its stroke."""

    strip: Int[Tensor, " column"]
    u: Float[Tensor, " column"]
    pixel: Int[Tensor, " column"]
    across: Int[Tensor, " column"]  # from a pixel of the column to the next
    strokes: _Strokes
    upright: _Mask

    def take(self, *values: Tensor) -> list[Tensor]:
        """Values of strips, repeated for each of their columns."""
        return [value.index_select(0, self.strip) for value in values]


def _make_columns(canvas: _Canvas, strokes: _Strokes, upright: _Mask, low: _Floats, high: _Floats) -> _Columns:
    """The columns whose centers lie from `low` to `high` along each strip, inside the frame."""
    size = canvas.size
    first = (low - 0.5).ceil_().clamp_(0, size).long()
    counts = ((high - 0.5).floor_().clamp_(-1, size - 1).long() + 1 - first).clamp_(min=0)
    total = int(counts.sum())
    strip = torch.repeat_interleave(counts, output_size=total)
    number = torch.arange(total, device=low.device)
    number += (first + counts - counts.cumsum(0)).index_select(0, strip)
    right, up = torch.ones_like(first), torch.full_like(first, -size)
    along, across = torch.where(upright, up, right), torch.where(upright, right, up)
    along, across, pixel = (a.index_select(0, strip) for a in (along, across, canvas.corner(strokes.image)))
    return _Columns(strip, number + 0.5, pixel.addcmul_(number, along), across, strokes, upright)


def _draw_windows(
    canvas: _Canvas, columns: _Columns, first: _Floats, v: _Floats, side: _Floats, distance: Callable[[Tensor], Tensor]
) -> None:
    """Draw ink between the normals at the ends, in windows that begin at pixel `first` of each column.

    Args:
        v: Where the curve crosses each column.
        side: 1 or −1, the side of the center that the strip is on.
        distance: Maps the offset of pixels beyond `v`, as seen from that side, to their distance from the curve.
    """
    window, size = canvas.window, canvas.size
    ink, turn, *normals = columns.take(*_strip_constants(columns))
    # A window outside the frame must leave no ink at the place it is moved to.
    ink.masked_fill_((first <= -window) | (first >= size), 0)
    visible, farthest = min(window, size), window + size
    first = first.clamp(0, size - visible)
    count = torch.arange(visible, device=v.device)[:, None]
    middle = first + 0.5
    offset = torch.addcmul((side * (middle - v)).clamp_(-farthest, farthest).float(), side.float(), count)
    after, before = (
        torch.addcmul(torch.addcmul(c, a, columns.u).addcmul_(b, middle).float(), b.float(), count)
        for a, b, c in (normals[:3], normals[3:])
    )
    outside = torch.minimum(after, before).mul_(turn) < 0
    shade = distance(offset).neg_().add_(canvas.reach).clamp_(0, 1).mul_(ink).masked_fill_(outside, 0)
    pixel = columns.pixel.addcmul(columns.across, first.long())
    canvas.darken(torch.addcmul(pixel, columns.across, count), shade)


def _strip_constants(columns: _Columns) -> list[Tensor]:
    """For each strip: its ink, and the normals at its ends as a·u + b·v + c, positive on the side of the curve.

    A pixel is between the ends of a minor arc if both are positive, and of a major arc if one is. To use the minimum
    in both cases, major arcs have all signs reversed, and the result too.
    """
    strokes = columns.strokes
    turn = 1.0 - 2.0 * strokes.is_major.double()
    constants = [(255 * strokes.ink).float(), turn.float()]
    for point, normal in ((strokes.start, strokes.start_direction), (strokes.end, -strokes.end_direction)):
        constants += [*_along_across(normal * turn[:, None], columns.upright), -turn * (normal * point).sum(dim=-1)]
    return constants


def _along_across(vectors: _Vectors, upright: _Mask) -> tuple[Tensor, Tensor]:
    """Components along and across a strip: x and y, or y and x for an upright strip."""
    x, y = vectors.unbind(dim=-1)
    return torch.where(upright, y, x), torch.where(upright, x, y)


def _refuse_invalid(compact: Compact) -> None:
    """Refuse numbers that are not finite, and impossible arcs and circles."""
    exists = compact.kind != layout.NONE
    infinite = (exists & ~np.isfinite(compact.params).all(axis=-1)).any(axis=1)
    if infinite.any():
        raise SketchError(
            f"{infinite.sum():,} of {len(compact):,} sketches hold a number that is not finite and cannot be drawn"
        )
    sweep = compact.params[..., layout.BEND].astype(np.float64)
    bad_arc = (compact.kind == Kind.ARC) & ~((sweep > 0) & (sweep < TAU))
    bad_circle = (compact.kind == Kind.CIRCLE) & (compact.params[..., layout.RADIUS] < 0)
    invalid = (bad_arc | bad_circle).any(axis=1)
    if invalid.any():
        raise SketchError(
            f"{invalid.sum():,} of {len(compact):,} sketches hold an arc or circle that cannot exist "
            "(a sweep not between 0 and 2π, or a radius below 0) and cannot be drawn"
        )
