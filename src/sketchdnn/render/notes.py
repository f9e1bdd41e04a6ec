"""A sketch with its constraints: strokes colored by what can still move, a sign for each relation.

How free a primitive is comes in as a word, since telling it is another room's art. What goes out are layers of strokes
and words, which every back end paints alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sketchdnn.geometry import Constraint, ConstraintType, Line, Primitive, Sketch, Vec

from .arrange import Placed, arrange, letters
from .display import Frame, Stroke, Style, frame, printable, strokes
from .marks import marks
from .signs import corner, has_sign, sign

# Told apart by color-blind eyes too; the word is what a legend says.
FREEDOM: Mapping[str, tuple[str, str]] = {
    "fixed": ("#1f2933", "fixed"),
    "partly": ("#0072b2", "partly free"),
    "free": ("#b08000", "free"),
    "over": ("#d6226a", "over-constrained"),
}
INK = "#4a5661"
_RADIUS = 0.38  # of a sign, in parts of the text's size
_TIE_COLOR = "#c3c9cf"
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Notes:
    """What is told besides: how free each primitive is (a key of `FREEDOM`), and which constraints are at fault."""

    freedom: tuple[str, ...]
    faults: frozenset[int] = frozenset()
    dof: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """A text whose middle, or whose left end, is at a pixel."""

    text: str
    at: Vec
    from_left: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """Strokes and words in one view and style; the title is for those who point at it or cannot see it."""

    strokes: Sequence[Stroke]
    view: Frame
    style: Style
    words: tuple[Words, ...] = ()
    title: str = ""


def noted(sketch: Sketch, width: float, height: float, style: Style, notes: Notes) -> list[Layer]:
    """The layers of a picture, or of a card of a gallery: primitives, then signs."""
    if len(notes.freedom) != len(sketch):
        raise ValueError(f"freedom of {len(notes.freedom)} primitives for a sketch of {len(sketch)}")
    style = style.thinned(len(sketch))
    view = frame(sketch, width, height, replace(style, margin=1.25 * style.margin))
    colors = tuple(FREEDOM[word][0] for word in notes.freedom)
    layers = [Layer(strokes(sketch, view, replace(style, palette=colors)), view, style)]
    radius = _RADIUS * style.text_size
    placed = arrange(marks(sketch), sketch, view, radius)
    paper = paper_view(width, height)
    ties = [Line(a, b) for one in placed for a, b in one.mark.ties if a != b]
    thin = 0.5 * style.construction_width
    layers.append(Layer([Stroke(tie, _TIE_COLOR, thin, (2 * thin, 3 * thin)) for tie in ties], view, style))

    def is_fault(one: Placed) -> bool:
        return not notes.faults.isdisjoint(one.mark.numbers)

    # Signs that stand on their place go below those beside; rings below dots; what is right below what is at fault.
    for one in sorted(
        placed, key=lambda one: (not one.mark.pinned, one.mark.sign is ConstraintType.COINCIDENT, is_fault(one))
    ):
        title = "; ".join(describe_constraint(sketch.constraints[number], sketch) for number in one.mark.numbers)
        layers.append(_sign_layer(one, radius, paper, inked(style, radius, fault=is_fault(one)), title))
    return layers


def describe_constraint(constraint: Constraint, sketch: Sketch) -> str:
    """A constraint in words, primitives by their number in the file.

    >>> from sketchdnn.geometry import Part, Ref
    >>> ends = Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
    >>> describe_constraint(ends, Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))))
    'coincident: end of line 0, start of line 1'
    """
    named = []
    for ref in constraint.refs:
        if ref.primitive is None:
            named.append(str(ref.part).replace("_", " "))
        else:
            owner = f"{sketch.primitives[ref.primitive].kind.label} {ref.primitive}"
            named.append(owner if ref.part in ("whole", "point") else f"{ref.part} of {owner}")
    own_name = printable(constraint.name or "")[:_LONGEST_NAME] if constraint.type is ConstraintType.OTHER else ""
    kind = own_name or constraint.type.replace("_", " ")
    value = "" if constraint.value is None else f" = {constraint.value:.6g}"
    return f"{kind}: {', '.join(named)}{value}"


def without_sign(sketch: Sketch) -> int:
    """How many constraints are of kinds that no sign is drawn for."""
    return sum(not has_sign(c.type) for c in sketch.constraints)


def _sign_layer(one: Placed, radius: float, paper: Frame, style: Style, title: str) -> Layer:
    mark, (x, y) = one.mark, one.at
    words: tuple[Words, ...] = ()
    if mark.corner is not None:
        square = corner((x, -y), mark.corner, 2.2 * radius)
        return Layer(
            [Stroke(side, style.text_color, 0.75 * style.construction_width) for side in square],
            paper,
            style,
            (),
            title,
        )
    shapes = sign(mark.sign, (x, -y), radius * (0.95 if mark.pinned else 0.85), mark.along)
    if mark.words and shapes:
        shift = letters(mark.words, radius) / 2
        shapes = sign(mark.sign, (x - shift, -y), 0.85 * radius, mark.along)
        words = (Words(mark.words, (x + radius, y + 0.35 * radius)),)
    elif mark.words:
        words = (Words(mark.words, (x, y)),)
    return Layer(haloed(shapes, style), paper, style, words, title)


def haloed(shapes: Sequence[Primitive], style: Style) -> list[Stroke]:
    """A sign's strokes, with a rim of the background's color that keeps it readable on lines."""
    width = 0.75 * style.construction_width
    ink = [Stroke(shape, style.text_color, width) for shape in shapes]
    if any(shape.length == 0 for shape in shapes):  # a dot has a rim of its own
        return ink
    return [*(replace(stroke, color=style.background, width=3.2 * width) for stroke in ink), *ink]


def inked(style: Style, radius: float, *, fault: bool) -> Style:
    """How a sign of this radius looks."""
    color = FREEDOM["over"][0] if fault else INK
    return replace(style, text_color=color, text_size=1.75 * radius, dot_radius=0.48 * radius)


def paper_view(width: float, height: float) -> Frame:
    """A view whose places are pixels with y up from the top: (x, -y) is the pixel x, y."""
    return Frame(width, height, (width / 2, -height / 2), 1.0)
