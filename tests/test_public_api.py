"""What each room offers to others, pinned: a name that appears or goes is a decision, not an accident."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import sketchdnn

PUBLIC = {
    "sketchdnn": "Arc Circle Line Point Sketch SketchDNN read write",
    "sketchdnn.geometry": """
        Arc Bezier Box Chain Circle Constraint ConstraintType EXTERNAL EllipticArc GeometryError Kind Line Loop
        MM_PER_UNIT Overlap ParametricCurve Part Placement Point Primitive Profile Ref Sketch SketchError TAU Vec
        approximate arc_from_angles arc_from_bulge arc_from_points arc_from_signed_radius arc_from_sweep bounds bulge
        normalise overlaps profile quadratic_bezier signed_radius tessellate
    """,
    "sketchdnn.formats": """
        Conversion DEFAULT_READING FORMATS Format FormatError Found Losses Note ReadOptions Reading Skipped convert
        format_of gather quoted read scan shown write writer_of
    """,
    "sketchdnn.render": """
        Frame PALETTE Stroke Style describe frame gallery_html gallery_png gallery_svg png strokes svg
    """,
    "sketchdnn.representation": """
        Compact Decoded Issue SketchBatch decode decode_compact encode encode_table expand from_flat relevant
    """,
    "sketchdnn.data": """
        Dataset PRESETS PrepareConfig Procedural SPLITS Split prepare
    """,
    "sketchdnn.diffusion": """
        Bins Denoiser Elbo GaussianSoftmax Given JointProcess Loss Schedule ancestral augment authors authors_cosine
        authors_loss authors_process cosine ddim dpm_solver_pp draw_steps elbo given_rows linear log_linear_snr our_loss
        our_process paper_loss paper_process report_bits seeded_noise step_sequence
    """,
    "sketchdnn.systems": """
        ConfigError GivenFlags Known Preset PretrainedError RowForm SAMPLERS SYSTEMS System from_pretrained
        from_table known_of load_preset preset_names save_known save_pretrained to_table
    """,
    "sketchdnn.evaluation": """
        Estimate Evaluation FAST Protocol Request Run Settings compare_systems evaluate load_report
    """,
    "sketchdnn.generation": """
        Completion Conditions Drawing SketchDNN complete draw draw_like write_sketches
    """,
}


@pytest.mark.parametrize("room", PUBLIC)
def test_a_room_offers_these_names_and_no_others(room: str) -> None:
    module = importlib.import_module(room)
    assert sorted(module.__all__) == sorted(PUBLIC[room].split())
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_names_of_the_package_are_those_of_the_rooms() -> None:
    from sketchdnn import formats, geometry

    assert sketchdnn.Sketch is geometry.Sketch
    assert sketchdnn.read is formats.read
    assert set(sketchdnn.__all__) <= set(dir(sketchdnn))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sketchdnn.nonsense  # type: ignore[attr-defined]


def test_star_import_works() -> None:
    program = "from sketchdnn import *; print(Sketch((Line((0, 0), (1, 0)),)), read.__name__)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("read\n")
