"""How a sketch came about: its frames from noise to the end, as an animated SVG that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sketchdnn.formats.atomic import replacing
from sketchdnn.geometry import Sketch
from sketchdnn.render import Style, frame
from sketchdnn.render.vector import drawing, num

from .search import Drawing

SECONDS = 4.0
# How much of that time the last frame stands still.
_REST = 0.3
# Room around the finished sketch for what strays on the way there, as a part of the picture.
_MARGIN = 0.2


def write_trajectory(drawn: Drawing, stem: Path) -> list[Path]:
    """Write the frames of a drawing to `STEM.trajectory.svg`; says which files it wrote."""
    path = stem.with_name(f"{stem.name}.trajectory.svg")
    with replacing(path) as temporary:
        temporary.write_text(animation(drawn.frames), encoding="utf-8")
    return [path]


def animation(frames: Sequence[Sketch], size: float = 400, seconds: float = SECONDS) -> str:
    """Frame after frame, all seen as the last is; that one stays for a while."""
    each = (1 - _REST) / max(1, len(frames))
    shown = []
    for number, sketch in enumerate(frames):
        begin, end = number * each, (number + 1) * each if number < len(frames) - 1 else 1.0
        keys = sorted({0.0, begin, end, 1.0})
        values = ["visible" if begin <= key < end else "hidden" for key in keys]
        values[-1] = values[-2]  # the end of one round is the beginning of the next
        shown.append(
            f'<g visibility="hidden"><animate attributeName="visibility" calcMode="discrete" dur="{num(seconds)}s" '
            f'repeatCount="indefinite" keyTimes="{";".join(f"{key:.4f}" for key in keys)}" '
            f'values="{";".join(values)}"/>\n{_seen(sketch, frames[-1], size)}\n</g>'
        )
    side = num(size)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *shown, "</svg>\n"])


def _seen(sketch: Sketch, last: Sketch, size: float) -> str:
    """A sketch in the view of the last one. What is drawn fits its own view, so it is moved over to the other."""
    style = replace(Style(), margin=_MARGIN).sized(size)
    view, own = (frame(each, size, size, style) for each in (last, sketch))
    factor = view.scale / own.scale
    x, y = view.place(own.center)
    move = f"translate({num(x)} {num(y)}) scale({factor:.6g}) translate({num(-size / 2)} {num(-size / 2)})"
    return f'<g transform="{move}">\n{drawing(sketch, size, size, style.times(1 / factor))}\n</g>'
