"""ONNX files: they predict what the model predicts, and are refused if they are anything else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.commands import refused, run
from support.random_batches import clean_batch, random_prediction
from support.students import small_teacher

from sketchdnn.diffusion.process import parts
from sketchdnn.errors import MissingError, SketchError
from sketchdnn.generation import SketchDNN
from sketchdnn.systems import System, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.onnx_file import TOLERANCE, OnnxError, export_onnx, with_onnx
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.students import make_student
from sketchdnn.systems.system import ConditionMask

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx")
    save_pretrained(small_teacher(), folder / "model")
    export_onnx(from_pretrained(folder / "model"), folder / "model.onnx")
    return folder


@pytest.fixture
def system(folder: Path) -> System:
    return from_pretrained(folder / "model")


def assert_agrees(fast: RowDenoiser[Any], system: RowDenoiser[Any], batch: int, *, two_time: bool = False) -> None:
    """Equal predictions, with a mask and without, up to the tolerance relative to the largest number."""
    generator = torch.Generator().manual_seed(batch)
    rows, previous = clean_batch(batch), random_prediction(batch)
    known = torch.rand(batch, 16, generator=generator) < 0.3
    t = torch.randint(1, system.config.num_steps + 1, (batch,), generator=generator)
    t[0] = system.config.num_steps
    options = {"s": t // 2} if two_time else {}
    for mask in (None, ConditionMask(known, known, known)):
        with torch.no_grad():
            expected = system.denoise(rows, t, mask, previous, **options)
        for found, wanted in zip(parts(fast.denoise(rows, t, mask, previous, **options)), parts(expected), strict=True):
            assert float((found - wanted).abs().max()) <= TOLERANCE * max(1.0, float(wanted.abs().max()))


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_predictions_agree_for_any_batch(folder: Path, system: System, batch: int) -> None:
    assert_agrees(with_onnx(system, folder / "model.onnx"), system, batch)


def test_generation_by_onnxruntime(folder: Path) -> None:
    model = SketchDNN.from_pretrained(folder / "model", device="cpu", onnx=folder / "model.onnx")
    options = {"seed": 1, "steps": 3, "repair": False}
    sketches = model.generate(3, **options)
    assert sketches[2:] == model.generate(1, start_index=2, **options)


def _without_facts(model: Any) -> None:
    del model.metadata_props[:]


def _with_operator(model: Any) -> None:
    model.graph.node.append(onnx.helper.make_node("Loop", ["t"], ["more"]))


def _with_external_data(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def _with_other_domain(model: Any) -> None:
    model.graph.node[0].domain = "com.example"


def _with_other_weights(model: Any) -> None:
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2 and tensor.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(tensor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values * 1.5, tensor.name))


def _without_a_node(model: Any) -> None:
    del model.graph.node[100]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without_facts, "no export of this version"),
        (_with_operator, "has parts that no export"),
        (_with_external_data, "has parts that no export"),
        (_with_other_domain, "has parts that no export"),
        (_with_other_weights, "predicts something else"),
        (_without_a_node, "cannot run it"),
    ],
)
def test_changed_files_are_refused(
    folder: Path, system: System, tmp_path: Path, change: Callable[[Any], None], reason: str
) -> None:
    model = onnx.load(folder / "model.onnx")
    change(model)
    (tmp_path / "changed.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(OnnxError, match=reason):
        with_onnx(system, tmp_path / "changed.onnx")


def test_other_files_are_refused(folder: Path, system: System, tmp_path: Path) -> None:
    with pytest.raises(OnnxError, match="another model"):
        with_onnx(small_teacher(seed=1), folder / "model.onnx")
    for content in (b"", b"no model", (folder / "model.onnx").read_bytes()[:5000]):
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(OnnxError, match=r"damaged|no export"):
            with_onnx(system, tmp_path / "bad.onnx")
    (tmp_path / "large.onnx").write_bytes(bytes(40 << 20))
    with pytest.raises(OnnxError, match="larger"):
        with_onnx(system, tmp_path / "large.onnx")
    with pytest.raises(MissingError, match="no such file"):
        with_onnx(system, tmp_path / "none.onnx")


def test_models_without_such_a_denoiser_are_refused(system: System, tmp_path: Path) -> None:
    with pytest.raises(OnnxError, match="no student"):
        export_onnx(system, tmp_path / "a.onnx", student=True)
    with pytest.raises(OnnxError, match="only models with our network"):
        export_onnx(load_preset("tiny", "vitruvion").make(), tmp_path / "a.onnx")


def test_the_command_line_refuses_with_a_sentence(folder: Path, tmp_path: Path) -> None:
    assert "name it net.onnx" in refused("export-onnx", "--out", tmp_path / "net.bin")
    assert "exists" in refused("export-onnx", "--model", folder / "model", "--out", folder / "model.onnx")
    options = [
        "--model",
        folder / "model",
        "--device",
        "cpu",
        "--onnx",
        folder / "model.onnx",
        "--out",
        tmp_path / "out",
    ]
    assert "its own precision" in refused("generate", *options, "--precision", "float32")
    run("generate", *options, "--count", 2, "--steps", 2, "--no-repair")
    with pytest.raises(SketchError, match="own precision"):
        SketchDNN.from_pretrained(folder / "model", precision="float32", onnx=folder / "model.onnx")


@pytest.mark.slow
def test_students_and_the_shipped_model_agree(tmp_path: Path) -> None:
    teacher = small_teacher()
    teacher.attach_student(make_student(teacher, "flow_map").eval())
    export_onnx(teacher, tmp_path / "student.onnx", student=True)
    assert_agrees(with_onnx(teacher, tmp_path / "student.onnx").student, teacher.student, 3, two_time=True)
    shipped = from_pretrained()
    export_onnx(shipped, tmp_path / "ours.onnx")
    assert_agrees(with_onnx(shipped, tmp_path / "ours.onnx"), shipped, 3)
