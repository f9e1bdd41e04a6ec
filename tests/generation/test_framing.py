"""Parts in frames: where they lie, how they condition the model, and how added primitives are restored."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.generation import PART
from support.strategies import sketches

from sketchdnn.errors import SketchError
from sketchdnn.generation import framing
from sketchdnn.generation.conditioning import drop_tiny, encode_sketches
from sketchdnn.generation.context import Context, choose_context
from sketchdnn.generation.engine import SampleId
from sketchdnn.geometry import Circle, Kind, Line, Placement, Sketch, bounds, overlaps
from sketchdnn.representation import decode
from sketchdnn.representation.layout import MAX_PRIMITIVES, NONE
from sketchdnn.systems import RowForm

UNIFORM = st.floats(0, 1, exclude_max=True)
SCALE = st.floats(1, framing.MAX_SCALE)


def smallest_frame(part: Sketch, scale: float = 1.0) -> Placement:
    return framing.choose_frame(bounds(part), (scale, scale), 0, 1, ())[1]


@given(sketches(min_size=1), st.tuples(SCALE, SCALE), st.integers(0, 7), st.tuples(UNIFORM, UNIFORM, UNIFORM))
def test_part_lies_inside_its_frame(
    part: Sketch, ends: tuple[float, float], trial: int, choices: tuple[float, float, float]
) -> None:
    box, scales = bounds(part), (min(ends), max(ends))
    if box.size == 0:
        return
    scale, frame = framing.choose_frame(box, scales, trial, 8, choices)
    assert scales[0] <= scale <= scales[1] * (1 + 1e-12)
    width, height = (side / frame.scale for side in (box.width, box.height))
    assert max(width, height) == pytest.approx(2 / scale)
    middle = [(at - center) / frame.scale for at, center in zip(box.center, frame.center, strict=True)]
    assert abs(middle[0]) + width / 2 <= 1 + 1e-6
    assert abs(middle[1]) + height / 2 <= 1 + 1e-6


def test_frames_are_the_smallest_or_lie_to_a_side() -> None:
    box = bounds(Sketch((Line((10, 10), (30, 20)),)))
    scale, frame = framing.choose_frame(box, (1.0, 2.0), 0, 4, (0.9, 0.1, 0.9))
    assert (scale, frame.center, frame.scale) == (1.0, (20.0, 15.0), 10.0)
    scales = [framing.choose_frame(box, (1.0, 2.0), trial, 8, (0.5, 0.5, 0.5))[0] for trial in range(8)]
    assert (scales[::2], scales[1::2]) == ([1.0] * 4, sorted(set(scales[1::2])))
    assert 1 < scales[1] < scales[-1] < 2
    part = Sketch((Line((0, 0), (10, 0)),))
    frames = [framing.choose_frame(bounds(part), (2, 2), 1, 2, (0, choice, 0.5))[1] for choice in (0.1, 0.5, 0.9)]
    assert [bounds(framing.FramedPart(part, frame, SampleId(0)).known).low[0] for frame in frames] == pytest.approx(
        [-1, -0.5, 0]
    )


@given(sketches(min_size=1), SCALE)
def test_frame_restores_a_part(part: Sketch, scale: float) -> None:
    box = bounds(part)
    if box.size < 1e-3:
        return
    frame = smallest_frame(part, scale)
    restored = frame.restore(framing.FramedPart(part, frame, SampleId(0)).known)
    for one, other in zip(restored, drop_tiny(part, frame.scale), strict=True):
        assert one.kind is other.kind
        assert one.length == pytest.approx(other.length, rel=1e-6, abs=1e-9 * box.size)


def test_scale_is_a_range_within_limits() -> None:
    assert framing.check_scale(1.0, 4.0) == (1.0, 4.0)
    for scale in ((0.5, 0.5), (4.5, 4.5), (2.0, 1.0), (0.9, 2.0), (float("nan"), 2.0)):
        with pytest.raises(SketchError, match="1 to 4"):
            framing.check_scale(*scale)


@pytest.mark.parametrize("form", [RowForm(), RowForm("signed_radius", "zero", canonical_lines=False)])
def test_conditioning_holds_the_part_in_its_frame(form: RowForm) -> None:
    frame = smallest_frame(PART, 1.5)
    added = (Kind.CIRCLE, Kind.CIRCLE, Kind.ARC)
    parts = [framing.FramedPart(PART, frame, SampleId(0)), framing.FramedPart(PART, frame, SampleId(1), added)]
    known = framing.condition_on_parts(parts, form, "repaint")
    assert (known.resamples, known.kind.sum(dim=1).tolist()) == (framing.RESAMPLES, [6, MAX_PRIMITIVES])
    assert known.construction.sum(dim=1).tolist() == [6, 6]
    assert known.params[..., 0].sum(dim=1).tolist() == [6, 6]
    assert known.batch.kind[1, 6:].argmax(dim=-1).tolist() == [*added, *[NONE] * (MAX_PRIMITIVES - 9)]
    (decoded, _) = decode(known.batch, form.arc_scalar)
    line = decoded.sketch.primitives[0]
    assert isinstance(line, Line)
    assert (line.start < line.end) == form.canonical_lines
    placed = parts[0].known
    assert [p.length for p in decoded.sketch] == pytest.approx([p.length for p in placed], rel=1e-4, abs=1e-6)
    assert [p.construction for p in decoded.sketch] == [p.construction for p in placed]


def test_duplicates_and_collapsed_primitives_are_left_out() -> None:
    square = Sketch((Line((-1, -1), (1, -1)), Line((-1, 1), (1, 1))))
    again = (Line((1, -1.004), (-1, -1)), Line((-0.5, 1), (0.5, 1)), Circle((0, 0), 0.5), Circle((0, 0.003), 0.5))
    frame = smallest_frame(square)
    rows = encode_sketches([Sketch(square.primitives + again)], RowForm())
    (completed,) = framing.decode_completions([framing.FramedPart(square, frame, SampleId(0))], rows, "sweep")
    assert completed.sketch.primitives[2:] == pytest.approx((Circle((0, 0), 0.5),))
    assert completed.num_added == 1
    assert not overlaps(completed.sketch, framing.DUPLICATE_TOLERANCE)
    assert completed.misfit == pytest.approx(0)
    # Far from the origin numbers are 1.5e-5 apart.
    part = Sketch((Line((1e11, 0), (1e11 + 10, 0)), Line((1e11 + 10, 0), (1e11 + 10, 10))))
    framed = framing.FramedPart(part, smallest_frame(part), SampleId(0))
    drawn = Sketch((*framed.known, Line((0.5, 0.5), (0.5 + 1e-7, 0.5)), Circle((0, 0), 0.5)))
    (completed,) = framing.decode_completions([framed], encode_sketches([drawn], RowForm()), "sweep")
    assert completed.sketch.primitives[:2] == part.primitives
    assert [p.kind for p in completed.sketch.primitives[2:]] == [Kind.CIRCLE]
    assert (completed.num_added, completed.rejected) == (1, (framing.COLLAPSED,))
    assert torch.isfinite(torch.tensor(completed.misfit))


def test_context_is_what_lies_near() -> None:
    lines = Sketch(tuple(Line((x, 0), (x, 1)) for x in range(20)))
    assert choose_context(lines, [(19.0, 3.0)], 3).primitives == (17, 18, 19)
    context = choose_context(lines, [(0.2, 0.5), (18.9, 0.5)], 6)
    assert context.primitives == (0, 1, 2, 17, 18, 19)
    samples = [SampleId(0), SampleId(1)]
    one, other = framing.frame_part(lines, (1.0, 1.0), samples, 0, [Context((0, 1, 2)), context])
    assert (len(one.known), len(other.known), one.framed.primitives[:3]) == (3, 6, one.known.primitives)
    assert (one.frame.center, one.frame.scale) == ((1.0, 0.5), 1.0)
    assert (other.frame.center, other.frame.scale) == ((9.5, 0.5), 9.5)
    # What repeats a primitive outside the context is left out.
    rows = encode_sketches([Sketch((*one.known, Line((0, 0), (0, 0.5)), one.framed.primitives[9]))], RowForm())
    (completed,) = framing.decode_completions([one], rows, "sweep")
    assert completed.sketch.primitives[:20] == lines.primitives
    assert completed.num_added <= 1
