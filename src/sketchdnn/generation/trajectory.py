"""How a sketch came about, from noise to the end: as an animated SVG, as a GIF, and as a strip of pictures.

All are drawn from the same moments: every kind that a primitive may be, as pale as it is unlikely, in the view of the
finished sketch and in its colors, so that each primitive can be followed to where it ends. That is what the model
drew: repair comes after it. With `closing`, what a sketch had come to before it was drawn again is not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from sketchdnn.geometry import Line, Sketch
from sketchdnn.io import atomic_write
from sketchdnn.render import PALETTE, Frame, Stroke, Style, frame, raster, vector
from sketchdnn.render.gallery import BORDER_COLOR
from sketchdnn.render.gif import gif
from sketchdnn.render.superposed import FAINTEST, Likely, superposed_strokes
from sketchdnn.render.vector import num

from .files import together
from .record import SHARES_OF_T, Moment, nearest
from .search import Drawing

if TYPE_CHECKING:
    from PIL.Image import Image

# How long a frame is shown, and the last.
SECONDS, REST = 0.08, 2.0
SIDE = 288
# Of the strip, in pixels: a picture, the space around it, the words above it, and the way to the last.
PANEL, SPACE, HEAD, ARROW = 188, 8, 28, 32
# Room around the finished sketch for what strays on the way there, as a part of the picture.
_MARGIN = 0.12
# The larger side of most sketches in the model's coordinates. Noise fills it, however small a sketch becomes.
_FULL = 2.0


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a sketch may be at step t."""

    t: int
    items: tuple[Likely, ...]


@dataclass(frozen=True, slots=True)
class Film:
    """Scenes from noise to the sketch, and a color for each row: in the end, those that the sketch has by itself."""

    scenes: tuple[Scene, ...]
    palette: tuple[str, ...]

    @property
    def sketch(self) -> Sketch:
        return Sketch(tuple(item.primitive for item in self.scenes[-1].items))

    def look(self, side: int) -> tuple[Frame, Style]:
        """How all scenes are seen in a square picture: the sketch whole, and as much as a sketch of full size takes."""
        style = replace(Style().sized(side), palette=self.palette, margin=_MARGIN)
        view = frame(self.sketch, side, side, style)
        return replace(view, scale=min(view.scale, side * (1 - 2 * _MARGIN) / _FULL)), style

    def pictures(self, side: int) -> list[Image]:
        view, style = self.look(side)
        return [raster.painted(superposed_strokes(scene.items, view, style), view, style) for scene in self.scenes]


def write_trajectory(drawn: Drawing, stem: Path) -> list[Path]:
    """Write how a drawing came about to `STEM.trajectory.svg`, `.gif` and `.png`; says which files it wrote."""
    shown = film(drawn.frames)
    end = "the sketch" if drawn.repair is None else "before repair"
    with together() as paths:
        for suffix, content in (
            ("svg", animated_svg(shown).encode()),
            ("gif", animated_gif(shown)),
            ("png", _png(strip(shown, end))),
        ):
            paths.append(stem.with_name(f"{stem.name}.trajectory.{suffix}"))
            with atomic_write(paths[-1]) as temporary:
                temporary.write_bytes(content)
        return list(paths)


def film(moments: Sequence[Moment]) -> Film:
    """What is shown of a walk. A moment at which there is nothing to see yet is left out."""
    scenes = [Scene(moment.t, tuple(item for item in moment.likely() if item.chance >= FAINTEST)) for moment in moments]
    kept = [item.row for item in scenes[-1].items]
    rows = range(moments[-1].rows.kind.shape[1])
    order = kept + [row for row in rows if row not in kept]
    palette = tuple(PALETTE[order.index(row) % len(PALETTE)] for row in rows)
    return Film(tuple(scene for scene in scenes if scene.items), palette)


def animated_svg(shown: Film, side: int = 400) -> str:
    """Scene after scene, without a script; the last stays for a while. Who shows no animation shows the last."""
    view, style = shown.look(side)
    ends = list(accumulate(_seconds(shown)))
    times = [0.0, *(end / ends[-1] for end in ends)]
    groups = []
    for scene, (begin, end) in zip(shown.scenes, pairwise(times), strict=True):
        keys = sorted({0.0, begin, end, 1.0})
        values = ["visible" if begin <= key < end else "hidden" for key in keys]
        values[-1] = values[-2]  # the end of one round is the beginning of the next
        groups.append(
            f'<g visibility="{"visible" if scene is shown.scenes[-1] else "hidden"}">'
            f'<animate attributeName="visibility" calcMode="discrete" dur="{num(ends[-1])}s" '
            f'repeatCount="indefinite" keyTimes="{";".join(f"{key:.4f}" for key in keys)}" '
            f'values="{";".join(values)}"/>\n'
            f"{vector.painted(superposed_strokes(scene.items, view, style), view, style)}\n</g>"
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}">'
    return "\n".join([head, f'<rect width="100%" height="100%" fill="{style.background}"/>', *groups, "</svg>\n"])


def animated_gif(shown: Film, side: int = SIDE) -> bytes:
    """The same as a GIF."""
    return gif(shown.pictures(side), _seconds(shown))


def strip(shown: Film, end: str = "the sketch") -> Image:
    """X_t at a handful of steps from left to right and then the sketch, as the upper rows of the paper's figure 3.

    `end` is what stands above the last picture.
    """
    from PIL import Image, ImageDraw

    *before, last = shown.scenes
    times = [scene.t for scene in before]
    chosen = nearest(times, [share * times[0] for share in SHARES_OF_T]) if before else []
    scenes = [*(before[index] for index in chosen), last]
    width = SPACE + len(scenes) * (PANEL + SPACE) + ARROW
    page = Image.new("RGB", (width, HEAD + PANEL + SPACE), Style().background)
    pen = ImageDraw.Draw(page)
    style = Style().sized(PANEL)
    pictures = replace(shown, scenes=tuple(scenes)).pictures(PANEL)
    for number, (scene, picture) in enumerate(zip(scenes, pictures, strict=True)):
        x = SPACE + number * (PANEL + SPACE) + (ARROW if scene is last else 0)
        page.paste(picture, (x, HEAD))
        pen.rectangle((x, HEAD, x + PANEL - 1, HEAD + PANEL - 1), outline=BORDER_COLOR)
        words = f"t = {scene.t:,}" if scene.t else end
        raster.write(page, words, x + PANEL / 2, HEAD / 2, style)
    page.paste(_arrow(style), (width - SPACE - PANEL - ARROW, HEAD))
    return page


def _seconds(shown: Film) -> list[float]:
    return [SECONDS] * (len(shown.scenes) - 1) + [REST]


def _png(image: Image) -> bytes:
    file = BytesIO()
    image.save(file, format="png", optimize=True)
    return file.getvalue()


def _arrow(style: Style) -> Image:
    tip, tail, wing = (ARROW * 0.38, 0.0), (-ARROW * 0.38, 0.0), ARROW * 0.2
    lines = [Line(tail, tip), *(Line((tip[0] - wing, y), tip) for y in (-wing, wing))]
    view = Frame(ARROW, PANEL, (0.0, 0.0), 1.0)
    return raster.painted([Stroke(line, style.text_color, style.width) for line in lines], view, style)
