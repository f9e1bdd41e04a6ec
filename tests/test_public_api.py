"""The public names of each package, pinned: adding or removing one is a decision."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import sketchdnn

PUBLIC = {
    "sketchdnn": """Arc Circle CompleteRequest Conditions FormatError GenerateRequest Line OutputOptions Point
        Sketch SketchDNN SketchError TraceOptions dumps loads read svg trace write""",
    "sketchdnn.geometry": """Arc Bezier Box Chain Circle Constraint ConstraintType EXTERNAL EllipticArc Kind Line
        Loop MM_PER_UNIT Overlap ParametricCurve Part Placement Point Primitive Profile Ref Sketch TAU Vec
        approximate arc_from_angles arc_from_bulge arc_from_sweep bounds bulge normalize overlaps profile
        quadratic_bezier tessellate""",
    "sketchdnn.constraints": """Action ActionKind ConstrainAlternative ConstrainOptions ConstrainResult Drag
        DragResult EditResult Freedom REPAIR_TOLERANCE RepairedSketch RoundOptions RoundResult Solution TOLERANCE
        alternatives constrain drag infer repair repair_all round_dimensions solve solve_edited""",
    "sketchdnn.tracing": "TraceOptions TraceResult overlay read_picture trace",
    "sketchdnn.drawing": "DrawingOptions HAND INERTIA PHOTO PRECISE Pictures draw",
    "sketchdnn.formats": """Conversion DEFAULT_READ_OPTIONS FORMATS Format Losses Note ReadItem ReadOptions
        ReadResult Skipped collect convert detect_format dumps find_writer loads read scan write""",
    "sketchdnn.render": """Frame PALETTE Stroke Style describe frame gallery_html gallery_png gallery_svg png
        strokes svg""",
    "sketchdnn.representation": """Compact Decoded Issue SketchBatch decode decode_compact encode encode_table
        expand from_flat relevant""",
    "sketchdnn.data": "Dataset PRESETS PrepareConfig Procedural SPLITS Split prepare",
    "sketchdnn.diffusion": """Bins Conditioning Denoiser Elbo GaussianSoftmax JointProcess Loss Progress SAMPLERS
        Sampler SamplingOptions Schedule Start augment authors_cosine authors_loss authors_process
        condition_on_rows cosine draw_steps elbo linear log_linear_snr our_loss our_process paper_loss
        paper_process register_sampler sample_ancestral sample_authors sample_ddim sample_dpm_solver_pp
        sample_few_step sample_predictor_corrector sample_restart seeded_noise step_sequence""",
    "sketchdnn.systems": """ConditionMask ConfigError Preset PretrainedError RowForm SYSTEMS System TrainingIndex
        build_training_index config_from_dict config_to_dict find_system from_pretrained load_preset preset_names
        register_system save_pretrained save_training_index""",
    "sketchdnn.evaluation": """Estimate Evaluation EvaluationRequest Evaluator FAST Protocol Settings
        compare_systems load_report""",
    "sketchdnn.generation": """CompleteRequest Conditions GenerateRequest GeneratedSketch OutputOptions
        OutputSummary SketchDNN complete stream write_sketches""",
}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_pinned(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_package_reexports_names() -> None:
    from sketchdnn import errors, formats, geometry

    assert sketchdnn.Sketch is geometry.Sketch
    assert sketchdnn.read is formats.read
    assert sketchdnn.SketchError is errors.SketchError
    assert sketchdnn.FormatError is errors.FormatError
    assert set(sketchdnn.__all__) <= set(dir(sketchdnn))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sketchdnn.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("from sketchdnn import *; print(len(Sketch((Line((0, 0), (1, 0)),))), read.__name__)", "1 read\n"),
        ("import sys, sketchdnn as s; s.__version__, s.FormatError; print('torch' in sys.modules)", "False\n"),
    ],
)
def test_star_import_works_and_errors_do_not_import_torch(program: str, printed: str) -> None:
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == printed


def test_missing_file_model_or_corpus_is_a_file_not_found_error(tmp_path: Path) -> None:
    from sketchdnn.data import Dataset, prepare
    from sketchdnn.formats import convert
    from sketchdnn.systems import from_pretrained

    missing, out = tmp_path / "missing.dxf", tmp_path / "out.jsonl"
    for opens in (
        lambda: sketchdnn.read(missing),
        lambda: convert(missing, out),
        lambda: convert(missing, f"{tmp_path}/out/"),
        lambda: prepare([missing], tmp_path / "corpus"),
        lambda: Dataset.open(missing),
        lambda: from_pretrained(missing),
        lambda: from_pretrained(tmp_path),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            opens()
        assert isinstance(caught.value, sketchdnn.SketchError)
        assert str(caught.value).startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())
