"""Where a part lies in the frame that is to hold the finished sketch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.errors import SketchError
from sketchdnn.generation.inpainting import MAX_SCALE, SCALES, check_scale, choose_frame, into_frame
from sketchdnn.geometry import Line, Sketch, bounds

UNIFORM = st.floats(0, 1, exclude_max=True)
ROOM = st.floats(1, MAX_SCALE)


@given(sketches(min_size=1), st.tuples(ROOM, ROOM), st.integers(0, 7), st.tuples(UNIFORM, UNIFORM, UNIFORM))
def test_a_part_lies_inside_its_frame_and_has_the_room_it_was_promised(
    part: Sketch, ends: tuple[float, float], trial: int, choices: tuple[float, float, float]
) -> None:
    box, rooms = bounds(part), (min(ends), max(ends))
    if box.size == 0:
        return
    scale, frame = choose_frame(box, rooms, trial, 8, choices)
    assert rooms[0] <= scale <= rooms[1] * (1 + 1e-12)
    # Seen from the frame: the larger side of the part is 2/room, and nothing of it sticks out.
    width, height = (side / frame.scale for side in (box.width, box.height))
    assert max(width, height) == pytest.approx(2 / scale)
    middle = [(at - center) / frame.scale for at, center in zip(box.center, frame.center, strict=True)]
    assert abs(middle[0]) + width / 2 <= 1 + 1e-6
    assert abs(middle[1]) + height / 2 <= 1 + 1e-6


def test_every_other_frame_is_the_smallest_about_the_middle_and_the_rest_differ() -> None:
    box = bounds(Sketch((Line((10, 10), (30, 20)),)))
    scale, frame = choose_frame(box, (1.0, 2.0), 0, 4, (0.9, 0.1, 0.9))
    assert (scale, frame.center, frame.scale) == (1.0, (20.0, 15.0), 10.0)
    rooms = [choose_frame(box, (1.0, 2.0), trial, 8, (0.5, 0.5, 0.5))[0] for trial in range(8)]
    assert rooms[::2] == [1.0] * 4
    assert rooms[1::2] == sorted(set(rooms[1::2]))
    assert 1 < rooms[1] < rooms[-1] < 2


def test_a_part_begins_or_ends_where_the_finished_sketch_does() -> None:
    part = Sketch((Line((0, 0), (10, 0)),))
    lows = {
        side: bounds(into_frame(part, choose_frame(bounds(part), (2, 2), 1, 2, (0, choice, 0.5))[1])).low[0]
        for side, choice in (("low", 0.1), ("middle", 0.5), ("high", 0.9))
    }
    assert lows == pytest.approx({"low": -1, "middle": -0.5, "high": 0})


@given(sketches(min_size=1), ROOM)
def test_what_goes_into_a_frame_comes_back(part: Sketch, scale: float) -> None:
    box = bounds(part)
    if box.size < 1e-3:
        return
    frame = choose_frame(box, (scale, scale), 0, 1, ())[1]
    back = frame.restore(into_frame(part, frame))
    for one, other in zip(back, part, strict=True):
        assert one.kind is other.kind
        assert one.length == pytest.approx(other.length, rel=1e-6, abs=1e-9 * box.size)


@pytest.mark.parametrize("room", [0.5, 4.5, (2.0, 1.0), (0.9, 2.0), float("nan")])
def test_a_room_that_is_none_is_refused(scale: float | tuple[float, float]) -> None:
    with pytest.raises(SketchError, match="1 to 4"):
        check_scale(scale)


def test_rooms_may_be_one_or_a_range() -> None:
    assert check_scale(None) == SCALES
    assert check_scale(1.5) == (1.5, 1.5)
    assert check_scale((1.0, 4.0)) == (1.0, 4.0)
