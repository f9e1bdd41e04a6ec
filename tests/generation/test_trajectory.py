"""Trajectories: every moment is in the film, each in its time, all in the view of the last, which is the sketch."""

from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import numpy as np
import pytest
from PIL import Image, ImageSequence
from support.random_batches import normal_batch
from support.small_systems import small_system

from sketchdnn.errors import SketchError
from sketchdnn.generation import GeneratedSketch, draw, write_sketches
from sketchdnn.generation import trajectory as trajectory_room
from sketchdnn.generation.trajectory import (
    Animation,
    TrajectoryFrame,
    animated_gif,
    animated_svg,
    film,
    strip,
    write_trajectory,
)
from sketchdnn.render import Style, strokes
from sketchdnn.render.raster import painted
from sketchdnn.representation.batch import SketchBatch

FRAMES = 12
NAMES = [f"sketch-0000.trajectory.{suffix}" for suffix in ("svg", "gif", "png")]


@pytest.fixture(scope="module")
def drawing() -> GeneratedSketch:
    return next(draw(small_system(), 1, steps=FRAMES, trajectory_frames=FRAMES))


@pytest.fixture(scope="module")
def shown(drawing: GeneratedSketch) -> Animation:
    return film(drawing.trajectory)


def pages(data: bytes) -> list[np.ndarray]:
    with Image.open(BytesIO(data)) as read:
        return [np.asarray(page.convert("RGB"), dtype=int) for page in ImageSequence.Iterator(read)]


def test_every_frame_is_in_every_film_and_has_ink(drawing: GeneratedSketch, shown: Animation) -> None:
    assert len(drawing.trajectory) == len(shown.scenes) == FRAMES
    seen = pages(animated_gif(shown))
    assert len(seen) == FRAMES
    assert all((page.min(axis=2) < 250).sum() > 50 for page in seen)
    groups = fromstring(animated_svg(shown))[1:]
    assert len(groups) == FRAMES
    assert all(len(group[1]) for group in groups)


def test_the_film_ends_in_the_sketch_as_it_looks_by_itself(drawing: GeneratedSketch, shown: Animation) -> None:
    view, style = shown.look(120)
    plain = Style(margin=style.margin).sized(120)
    last = np.asarray(shown.pictures(120)[-1])
    assert (last == np.asarray(painted(strokes(shown.sketch, view, plain), view, plain))).all()
    assert [type(p) for p in shown.sketch] == [type(p) for p in drawing.sketch]
    assert np.abs(pages(animated_gif(shown, 120))[-1] - last).mean() < 2


def test_the_last_frame_stays(shown: Animation) -> None:
    with Image.open(BytesIO(animated_gif(shown))) as read:
        times = [page.info["duration"] for page in ImageSequence.Iterator(read)]
    assert times[-1] > 10 * max(times[:-1])


def shown_at(group: Element, share: float) -> bool:
    """Whether a frame is seen at that share of a round."""
    animate = group[0]
    times = [float(time) for time in animate.attrib["keyTimes"].split(";")]
    values = animate.attrib["values"].split(";")
    assert (times[0], times[-1]) == (0.0, 1.0)
    assert times == sorted(set(times))
    assert len(times) == len(values)
    return [value for time, value in zip(times, values, strict=True) if time <= share][-1] == "visible"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0])
def test_one_frame_is_seen_at_a_time(shown: Animation, share: float) -> None:
    root = fromstring(animated_svg(shown))
    seen = [number for number, group in enumerate(root[1:]) if shown_at(group, share)]
    whole = float(root[1][0].attrib["dur"].removesuffix("s"))
    assert seen == [min(FRAMES - 1, int(share * whole / trajectory_room.SECONDS))]


def test_where_nothing_moves_the_sketch_is_seen(shown: Animation) -> None:
    *before, last = (group.attrib["visibility"] for group in fromstring(animated_svg(shown))[1:])
    assert (set(before), last) == ({"hidden"}, "visible")


def test_the_strip_goes_from_noise_to_the_sketch(shown: Animation) -> None:
    picture = strip(shown)
    assert 1400 <= picture.width <= 1700
    assert 200 <= picture.height <= 260
    space, side, head = trajectory_room.SPACE, trajectory_room.PANEL, trajectory_room.HEAD
    inside = slice(head + 1, head + side - 1)
    pixels = np.asarray(picture)
    start_index = pixels[inside, space + 1 : space + side - 1]
    last = pixels[inside, -space - side + 1 : -space - 1]
    wanted = [np.asarray(each)[1:-1, 1:-1] for each in shown.pictures(side)]
    assert (start_index == wanted[0]).all()
    assert (last == wanted[-1]).all()


def test_a_walk_of_one_step_makes_a_film_too() -> None:
    shown = film(next(draw(small_system(), 1, steps=1, trajectory_frames=5)).trajectory)
    assert len(shown.scenes) == 1
    assert len(pages(animated_gif(shown))) == 1
    assert strip(shown).width > trajectory_room.PANEL


def test_a_moment_with_nothing_to_see_is_left_out(drawing: GeneratedSketch) -> None:
    noise = normal_batch(1)
    kind = noise.kind.softmax(dim=-1) * 0.01
    kind[..., -1] = 1.0
    empty = TrajectoryFrame(99, SketchBatch(noise.construction.softmax(dim=-1), kind, noise.params), "sweep")
    assert len(film([empty, *drawing.trajectory]).scenes) == FRAMES


def test_the_same_sketch_is_the_same_bytes(tmp_path: Path) -> None:
    """Drawn twice, beside another."""
    for count, name in ((1, "a"), (2, "b")):
        drawings = draw(small_system(), count, steps=6, trajectory_frames=6)
        write_sketches(drawings, count, tmp_path / name, ["svg"], also=write_trajectory)
    for name in NAMES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    page = (tmp_path / "b" / "gallery.html").read_text()
    assert re.findall(r">(trajectory \w+)<", page) == 2 * ["trajectory SVG", "trajectory GIF", "trajectory PNG"]


def test_files_are_named_as_the_sketch_is(tmp_path: Path, drawing: GeneratedSketch) -> None:
    paths = write_trajectory(drawing, tmp_path / "sketch-0000")
    assert [path.name for path in paths] == NAMES
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)
    assert all(0 < path.stat().st_size < 300_000 for path in paths)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, os.strerror(28))])
@pytest.mark.parametrize("left", [0, 1, 2])
def test_whatever_happens_nothing_half_written_is_left(
    tmp_path: Path,
    drawing: GeneratedSketch,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException] | OSError,
    left: int,
) -> None:
    written: list[Path] = []
    write_bytes = Path.write_bytes

    def stopped(path: Path, data: bytes) -> int:
        if path.parent != tmp_path:
            return write_bytes(path, data)
        if len(written) == left:
            write_bytes(path, data[:10])
            raise error
        written.append(path)
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", stopped)
    with pytest.raises((KeyboardInterrupt, SketchError)):
        write_trajectory(drawing, tmp_path / "sketch-0000")
    assert len(written) == left
    assert not list(tmp_path.iterdir())
