"""A run of distillation: a teacher and a corpus in, the teacher with a student out."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sketchdnn.data import Dataset
from sketchdnn.diffusion.flow import integrate
from sketchdnn.diffusion.noise import normal, seeded_noise, uniform
from sketchdnn.diffusion.process import parts
from sketchdnn.diffusion.sampling import FEW_STEP, SamplingOptions, step_sequence
from sketchdnn.io import exclusive_run, remove_abandoned
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.loose import has_loose_end
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.devices import find_device
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.students import make_student

from .checkpoint import TrainState
from .config import RunError, TrainConfig
from .corpus import Corpus
from .distill_settings import DistillConfig
from .distillation import NUM_NOISES, NUM_UNIFORM, DistillObjective
from .distributed import Ranks
from .loop import Hooks, Outcome, train
from .run import Report, Run
from .start import FOLDERS, MODEL, load_corpora, write_model
from .step import precision, random_numbers
from .validation import evaluating

# Streams of the counter-based generator, after those of training.
_NOISES, _UNIFORM = 3, 4
# Validation: sketches on a GPU and on a CPU, the seed of their noise, and the steps of the teacher.
_GPU_SKETCHES, _CPU_SKETCHES, _SEED, _TEACHER_STEPS = 1024, 16, 0x64697374, 50


@dataclass(frozen=True, slots=True)
class DistillReport(Report):
    """The progress of distillation. The other losses are the student's."""

    critic: float


@dataclass(frozen=True, slots=True)
class DistillRequest:
    """All options of a run.

    Attributes:
        model: The teacher: a model folder or the name of a model of the package.
        init_from: A model whose student the run starts with.
        eight_bit: Write the matrices of the model and its student in eight bits.
    """

    model: str | Path
    config: TrainConfig
    distill: DistillConfig
    data: Path
    out: Path
    device: str = "auto"
    resume: bool = False
    init_from: Path | None = None
    eight_bit: bool = False
    hooks: Hooks = field(default_factory=Hooks, compare=False)


class DistillRun(Run):
    """The state of distillation: that of training, and the critic of the method."""

    num_terms = 4
    compiles = False  # as a whole; networks are compiled by themselves
    objective: DistillObjective

    def __init__(
        self,
        student: System,
        corpus: Corpus,
        config: TrainConfig,
        ranks: Ranks | None = None,
        *,
        teacher: SketchDNNSystem,
        distill: DistillConfig,
    ) -> None:
        self.teacher, self.distill = teacher, distill
        super().__init__(student, corpus, config, ranks)
        if not self.ranks.alone:
            raise RunError("distillation runs in one process; leave torchrun out")
        critic = self.objective.method.critic
        if critic is not None:
            betas = (0.0, config.betas[1])
            weights = torch.optim.AdamW(
                critic.parameters(), config.learning_rate, betas, weight_decay=0.0, fused=self.device.type == "cuda"
            )
            self.state = replace(self.state, critic=TrainState(critic, None, weights))
        self._endpoints: SketchBatch | None = None

    def report(self) -> Report:
        count = max(1, self.step - self._reported_step)
        critic = float(self._sums[3]) / count
        report = super().report()
        return DistillReport(**asdict(report), critic=critic)

    def validate(self, model: System, validation: Corpus) -> dict[str, float]:
        """For 1, 2, 4 and 8 steps: sketches without a loose end, and the distance to the teacher's ODE endpoints."""
        count = _GPU_SKETCHES if self.device.type == "cuda" else _CPU_SKETCHES
        noise = seeded_noise(_SEED, torch.arange(count, device=self.device))
        with evaluating(model, self.device):
            if self._endpoints is None:
                self._endpoints = ode_endpoints(self.teacher, noise(0))
            numbers: dict[str, float] = {}
            for steps in (1, 2, 4, 8):
                batch = model.sample(noise, SamplingOptions(FEW_STEP, steps))
                numbers[f"joined_{steps}"] = 1 - float(has_loose_end(batch).double().mean())
                numbers[f"distance_{steps}"] = float((batch.flat() - self._endpoints.flat()).square().mean().sqrt())
        return numbers

    def _make_objective(self) -> nn.Module:
        student = self.system
        if not isinstance(student, SketchDNNSystem):
            raise RunError("only a model of the system sketchdnn can be distilled")
        objective = DistillObjective(student, self.teacher, self.corpus, self.config, self.distill)
        if self.device.type == "cuda":
            objective.compile_networks()
        return objective

    def _loss_terms(self) -> Tensor:
        numbers, seed, rows = self.order.numbers(self.step), self.config.seed, self.corpus.kind.shape[1]
        _, choices, tasks = random_numbers(seed, numbers, rows)
        noises = normal(seed, numbers, _NOISES, (NUM_NOISES, rows, layout.ROW_WIDTH))
        trains_student = (self.step + 1) % self.distill.critic_updates == 0
        with precision(self.device):
            terms: Tensor = self.objective(
                self.indices(self.step),
                choices,
                tasks,
                noises,
                uniform(seed, numbers, _UNIFORM, (NUM_UNIFORM,)),
                trains_student,
            )
        return terms

    def _update_weights(self, state: TrainState) -> None:
        super()._update_weights(state)
        if state.critic is not None:
            for group in state.critic.optimizer.param_groups:
                group["lr"] = self.rate * self.distill.critic_rate
            super()._update_weights(state.critic)

    def _identity(self) -> dict[str, Any]:
        settings = {**asdict(self.distill), "student_steps": list(self.distill.student_steps)}
        return {**super()._identity(), "distillation": settings, "teacher": weights_hash(self.teacher)}


def ode_endpoints(teacher: SketchDNNSystem, noise: SketchBatch, steps: int = _TEACHER_STEPS) -> SketchBatch:
    """Where the teacher's ODE ends from this noise, by Euler's method."""
    num_steps = teacher.process.num_steps
    state = integrate(
        teacher.denoiser(), teacher.process, parts(noise), step_sequence(num_steps, min(steps, num_steps), power=2)
    )
    return state.batch().most_likely()


def start_distillation(request: DistillRequest) -> Outcome:
    """Distill, and write the teacher with its student to `out/model` when the budget is spent."""
    config, out = request.config, request.out
    device = find_device(request.device)
    if out.resolve() == request.data.resolve():
        raise RunError(f"{out}: the corpus is there; name another folder with --out")
    with exclusive_run(out):
        for folder in (out, *(out / name for name in FOLDERS)):
            remove_abandoned(folder)
        teacher = _load_teacher(request.model, device)
        torch.manual_seed(config.seed)
        student = _make_student(teacher, request)
        teacher.attach_student(None)
        try:
            smallest = max(config.min_primitives, config.conditional_below)
            corpus, validation = load_corpora(Dataset.open(request.data), device, smallest)
        except torch.OutOfMemoryError as error:
            raise RunError(f"the corpus and the models do not fit on {device}; use another --device") from error
        make_run = partial(DistillRun, teacher=teacher, distill=request.distill)
        outcome = train(
            student,
            corpus,
            config,
            out,
            validation=validation if validation is not None else corpus,
            resume=request.resume,
            hooks=request.hooks,
            make_run=make_run,
        )
        if outcome.finished:
            if isinstance(outcome.model, SketchDNNSystem):
                teacher.attach_student(outcome.model)
            write_model(teacher, out / MODEL, request.model, eight_bit=request.eight_bit)
    return outcome


def _load_teacher(model: str | Path, device: str) -> SketchDNNSystem:
    teacher = from_pretrained(model, device)
    if not isinstance(teacher, SketchDNNSystem):
        raise RunError(f"{model}: only a model of the system sketchdnn can be distilled, not a {teacher.name}")
    return teacher


def _make_student(teacher: SketchDNNSystem, request: DistillRequest) -> SketchDNNSystem:
    """A new student, or one with the weights of another model's student."""
    student = make_student(teacher, request.distill.method, request.distill.adapter_rank)
    if request.init_from is None:
        return student
    other = _load_teacher(request.init_from, str(next(teacher.parameters()).device)).student
    if other is None:
        raise RunError(f"{request.init_from}: that model has no student")
    if other.state_dict().keys() != student.state_dict().keys():
        raise RunError(f"{request.init_from}: that student has another adapter; use the same --adapter-rank")
    student.load_state_dict(other.state_dict())
    return student


def weights_hash(system: System) -> str:
    """A hash of the weights of a system, for the identity of runs that start from it."""
    digest = hashlib.blake2b(digest_size=8)
    for weight in system.state_dict().values():
        digest.update(weight.detach().cpu().numpy().tobytes())
    return digest.hexdigest()
