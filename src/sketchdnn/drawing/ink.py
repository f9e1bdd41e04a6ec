"""Training pictures of an image encoder: the ink of drawings by hand, as it is found in photos, on the device.

`draw` makes photos; a network does not take photos but their ink, found and straightened by `tracing`. So the pictures
here have no paper, light or camera, only what is left of them in the ink: strokes of unsteady width, displaced, short,
long, interrupted and doubled, ragged edges, scratches, and the rest of a skew.

A stroke is a primitive and a displacement normal to it. The darkness of a pixel follows from its distance to each
stroke, without stamping discs: one expression over pixels and rows, with no loop over sketches or samples and no wait
for the device, which `torch.compile` turns into one kernel. The displacement is a sum of waves with the spectrum of a
Gaussian process (Matérn-3/2). The pen with inertia of `draw` is not among the noises: it remains for tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation.layout import BEND, END, MAX_PRIMITIVES, NONE, RADIUS, START
from sketchdnn.representation.settings import check_settings, within

# Extra rows: strokes drawn twice, and scratches.
_EXTRA = 4
_ROWS = MAX_PRIMITIVES + _EXTRA
# |Student t| of 3 degrees of freedom at six even quantiles: frequencies of the process, in units of 1 / length scale.
_FREQUENCIES = (0.1137, 0.3492, 0.6128, 0.9398, 1.4226, 2.5584)
_WIDTH_FREQUENCIES = (1.3, 4.1)
# Cells a side of the noise of ragged edges.
_CELLS = 32
_EPSILON = 1e-6

# Random numbers of each picture. Uniform: of the picture, then of rows; normal: of rows, then of cells.
_PICTURE, _ROW_UNIFORM = 28, 8
_ROW_NORMAL = 2 * len(_FREQUENCIES) + 2 * len(_WIDTH_FREQUENCIES) + 4
NUM_UNIFORM = _PICTURE + _ROWS * _ROW_UNIFORM
NUM_NORMAL = _ROWS * _ROW_NORMAL + _CELLS**2


@dataclass(frozen=True, slots=True)
class InkOptions:
    """The noise of training pictures. Amounts are drawn for each picture, from zero or the lower bound to these.

    Lengths are shares of the diagonal of the sketch's box, but for widths, in pixels.

    Attributes:
        size: Pixels a side.
        extent: Half the side, where the sketch lies within −1 to 1.
        exact: Share of pictures without noise of the hand.
        width: Smallest and largest width of a stroke.
        unsteady: Largest relative deviation of the width along a stroke.
        wobble: Smallest and largest standard deviation of the process.
        wobble_length: Smallest and largest length scale of the process.
        misplaced: Largest standard deviation of the place of a stroke.
        overshoot: Largest standard deviation of how far a stroke ends before or beyond its end.
        circle_gap: Largest gap of a circle in degrees.
        broken: Largest probability that a stroke is interrupted.
        doubled: Largest probability of each of four strokes to be drawn again.
        scratches: Largest probability of each of these to be a scratch.
        ragged: Largest deviation of edges, as a share of the width.
        dot: Smallest and largest diameter of a point, in widths.
        rotation: Largest rotation in degrees that was not straightened.
        skew: Largest shear and difference of the scales that was not straightened.
        perspective: Largest perspective that was not straightened.
    """

    size: int = field(default=128, metadata=within(8, 1024))
    extent: float = field(default=1.125, metadata=within(1, 4))
    exact: float = field(default=0.25, metadata=within(0, 1))
    width: tuple[float, float] = field(default=(0.8, 3.2), metadata=within(0.3, 10))
    unsteady: float = field(default=0.3, metadata=within(0, 1))
    wobble: tuple[float, float] = field(default=(0.002, 0.025), metadata=within(0.0001, 0.2))
    wobble_length: tuple[float, float] = field(default=(0.15, 0.8), metadata=within(0.01, 10))
    misplaced: float = field(default=0.008, metadata=within(0, 0.2))
    overshoot: float = field(default=0.015, metadata=within(0, 0.2))
    circle_gap: float = field(default=6.0, metadata=within(0, 90))
    broken: float = field(default=0.12, metadata=within(0, 1))
    doubled: float = field(default=0.15, metadata=within(0, 1))
    scratches: float = field(default=0.06, metadata=within(0, 1))
    ragged: float = field(default=0.35, metadata=within(0, 2))
    dot: tuple[float, float] = field(default=(1.6, 2.8), metadata=within(0.5, 10))
    rotation: float = field(default=2.0, metadata=within(0, 45))
    skew: float = field(default=0.04, metadata=within(0, 0.5))
    perspective: float = field(default=0.04, metadata=within(0, 0.5))

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class _Paths:
    """Rows as paths: a straight or round one each, with arc length from 0 at its start."""

    origin: Float[Tensor, "batch row 2"]  # the start, or the center of a round path
    direction: Float[Tensor, "batch row 2"]  # of a straight path
    radius: Float[Tensor, "batch row"]
    angle: Float[Tensor, "batch row"]  # at the start of a round path
    sweep: Float[Tensor, "batch row"]
    length: Float[Tensor, "batch row"]
    is_round: Bool[Tensor, "batch row"]
    is_point: Bool[Tensor, "batch row"]
    is_dashed: Bool[Tensor, "batch row"]
    present: Bool[Tensor, "batch row"]


def draw_ink(
    kind: Int[Tensor, "batch prim"],
    construction: Bool[Tensor, "batch prim"],
    params: Float[Tensor, "batch prim 5"],
    uniform: Float[Tensor, "batch number"],
    normal: Float[Tensor, "batch number"],
    options: InkOptions,
) -> Float[Tensor, "batch side side"]:
    """The ink of sketches, from 0 to 1; y of a sketch is up, and rows of the picture go down.

    Args:
        kind: Kinds of compact rows.
        construction: Construction flags; these curves are dashed.
        params: Parameters of compact rows, within −1 to 1.
        uniform: `NUM_UNIFORM` numbers of [0, 1) for each picture.
        normal: `NUM_NORMAL` standard normal numbers for each picture.
        options: The noise.
    """
    of_picture = [number[:, None] for number in uniform[:, :_PICTURE].unbind(dim=1)]
    of_row = uniform[:, _PICTURE:].reshape(-1, _ROWS, _ROW_UNIFORM).unbind(dim=2)
    row_normal, cells = torch.split(normal, [_ROWS * _ROW_NORMAL, _CELLS**2], dim=1)
    noises = row_normal.reshape(-1, _ROWS, _ROW_NORMAL).unbind(dim=2)

    by_hand = (of_picture[0] >= options.exact).to(params.dtype)
    size = _diagonal(kind, params)
    pixel = 2 * options.extent / options.size
    half_width = 0.5 * pixel * _between_log(of_picture[1], options.width)
    shift = torch.stack(noises[-2:], dim=-1) * (by_hand * options.misplaced * of_picture[2] * size)[..., None]
    gap = math.radians(options.circle_gap) * by_hand * of_picture[3]
    kind, construction, params, scratch = _with_extra(kind, construction, params, of_picture, of_row, by_hand, options)
    paths = _paths(kind, construction, params, gap, 2 * math.pi * of_row[0])

    beyond = by_hand * options.overshoot * of_picture[4] * size
    low, high = (beyond * noise for noise in noises[-4:-2])
    low, high = (torch.where(paths.is_point, 0.0, side.clamp(-0.3, 0.3)) for side in (low, high))
    reach = torch.maximum(-0.3 * paths.length, -low), paths.length + torch.maximum(high, -0.3 * paths.length)
    broken = of_row[1] < by_hand * options.broken * of_picture[5]
    half_break = torch.where(broken, (0.01 + 0.02 * of_row[2]) * size, 0.0)
    break_at = (0.2 + 0.6 * of_row[3]) * paths.length
    dash, space = (0.045 + 0.05 * of_picture[6]), (0.03 + 0.035 * of_picture[7])
    amount = by_hand * size * _between_log(of_picture[8], options.wobble) / math.sqrt(len(_FREQUENCIES))
    frequency = (0.75 + 0.5 * of_row[4]) / (size * _between_log(of_picture[9], options.wobble_length))
    unsteady = by_hand * options.unsteady * of_picture[10] / math.sqrt(len(_WIDTH_FREQUENCIES))
    of_dot = options.dot[0] + (options.dot[1] - options.dot[0]) * of_picture[11]

    # From here on `batch, row, pixel`.
    at = _unstraightened(_grid(options, params), of_picture[12:20], options)[:, None] - shift[:, :, None]
    along, across = _to_path(paths, at)
    on = torch.minimum(torch.maximum(along, reach[0][..., None]), reach[1][..., None])
    wave = _waves(frequency[..., None] * on, _FREQUENCIES, noises)
    width = _waves((1 / size)[..., None] * on, _WIDTH_FREQUENCIES, noises[2 * len(_FREQUENCIES) :])
    squared = (along - on).square() + (across - amount[..., None] * wave).square()
    phase = torch.remainder(on - reach[0][..., None], (dash + space)[..., None])
    off = torch.minimum((phase - dash[..., None]).clamp(min=0), (dash + space)[..., None] - phase)
    squared = squared + torch.where(paths.is_dashed[..., None], off, 0.0).square()
    squared = squared + (half_break[..., None] - (on - break_at[..., None]).abs()).clamp(min=0).square()
    reached = half_width[..., None] * (1 + unsteady[..., None] * width).clamp(0.4, 1.8)
    reached = torch.where(paths.is_point[..., None], (of_dot * half_width)[..., None], reached)
    reached = reached * (1 + (by_hand * options.ragged * of_picture[20])[..., None] * _ragged(cells, options.size))
    dark = ((reached - squared.sqrt()) / pixel + 0.5).clamp(0, 1)
    dark = torch.where((paths.present | scratch)[..., None], dark, 0.0)
    return dark.amax(dim=1).reshape(-1, options.size, options.size)


def _diagonal(kind: Tensor, params: Tensor) -> Float[Tensor, "batch 1"]:
    """About the diagonal of the box of each sketch: of its ends, and of whole circles."""
    start, end = params[..., START], params[..., END]
    radius = torch.where(kind == Kind.CIRCLE.value, params[..., RADIUS], 0.0)[..., None]
    has_end = ((kind == Kind.LINE.value) | (kind == Kind.ARC.value))[..., None]
    end = torch.where(has_end, end, start)
    exists = (kind != NONE)[..., None]
    low = torch.where(exists, torch.minimum(start, end) - radius, 9.0).amin(dim=1)
    high = torch.where(exists, torch.maximum(start, end) + radius, -9.0).amax(dim=1)
    return (high - low).square().sum(dim=-1, keepdim=True).sqrt().clamp(0.1, 3.0)


def _with_extra(
    kind: Tensor,
    construction: Tensor,
    params: Tensor,
    of_picture: list[Tensor],
    of_row: tuple[Tensor, ...],
    by_hand: Tensor,
    options: InkOptions,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The rows with extra ones: copies of some, to be drawn with other noise, and scratches, which are short lines."""
    own = kind.shape[1]
    chance, which, x, y, turn = (number[:, -_EXTRA:] for number in (*of_row[3:7], of_row[7]))
    index = (which * own).long()
    is_scratch = chance >= 1 - by_hand * options.scratches * of_picture[21]
    is_copy = chance < by_hand * options.doubled * of_picture[22]
    middle = 2 * torch.stack((x, y), dim=-1) - 1
    reach = 0.01 + 0.08 * which
    step = torch.stack((reach * (6.3 * turn).cos(), reach * (6.3 * turn).sin()), dim=-1)
    line = torch.cat((middle - step, middle + step, torch.zeros_like(reach)[..., None]), dim=-1)
    copied = params.gather(1, index[..., None].expand(-1, -1, params.shape[-1]))
    new_kind = torch.where(is_copy, kind.gather(1, index), NONE)
    new_kind = torch.where(is_scratch, Kind.LINE.value, new_kind)
    new_construction = construction.gather(1, index) & ~is_scratch
    new_params = torch.where(is_scratch[..., None], line, copied)
    scratch = torch.cat((torch.zeros_like(construction), is_scratch), dim=1)
    return (
        torch.cat((kind, new_kind), dim=1),
        torch.cat((construction, new_construction), dim=1),
        torch.cat((params, new_params), dim=1),
        scratch,
    )


def _paths(kind: Tensor, construction: Tensor, params: Tensor, gap: Tensor, angle: Tensor) -> _Paths:
    start, end, sweep = params[..., START], params[..., END], params[..., BEND]
    is_line, is_circle = kind == Kind.LINE.value, kind == Kind.CIRCLE.value
    is_arc, is_point = kind == Kind.ARC.value, kind == Kind.POINT.value
    chord = end - start
    chord_length = chord.square().sum(dim=-1).sqrt().clamp(min=_EPSILON)
    # The center of an arc lies to the left of the middle of its chord.
    half = (torch.where(is_arc, sweep, math.pi) / 2).clamp(1e-3, math.pi - 1e-3)
    left = torch.stack((-chord[..., 1], chord[..., 0]), dim=-1)
    arc_center = (start + end) / 2 + left * (0.5 * half.cos() / half.sin())[..., None]
    from_center = start - arc_center
    radius = torch.where(is_circle, params[..., RADIUS], chord_length / (2 * half.sin())).clamp(_EPSILON, 1e3)
    sweep = torch.where(is_circle, 2 * math.pi - gap, 2 * half)
    return _Paths(
        origin=torch.where(is_arc[..., None], arc_center, start),
        direction=torch.where(is_line[..., None], chord / chord_length[..., None], chord.new_tensor((1.0, 0.0))),
        radius=radius,
        angle=torch.where(is_circle, angle, torch.atan2(from_center[..., 1], from_center[..., 0])),
        sweep=sweep,
        length=torch.where(is_line, chord_length, torch.where(is_point, 0.0, radius * sweep)),
        is_round=is_circle | is_arc,
        is_point=is_point,
        is_dashed=construction & ~is_point,
        present=kind != NONE,
    )


def _to_path(paths: _Paths, at: Float[Tensor, "batch row pixel 2"]) -> tuple[Tensor, Tensor]:
    """How far along each path and across it the pixels lie, `batch, row, pixel`."""
    x, y = (at - paths.origin[:, :, None]).unbind(dim=-1)
    dx, dy = (part[..., None] for part in paths.direction.unbind(dim=-1))
    straight = x * dx + y * dy, y * dx - x * dy
    # Angles are cut in the middle of what is left of the circle.
    cut = math.pi - paths.sweep / 2
    turned = torch.remainder(torch.atan2(y, x) - (paths.angle - cut)[..., None], 2 * math.pi) - cut[..., None]
    radius, is_round = paths.radius[..., None], paths.is_round[..., None]
    away = (x.square() + y.square()).sqrt() - radius
    return torch.where(is_round, turned * radius, straight[0]), torch.where(is_round, away, straight[1])


def _grid(options: InkOptions, like: Tensor) -> Float[Tensor, "pixel 2"]:
    """The centers of the pixels in the coordinates of sketches."""
    steps = (torch.arange(options.size, device=like.device, dtype=like.dtype) + 0.5) * (2 / options.size) - 1
    x = steps.expand(options.size, -1).flatten()
    y = (-steps)[:, None].expand(-1, options.size).flatten()
    return options.extent * torch.stack((x, y), dim=-1)


def _unstraightened(
    grid: Float[Tensor, "pixel 2"], uniform: list[Tensor], options: InkOptions
) -> Float[Tensor, "batch pixel 2"]:
    """Where the pixels lie in the sketch: a little rotated, sheared, stretched and in perspective."""
    turn, shear, stretch, tilt_x, tilt_y = (2 * number - 1 for number in uniform[:5])
    some = (uniform[5] < 0.6).to(grid.dtype)
    angle = math.radians(options.rotation) * some * turn
    cos, sin = angle.cos(), angle.sin()
    wide, shear = 1 + options.skew * some * stretch, options.skew * some * shear
    x, y = grid.unbind(dim=-1)
    x, y = wide * (cos * x - sin * y) + shear * y, sin * x + cos * y
    depth = 1 + options.perspective * some * (tilt_x * x + tilt_y * y) / options.extent
    return torch.stack((x / depth, y / depth), dim=-1)


def _waves(phase: Tensor, frequencies: tuple[float, ...], noises: tuple[Tensor, ...]) -> Tensor:
    """A random function of the phase: a sum of waves with normal amplitudes."""
    total = torch.zeros_like(phase)
    for number, frequency in enumerate(frequencies):
        angle = frequency * phase
        total = total + noises[2 * number][..., None] * angle.cos() + noises[2 * number + 1][..., None] * angle.sin()
    return total


def _ragged(cells: Float[Tensor, "batch cell"], size: int) -> Float[Tensor, "batch 1 pixel"]:
    """Noise that varies from a few pixels to the next."""
    coarse = cells.reshape(-1, 1, _CELLS, _CELLS)
    fine = torch.nn.functional.interpolate(coarse, (size, size), mode="bilinear", align_corners=False)
    return fine.flatten(2)


def _between_log(uniform: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Numbers between two bounds, uniform in the logarithm."""
    return bounds[0] * (math.log(bounds[1] / bounds[0]) * uniform).exp()
