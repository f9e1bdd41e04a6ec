"""Trajectories: which states are recorded, what each may be, and that pictures show all of them in one view."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence
from support.generation import draw
from support.random_batches import clean_batch, normal_batch, random_prediction
from support.small_systems import small_system

from sketchdnn.diffusion.sampling import Progress
from sketchdnn.generation import GeneratedSketch, OutputOptions, trajectory, write_sketches
from sketchdnn.generation.engine import SampleId
from sketchdnn.geometry import Kind
from sketchdnn.render import Style, strokes
from sketchdnn.render.raster import draw_strokes
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, decode

FRAMES = 12
NAMES = [f"sketch-0000.trajectory.{suffix}" for suffix in ("svg", "gif", "png")]


@pytest.fixture(scope="module")
def drawn() -> GeneratedSketch:
    return next(draw(small_system(), 1, steps=FRAMES, trajectory_frames=FRAMES))


@pytest.fixture(scope="module")
def animation(drawn: GeneratedSketch) -> trajectory.Animation:
    return trajectory.Animation.from_frames(drawn.trajectory)


def pages(data: bytes) -> list[np.ndarray]:
    with Image.open(BytesIO(data)) as read:
        return [np.asarray(page.convert("RGB"), dtype=int) for page in ImageSequence.Iterator(read)]


def test_rows_are_shown_by_probability() -> None:
    batch = clean_batch(1)
    (decoded,) = decode(batch, "sweep")
    likely = [item for item in trajectory.superposed_primitives(batch, "sweep") if item.probability == 1]
    assert [item.primitive for item in sorted(likely, key=lambda item: item.row)] == list(decoded.sketch)
    assert [item.primitive for item in trajectory.decoded_primitives(batch, "sweep")] == list(decoded.sketch)
    rows = SketchBatch(
        torch.tensor([[[0.7, 0.3]]]), torch.tensor([[[0.4, 0.1, 0.2, 0.1, 0.2]]]), torch.full((1, 1, 14), 0.3)
    )
    rows.params[..., layout.PARAMS_OF_KIND[Kind.LINE]] = torch.tensor([0.0, 0.0, 1.0, 0.0])
    rows.params[..., layout.PARAMS_OF_KIND[Kind.ARC]] = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.1])
    items = list(trajectory.superposed_primitives(rows, "sweep"))
    assert (len(items), sum(item.probability for item in items)) == (2 * len(Kind), pytest.approx(0.8))
    construction = {item.primitive.kind: item.probability for item in items if item.primitive.construction}
    assert construction[Kind.LINE] == pytest.approx(0.12)


def test_restarts_are_recorded_anew_and_inactive_samples_never() -> None:
    recorder, sample = trajectory.TrajectoryRecorder(4, "sweep"), SampleId(0)
    for number in (1, 2, 1, 2, 3, 4):
        progress = Progress(number, 4, 50 - 10 * number, 40 - 10 * number, clean_batch(2), random_prediction(2))
        recorder.record([sample], progress)
    assert ([frame.t for frame in recorder.pop(sample)], recorder.pop(sample)) == ([30, 20, 10, 0], ())
    recorder, samples = trajectory.TrajectoryRecorder(1, "sweep"), [SampleId(0), SampleId(1)]
    active = torch.tensor([True, False])
    recorder.record(samples, Progress(1, 1, 1, 0, clean_batch(2), random_prediction(2), active))
    assert [len(recorder.pop(sample)) for sample in samples] == [1, 0]


def test_animation_shows_every_frame_and_the_sketch(drawn: GeneratedSketch, animation: trajectory.Animation) -> None:
    assert len(drawn.trajectory) == len(animation.scenes) == FRAMES
    seen = pages(trajectory.animated_gif(animation))
    assert len(seen) == FRAMES
    assert all((page.min(axis=2) < 250).any() for page in seen)
    groups = fromstring(trajectory.animated_svg(animation))[1:]
    assert len(groups) == FRAMES
    assert all(len(group[1]) for group in groups)
    view, style = animation.view(120)
    plain = Style(margin=style.margin).sized(120)
    last = np.asarray(animation.images(120)[-1])
    assert (last == np.asarray(draw_strokes(strokes(animation.sketch, view, plain), view, plain))).all()
    assert [type(p) for p in animation.sketch] == [type(p) for p in drawn.sketch]
    assert np.abs(pages(trajectory.animated_gif(animation, 120))[-1] - last).mean() < 2
    with Image.open(BytesIO(trajectory.animated_gif(animation))) as read:
        times = [page.info["duration"] for page in ImageSequence.Iterator(read)]
    assert times[-1] > 10 * max(times[:-1])


def is_visible(group: Element, share: float) -> bool:
    """Whether a frame is visible at that share of a cycle."""
    animate = group[0]
    times = [float(time) for time in animate.attrib["keyTimes"].split(";")]
    values = animate.attrib["values"].split(";")
    assert (times[0], times[-1], times) == (0.0, 1.0, sorted(set(times)))
    assert len(times) == len(values)
    return [value for time, value in zip(times, values, strict=True) if time <= share][-1] == "visible"


def test_svg_shows_one_frame_at_a_time_and_a_strip_all(animation: trajectory.Animation) -> None:
    groups = fromstring(trajectory.animated_svg(animation))[1:]
    cycle = float(groups[0][0].attrib["dur"].removesuffix("s"))
    for share in (0.0, 0.01, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0):
        visible = [number for number, group in enumerate(groups) if is_visible(group, share)]
        assert visible == [min(FRAMES - 1, int(share * cycle / trajectory.FRAME_SECONDS))]
    *before, last = (group.attrib["visibility"] for group in groups)
    assert (set(before), last) == ({"hidden"}, "visible")
    picture = trajectory.strip(animation)
    assert 1400 <= picture.width <= 1700
    assert 200 <= picture.height <= 260
    space, side, head = trajectory.SPACE, trajectory.PANEL, trajectory.CAPTION
    inside = slice(head + 1, head + side - 1)
    pixels = np.asarray(picture)
    images = [np.asarray(each)[1:-1, 1:-1] for each in animation.images(side)]
    assert (pixels[inside, space + 1 : space + side - 1] == images[0]).all()
    assert (pixels[inside, -space - side + 1 : -space - 1] == images[-1]).all()


def test_frames_are_as_many_as_steps_and_have_something_to_show(drawn: GeneratedSketch) -> None:
    animation = trajectory.Animation.from_frames(next(draw(small_system(), 1, steps=1, trajectory_frames=5)).trajectory)
    assert (len(animation.scenes), len(pages(trajectory.animated_gif(animation)))) == (1, 1)
    assert trajectory.strip(animation).width > trajectory.PANEL
    (each,) = draw(small_system(), 1, steps=3, trajectory_frames=40)
    assert (len(each.trajectory), next(draw(small_system(), 1, steps=3)).trajectory) == (3, ())
    noise = normal_batch(1)
    kind = noise.kind.softmax(dim=-1) * 0.01
    kind[..., -1] = 1.0
    empty = trajectory.TrajectoryFrame(99, SketchBatch(noise.construction.softmax(dim=-1), kind, noise.params), "sweep")
    assert len(trajectory.Animation.from_frames([empty, *drawn.trajectory]).scenes) == FRAMES


def test_files_do_not_depend_on_the_count(tmp_path: Path, drawn: GeneratedSketch) -> None:
    for count, name in ((1, "a"), (2, "b")):
        sketches = draw(small_system(), count, steps=6, trajectory_frames=6)
        write_sketches(sketches, count, OutputOptions(tmp_path / name, ["svg"]))
    for name in NAMES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    page = (tmp_path / "b" / "gallery.html").read_text()
    assert re.findall(r">(trajectory \w+)<", page) == 2 * ["trajectory SVG", "trajectory GIF", "trajectory PNG"]
    paths = trajectory.write_trajectory(drawn.trajectory, tmp_path / "sketch-0000")
    assert [path.name for path in paths] == NAMES
    assert all(0 < path.stat().st_size < 300_000 for path in paths)
