"""Trajectories: every frame is in the animation, each in its time, all in the view of the last."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from sketchdnn.generation import Drawing
from sketchdnn.generation.trajectory import animation, write_trajectory
from sketchdnn.geometry import Circle, Line, Sketch

LAST = Sketch((Line((-1, -1), (1, -1)), Line((1, -1), (1, 1)), Circle((0, 0), 0.5)))
FRAMES = (Sketch((Circle((3, 0), 2),)), LAST.moved(2.0), Sketch(()), LAST)


def shown_at(group: Element, share: float) -> bool:
    """Whether a frame is seen at that share of a round."""
    animate = group[0]
    times = [float(time) for time in animate.attrib["keyTimes"].split(";")]
    values = animate.attrib["values"].split(";")
    assert (times[0], times[-1]) == (0.0, 1.0)
    assert len(times) == len(values)
    return [value for time, value in zip(times, values, strict=True) if time <= share][-1] == "visible"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.9, 0.999])
def test_one_frame_is_seen_at_a_time(share: float) -> None:
    groups = fromstring(animation(FRAMES))[1:]
    seen = [number for number, group in enumerate(groups) if shown_at(group, share)]
    assert seen == [min(3, int(share / 0.175))]


def test_every_frame_lies_where_it_would_in_the_last() -> None:
    """A circle that is four times as large is drawn four times as large, and as far off as it was."""
    _, twice, _, last = (_circle(group) for group in fromstring(animation(FRAMES))[1:])
    assert twice[2] == pytest.approx(2 * last[2], rel=1e-3)
    assert twice[:2] == pytest.approx(last[:2], abs=0.01)
    first = _circle(fromstring(animation(FRAMES))[1])
    assert first[2] == pytest.approx(4 * last[2], rel=1e-3)
    assert first[0] - last[0] == pytest.approx(6 * last[2], rel=1e-3)


def _circle(group: Element) -> tuple[float, float, float]:
    """Where the circle of a frame is in the picture; nowhere, if it has none."""
    moved = group[1]
    x, y, factor, back, _ = map(float, re.findall(r"-?[\d.]+(?:e-?\d+)?", moved.attrib["transform"]))
    for item in moved.iter():
        if item.tag.endswith("circle"):
            cx, cy, radius = (float(item.attrib[name]) for name in ("cx", "cy", "r"))
            return x + factor * (cx + back), y + factor * (cy + back), factor * radius
    return 0.0, 0.0, 0.0


def test_a_file_is_written_and_named(tmp_path: Path) -> None:
    paths = write_trajectory(Drawing(0, LAST, frames=FRAMES), tmp_path / "sketch-0000")
    assert paths == [tmp_path / "sketch-0000.trajectory.svg"]
    assert paths[0].read_text() == animation(FRAMES)
