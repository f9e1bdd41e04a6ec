"""Proposals of a network: the raster has a known frame, and a sketch that is nearly right is fitted to the strokes."""

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, bounds, profile
from sketchdnn.tracing import trace
from sketchdnn.tracing.candidates import find_strokes
from sketchdnn.tracing.ink import find_ink
from sketchdnn.tracing.proposals import fit_to_strokes, proposed
from sketchdnn.tracing.raster import EXTENT, FILL, Raster, rasterize

# A rectangle of 400 by 260 pixels with a circle of radius 75, in the frame of its raster.
UNIT = FILL / 200
TRUTH = Sketch(
    (
        Line((-FILL, -130 * UNIT), (FILL, -130 * UNIT)), Line((FILL, -130 * UNIT), (FILL, 130 * UNIT)),
        Line((FILL, 130 * UNIT), (-FILL, 130 * UNIT)), Line((-FILL, 130 * UNIT), (-FILL, -130 * UNIT)),
        Circle((-25 * UNIT, -5 * UNIT), 75 * UNIT),
    )
)  # fmt: skip


def plate(noise: float = 0.0) -> np.ndarray:
    image = Image.new("L", (700, 500), 255)
    pen = ImageDraw.Draw(image)
    pen.rectangle((150, 120, 550, 380), outline=0, width=4)
    pen.ellipse((250, 180, 400, 330), outline=0, width=4)
    if noise:
        for x in range(20, 680, 40):
            pen.line((x, 40, x + noise, 90), fill=0, width=3)
    return np.asarray(image.convert("RGB"))


def shaken(sketch: Sketch, by: float, seed: int = 0) -> Sketch:
    rng = np.random.default_rng(seed)

    def near(at: tuple[float, float]) -> tuple[float, float]:
        return at[0] + rng.normal(0, by), at[1] + rng.normal(0, by)

    moved = []
    for p in sketch:
        match p:
            case Line(start, end):
                moved.append(Line(near(start), near(end)))
            case Circle(center, radius):
                moved.append(Circle(near(center), radius + rng.normal(0, by)))
            case _:
                moved.append(p)
    return Sketch(tuple(moved))


def test_raster_shows_the_drawing_in_its_frame() -> None:
    ink = find_ink(plate())
    raster = rasterize(ink.mask(ink.thresholds[0]), 64)
    assert raster.ink.shape == (64, 64)
    assert raster.ink.dtype == np.float32
    assert 0 <= raster.ink.min() < raster.ink.max() <= 1
    rows, columns = np.nonzero(raster.ink > 0.2)
    low, high = ((v + 1) * 32 / EXTENT * EXTENT - 0.5 for v in (-FILL / EXTENT, FILL / EXTENT))
    assert (columns.min(), columns.max()) == pytest.approx((low, high), abs=1.2)
    assert rows.mean() == pytest.approx(31.5, abs=2.5)
    # The circle is left of the middle and above it in pixels of the picture, so its ink is above the middle row.
    assert raster.ink[20:44, 12:44].sum() > raster.ink[20:44, 44:56].sum()


@pytest.mark.parametrize("by", [0.0, 0.02, 0.04])
def test_a_proposal_near_the_truth_becomes_exact(by: float) -> None:
    ink = find_ink(plate())
    mask = ink.mask(ink.thresholds[0])
    strokes, raster = find_strokes(mask), rasterize(mask)
    assert strokes is not None
    (found,) = proposed([shaken(TRUTH, by)], raster, strokes)
    assert found.is_proposal
    assert profile(found.sketch).is_extrudable
    scale = 400 / bounds(found.sketch).size
    (circle,) = (p for p in found.sketch if isinstance(p, Circle))
    assert scale * circle.radius == pytest.approx(75, abs=1.5)
    lengths = sorted(scale * p.length for p in found.sketch if isinstance(p, Line))
    assert lengths == pytest.approx([260, 260, 400, 400], abs=2)
    assert found.backward < 0.004


def test_arcs_and_points_are_fitted_and_rows_without_ink_stay() -> None:
    image = Image.new("L", (700, 500), 255)
    pen = ImageDraw.Draw(image)
    pen.line((150, 300, 550, 300), fill=0, width=4)
    pen.arc((150, 100, 550, 500), 180, 360, fill=0, width=4)
    pen.ellipse((344, 194, 356, 206), fill=0)
    ink = find_ink(np.asarray(image.convert("RGB")))
    mask = ink.mask(ink.thresholds[0])
    strokes, raster = find_strokes(mask), rasterize(mask)
    assert strokes is not None
    # In the frame: the box is 400 by 200 pixels.
    arc = Arc((0.02, -0.43), 0.94, 0.1, math.pi - 0.15)
    line = Line((-0.9, -0.44), (0.9, -0.48))
    stray = Line((-0.2, 0.1), (-0.15, 0.15))
    sketch = Sketch((arc, line, Point((0.03, 0.0)), stray)).moved(raster.scale, raster.center)
    fitted = fit_to_strokes(sketch, strokes)
    by_kind = {p.kind.label: p for p in fitted if p.kind.label != "line"}
    radius = by_kind["arc"].radius / raster.scale  # type: ignore[union-attr]
    assert radius == pytest.approx(FILL, abs=0.01)
    assert len(fitted) == 4
    assert any(isinstance(p, Line) and p.length / raster.scale < 0.12 for p in fitted)
    at = np.array(by_kind["point"].at) / raster.scale - np.array(raster.center) / raster.scale  # type: ignore[union-attr]
    assert at == pytest.approx((0, 0), abs=0.02)


def test_the_best_of_all_candidates_is_taken_and_told() -> None:
    asked: list[Raster] = []

    def propose(raster: Raster) -> list[Sketch]:
        asked.append(raster)
        return [shaken(TRUTH, 0.02), Sketch((Circle((0, 0), 0.5),))]

    alone, both = trace(plate()), trace(plate(), propose=propose)
    assert len(asked) == 1
    assert both.candidates == alone.candidates + 2
    assert not alone.is_proposal
    assert len(both.sketch) == 5
    useless = trace(plate(), propose=lambda _: [Sketch((Circle((0.5, 0.5), 0.1),)), Sketch(())])
    assert not useless.is_proposal
    assert useless.sketch == alone.sketch


def test_a_picture_of_nothing_is_refused_before_a_network_is_asked() -> None:
    def propose(_: Raster) -> list[Sketch]:
        raise AssertionError("asked")

    rng = np.random.default_rng(0)
    for picture in (np.full((200, 200, 3), 255, np.uint8), rng.integers(0, 255, (200, 200, 3), np.uint8)):
        with pytest.raises(SketchError, match="no"):
            trace(picture, propose=propose)
