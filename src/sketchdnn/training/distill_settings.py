"""The settings of distillation, and their values from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems.registry import config_from_dict, override_setting

from .config import RunError, TrainConfig, parse_train_config

MethodName = Literal["flow_map", "moment_matching"]
# Settings of training that differ from the defaults of `TrainConfig`.
_TRAINING: Mapping[str, Any] = {
    "learning_rate": 1e-4,
    "weight_decay": 0.0,
    "warmup": 200,
    "decay": 0.5,
    "ema": 0.999,
    "validate_every": 500,
    "minutes": 24.0,
}


@dataclass(frozen=True, slots=True)
class DistillConfig:
    """Settings of distillation beside those of training.

    Attributes:
        method: The loss.
        student_steps: Numbers of steps that the student is trained for, each equally often.
        other_starts: Fraction of samples whose steps begin below pure noise, as for variations.
        rollouts: Fraction of samples whose state is the student's own step, where there is one before.
        adapter_rank: The rank of the student's adapter; 0 trains all weights.
        teacher_steps: Of `flow_map`: steps of the teacher for one of the student's.
        critic_rate: Of `moment_matching`: the learning rate of the critic, relative to the student's.
        critic_updates: Of `moment_matching`: updates of the critic for each of the student.
        anchor: Of `moment_matching`: weight of the teacher's prediction in the target of the critic, relative to the
            generated sketch.
    """

    method: MethodName = "moment_matching"
    student_steps: tuple[int, ...] = field(default=(4, 8), metadata=within(1, 64))
    other_starts: float = field(default=0.2, metadata=within(0, 1))
    rollouts: float = field(default=0.5, metadata=within(0, 1))
    adapter_rank: int = field(default=0, metadata=within(0, 16_384))
    teacher_steps: int = field(default=8, metadata=within(1, 1000))
    critic_rate: float = field(default=2.0, metadata=within(0, 100, with_low=False))
    critic_updates: int = field(default=1, metadata=within(1, 100))
    anchor: float = field(default=0.5, metadata=within(0, 100))

    def __post_init__(self) -> None:
        check_settings(self)
        if self.method not in get_args(MethodName):
            raise RunError(f"the method must be one of {', '.join(get_args(MethodName))}, not '{self.method}'")
        if not self.student_steps:
            raise RunError("student_steps must have at least one number of steps, such as 4")


def parse_distill_settings(
    overrides: Sequence[str], own: Mapping[str, object], options: Mapping[str, Any]
) -> tuple[TrainConfig, DistillConfig]:
    """The settings of training and of distillation.

    Args:
        overrides: As `training.NAME=VALUE` and `distill.NAME=VALUE`.
        own: Settings of distillation; `overrides` take precedence over them.
        options: Settings of training; those that are not None take precedence over `overrides`.

    Raises:
        SketchError: A setting is unknown, of the wrong type or out of range.
    """
    tables: dict[str, Any] = {"training": dict(_TRAINING), "distill": dict(own)}
    for override in overrides:
        override_setting(tables, override)
    if unknown := sorted(tables.keys() - {"training", "distill"}):
        raise RunError(f"'{unknown[0]}' is no section; there are training and distill")
    if isinstance(steps := tables["distill"].get("student_steps"), str):
        if not all(part.strip().isdecimal() for part in steps.split(",")):
            raise RunError(f"the steps of a student are numbers such as 4,8, not '{steps}'")
        tables["distill"]["student_steps"] = [int(part) for part in steps.split(",")]
    config = parse_train_config(tables["training"], **options)
    return config, config_from_dict(DistillConfig, tables["distill"], "distill")
