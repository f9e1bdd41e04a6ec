"""Where a part lies in the sketch it is to become part of.

A model draws in a frame: the box of the finished sketch, centered, its larger side from −1 to 1. How much larger than
the part that box is, its `room`, and which way it extends, nobody knows before it is drawn: so several are tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Box, Circle, Line, Placement, Point, Primitive, Sketch

LEAST_ROOM, MOST_ROOM = 1.0, 4.0
# What is tried unless told. Of real sketches with half of their primitives taken away, 99 of 100 lie within.
ROOMS = (1.0, 2.0)
# Numbers from [0, 1) that a choice takes: for the room, and for the place along each axis.
NUM_CHOICES = 3
# How often a part begins, and how often it ends, where the finished sketch does; else it is in the middle.
_AT_A_SIDE = 0.25
# What is smaller, as a share of half the frame, the model is not shown.
_SMALLEST = 1e-6


def check_room(room: float | tuple[float, float] | None) -> tuple[float, float]:
    """The range of rooms to try: as told, one alone, or the usual."""
    low, high = ROOMS if room is None else room if isinstance(room, tuple) else (room, room)
    if not LEAST_ROOM <= low <= high <= MOST_ROOM:
        told = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        raise SketchError(
            f"the room is the finished size over that of the part, {LEAST_ROOM:g} to {MOST_ROOM:g}, not {told}"
        )
    return low, high


def choose_frame(
    box: Box, rooms: tuple[float, float], trial: int, trials: int, choices: Sequence[float]
) -> tuple[float, Placement]:
    """The room and the frame of one trial of some: every other one is the smallest, about the part's middle.

    That is where half of a real sketch mostly lies. The others spread over the rooms, and lie beside, above or around
    the part. `choices` are uniform numbers.

    >>> choose_frame(Box((0, 0), (4, 2)), (1.5, 2.0), 0, 4, (0.5, 0.5, 0.5))
    (1.5, Placement(center=(2.0, 1.0), scale=3.0, units=None))
    """
    low, high = rooms
    if trial % 2 == 0:
        return low, Placement(box.center, low * box.size / 2)
    room = low * (high / low) ** ((trial // 2 + choices[0]) / (trials // 2))
    scale = room * box.size / 2
    x, y = (
        middle - _side(choice) * (scale - side / 2)
        for middle, side, choice in zip(box.center, (box.width, box.height), choices[1:], strict=True)
    )
    return room, Placement((x, y), scale)


def into_frame(part: Sketch, frame: Placement) -> Sketch:
    """The part as the model sees it: its primitives alone, in the frame's coordinates.

    What is too small beside the frame is left out: in single precision its ends would be one.
    """
    (x, y), scale = frame.center, frame.scale
    return visible(part, scale).moved(1 / scale, (-x / scale, -y / scale))


def visible(sketch: Sketch, scale: float) -> Sketch:
    """The primitives alone of a sketch, without those that are too small in a frame of that scale."""
    return Sketch(tuple(p for p in sketch if _extent(p) >= _SMALLEST * scale))


def _extent(p: Primitive) -> float:
    """What must not vanish: the distance of a curve's ends, the radius of a circle; a point has nothing such."""
    match p:
        case Line() | Arc():
            return math.dist(p.start, p.end)
        case Circle():
            return p.radius
        case Point():
            return math.inf


def _side(choice: float) -> int:
    """Where along an axis the part lies: at the low end, in the middle, at the high end."""
    return -1 if choice < _AT_A_SIDE else 1 if choice >= 1 - _AT_A_SIDE else 0
