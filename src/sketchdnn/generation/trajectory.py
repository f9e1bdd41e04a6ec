"""Trajectories: intermediate states of the sampler, and pictures of them as animated SVG, GIF and a strip.

All pictures are rendered from the same frames: every kind that a primitive may be, with opacity by probability, in the
view and the colors of the final sketch. They show the model's output before repair. With the `restart` sampler, states
from before a restart are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import one_hot

from sketchdnn.diffusion.sampling import Progress
from sketchdnn.geometry import Kind, Line, Sketch
from sketchdnn.io import atomic_write
from sketchdnn.render import PALETTE, Frame, Stroke, Style, frame, raster, vector
from sketchdnn.render.gallery import BORDER_COLOR
from sketchdnn.render.raster import gif
from sketchdnn.render.style import MIN_PROBABILITY, WeightedPrimitive, superposed_strokes
from sketchdnn.render.vector import num
from sketchdnn.representation import Decoded, SketchBatch, decode, layout

from .engine import SampleId

if TYPE_CHECKING:
    from PIL.Image import Image

# The steps of a strip, as fractions of T: where visible changes happen.
STRIP_FRACTIONS = (1.0, 0.75, 0.55, 0.4, 0.25, 0.12, 0.03)
# Seconds that a frame is shown, and the last one.
FRAME_SECONDS, LAST_SECONDS = 0.08, 2.0
GIF_SIDE = 288
# Of the strip, in pixels: a panel, the space around it, the caption above it, and the arrow before the last.
PANEL, SPACE, CAPTION, ARROW = 188, 8, 28, 32
# Margin around the final sketch for primitives that stray on the way, as a fraction of the picture.
_MARGIN = 0.12
# The larger side of a sketch in model coordinates. Noise fills it, however small the sketch becomes.
_FULL_SIZE = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class TrajectoryFrame:
    """X_t of one sketch, in model coordinates. At t = 0 it is the decoded sketch."""

    t: int
    rows: SketchBatch
    arc_scalar: layout.ArcScalar

    def likely(self) -> list[WeightedPrimitive]:
        """The primitives that it may be, with probabilities."""
        return list((superposed_primitives if self.t else decoded_primitives)(self.rows, self.arc_scalar))


@dataclass(slots=True)
class TrajectoryRecorder:
    """Records up to `num_frames` frames of every sample, the last one at t = 0.

    Where a sampler restarts at a higher noise level, frames below that level are dropped, so t falls throughout.
    """

    num_frames: int
    arc_scalar: layout.ArcScalar
    frames: dict[SampleId, list[TrajectoryFrame]] = field(default_factory=dict)

    def record(self, samples: Sequence[SampleId], progress: Progress) -> None:
        """Keep the state after a step, if it is one of those to keep."""
        steps = {round(k * progress.total / self.num_frames) for k in range(1, self.num_frames + 1)}
        if not self.num_frames or (progress.number not in steps and progress.s != 0):
            return
        batch = progress.batch[: len(samples)].to("cpu")
        active = [True] * len(samples) if progress.active is None else progress.active.tolist()
        for row, sample in enumerate(samples):
            if active[row]:
                # Where the sampler restarted, the frames from before are dropped.
                frames = [frame for frame in self.frames.get(sample, []) if frame.t > progress.s]
                frame = TrajectoryFrame(progress.s, batch[row : row + 1], self.arc_scalar)
                self.frames[sample] = [*frames, frame]

    def pop(self, sample: SampleId) -> tuple[TrajectoryFrame, ...]:
        """The frames of a sample, which are forgotten."""
        return tuple(self.frames.pop(sample, ()))


class Scene(NamedTuple):
    """The primitives that a sketch may be at step t."""

    t: int
    items: tuple[WeightedPrimitive, ...]


@dataclass(frozen=True, slots=True)
class Animation:
    """Scenes from noise to the sketch, and a color for each row: in the last scene, the colors of the sketch."""

    scenes: tuple[Scene, ...]
    palette: tuple[str, ...]

    @classmethod
    def from_frames(cls, frames: Sequence[TrajectoryFrame]) -> Animation:
        """The scenes of all frames that have anything to show."""
        likely = ((each.t, each.likely()) for each in frames)
        scenes = [Scene(t, tuple(item for item in items if item.probability >= MIN_PROBABILITY)) for t, items in likely]
        final_rows = [item.row for item in scenes[-1].items]
        rows = range(frames[-1].rows.kind.shape[1])
        order = final_rows + [row for row in rows if row not in final_rows]
        palette = tuple(PALETTE[order.index(row) % len(PALETTE)] for row in rows)
        return cls(tuple(scene for scene in scenes if scene.items), palette)

    @property
    def sketch(self) -> Sketch:
        """The final sketch."""
        return Sketch(tuple(item.primitive for item in self.scenes[-1].items))

    @property
    def seconds(self) -> list[float]:
        """How long each scene is shown."""
        return [FRAME_SECONDS] * (len(self.scenes) - 1) + [LAST_SECONDS]

    def view(self, side: int) -> tuple[Frame, Style]:
        """The view of all scenes in a square picture: the whole sketch, and at least a sketch of full size."""
        style = replace(Style().sized(side), palette=self.palette, margin=_MARGIN)
        view = frame(self.sketch, side, side, style)
        return replace(view, scale=min(view.scale, side * (1 - 2 * _MARGIN) / _FULL_SIZE)), style

    def images(self, side: int) -> list[Image]:
        """Each scene as a picture."""
        view, style = self.view(side)
        return [raster.draw_strokes(superposed_strokes(scene.items, view, style), view, style) for scene in self.scenes]


def write_trajectory(frames: Sequence[TrajectoryFrame], stem: Path, caption: str = "the sketch") -> list[Path]:
    """Write `STEM.trajectory.svg`, `.gif` and `.png`; returns the paths. `caption` is above the end of the strip."""
    animation, picture = Animation.from_frames(frames), BytesIO()
    strip(animation, caption).save(picture, format="png", optimize=True)
    contents = {"svg": animated_svg(animation).encode(), "gif": animated_gif(animation), "png": picture.getvalue()}
    paths = [stem.with_name(f"{stem.name}.trajectory.{suffix}") for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
    return paths


def animated_svg(animation: Animation, side: int = 400) -> str:
    """An SVG without scripts that repeats for ever. A viewer without animation shows the last scene."""
    view, style = animation.view(side)
    ends = list(accumulate(animation.seconds))
    times = [0.0, *(end / ends[-1] for end in ends)]
    groups = []
    for scene, (begin, end) in zip(animation.scenes, pairwise(times), strict=True):
        keys = sorted({0.0, begin, end, 1.0})
        values = ["visible" if begin <= key < end else "hidden" for key in keys]
        values[-1] = values[-2]  # the end of a cycle is the start of the next
        groups.append(
            f'<g visibility="{"visible" if scene is animation.scenes[-1] else "hidden"}">'
            f'<animate attributeName="visibility" calcMode="discrete" dur="{num(ends[-1])}s" '
            f'repeatCount="indefinite" keyTimes="{";".join(f"{key:.4f}" for key in keys)}" '
            f'values="{";".join(values)}"/>\n'
            f"{vector.draw_strokes(superposed_strokes(scene.items, view, style), view, style)}\n</g>"
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}">'
    return "\n".join([head, f'<rect width="100%" height="100%" fill="{style.background}"/>', *groups, "</svg>\n"])


def animated_gif(animation: Animation, side: int = GIF_SIDE) -> bytes:
    """The same as a GIF."""
    return gif(animation.images(side), animation.seconds)


def strip(animation: Animation, caption: str = "the sketch") -> Image:
    """X_t at a few steps from left to right, then the sketch under `caption`, as in the paper's figure 3."""
    from PIL import Image, ImageDraw

    *before, last = animation.scenes
    times = [scene.t for scene in before]
    chosen = nearest_indices(times, [share * times[0] for share in STRIP_FRACTIONS]) if before else []
    scenes = [*(before[index] for index in chosen), last]
    width = SPACE + len(scenes) * (PANEL + SPACE) + ARROW
    page = Image.new("RGB", (width, CAPTION + PANEL + SPACE), Style().background)
    pen = ImageDraw.Draw(page)
    style = Style().sized(PANEL)
    images = replace(animation, scenes=tuple(scenes)).images(PANEL)
    for number, (scene, image) in enumerate(zip(scenes, images, strict=True)):
        x = SPACE + number * (PANEL + SPACE) + (ARROW if scene is last else 0)
        page.paste(image, (x, CAPTION))
        pen.rectangle((x, CAPTION, x + PANEL - 1, CAPTION + PANEL - 1), outline=BORDER_COLOR)
        raster.draw_text(page, f"t = {scene.t:,}" if scene.t else caption, x + PANEL / 2, CAPTION / 2, style)
    page.paste(_arrow(style), (width - SPACE - PANEL - ARROW, CAPTION))
    return page


def nearest_indices(times: Sequence[int], targets: Iterable[float]) -> list[int]:
    """The indices of the times nearest to the targets, each once, in order.

    >>> nearest_indices([90, 40, 10, 0], [100, 80, 12])
    [0, 2]
    """
    return sorted({min(range(len(times)), key=lambda index: abs(times[index] - t)) for t in targets})


def superposed_primitives(rows: SketchBatch, arc_scalar: layout.ArcScalar) -> Iterator[WeightedPrimitive]:
    """Every row of one sketch as each kind, solid and construction, where that is a valid primitive."""
    for kind in Kind:
        for construction in (False, True):
            chance = rows.kind[0, :, kind] * rows.construction[0, :, int(construction)]
            certain = SketchBatch(
                one_hot(torch.full_like(chance, int(construction), dtype=torch.long)[None], layout.NUM_CONSTRUCTION),
                one_hot(torch.full_like(chance, kind, dtype=torch.long)[None], layout.NUM_KINDS),
                rows.params,
            )
            for item in decoded_primitives(certain, arc_scalar):
                yield WeightedPrimitive(item.primitive, float(chance[item.row]), item.row)


def decoded_primitives(rows: SketchBatch, arc_scalar: layout.ArcScalar) -> Iterator[WeightedPrimitive]:
    """The most likely primitives of one sketch, with probability 1."""
    (decoded,) = decode(rows, arc_scalar)
    kinds = rows.kind[0].argmax(dim=-1).tolist()
    for row, primitive in zip(primitive_rows(kinds, decoded), decoded.sketch, strict=True):
        yield WeightedPrimitive(primitive, 1.0, row)


def primitive_rows(kinds: Sequence[int], decoded: Decoded) -> tuple[int, ...]:
    """The rows, of these kinds, that were decoded to primitives."""
    rejected = {issue.row for issue in decoded.rejects}
    return tuple(row for row, kind in enumerate(kinds) if kind != layout.NONE and row not in rejected)


def _arrow(style: Style) -> Image:
    tip, tail, wing = (ARROW * 0.38, 0.0), (-ARROW * 0.38, 0.0), ARROW * 0.2
    lines = [Line(tail, tip), *(Line((tip[0] - wing, y), tip) for y in (-wing, wing))]
    view = Frame(ARROW, PANEL, (0.0, 0.0), 1.0)
    return raster.draw_strokes([Stroke(line, style.text_color, style.width) for line in lines], view, style)
