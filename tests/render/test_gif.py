"""Pictures as a GIF: all of them, for as long as was asked, over and over, in colors close to their own."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image, ImageSequence

from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.render import png
from sketchdnn.render.raster import gif

PICTURES = [png(Sketch((Circle((0, 0), 1), Line((-1, 0), (x, 1)))), 80) for x in (0.1, 0.4, 0.7)]
SECONDS = [0.1, 0.25, 2.0]


def test_every_picture_is_there_for_its_time_and_they_repeat() -> None:
    with Image.open(BytesIO(gif(PICTURES, SECONDS))) as read:
        assert read.info["loop"] == 0
        assert [page.info["duration"] for page in ImageSequence.Iterator(read)] == [100, 250, 2000]


def test_pictures_keep_their_looks() -> None:
    with Image.open(BytesIO(gif(PICTURES, SECONDS))) as read:
        for page, picture in zip(ImageSequence.Iterator(read), PICTURES, strict=True):
            shown, meant = (np.asarray(each.convert("RGB"), dtype=int) for each in (page, picture))
            assert np.abs(shown - meant).max() < 64
            assert np.abs(shown - meant).mean() < 1
            assert (shown[0, 0] == 255).all()


def test_the_same_pictures_are_the_same_bytes() -> None:
    assert gif(PICTURES, SECONDS) == gif(PICTURES, SECONDS)
