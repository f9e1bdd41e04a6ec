"""Ink on the few pixels near a curve, for many curves at once, and the reason why no other pixel gets any.

Let R = 0.5 + stroke/2 be the reach: a pixel further than R from a curve gets no ink. Pixels near a curve are looked at
in *strips*: one column of pixels after another, in each column a window of the same number of pixels. A strip runs
along x or along y; u counts along it and v across it, so that a column is a step of u.

- **Line**, along the axis it keeps closer to. A pixel within R of the segment is within R of the endless line, so
  within R/cos θ ≤ √2·R of it across, since the angle θ to the axis is at most 45°. A window has to span 2√2·R.
- **Circle**, four strips: the pixels above the center that are no further aside than above, and so on all round. Seen
  from the center, a pixel with ink in the upper strip has u² + v² between (r−R)² and (r+R)², and v ≥ |u|. So v is at
  least w = max(√((r−R)² − u²), |u|), without the root where r < R or u > r−R, and √((r+R)² − u²) − w ≤ 2√2·R for every
  radius: a window that begins at w holds them all. And |u| ≤ (r+R)/√2.
- **Arc**: the circle's strips, cut to the arc's own box made larger by R. A strip's pixels with ink are at least
  (r−R)/√2 from the center on its side; a box that does not reach there has none in it.
- **Ends** of lines and arcs are dots of their own, in square windows. A pixel whose nearest place is no end lies
  between the normals at the two ends, where the distance is that to the endless line or whole circle.

A window that sticks out of the frame is moved inside, where it still holds all that it held of the frame. Places are in
pixels with y up and in float64; distances, small by then, are float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

# No circle is drawn smaller, in pixels: nobody would see it, and so nothing is divided by zero.
_SMALLEST = 1e-4
# Windows are made as long as if they had to span this much more, so that rounding cannot make them too short.
_HAIR = 1e-3


@dataclass(frozen=True, slots=True)
class Canvas:
    """Pictures to draw on, and the width of the stroke in pixels."""

    pages: UInt8[Tensor, "page size size"]
    stroke: float

    @property
    def size(self) -> int:
        return int(self.pages.shape[-1])

    @property
    def reach(self) -> float:
        return 0.5 + self.stroke / 2

    @property
    def window(self) -> int:
        """How many pixels of a column are looked at: all that a span of 2√2·R can hold."""
        return math.floor(2 * math.sqrt(2) * self.reach + _HAIR) + 1

    def darken(self, pixel: Int[Tensor, "*pixels"], ink: Float[Tensor, "*pixels"]) -> None:
        """Let pixels be at least as dark as `ink`, from 0 to 255, whatever else is drawn there."""
        gray = (255.5 - ink).to(torch.uint8)
        self.pages.view(-1).scatter_reduce_(0, pixel.view(-1), gray.view(-1), "amin")

    def corner(self, page: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """The number of a page's lower left pixel. Its right neighbor is the next, its upper one `size` before it."""
        return (page * self.size + self.size - 1) * self.size


@dataclass(frozen=True, slots=True)
class Strokes:
    """Lines, or arcs and circles: the page each is on, its share of ink, its ends and its directions there.

    A circle has no direction anywhere, which puts every pixel between its ends.
    """

    page: Int[Tensor, " n"]
    ink: Float[Tensor, " n"]
    start: Float[Tensor, "n 2"]
    end: Float[Tensor, "n 2"]
    start_way: Float[Tensor, "n 2"]
    end_way: Float[Tensor, "n 2"]
    major: Bool[Tensor, " n"]  # turns through more than half a circle


@dataclass(frozen=True, slots=True)
class Rounds:
    """Where arcs and circles are: the circle each lies on, and the corners of the box around what is drawn of it."""

    center: Float[Tensor, "n 2"]
    radius: Float[Tensor, " n"]
    low: Float[Tensor, "n 2"]
    high: Float[Tensor, "n 2"]


Curves = TypeVar("Curves", Strokes, Rounds)


def joined(*parts: Curves) -> Curves:
    """Strokes one after another, or rounds."""
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def draw_dots(
    canvas: Canvas, page: Int[Tensor, " n"], ink: Float[Tensor, " n"], at: Float[Tensor, "n 2"], radius: float
) -> None:
    """Discs; and the round ends of strokes, with half the stroke for a radius."""
    reach = radius + 0.5
    width = min(canvas.size, math.floor(2 * reach + _HAIR) + 1)
    first = (at - (reach + 0.5)).ceil_().clamp_(0, canvas.size - width)
    count = torch.arange(width, device=at.device)
    away = (first + 0.5 - at).float()[:, :, None] + count
    distance = (away[:, 0, :, None].square() + away[:, 1, None, :].square()).sqrt_()
    column, row = (first.long()[:, :, None] + count).unbind(1)
    pixel = (canvas.corner(page)[:, None] + column)[:, :, None] - (row * canvas.size)[:, None, :]
    canvas.darken(pixel, distance.neg_().add_(reach).clamp_(0, 1).mul_((255 * ink)[:, None, None]))


def draw_lines(canvas: Canvas, lines: Strokes) -> None:
    """What of each line lies between its ends; a line of no length is nothing but its ends."""
    upright = lines.start_way[:, 0].abs() < lines.start_way[:, 1].abs()
    (u0, v0), (u1, _), (du, dv) = (_turned(places, upright) for places in (lines.start, lines.end, lines.start_way))
    low, high = torch.minimum(u0, u1) - canvas.reach, torch.maximum(u0, u1) + canvas.reach
    columns = _columns(canvas, lines, upright, low, high.masked_fill_(du == 0, -math.inf))
    slope = dv / du
    v, slope, cos = columns.take(v0 - u0 * slope, slope, du.abs())
    v.addcmul_(columns.u, slope)
    first = (v - canvas.reach / cos - 0.5).ceil_()
    cos = cos.float()
    _draw_windows(canvas, columns, first, v, torch.ones_like(v), lambda away: away.mul_(cos).abs_())


def draw_rounds(canvas: Canvas, strokes: Strokes, rounds: Rounds) -> None:
    """What of each arc lies between its ends, and all of each circle."""
    # Four strips of each: above, below, right and left of the center.
    (many,), reach = rounds.radius.shape, canvas.reach
    quarter = torch.arange(4, device=rounds.radius.device).repeat_interleave(many)
    upright, side = quarter >= 2, 1.0 - 2.0 * (quarter % 2).double()
    (cu, cv), (low, bottom), (high, top) = (
        _turned(places.repeat(4, 1), upright) for places in (rounds.center, rounds.low, rounds.high)
    )
    radius = rounds.radius.clamp(min=_SMALLEST).repeat(4)
    widest = (radius + reach) / math.sqrt(2)
    low, high = torch.maximum(cu - widest, low - reach), torch.minimum(cu + widest, high + reach)
    missing = torch.where(side > 0, top - cv, cv - bottom) + reach < (radius - reach) / math.sqrt(2)
    columns = _columns(
        canvas, joined(strokes, strokes, strokes, strokes), upright, low, high.masked_fill_(missing, -math.inf)
    )

    cu, cv, radius, side = columns.take(cu, cv, radius, side)
    u = (columns.u - cu).abs_()
    inner = (radius - reach).clamp_(min=0)
    w = torch.maximum(((inner - u) * (inner + u)).clamp_(min=0).sqrt_(), u)
    # Below the center a window ends at w.
    first = torch.where(side > 0, (cv + w - 0.5).ceil_(), (cv - w - 0.5).floor_() - (canvas.window - 1))
    square = (radius - u) * (radius + u)  # of the circle's height in this column; negative where it has none
    height = square.clamp(min=0).sqrt_()
    bend, twice_cos = (1 / radius).float(), (2 * height / radius).float()
    aside = (square.clamp(max=0) / -radius).float()

    def distance(away: Tensor) -> Tensor:
        """| √(u² + v²) − r | for v = height + away, such that nothing large is subtracted however large r is."""
        excess = (away * bend).add_(twice_cos).mul_(away).add_(aside)  # (u² + v² − r²) / r
        return excess.div_((excess * bend).add_(1).sqrt_().add_(1)).abs_()

    _draw_windows(canvas, columns, first, cv + side * height, side, distance)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of pixels along strips: where each is, its first pixel, and what its stroke says about its pixels."""

    strip: Int[Tensor, " column"]
    u: Float[Tensor, " column"]
    pixel: Int[Tensor, " column"]
    across: Int[Tensor, " column"]  # from a pixel of the column to the next
    strokes: Strokes
    upright: Bool[Tensor, " n"]

    def take(self, *values: Tensor) -> list[Tensor]:
        """What the columns' strips have, column by column."""
        return [value.index_select(0, self.strip) for value in values]


def _columns(
    canvas: Canvas,
    strokes: Strokes,
    upright: Bool[Tensor, " n"],
    low: Float[Tensor, " n"],
    high: Float[Tensor, " n"],
) -> _Columns:
    """The columns whose centers lie from `low` to `high` along each strip, as far as they are in the frame."""
    size = canvas.size
    first = (low - 0.5).ceil_().clamp_(0, size).long()
    counts = ((high - 0.5).floor_().clamp_(-1, size - 1).long() + 1 - first).clamp_(min=0)
    total = int(counts.sum())
    strip = torch.repeat_interleave(counts, output_size=total)
    number = torch.arange(total, device=low.device)
    number += (first + counts - counts.cumsum(0)).index_select(0, strip)
    right, up = torch.ones_like(first), torch.full_like(first, -size)
    along, across = torch.where(upright, up, right), torch.where(upright, right, up)
    along, across, pixel = (a.index_select(0, strip) for a in (along, across, canvas.corner(strokes.page)))
    return _Columns(strip, number + 0.5, pixel.addcmul_(number, along), across, strokes, upright)


def _draw_windows(
    canvas: Canvas,
    columns: _Columns,
    first: Float[Tensor, " column"],
    v: Float[Tensor, " column"],
    side: Float[Tensor, " column"],
    distance: Callable[[Tensor], Tensor],
) -> None:
    """Ink between the normals at the ends, in windows that begin at pixel `first` of each column.

    `v` is where the curve crosses the column, and `distance` turns how far a pixel is beyond that, as seen from the
    `side` of the center that the strip is on, into its distance from the curve.
    """
    window, size = canvas.window, canvas.size
    ink, turn, *normals = columns.take(*_facts(columns))
    # A window outside the frame has nothing to show, and must not show anything where it is moved to.
    ink.masked_fill_((first <= -window) | (first >= size), 0)
    shown, furthest = min(window, size), window + size
    first = first.clamp(0, size - shown)
    count = torch.arange(shown, device=v.device)[:, None]
    middle = first + 0.5
    away = torch.addcmul((side * (middle - v)).clamp_(-furthest, furthest).float(), side.float(), count)
    after, before = (
        torch.addcmul(torch.addcmul(c, a, columns.u).addcmul_(b, middle).float(), b.float(), count)
        for a, b, c in (normals[:3], normals[3:])
    )
    outside = torch.minimum(after, before).mul_(turn) < 0
    shade = distance(away).neg_().add_(canvas.reach).clamp_(0, 1).mul_(ink).masked_fill_(outside, 0)
    pixel = columns.pixel.addcmul(columns.across, first.long())
    canvas.darken(torch.addcmul(pixel, columns.across, count), shade)


def _facts(columns: _Columns) -> list[Tensor]:
    """Of each strip: its ink; and the normals at its ends, as a·u + b·v + c, positive on the curve's side.

    A pixel is between the ends of a minor arc if both are positive, and of a major arc if one is. To ask for the
    lesser in both cases, major arcs have all signs turned, and the answer too.
    """
    strokes = columns.strokes
    turn = 1.0 - 2.0 * strokes.major.double()
    facts = [(255 * strokes.ink).float(), turn.float()]
    for place, way in ((strokes.start, strokes.start_way), (strokes.end, -strokes.end_way)):
        facts += [*_turned(way * turn[:, None], columns.upright), -turn * (way * place).sum(dim=-1)]
    return facts


def _turned(places: Float[Tensor, "n 2"], upright: Bool[Tensor, " n"]) -> tuple[Tensor, Tensor]:
    """Along and across a strip: x and y, or for an upright one y and x."""
    x, y = places.unbind(dim=-1)
    return torch.where(upright, y, x), torch.where(upright, x, y)
