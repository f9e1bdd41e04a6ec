"""Pictures that follow one another, as an animated GIF: small, and the same bytes for the same pictures."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from .display import Style
from .superposed import mixed

if TYPE_CHECKING:
    from PIL.Image import Image

# How many shades lead from the background to each color: strokes are smoothed, and pale if unlikely, along these.
_SHADES = 6


def gif(pictures: Sequence[Image], seconds: Sequence[float], style: Style | None = None) -> bytes:
    """Each picture for so long, over and over. All colors are shades of the style's."""
    from PIL import Image

    table = Image.new("P", (1, 1))
    table.putpalette(_colors(style or Style()))
    pages = [picture.quantize(palette=table, dither=Image.Dither.NONE) for picture in pictures]
    file = BytesIO()
    pages[0].save(
        file,
        format="gif",
        save_all=True,
        append_images=pages[1:],
        duration=[round(1000 * each) for each in seconds],
        loop=0,
        optimize=False,
    )
    return file.getvalue()


def _colors(style: Style) -> list[int]:
    steps = [step / _SHADES for step in range(1, _SHADES + 1)]
    shades = [mixed(color, style.background, step) for color in dict.fromkeys(style.palette) for step in steps]
    return [value for color in (style.background, *shades) for value in bytes.fromhex(color[1:])]
