"""Mirror images of primitives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import primitives

from sketchdnn.geometry import Arc, Circle, Line, Primitive, bounds
from sketchdnn.geometry.mirror import Mirror, missing_images

MIRRORS = st.builds(Mirror, st.sampled_from((0, 1)), st.sampled_from((-2.0, 0.0, 0.5)))


@given(primitives, MIRRORS)
def test_image_of_the_image_is_the_primitive(p: Primitive, mirror: Mirror) -> None:
    image = mirror.primitive(p)
    assert image.kind is p.kind
    size = max(bounds([p]).size, *map(abs, (*bounds([p]).low, *bounds([p]).high)), 1.0)
    assert not missing_images([p], mirror, 0.0) or missing_images([p, image], mirror, 1e-6 * size) == ()
    box, mirrored = bounds([p]), bounds([image])
    assert mirrored.low[mirror.axis] == pytest.approx(2 * mirror.at - box.high[mirror.axis], abs=1e-6 * size)
    assert mirrored.low[1 - mirror.axis] == pytest.approx(box.low[1 - mirror.axis], abs=1e-6 * size)


def test_arc_stays_counter_clockwise() -> None:
    quarter = Arc((1.0, 2.0), 3.0, 0.0, 1.0)
    for mirror in (Mirror(0, 5.0), Mirror(1, -1.0)):
        image = mirror.primitive(quarter)
        assert isinstance(image, Arc)
        assert image.sweep == quarter.sweep
        assert image.start == pytest.approx(mirror.point(quarter.end))


def test_missing_images_are_those_without_a_counterpart() -> None:
    edge = Line((-1, 0), (1, 0))
    side, other = Line((-1, 0), (-1, 2)), Line((1, 2), (1, 0))
    axis = Mirror(0, 0.0)
    assert missing_images([edge, side, other], axis, 1e-9) == ()
    assert missing_images([edge, side], axis, 1e-9) == (Line((1, 0), (1, 2)),)
    assert len(missing_images([Circle((1, 0), 1), Circle((-1, 0), 2)], axis, 0.5)) == 2  # other radii
    assert len(missing_images([edge], Mirror(0, 0.1), 0.1)) == 1
    assert missing_images([], axis, 1.0) == ()
