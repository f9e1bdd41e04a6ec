"""Few-step students of SketchDNN: made from their teacher, stored beside it, and rebuilt from both.

A student has the config of its teacher with one more input, the noise level of the next step. Its weights are stored
whole, or as an adapter: low-rank changes of the teacher's matrices and all of the small tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from sketchdnn.errors import SketchError
from sketchdnn.networks.low_rank import LowRankLinear, adapters, add_adapters
from sketchdnn.networks.set_denoiser import SetDenoiserConfig

from .sketchdnn import FEW_STEP_METHODS, FewStepMethod, SketchDNNConfig, SketchDNNSystem

# The input that a teacher lacks: its weights are always stored whole.
_NEW_LAYER = "embed_next_level"


@dataclass(frozen=True, slots=True)
class StudentFacts:
    """The method and the rank of a stored student. A rank of 0 means that all weights are its own."""

    method: FewStepMethod
    rank: int

    @classmethod
    def parse(cls, facts: object) -> StudentFacts:
        """The facts of a model file, which may be of any origin.

        Raises:
            ValueError: They describe no student.
        """
        if not isinstance(facts, Mapping):
            raise ValueError("the student must be a table")
        method, rank = facts.get("method"), facts.get("rank")
        if method not in FEW_STEP_METHODS[1:] or not isinstance(rank, int) or isinstance(rank, bool) or rank < 0:
            raise ValueError("the student must have a method and a rank")
        return cls(method, rank)


def make_student(teacher: SketchDNNSystem, method: FewStepMethod, rank: int = 0) -> SketchDNNSystem:
    """A student with copies of the weights of its teacher, which at first gives the same predictions.

    Raises:
        SketchError: The network of the teacher cannot take the next noise level.
    """
    config = teacher.config
    if not isinstance(config, SketchDNNConfig) or not isinstance(config.network, SetDenoiserConfig):
        raise SketchError("a student needs a model of the system sketchdnn with our network; this is another model")
    if config.network.next_level:
        raise SketchError("this model is a student itself; distill its teacher")
    network = replace(config.network, next_level=True, dropout=0.0)
    student = type(teacher)(replace(config, network=network, few_step=method, reverse_logits="expected"))
    student.load_state_dict(student.state_dict() | teacher.state_dict())
    student.to_device(next(teacher.parameters()).device)
    if rank:
        add_adapters(student.network, rank, (_NEW_LAYER,))
    return student


def student_rank(student: SketchDNNSystem) -> int:
    """The rank of its adapter; 0 without one."""
    return max((len(layer.low_rank_down) for layer in adapters(student)), default=0)


def student_tensors(student: SketchDNNSystem) -> dict[str, Tensor]:
    """The weights to store: all of them, or those that an adapter changes."""
    if not student_rank(student):
        return student.state_dict()
    fixed = {f"{name}.weight" for name, layer in student.named_modules() if isinstance(layer, LowRankLinear)}
    return {name: weight for name, weight in student.state_dict().items() if name not in fixed}


def student_facts(student: SketchDNNSystem) -> dict[str, Any]:
    """The entries of a model file, without the hash of the weights."""
    return {"method": student.config.few_step, "rank": student_rank(student)}


def rebuild_student(teacher: SketchDNNSystem, facts: StudentFacts, tensors: Mapping[str, Tensor]) -> SketchDNNSystem:
    """The student of stored weights, ready to sample.

    Raises:
        ValueError: The weights do not fit the teacher.
    """
    if facts.rank >= min(teacher.config.network.width, 1 << 14):
        raise ValueError("the rank of the student is larger than its layers")
    student = make_student(teacher, facts.method, facts.rank)
    if expected := student_tensors(student).keys() ^ tensors.keys():
        raise ValueError(f"the student has other weights than it should: {min(expected)}")
    try:
        student.load_state_dict(student.state_dict() | dict(tensors))
    except RuntimeError as error:
        raise ValueError((str(error).splitlines() or [""])[0]) from error
    for layer in adapters(student):
        layer.merge()
    return student.eval()
