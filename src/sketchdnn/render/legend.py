"""What the colors and signs of constraints mean, below a picture or a gallery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sketchdnn.geometry import ConstraintType, Line, Sketch, Vec

from .display import Stroke, Style
from .marks import DIMENSIONS
from .notes import FREEDOM, INK, Layer, Notes, Words, haloed, inked, paper_view
from .signs import ORDER, sign

# The average letter's width, in parts of the text's size.
_LETTER = 0.52


def legend(sketches: Sequence[Sketch], notes: Sequence[Notes], width: float, style: Style) -> tuple[list[Layer], float]:
    """What colors and signs mean, those that occur, in rows as wide as the picture; and how high that is."""
    style = replace(style, text_size=0.72 * style.text_size, text_color=INK)
    size = style.text_size
    look = inked(style, 0.5 * size, fault=False)
    freedom = Counter(word for one in notes for word in one.freedom)
    kinds = Counter(c.type for sketch in sketches for c in sketch.constraints)
    colors = [(f"{freedom[word]:,} {means}", color) for word, (color, means) in FREEDOM.items() if freedom[word]]
    signs: list[tuple[str, str]] = [
        (f"{kinds[kind]:,} {kind.replace('_', ' ')}", kind) for kind in ORDER if kinds[kind]
    ]
    if dimensions := sum(kinds[kind] for kind in DIMENSIONS):
        signs.append((f"{dimensions:,} dimension{'s' * (dimensions != 1)}", ConstraintType.LENGTH))
    if len(notes) == 1 and notes[0].dof is not None:
        colors.append((f"{notes[0].dof:,} degree{'s' * (notes[0].dof != 1)} of freedom", ""))
    row = 1.8 * size
    y = row / 2
    places: list[tuple[tuple[str, str], Vec]] = []
    for group in (colors, signs):
        if group:
            places += _rows(group, width, y, row, size)
            y = places[-1][1][1] + row
    paper = paper_view(width, y)
    layers: list[Layer] = []
    for (words, what), (x, at) in places:
        middle = x + 0.6 * size
        text = Words(words, (x + (1.6 * size if what else 0.0), at), from_left=True)
        layers.append(Layer((), paper, style, (text,)))
        if isinstance(what, ConstraintType):
            label = () if sign(what, (0, 0), 1.0) else (Words("12", (middle, at)),)
            layers.append(Layer(haloed(sign(what, (middle, -at), 0.38 * size), look), paper, look, label))
        elif what:
            bar = Line((x, -at), (x + 1.2 * size, -at))
            layers.append(Layer([Stroke(bar, what, 1.4 * style.width)], paper, style))
    return layers, y


def _rows(
    items: Sequence[tuple[str, str]], width: float, y: float, row: float, size: float
) -> Iterator[tuple[tuple[str, str], Vec]]:
    """Each item's left end, in rows that do not leave the picture."""
    x = size
    for item in items:
        wide = (1.6 + _LETTER * len(item[0])) * size
        if x + wide > width and x > size:
            x, y = size, y + row
        yield item, (x, y)
        x += wide + 1.4 * size
