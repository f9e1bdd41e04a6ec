"""Tracing: drawings of known sketches give these sketches back, whatever the file, the light and the view."""

import math
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from support.commands import refused, run
from support.pictures import HEIGHT, WIDTH
from support.pictures import plate_picture as plate

from sketchdnn import read
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, ConstraintType, Line, Sketch, bounds, profile
from sketchdnn.tracing import TraceOptions, TraceResult, overlay, trace
from sketchdnn.tracing.skeleton import stroke_graph, thin


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB"))


def kinds(sketch: Sketch) -> Counter[str]:
    return Counter(p.kind.label for p in sketch)


def check_plate(result: TraceResult, tolerance: float = 0.01) -> None:
    """The sketch is the plate, 100 long, with a closed profile."""
    assert kinds(result.sketch) == {"line": 4, "circle": 1}
    assert profile(result.sketch).is_extrudable
    (circle,) = (p for p in result.sketch if isinstance(p, Circle))
    assert circle.radius == pytest.approx(100 * 75 / 400, rel=3 * tolerance)
    lengths = sorted(p.length for p in result.sketch if isinstance(p, Line))
    assert lengths == pytest.approx([65, 65, 100, 100], rel=tolerance)
    assert bounds(result.sketch).size == pytest.approx(100, rel=0.01)


def test_plate_becomes_a_constrained_closed_sketch() -> None:
    result = trace(pixels(plate()))
    check_plate(result)
    found = Counter(c.type for c in result.sketch.constraints)
    assert found[ConstraintType.COINCIDENT] == 4
    assert found[ConstraintType.HORIZONTAL] + found[ConstraintType.VERTICAL] >= 3
    assert result.sketch.units == "mm"
    assert result.dof == 7  # a position, two sides, a center and a radius


def test_coordinates_lead_back_to_the_pixels_of_the_picture() -> None:
    result = trace(pixels(plate()))
    (circle,) = (p for p in result.sketch if isinstance(p, Circle))
    x, y, w = result.to_source @ result.to_picture @ (*circle.center, 1.0)
    assert (x / w, y / w) == pytest.approx((325, 255), abs=1)


@pytest.mark.parametrize("angle", [4, -9])
def test_turned_drawing_is_turned_back(angle: float) -> None:
    check_plate(trace(pixels(plate().rotate(angle, fillcolor=255, resample=Image.Resampling.BICUBIC))))


def test_light_strokes_on_dark_ground() -> None:
    check_plate(trace(pixels(plate(ground=10, ink=240))))


def test_small_and_faint_pictures() -> None:
    check_plate(trace(pixels(plate().resize((140, 100), Image.Resampling.LANCZOS))), tolerance=0.02)
    check_plate(trace(pixels(plate(ink=190))))


def test_uneven_light_and_grain() -> None:
    rng = np.random.default_rng(0)
    light = np.linspace(0.45, 1.0, WIDTH)[None, :] * np.linspace(1.0, 0.8, HEIGHT)[:, None]
    gray = np.asarray(plate(ground=230, ink=60), float) * light + 4 * rng.standard_normal((HEIGHT, WIDTH))
    check_plate(trace(np.repeat(gray.clip(0, 255).astype(np.uint8)[..., None], 3, 2)), tolerance=0.02)


def test_page_on_a_table_is_straightened() -> None:
    corners = ((90, 60), (640, 30), (690, 470), (20, 450))  # of the page in the photo
    flat = np.array([[0, 0, 1], [WIDTH, 0, 1], [WIDTH, HEIGHT, 1], [0, HEIGHT, 1]], float)
    rows, sides = [], []
    for (x, y, _), (u, v) in zip(flat, corners, strict=True):
        rows += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        sides += [x, y]
    back = np.linalg.solve(np.array(rows, float), np.array(sides, float)).tolist()
    photo = plate(ground=235).transform((WIDTH, HEIGHT), Image.Transform.PERSPECTIVE, back, Image.Resampling.BICUBIC)
    table = Image.new("L", (WIDTH, HEIGHT), 70)
    page = Image.new("L", (WIDTH, HEIGHT), 0)
    ImageDraw.Draw(page).polygon(corners, fill=255)
    table.paste(photo, (0, 0), page)
    result = trace(pixels(table))
    # The proportions of the page itself are unknown: only its angles are restored.
    assert kinds(result.sketch) == {"line": 4, "circle": 1}
    assert profile(result.sketch).is_extrudable
    lines = [p for p in result.sketch if isinstance(p, Line)]
    assert all(min(abs(p.start[0] - p.end[0]), abs(p.start[1] - p.end[1])) < 1e-6 for p in lines)


def test_dashed_strokes_are_construction() -> None:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    pen = ImageDraw.Draw(image)
    pen.rectangle((150, 120, 550, 380), outline=0, width=4)
    for x in range(170, 530, 26):
        pen.line((x, 250, x + 15, 250), fill=0, width=4)
    result = trace(pixels(image))
    dashed = [p for p in result.sketch if p.construction]
    assert kinds(result.sketch) == {"line": 5}
    assert len(dashed) == 1
    assert profile(result.sketch).is_extrudable


def test_crossing_strokes_are_not_cut_and_arcs_are_found() -> None:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    pen = ImageDraw.Draw(image)
    pen.line((100, 100, 600, 400), fill=0, width=4)
    pen.line((100, 400, 600, 100), fill=0, width=4)
    pen.arc((250, 20, 450, 220), 180, 360, fill=0, width=4)
    result = trace(pixels(image), TraceOptions(constrain=False))
    assert kinds(result.sketch) == {"line": 2, "arc": 1}
    (arc,) = (p for p in result.sketch if p.kind.label == "arc")
    assert arc.sweep == pytest.approx(math.pi, abs=0.1)


def test_corners_of_a_long_outline_are_not_cut_by_small_pieces() -> None:
    corners = [(60, 420), (400, 435), (440, 330), (480, 240), (560, 450), (640, 430), (600, 60), (300, 90), (90, 60)]
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    ImageDraw.Draw(image).line([*corners, corners[0], corners[1]], fill=0, width=6, joint="curve")
    result = trace(pixels(image), TraceOptions(constrain=False))
    assert set(kinds(result.sketch)) == {"line"}
    assert len(result.sketch) in (8, 9)  # two of the sides are nearly in a row


@pytest.mark.parametrize("opening", [0.0, 0.15])
def test_round_stroke_by_hand_is_one_circle(opening: float) -> None:
    t = np.linspace(0.4, 0.4 + math.tau - opening, 70)
    radius = 180 * (1 + 0.03 * np.sin(2 * t + 1) + 0.012 * np.sin(5 * t))
    radius += np.random.default_rng(0).normal(0, 1.5, len(t))
    radius[-1] = radius[0]
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    at = np.column_stack((350 + radius * np.cos(t), 250 + radius * np.sin(t)))
    ImageDraw.Draw(image).line([tuple(p) for p in at.tolist()], fill=0, width=4, joint="curve")
    assert kinds(trace(pixels(image)).sketch) == {"circle": 1}


@pytest.mark.parametrize("sides", [6, 8, 12])
def test_polygon_is_no_circle(sides: int) -> None:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    ImageDraw.Draw(image).regular_polygon((350, 250, 220), sides, outline=0, width=5)
    assert kinds(trace(pixels(image)).sketch) == {"line": sides}


def test_corners_drawn_with_gaps_and_overshoot_are_closed() -> None:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    pen = ImageDraw.Draw(image)
    rng = np.random.default_rng(1)
    for (x0, y0), (x1, y1) in (((145, 122), (538, 118)), ((552, 108), (549, 392)), ((560, 381), (162, 377)),
                               ((151, 368), (148, 131))):  # fmt: skip
        t = np.linspace(0, 1, 30)[:, None]
        wave = 2.5 * np.sin(5 * t + rng.uniform(0, 6))
        at = np.array([x0, y0]) * (1 - t) + np.array([x1, y1]) * t + wave * (np.array([y1 - y0, x0 - x1]) / 400)
        pen.line([tuple(p) for p in at.tolist()], fill=0, width=4)
    result = trace(pixels(image))
    assert kinds(result.sketch) == {"line": 4}
    assert profile(result.sketch).is_extrudable


def test_size_and_units_set_the_scale() -> None:
    result = trace(pixels(plate()), TraceOptions(size=4, units="in"))
    assert bounds(result.sketch).size == pytest.approx(4, rel=0.01)
    assert result.sketch.units == "in"
    with pytest.raises(SketchError, match="not a known unit"):
        TraceOptions(units="parsec")


def test_same_picture_gives_the_same_sketch() -> None:
    assert trace(pixels(plate())).sketch == trace(pixels(plate())).sketch


def test_overlay_draws_the_result_over_the_picture() -> None:
    result = trace(pixels(plate()))
    image = np.asarray(overlay(result), int)
    assert image.shape == result.picture.shape
    colored = np.ptp(image, axis=2) > 60
    assert colored.sum() > 500
    # Color lies where the ink is.
    assert (result.picture.min(axis=2)[colored] < 128).mean() > 0.8


@pytest.mark.parametrize(
    ("suffix", "options"), [("png", {}), ("jpg", {"quality": 60}), ("bmp", {}), ("tiff", {}), ("pdf", {})]
)
def test_command_writes_the_sketch_and_the_overlay(suffix: str, options: dict[str, int], tmp_path: Path) -> None:
    picture = tmp_path / f"photo.{suffix}"
    plate().convert("RGB").save(picture, **options)
    result = run("trace", picture, "--out", tmp_path / "part.json", "--size", "120mm")
    assert "4 lines, 1 circle; closed; 7 degrees of freedom" in result.stderr
    (sketch,) = read(tmp_path / "part.json").sketches
    assert bounds(sketch).size == pytest.approx(120, rel=0.01)
    assert sketch.constraints
    with Image.open(tmp_path / "part-overlay.png") as image:
        assert image.width > WIDTH


def test_content_decides_the_format(tmp_path: Path) -> None:
    picture = tmp_path / "photo.txt"
    plate().save(picture, format="png")
    run("trace", picture, "--out", tmp_path / "part.svg", "--overlay", tmp_path / "look.png")
    assert (tmp_path / "look.png").is_file()


def test_picture_is_never_overwritten(tmp_path: Path) -> None:
    plate().save(tmp_path / "part-overlay.png")
    before = (tmp_path / "part-overlay.png").read_bytes()
    assert "part-overlay.png" in refused("trace", tmp_path / "part-overlay.png", "--out", tmp_path / "part.json")
    assert (tmp_path / "part-overlay.png").read_bytes() == before


def test_file_content_is_traced_too() -> None:
    file = BytesIO()
    plate().save(file, format="png")
    check_plate(trace(file.getvalue()))


def test_skeleton_of_a_bar_is_one_line_and_of_a_cross_four() -> None:
    mask = np.zeros((60, 120), np.uint8)
    mask[27:34, 10:110] = 1
    skeleton = thin(mask)
    assert (skeleton.sum(axis=0) <= 2).all()
    assert 80 < skeleton.sum() < 110
    (stroke,) = stroke_graph(skeleton, 7).strokes
    assert np.abs(stroke.at[:, 1] - 30).max() <= 1
    mask[5:55, 57:64] = 1
    assert len(stroke_graph(thin(mask), 7).strokes) == 4
