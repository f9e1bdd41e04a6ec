"""The denoiser as an ONNX file: for other programs, and for onnxruntime in place of PyTorch.

A file holds one evaluation of the denoiser of a model or of its student, with all inputs but the flag of auxiliary
samples; the sampler is not part of it. It names the weights that it was made from.

A file is not trusted. It is read for a model at hand: it cannot be larger than the weights, has only operators that an
export has, no data in other files and the inputs that are expected, and must predict what the model predicts.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import parts
from sketchdnn.errors import MissingError, SketchError, display_path
from sketchdnn.io import atomic_write
from sketchdnn.networks.set_denoiser import NUM_MASK_FLAGS, SetDenoiser
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch

from .row_denoiser import RowDenoiser, null_prediction
from .sketchdnn import SketchDNNSystem
from .system import ConditionMask, System

NEEDED = "pip install 'sketchdnn[onnx]'"
_FORMAT = "1"
_PREFIX = "sketchdnn."
# Bytes of a file beside its weights in float32, and nodes of its graph.
_MAX_OVERHEAD, _MAX_NODES = 16 << 20, 10_000
# Rows that an export is traced with; any number may be sampled.
_TRACED_BATCH = 5
# How far predictions of a file may be from those of the model, relative to their own size.
TOLERANCE = 1e-3
_OPERATORS = (
    "Add And Cast CastLike Clip Concat Constant Cos Div Equal Exp Expand Gather GatherND Gemm Greater Identity "
    "Less Log MatMul Max Mod Mul Neg Not Pow Range Reciprocal ReduceMax ReduceMean ReduceSum Reshape "
    "SequenceAt Shape Sigmoid Sin Slice Softmax SplitToSequence Sqrt Squeeze Sub Transpose Unsqueeze Where"
)


class OnnxError(SketchError):
    """A model that cannot be exported, or a file that cannot be used."""


def export_onnx(system: System, file: str | Path, *, student: bool = False) -> None:
    """Write the denoiser of a model, or of its student, as an ONNX file. It takes about a minute.

    Args:
        system: The model.
        file: Where to write.
        student: Export the student of the model.

    Raises:
        OnnxError: The model has no such denoiser, or the extra `onnx` is not installed.
    """
    target = _denoiser_of(system, student=student)
    onnx = _import("onnx")
    _import("onnxscript")
    inputs = _inputs(target, _TRACED_BATCH)
    # At least four, so that the network pads nothing in the trace; the file takes any number.
    rows = torch.export.Dim("batch", min=_TRACED_BATCH - 1, max=1 << 16)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        previous_level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            program: Any = torch.onnx.export(
                _Evaluation(target).eval(),
                tuple(inputs.values()),
                dynamo=True,
                verbose=False,
                optimize=False,  # it removes additions of small numbers, which keep logarithms finite
                input_names=list(inputs),
                output_names=list(_OUTPUTS),
                dynamic_shapes=(tuple({0: rows} for _ in inputs),),
            )
        finally:
            logging.disable(previous_level)
    model = program.model_proto
    del model.graph.value_info[:]  # shapes of the traced batch
    facts = {"format": _FORMAT, "network": "student" if student else "model", "weights": weights_hash(target)}
    onnx.helper.set_model_props(model, {_PREFIX + name: fact for name, fact in facts.items()})
    with atomic_write(Path(file)) as temporary:
        temporary.write_bytes(model.SerializeToString())


def with_onnx(system: System, file: str | Path, threads: int | None = None) -> System:
    """A copy of a model on the CPU, with the same weights, whose predictions are computed by onnxruntime.

    Args:
        system: The model that the file was exported from.
        file: The file.
        threads: Threads of onnxruntime; by default those of PyTorch.

    Raises:
        OnnxError: The file cannot be used with this model.
    """
    runtime = _import("onnxruntime")
    content = _read(Path(file), system)
    facts, name = _check(content, file), display_path(file)
    student = facts["network"] == "student"
    target = _denoiser_of(system, student=student)
    if next(target.parameters()).device.type != "cpu":
        raise OnnxError("an ONNX file is for the CPU: choose --device cpu")
    if facts["weights"] != weights_hash(target):
        raise OnnxError(f"{name}: it was exported from another model; export this one again")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or torch.get_num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        found = {each.name for each in session.get_inputs()}, [each.name for each in session.get_outputs()]
        expected = _inputs(target, 2)
        if found != (set(expected), list(_OUTPUTS)):
            raise OnnxError(f"{name}: it has other inputs or outputs than this model; export the model again")
        denoise = _OnnxDenoiser(session, list(expected))
        error = _disagreement(denoise, target, expected)
    except OnnxError:
        raise
    except Exception as failure:  # the library raises many types
        raise OnnxError(f"{name}: onnxruntime cannot run it; export the model again") from failure
    if not error <= TOLERANCE:
        raise OnnxError(f"{name}: it predicts something else than this model; export the model again")
    fast = copy.copy(target)
    fast.__dict__["denoise"] = denoise
    if not student:
        return fast
    whole = copy.copy(system)
    assert isinstance(whole, SketchDNNSystem)  # noqa: S101
    assert isinstance(fast, SketchDNNSystem)  # noqa: S101
    whole.attach_student(fast)
    return whole


def weights_hash(system: System) -> str:
    """SHA-256 of the weights as they are in memory."""
    digest = hashlib.sha256()
    for name, weight in sorted(system.state_dict().items()):
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


# Names differ from those of the inputs.
_OUTPUTS = ("construction_logits", "kind_logits", "clean_params")


class _Evaluation(nn.Module):
    """The denoiser as a function of plain tensors."""

    def __init__(self, system: RowDenoiser[Any]) -> None:
        super().__init__()
        self.system = system

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        given = iter(tensors)
        batch = SketchBatch(next(given), next(given), next(given))
        t, flags = next(given), next(given)
        construction, kind, params = (flags[..., number] for number in range(NUM_MASK_FLAGS))
        mask = ConditionMask(construction, kind, params)
        system = self.system
        previous = Prediction(next(given), next(given), next(given)) if system.self_conditioning else None
        s = next(given, None)
        prediction = system.denoise(batch, t, mask, previous, s)
        return prediction.construction_logits, prediction.kind_logits, prediction.params


class _OnnxDenoiser:
    """`RowDenoiser.denoise`, computed by a session of onnxruntime."""

    def __init__(self, session: Any, names: Sequence[str]) -> None:
        self.session, self.names = session, names

    def __call__(
        self,
        batch_t: SketchBatch,
        t: Int[Tensor, " batch"],
        mask: ConditionMask | None = None,
        previous: Prediction | None = None,
        s: Int[Tensor, " batch"] | None = None,
    ) -> Prediction:
        if mask is None:
            flags = torch.zeros(*batch_t.kind.shape[:2], NUM_MASK_FLAGS, dtype=torch.bool)
        elif mask.auxiliary is not None:
            raise OnnxError("an ONNX file has no input for auxiliary samples")
        else:
            flags = mask.stacked()
        tensors = [*parts(batch_t), t, flags]
        if "previous_params" in self.names:
            tensors += parts(null_prediction(batch_t.params) if previous is None else previous)
        if "s" in self.names:
            tensors.append(t if s is None else s)
        given = {name: tensor.contiguous().numpy() for name, tensor in zip(self.names, tensors, strict=True)}
        return Prediction(*map(torch.from_numpy, self.session.run(list(_OUTPUTS), given)))


def _denoiser_of(system: System, *, student: bool) -> RowDenoiser[Any]:
    if student and (not isinstance(system, SketchDNNSystem) or system.student is None):
        raise OnnxError("this model has no student; `sketchdnn distill` makes one")
    target = system.student if student and isinstance(system, SketchDNNSystem) else system
    if not isinstance(target, RowDenoiser) or not isinstance(target.network, SetDenoiser):
        raise OnnxError(f"only models with our network are exported; this is a '{system.name}' with another one")
    return target


def _inputs(system: RowDenoiser[Any], batch: int) -> dict[str, Tensor]:
    """Inputs by name, in the order of `_Evaluation`, with values like those in sampling."""
    noise, other = (seeded_noise(0, torch.arange(batch))(draw) for draw in (0, 1))
    # In every other sketch some of the rows are known, and the others have a previous prediction.
    flags = (torch.arange(layout.MAX_PRIMITIVES) < 4) & (torch.arange(batch)[:, None] % 2 == 0)
    t = torch.linspace(1, system.config.num_steps, batch).long()
    named = {"construction": noise.construction.softmax(dim=-1), "kind": noise.kind.softmax(dim=-1)}
    named |= {"params": noise.params, "t": t, "mask": flags[..., None].expand(-1, -1, NUM_MASK_FLAGS).contiguous()}
    if system.self_conditioning:
        previous = parts(null_prediction(other.params))
        is_null = torch.arange(batch)[:, None, None] % 2 == 0
        values = (torch.where(is_null, empty, part) for empty, part in zip(previous, parts(other), strict=True))
        names = ("previous_construction_logits", "previous_kind_logits", "previous_params")
        named |= dict(zip(names, values, strict=True))
    if getattr(system.config.network, "next_level", False):
        named["s"] = t // 2
    return named


def _disagreement(denoise: _OnnxDenoiser, system: RowDenoiser[Any], inputs: Mapping[str, Tensor]) -> float:
    """The largest difference of predictions from those of the model, relative to the size of an output."""
    with torch.no_grad():
        expected = _Evaluation(system)(*inputs.values())
    given = {name: tensor.numpy() for name, tensor in inputs.items()}
    found = [torch.from_numpy(each) for each in denoise.session.run(list(_OUTPUTS), given)]
    if any(a.shape != b.shape for a, b in zip(found, expected, strict=True)):
        return float("inf")
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in zip(found, expected, strict=True))


def _read(file: Path, system: System) -> bytes:
    most = 4 * sum(weight.numel() for weight in system.state_dict().values()) + _MAX_OVERHEAD
    try:
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except FileNotFoundError as error:
        raise MissingError(f"{display_path(file)}: no such file; `sketchdnn export-onnx` writes one") from error
    if len(content) > most:
        raise OnnxError(f"{display_path(file)}: it is larger than an export of this model")
    return content


def _check(content: bytes, file: str | Path) -> dict[str, str]:
    """The facts of a file, refused unless it looks like an export."""
    onnx, name = _import("onnx"), display_path(file)
    try:
        model = onnx.ModelProto.FromString(content)
    except Exception as error:  # of protobuf, whose types differ between versions
        raise OnnxError(f"{name}: it is no ONNX file, or damaged") from error
    facts = {prop.key.removeprefix(_PREFIX): prop.value for prop in model.metadata_props}
    if facts.get("format") != _FORMAT or facts.get("network") not in ("model", "student") or "weights" not in facts:
        raise OnnxError(f"{name}: it is no export of this version of sketchdnn; `sketchdnn export-onnx` writes one")
    graph = model.graph
    tensors = list(graph.initializer) + [a.t for node in graph.node for a in node.attribute if a.HasField("t")]
    is_plain = (
        len(graph.node) <= _MAX_NODES
        and not model.functions
        and not graph.sparse_initializer
        and {node.op_type for node in graph.node} <= set(_OPERATORS.split())
        and not any(node.domain for node in graph.node)
        and not any(a.HasField("g") or a.graphs for node in graph.node for a in node.attribute)
        and not any(tensor.external_data or tensor.data_location for tensor in tensors)
    )
    if not is_plain:
        raise OnnxError(f"{name}: it has parts that no export of sketchdnn has, and is not run")
    return facts


def _import(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise OnnxError(f"ONNX files need {name}: {NEEDED}") from error
