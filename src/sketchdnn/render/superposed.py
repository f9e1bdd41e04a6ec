"""What may be there, drawn as pale as it is unlikely: the states that a sketch goes through on its way out of noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from sketchdnn.geometry import Primitive, Sketch

from .display import Frame, Stroke, Style, strokes

# Less likely is not drawn.
FAINTEST = 0.03
# Ink goes with this power of the chance: thin strokes on white look paler than they are.
_POWER = 0.75
# Nor is a curve that is so many times as long as the picture is wide: its dashes would be beyond count.
_LONGEST = 12


@dataclass(frozen=True, slots=True)
class Likely:
    """A primitive, how likely it is, and the row of the state that it was read from, which gives its color."""

    primitive: Primitive
    chance: float
    row: int


def superposed_strokes(items: Iterable[Likely], view: Frame, style: Style) -> Iterator[Stroke]:
    """The strokes of all that may be there, the likelier over the others. What is certain looks as in any picture.

    They are mixed with the background instead of being let through: where pale strokes cross, or one has dashes and
    ends, nothing adds up, and every back end paints the same.
    """
    longest = _LONGEST * max(view.width, view.height) / view.scale
    drawn = [item for item in items if item.chance >= FAINTEST and item.primitive.length <= longest]
    for chance, alike in groupby(sorted(drawn, key=_chance), key=_chance):
        these = list(alike)
        ink, colors = chance**_POWER, len(style.palette)
        palette = tuple(mixed(style.palette[item.row % colors], style.background, ink) for item in these)
        yield from strokes(Sketch(tuple(item.primitive for item in these)), view, replace(style, palette=palette))


def mixed(color: str, background: str, share: float) -> str:
    """So much of a color on a background; both are written #rrggbb.

    >>> mixed("#000000", "#ffffff", 0.2), mixed("#0072b2", "#ffffff", 1.0)
    ('#cccccc', '#0072b2')
    """
    return "#" + "".join(
        f"{round(share * int(color[i : i + 2], 16) + (1 - share) * int(background[i : i + 2], 16)):02x}"
        for i in (1, 3, 5)
    )


def _chance(item: Likely) -> float:
    return item.chance
