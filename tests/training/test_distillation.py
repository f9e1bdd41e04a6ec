"""Losses of distillation: transitions, fixed points, known parts, gradients of labels, exact resume."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from support.students import small_teacher
from support.training import part_corpus

from sketchdnn.diffusion.gaussian_softmax import draw_label, draw_label_with_gradient
from sketchdnn.diffusion.noise import normal, seeded_noise, uniform
from sketchdnn.diffusion.sampling import step_sequence
from sketchdnn.errors import SketchError
from sketchdnn.representation import layout
from sketchdnn.systems.students import make_student
from sketchdnn.training.checkpoint import list_checkpoints
from sketchdnn.training.config import RunError, TrainConfig
from sketchdnn.training.distill import DistillRun, ode_endpoints
from sketchdnn.training.distill_settings import DistillConfig, parse_distill_settings
from sketchdnn.training.distillation import NUM_NOISES, NUM_UNIFORM, DistillObjective, draw_transitions
from sketchdnn.training.loop import train
from sketchdnn.training.step import random_numbers

METHODS = ("flow_map", "moment_matching")
CORPUS = part_corpus(24)
CONFIG = TrainConfig(steps=4, batch_size=4, warmup=1, decay=0, ema=0.9, conditioning=0.5, completion_tasks=True)


def _terms(student: Any, teacher: Any, config: TrainConfig, distill: DistillConfig, count: int = 16) -> torch.Tensor:
    torch.manual_seed(0)
    objective = DistillObjective(student, teacher, CORPUS, config, distill)
    numbers = torch.arange(count)
    noises = normal(0, numbers, 3, (NUM_NOISES, 16, layout.ROW_WIDTH))
    _, choices, tasks = random_numbers(0, numbers, 16)
    terms: torch.Tensor = objective(numbers, choices, tasks, noises, uniform(0, numbers, 4, (NUM_UNIFORM,)))
    return terms


@pytest.mark.parametrize("count", [1, 4, 8])
def test_transitions_are_those_of_the_sampler(count: int) -> None:
    numbers = uniform(0, torch.arange(200), 0, (4,))
    step = draw_transitions(numbers, (count,), 0.0, 2000)
    steps = step_sequence(2000, count, power=2)
    assert {*zip(step.t.tolist(), step.s.tolist(), strict=True)} == {*pairwise(steps)}
    assert torch.equal(step.first, step.t == 2000)
    earlier = dict(pairwise(steps))
    for before, t in zip(step.before[~step.first].tolist(), step.t[~step.first].tolist(), strict=True):
        assert earlier[before] == t
    others = draw_transitions(numbers, (count, 2), 1.0, 2000)
    assert bool((others.s < others.t).all() and (others.t <= others.before).all() and (others.s >= 0).all())
    assert len(others.t.unique()) > 50


def test_a_student_with_one_teacher_step_starts_without_a_loss() -> None:
    teacher = small_teacher()
    terms = _terms(make_student(teacher, "flow_map"), teacher, CONFIG, DistillConfig("flow_map", teacher_steps=1))
    assert terms.abs().max() < 1e-5
    more = _terms(make_student(teacher, "flow_map"), teacher, CONFIG, DistillConfig("flow_map", teacher_steps=4))
    assert 1e-4 < more[:3].mean() < 10


def test_moments_match_while_the_critic_is_the_teacher() -> None:
    teacher = small_teacher()
    terms = _terms(make_student(teacher, "moment_matching"), teacher, CONFIG, DistillConfig("moment_matching"))
    assert terms[:3].abs().max() < 1e-5
    assert terms[3].mean() > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_gradients_reach_the_student_and_leave_the_teacher(method: Any) -> None:
    teacher = small_teacher()
    student = make_student(teacher, method, rank=4)
    objective = DistillConfig(method, student_steps=(2,), teacher_steps=2)
    run = DistillRun(student, CORPUS, replace(CONFIG, min_primitives=10), teacher=teacher, distill=objective)
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    trained = {name: weight.clone() for name, weight in student.state_dict().items()}
    run.advance()
    run.advance()
    assert all(torch.equal(weight, before[name]) for name, weight in teacher.state_dict().items())
    changed = {name for name, weight in student.state_dict().items() if not torch.equal(weight, trained[name])}
    assert "network.blocks.0.qkv.low_rank_up" in changed
    assert "network.embed_next_level.weight" in changed
    assert "network.blocks.0.qkv.weight" not in changed


def test_labels_are_drawn_alike_with_and_without_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, noise = torch.randn(2, 500, 5, generator=generator).unbind()
    logits.requires_grad_()
    label = draw_label_with_gradient(logits, noise)
    assert torch.equal(label.detach(), draw_label(logits.detach().softmax(dim=-1), noise))
    (label * torch.arange(5.0)).sum().backward()
    assert logits.grad is not None
    assert bool((logits.grad.abs().sum(dim=-1) > 0).all())


@pytest.mark.parametrize("method", METHODS)
def test_resume_is_bit_exact(method: Any, tmp_path: Path) -> None:
    teacher = small_teacher(width=16)
    distill = DistillConfig(method, adapter_rank=2 if method == "flow_map" else 0, critic_updates=2, teacher_steps=2)

    def fresh() -> Any:
        torch.manual_seed(1)
        return make_student(teacher, method, distill.adapter_rank)

    go = partial(train, make_run=partial(DistillRun, teacher=teacher, distill=distill))
    whole = go(fresh(), CORPUS, CONFIG, tmp_path / "whole")
    go(fresh(), CORPUS, replace(CONFIG, steps=2), tmp_path / "half")
    resumed = go(fresh(), CORPUS, CONFIG, tmp_path / "half", resume=True)
    assert resumed.finished
    assert resumed.step == 4
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name
    last = [list_checkpoints(tmp_path / name / "checkpoints")[-1] for name in ("whole", "half")]
    assert (last[0] / "state.safetensors").read_bytes() == (last[1] / "state.safetensors").read_bytes()
    other = partial(train, make_run=partial(DistillRun, teacher=small_teacher(1, width=16), distill=distill))
    with pytest.raises(RunError, match="teacher"):
        other(fresh(), CORPUS, CONFIG, tmp_path / "half", resume=True)


def test_validation_compares_with_the_ode_of_the_teacher() -> None:
    teacher = small_teacher()
    student = make_student(teacher, "flow_map")
    run = DistillRun(student, CORPUS, CONFIG, teacher=teacher, distill=DistillConfig("flow_map"))
    numbers = run.validate(run.model, CORPUS)
    assert set(numbers) == {f"{name}_{steps}" for name in ("joined", "distance") for steps in (1, 2, 4, 8)}
    assert all(0 <= number < 3 for number in numbers.values())
    endpoints = ode_endpoints(teacher, seeded_noise(0, torch.arange(2))(0), steps=5)
    assert set(endpoints.kind.unique().tolist()) == {0.0, 1.0}


def test_settings_come_from_options_and_overrides() -> None:
    overrides = ("training.warmup=7", "distill.critic_rate=3", "distill.student_steps=[2, 4]")
    config, distill = parse_distill_settings(overrides, {"method": "flow_map"}, {"steps": 9, "seed": None})
    assert (config.steps, config.minutes, config.warmup, config.seed) == (9, None, 7, 0)
    assert distill == DistillConfig("flow_map", student_steps=(2, 4), critic_rate=3.0)
    for wrong in ("distill.method=x", "distill.student_steps=[0]", "distill.student_steps=4;8", "other.x=1"):
        with pytest.raises(SketchError):
            parse_distill_settings((wrong,), {}, {})
