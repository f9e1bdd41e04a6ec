"""How a picture is drawn: the noise of the hand, of the pen, of the paper and of the camera.

Lengths are shares of the picture's side unless a field says otherwise. An amount of zero switches a kind of noise off.
Amounts marked "up to" are drawn uniformly from zero for each picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sketchdnn.representation.settings import check_settings, within


@dataclass(frozen=True, slots=True)
class DrawingOptions:
    """The options of `draw`.

    Attributes:
        size: Pixels a side.
        margin: Free border around the sketch.
        width: Smallest and largest width of a stroke.
        dash: Length of a dash of construction curves, and of the gap after it.
        dot: Radius of a point, in widths of the stroke.
        inertia: The pen is a mass that follows the curve on a spring, instead of the Gaussian process.
        wobble: Standard deviation of the Gaussian process normal to a stroke, as a share of the diagonal of the
            sketch's box; with `inertia`, that of the place of a stroke and the scale of its tremor.
        wobble_length: Length scale of the process (Matérn-3/2), as a share of the diagonal.
        point_wobble: Standard deviation of points, as a share of the diagonal.
        circle_gap: Gap of a circle in degrees, at a random angle.
        overshoot: Standard deviation of how far a stroke ends before or beyond its end.
        broken: Probability that a stroke is interrupted.
        doubled: Probability that a stroke is drawn twice.
        pressure: Relative standard deviation of width and ink along a stroke.
        ink: Least and most darkness of ink.
        texture: Share of ink that the teeth of the paper leave out, up to.
        shift: Largest shift of the drawing.
        rotation: Largest rotation in degrees.
        shear: Largest shear in degrees.
        scale: Largest relative reduction of the drawing.
        perspective: Largest shift of a corner of the page by perspective.
        page_edge: Probability that the edge of the page is in the picture.
        grid: Probability that the paper is ruled in squares.
        grain: Standard deviation of the gray of paper and sensor.
        shading: Largest fall of light across the picture.
        blur: Largest standard deviation of the blur.
        jpeg: Largest step of the quantization of 8 by 8 cosine coefficients, 255 being white.
    """

    size: int = field(default=128, metadata=within(16, 2048))
    margin: float = field(default=0.08, metadata=within(0, 0.4))
    width: tuple[float, float] = (0.011, 0.011)
    dash: tuple[float, float] = (0.03, 0.02)
    dot: float = field(default=1.9, metadata=within(1, 5))
    inertia: bool = False
    wobble: float = field(default=0.0, metadata=within(0, 0.2))
    wobble_length: float = field(default=0.5, metadata=within(0.001, 10))
    point_wobble: float = field(default=0.0, metadata=within(0, 0.2))
    circle_gap: float = field(default=0.0, metadata=within(0, 90))
    overshoot: float = field(default=0.0, metadata=within(0, 0.1))
    broken: float = field(default=0.0, metadata=within(0, 1))
    doubled: float = field(default=0.0, metadata=within(0, 1))
    pressure: float = field(default=0.0, metadata=within(0, 0.5))
    ink: tuple[float, float] = (1.0, 1.0)
    texture: float = field(default=0.0, metadata=within(0, 1))
    shift: float = field(default=0.0, metadata=within(0, 0.3))
    rotation: float = field(default=0.0, metadata=within(0, 180))
    shear: float = field(default=0.0, metadata=within(0, 45))
    scale: float = field(default=0.0, metadata=within(0, 0.9))
    perspective: float = field(default=0.0, metadata=within(0, 0.2))
    page_edge: float = field(default=0.0, metadata=within(0, 1))
    grid: float = field(default=0.0, metadata=within(0, 1))
    grain: float = field(default=0.0, metadata=within(0, 0.2))
    shading: float = field(default=0.0, metadata=within(0, 0.9))
    blur: float = field(default=0.0, metadata=within(0, 0.05))
    jpeg: float = field(default=0.0, metadata=within(0, 200))

    def __post_init__(self) -> None:
        check_settings(self)


PRECISE = DrawingOptions()
# The noise that Vitruvion was published with.
HAND = DrawingOptions(wobble=0.02, wobble_length=0.5, point_wobble=0.01, circle_gap=1.0)
# A different hand: no Gaussian process, strokes that swing out at corners.
INERTIA = DrawingOptions(
    inertia=True, wobble=0.01, point_wobble=0.01, circle_gap=4.0, overshoot=0.006, pressure=0.1, width=(0.009, 0.014)
)
PHOTO = DrawingOptions(
    width=(0.006, 0.014), wobble=0.012, point_wobble=0.006, circle_gap=2.0, overshoot=0.006, broken=0.06, doubled=0.06,
    pressure=0.2, ink=(0.55, 0.95), texture=0.35, shift=0.03, rotation=4.0, shear=1.0, scale=0.1, margin=0.16,
    perspective=0.03, page_edge=0.5, grid=0.3, grain=0.02, shading=0.35, blur=0.003, jpeg=40.0,
)  # fmt: skip
