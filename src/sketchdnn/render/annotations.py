"""Sketches with their constraints: strokes colored by freedom, a symbol for each constraint, and a legend.

The freedom of each primitive is an input, `ConstraintStatus`. The results are layers of strokes and texts, which every
back end draws alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sketchdnn.geometry import Constraint, ConstraintType, Line, Primitive, Sketch, Vec

from .constraint_marks import DIMENSIONS, SYMBOL_ORDER, PlacedMark, arrange_marks, corner_symbol, symbol, text_width
from .style import LETTER_WIDTH, Frame, Stroke, Style, frame, printable, strokes

# The color and the legend of each state of freedom; the colors differ for color-blind readers too.
FREEDOM: Mapping[str, tuple[str, str]] = {
    "fixed": ("#1f2933", "fixed"),
    "partly": ("#0072b2", "partly free"),
    "free": ("#b08000", "free"),
    "over": ("#d6226a", "over-constrained"),
}
_INK = "#4a5661"
_TIE_COLOR = "#c3c9cf"
_SYMBOL_RADIUS = 0.38  # in parts of the text size
_MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class ConstraintStatus:
    """The freedom of each primitive (a key of `FREEDOM`), faulty constraints, and the degrees of freedom."""

    freedom: tuple[str, ...]
    faults: frozenset[int] = frozenset()
    dof: int | None = None


class Text(NamedTuple):
    """A text whose middle, or whose left end, is at a pixel."""

    text: str
    at: Vec
    from_left: bool = False


class Layer(NamedTuple):
    """Strokes and texts in one view and style; the title is shown under the pointer."""

    strokes: Sequence[Stroke]
    view: Frame
    style: Style
    texts: tuple[Text, ...] = ()
    title: str = ""


def sketch_layers(
    sketch: Sketch, width: float, height: float, style: Style, status: ConstraintStatus | None = None
) -> list[Layer]:
    """The layers of a picture: primitives; with a status, colored by freedom, then symbols."""
    style = style.thinned(len(sketch))
    if status is None:
        view = frame(sketch, width, height, style)
        return [Layer(strokes(sketch, view, style), view, style)]
    if len(status.freedom) != len(sketch):
        raise ValueError(f"freedom of {len(status.freedom)} primitives for a sketch of {len(sketch)}")
    view = frame(sketch, width, height, replace(style, margin=1.25 * style.margin))
    colors = tuple(FREEDOM[word][0] for word in status.freedom)
    radius = _SYMBOL_RADIUS * style.text_size
    placed = arrange_marks(sketch, view, radius)
    ties = [Line(a, b) for item in placed for a, b in item.mark.ties if a != b]
    thin = 0.5 * style.construction_width
    layers = [
        Layer([Stroke(tie, _TIE_COLOR, thin, (2 * thin, 3 * thin)) for tie in ties], view, style),
        Layer(strokes(sketch, view, replace(style, palette=colors)), view, style),
    ]

    def is_fault(item: PlacedMark) -> bool:
        return not status.faults.isdisjoint(item.mark.numbers)

    def order(item: PlacedMark) -> tuple[bool, bool, bool]:
        """Pinned symbols below the others; rings below dots; faults on top."""
        return (not item.mark.pinned, item.mark.kind is ConstraintType.COINCIDENT, is_fault(item))

    for item in sorted(placed, key=order):
        title = "; ".join(describe_constraint(sketch.constraints[number], sketch) for number in item.mark.numbers)
        look = _symbol_style(style, radius, FREEDOM["over"][0] if is_fault(item) else _INK)
        layers.append(_symbol_layer(item, radius, _pixel_view(width, height), look, title))
    return layers


def describe_constraint(constraint: Constraint, sketch: Sketch) -> str:
    """A constraint as text, with primitives by their number in the file.

    >>> from sketchdnn.geometry import Part, Ref
    >>> ends = Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
    >>> describe_constraint(ends, Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))))
    'coincident: end of line 0, start of line 1'
    """
    names = []
    for ref in constraint.refs:
        name = str(ref.part).replace("_", " ")
        if ref.primitive is not None:
            owner = f"{sketch.primitives[ref.primitive].kind.label} {ref.primitive}"
            name = owner if ref.part in ("whole", "point") else f"{name} of {owner}"
        names.append(name)
    own_name = printable(constraint.name or "")[:_MAX_NAME] if constraint.type is ConstraintType.OTHER else ""
    kind = own_name or constraint.type.replace("_", " ")
    value = "" if constraint.value is None else f" = {constraint.value:.6g}"
    return f"{kind}: {', '.join(names)}{value}"


def count_without_symbol(sketch: Sketch) -> int:
    """The number of constraints of kinds that are not drawn."""
    return sum(c.type not in DIMENSIONS and c.type not in SYMBOL_ORDER for c in sketch.constraints)


def legend(
    sketches: Sequence[Sketch], statuses: Sequence[ConstraintStatus], width: float, style: Style
) -> tuple[list[Layer], float]:
    """The legend of the colors and symbols that occur, in rows of this width.

    Returns:
        The layers, and the height of the legend.
    """
    style = replace(style, text_size=0.72 * style.text_size, text_color=_INK)
    size = style.text_size
    look = _symbol_style(style, 0.5 * size, _INK)
    freedom = Counter(word for status in statuses for word in status.freedom)
    kinds = Counter(c.type for sketch in sketches for c in sketch.constraints)
    colors = [(f"{freedom[word]:,} {name}", color) for word, (color, name) in FREEDOM.items() if freedom[word]]
    present = [kind for kind in SYMBOL_ORDER if kinds[kind]]
    symbols: list[tuple[str, str]] = [(f"{kinds[kind]:,} {kind.replace('_', ' ')}", kind) for kind in present]
    if dimensions := sum(kinds[kind] for kind in DIMENSIONS):
        symbols.append((f"{dimensions:,} dimension{'s' * (dimensions != 1)}", ConstraintType.LENGTH))
    if len(statuses) == 1 and statuses[0].dof is not None:
        colors.append((f"{statuses[0].dof:,} degree{'s' * (statuses[0].dof != 1)} of freedom", ""))
    row, y = 1.8 * size, 0.9 * size
    drawn: list[tuple[Sequence[Stroke], tuple[Text, ...], Style]] = []
    for group in (colors, symbols):
        x = size
        for label, key in group:
            item_width = (1.6 + LETTER_WIDTH * len(label)) * size
            if x + item_width > width and x > size:  # the next row
                x, y = size, y + row
            middle = x + 0.6 * size
            drawn.append(((), (Text(label, (x + (1.6 * size if key else 0.0), y), from_left=True),), style))
            if isinstance(key, ConstraintType):
                example = () if symbol(key, (0, 0), 1.0) else (Text("12", (middle, y)),)
                drawn.append((_with_halo(symbol(key, (middle, -y), 0.38 * size), look), example, look))
            elif key:
                bar = Line((x, -y), (x + 1.2 * size, -y))
                drawn.append(([Stroke(bar, key, 1.4 * style.width)], (), style))
            x += item_width + 1.4 * size
        y += row if group else 0.0
    view = _pixel_view(width, y)
    return [Layer(items, view, used, texts) for items, texts, used in drawn], y


def _symbol_layer(item: PlacedMark, radius: float, view: Frame, style: Style, title: str) -> Layer:
    mark, (x, y) = item.mark, item.at
    if mark.corner is not None:
        width = 0.75 * style.construction_width
        square = corner_symbol((x, -y), mark.corner, 2.2 * radius)
        return Layer([Stroke(side, style.text_color, width) for side in square], view, style, (), title)
    is_dimension = mark.kind in DIMENSIONS  # a text alone; other texts are beside a symbol
    shift = 0.0 if is_dimension else text_width(mark.text, radius) / 2
    shapes = symbol(mark.kind, (x - shift, -y), radius * (0.95 if mark.pinned else 0.85), mark.angle)
    at = (x, y) if is_dimension else (x + radius, y + 0.35 * radius)
    texts = (Text(mark.text, at),) if mark.text else ()
    return Layer(_with_halo(shapes, style), view, style, texts, title)


def _with_halo(shapes: Sequence[Primitive], style: Style) -> list[Stroke]:
    """The strokes of a symbol, with a rim of the background's color that separates it from lines below."""
    width = 0.75 * style.construction_width
    ink = [Stroke(shape, style.text_color, width) for shape in shapes]
    if any(shape.length == 0 for shape in shapes):  # a dot has a rim of its own
        return ink
    return [*(replace(stroke, color=style.background, width=3.2 * width) for stroke in ink), *ink]


def _symbol_style(style: Style, radius: float, color: str) -> Style:
    return replace(style, text_color=color, text_size=1.75 * radius, dot_radius=0.48 * radius)


def _pixel_view(width: float, height: float) -> Frame:
    """A view whose coordinates are pixels with y up from the top: (x, -y) is the pixel x, y."""
    return Frame(width, height, (width / 2, -height / 2), 1.0)
