"""The losses of distillation: what a student learns in one transition t → s of a few-step sampler.

A transition is drawn from the sampler's own steps. The state X_t is diffused data, or the student's own step from the
transition before; that prediction is also the self-conditioning input, as in sampling. Known parts are shown clean to
all networks and add nothing to the loss.

Two methods have one interface, `Method`:

- `FlowMap`: the teacher follows the ODE from t to s in several steps, and the student learns the mean prediction of
  this path (`diffusion/flow.py`), which takes it from t to s at once.
- `MomentMatching` (Salimans et al. 2024): the student generates a clean sketch X̃. Noised to a level r between s and t,
  it should have the same expectation given X_r as real sketches. The teacher has that of real sketches, and a critic
  learns that of generated ones. The difference of both is the gradient of the student.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.diffusion import gaussian
from sketchdnn.diffusion.flow import diffuse, expected_x0, flow_step, share_of_path
from sketchdnn.diffusion.gaussian import Level, like
from sketchdnn.diffusion.gaussian_softmax import draw_label_with_gradient
from sketchdnn.diffusion.loss import our_loss
from sketchdnn.diffusion.process import JointProcess, Levels, LogitBatch, Noise, parts, superpose
from sketchdnn.diffusion.samplers import extrapolation, sample_rows
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, from_flat, relevant, to_columns
from sketchdnn.systems.row_denoiser import null_prediction, previous_step
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.system import ConditionMask

from .config import TrainConfig
from .corpus import Corpus
from .distill_settings import DistillConfig
from .step import Objective

# `RowDenoiser.denoise` of a network, compiled or not: rows, t, mask, previous prediction, s.
Denoise = Callable[[SketchBatch, Tensor, ConditionMask, Prediction, Tensor | None], Prediction]

# Independent noises and uniform numbers of one sample of a step.
NUM_NOISES, NUM_UNIFORM = 7, 6
# Errors of a row are squared below this and linear above, in units of the network's output.
_HUBER = 0.3


class Transition(NamedTuple):
    """One transition t → s for each sample, and the step before it; `first` where there is none before."""

    before: Int[Tensor, " batch"]
    t: Int[Tensor, " batch"]
    s: Int[Tensor, " batch"]
    first: Bool[Tensor, " batch"]


def draw_transitions(
    uniform: Float[Tensor, "batch 4"], counts: Sequence[int], other_starts: float, num_steps: int
) -> Transition:
    """Transitions of samplers with these numbers of steps, as `step_sequence` spaces them.

    Most begin with pure noise, the fraction `other_starts` at any level.
    """
    which, place, starts, level = uniform.double().unbind(dim=1)
    count = torch.tensor(counts, device=uniform.device)[(which * len(counts)).long()]
    index = (place * count).long()  # from 0, the noisiest
    start = torch.where(starts < other_starts, level.clamp(min=0.1), 1.0)

    def step(number: Tensor) -> Tensor:
        """The step from which `number` transitions lead to the end."""
        fraction = start * number / count
        return torch.maximum((num_steps * fraction.square()).round().long(), number).clamp(max=num_steps)

    left = count - index
    t, first = step(left), index == 0
    before = torch.where(first, (t + 1).clamp(max=num_steps), step(left + 1))
    return Transition(before, t, step(left - 1), first)


@dataclass(frozen=True, slots=True)
class Problem:
    """The transitions of a batch: what the networks take, and noise for the loss."""

    process: JointProcess
    data_std: float
    x0: SketchBatch
    mask: ConditionMask
    state: LogitBatch
    previous: Prediction
    t: Int[Tensor, " batch"]
    s: Int[Tensor, " batch"]
    noises: Sequence[Noise]
    uniform: Float[Tensor, " batch"]

    def visible(self, state: LogitBatch) -> SketchBatch:
        """A state as input of a network: known parts are clean."""
        return self.mask.fill_rows(self.x0, state.batch())

    def error_scale(self, t: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """c_out: an error of parameters of this size is an error of one in the network's output."""
        return gaussian.preconditioning(self.process.params.at(t), self.data_std).out

    def predict(
        self,
        denoise: Denoise,
        state: LogitBatch,
        t: Tensor,
        previous: Prediction,
        s: Tensor | None = None,
    ) -> Prediction:
        """The prediction of a network, with the known values in place."""
        prediction = denoise(self.visible(state), t, self.mask, previous, s)
        return self.mask.fill_prediction(self.x0, prediction)


class Terms(NamedTuple):
    """Loss terms of each sample; `critic` is the loss of the critic."""

    params: Float[Tensor, " batch"]
    kind: Float[Tensor, " batch"]
    construction: Float[Tensor, " batch"]
    critic: Float[Tensor, " batch"]


class Method(Protocol):
    """A way to distill. The critic is a second network that is trained with the student, if there is one."""

    critic: SketchDNNSystem | None

    def loss(self, student: Denoise, problem: Problem, *, trains_student: bool) -> Terms:
        """The loss of a batch; without gradients of the student unless `trains_student`."""

    def advance(self, process: JointProcess, prediction: Prediction, state: LogitBatch, step: StepData) -> LogitBatch:
        """The state after a step of the student, as its sampler takes it."""

    def compile(self) -> None:
        """Compile the networks other than the student, for a GPU."""


class StepData(NamedTuple):
    """Levels and noises of one step of the student."""

    at_t: Levels
    at_s: Levels
    labels: Noise
    noise: Noise


class FlowMap:
    """Regression on the teacher's mean prediction along its path from t to s. The student is trained at every step."""

    critic: SketchDNNSystem | None = None

    def __init__(self, teacher: SketchDNNSystem, config: DistillConfig) -> None:
        self.teacher: Denoise = teacher.denoise
        self.count = config.teacher_steps

    def compile(self) -> None:
        self.teacher = torch.compile(self.teacher, dynamic=False)

    def loss(self, student: Denoise, problem: Problem, *, trains_student: bool) -> Terms:
        with torch.no_grad():
            target = self._mean_prediction(problem)
        prediction = problem.predict(student, problem.state, problem.t, problem.previous, problem.s)
        scale = problem.error_scale(problem.t)
        error = (superpose(prediction.params, prediction.kind, "expected") - target.params) / like(scale, target.params)
        squared = error.square().sum(dim=-1)
        rows = 2 * _HUBER * (torch.sqrt(squared + _HUBER**2) - _HUBER)
        count = relevant(target.kind.argmax(dim=-1)).sum(dim=(1, 2)).clamp(min=1)
        kind = _divergence(target.kind, prediction.kind_logits)
        construction = _divergence(target.construction, prediction.construction_logits)
        return Terms(rows.sum(dim=-1) / count, kind, construction, torch.zeros_like(kind))

    def advance(self, process: JointProcess, prediction: Prediction, state: LogitBatch, step: StepData) -> LogitBatch:
        return flow_step(state, expected_x0(process, prediction), step.at_t, step.at_s)

    def _mean_prediction(self, problem: Problem) -> SketchBatch:
        """Probabilities of labels and expected parameters, averaged along the teacher's path.

        The teacher's own steps are of first order for labels, so that the mean is a probability vector, and of second
        order for parameters (DPM-Solver++(2M)).
        """
        process = problem.process
        root_t, root_s = (x.double().sqrt() for x in (problem.t, problem.s))
        steps = [(root_t + (root_s - root_t) * i / self.count).square().round().long() for i in range(self.count + 1)]
        steps[0], steps[-1] = problem.t, problem.s
        state, previous, start = problem.state, problem.previous, process.levels(problem.t)
        mean = previous_params = None
        for number, (u, following) in enumerate(pairwise(steps)):
            # On a short path some steps round to the same number; these change nothing.
            moves = following < u
            at_u, at_next = (
                process.levels(u.clamp(min=1)),
                process.levels(torch.where(moves, following, u.clamp(min=1))),
            )
            prediction = problem.predict(self.teacher, state, u.clamp(min=1), previous)
            clean = expected_x0(process, prediction)
            params = clean.params
            if previous_params is not None:
                weight = extrapolation(at_next.params, at_u.params, process.params.at(steps[number - 1].clamp(min=1)))
                params = params + like(weight, params) * (params - previous_params)
            piece = SketchBatch(prediction.construction, prediction.kind, params)
            mean = piece if mean is None else _average(mean, piece, start, at_u, at_next, moves)
            state = _where(moves, flow_step(state, clean._replace(params=params), at_u, at_next), state)
            previous, previous_params = prediction, clean.params
        assert mean is not None  # noqa: S101 - there is at least one step
        return mean


class MomentMatching:
    """Gradients from the difference of the expected clean sketches of a critic and of the teacher."""

    critic: SketchDNNSystem | None

    def __init__(self, teacher: SketchDNNSystem, config: DistillConfig) -> None:
        self.config = config
        self.critic = copy.deepcopy(teacher).requires_grad_(True)  # in evaluation mode: without dropout
        self.teacher: Denoise = teacher.denoise
        self.fake: Denoise = self.critic.denoise

    def compile(self) -> None:
        self.teacher, self.fake = (torch.compile(part, dynamic=False) for part in (self.teacher, self.fake))

    def loss(self, student: Denoise, problem: Problem, *, trains_student: bool) -> Terms:
        with torch.set_grad_enabled(trains_student and torch.is_grad_enabled()):
            prediction = problem.predict(student, problem.state, problem.t, problem.previous, problem.s)
            clean = sample_with_gradient(prediction, problem.noises[2])
        generated = SketchBatch(*(part.detach() for part in parts(clean)))
        r, state, previous = self._noise_again(generated, problem)
        with torch.no_grad():
            real = problem.predict(self.teacher, state, r, previous)
        fake = problem.predict(self.fake, state, r, previous)
        scale = problem.error_scale(r)
        critic = our_loss(fake, generated, problem.process.params.at(r), problem.data_std).per_sample
        critic = critic + self.config.anchor * _distance(fake, real, scale)
        with torch.no_grad():
            fake = Prediction(*(part.detach() for part in parts(fake)))
            params = superpose(fake.params, fake.kind, "expected") - superpose(real.params, real.kind, "expected")
            params = params / like(scale, params)
            kind, construction = fake.kind - real.kind, fake.construction - real.construction
        count = relevant(generated.kind.argmax(dim=-1)).sum(dim=(1, 2)).clamp(min=1)
        # Both in units of a network's output, so that the gradient has the same size at every noise level.
        output = clean.params / like(problem.error_scale(problem.t), params)
        terms = (
            _gradient_loss(output, params).sum(dim=(1, 2)) / count,
            _gradient_loss(clean.kind, kind).sum(dim=-1).mean(dim=-1),
            _gradient_loss(clean.construction, construction).sum(dim=-1).mean(dim=-1),
        )
        if not trains_student:
            terms = (terms[0].detach(), terms[1].detach(), terms[2].detach())
        return Terms(*terms, critic)

    def advance(self, process: JointProcess, prediction: Prediction, state: LogitBatch, step: StepData) -> LogitBatch:
        clean = sample_rows(process, prediction, lambda: step.labels)
        return _posterior(clean, state, step.at_s, step.at_t, step.noise)

    def _noise_again(self, generated: SketchBatch, problem: Problem) -> tuple[Tensor, LogitBatch, Prediction]:
        """A level r between s and t, X_r from the posterior, and a previous prediction for the networks there.

        The previous prediction is the teacher's from more noise. It depends on X_r and on new noise only: X_t would
        reveal the generated sketch to the critic.
        """
        process = problem.process
        root_t, root_s = (x.double().sqrt() for x in (problem.t, problem.s))
        r = (root_s + (root_t - root_s) * problem.uniform).square().floor().long()
        r = torch.maximum(r, problem.s).clamp(min=1)
        clean = LogitBatch.from_sketch(generated, process.label_smoothing)
        at_r, at_t = process.levels(r), process.levels(problem.t)
        with torch.no_grad():
            state = _posterior(clean, problem.state, at_r, at_t, problem.noises[3])
            earlier = previous_step(r.clamp(max=process.num_steps - 1), process.num_steps)
            noisier = _step_forward(state, at_r, process.levels(earlier), problem.noises[4])
            previous = problem.predict(self.teacher, noisier, earlier, null_prediction(state.params))
        return r, state, previous


class DistillObjective(nn.Module):
    """The loss of distillation on a corpus, as a module that can be compiled."""

    def __init__(
        self,
        student: SketchDNNSystem,
        teacher: SketchDNNSystem,
        corpus: Corpus,
        training: TrainConfig,
        config: DistillConfig,
    ) -> None:
        super().__init__()
        self.data, self.student, self.config = Objective(student, corpus, training), student, config
        teacher.eval().requires_grad_(False)
        make: type[FlowMap | MomentMatching] = FlowMap if config.method == "flow_map" else MomentMatching
        self.method: Method = make(teacher, config)
        self.denoise: Denoise = student.denoise

    def compile_networks(self) -> None:
        """Compile every network by itself. One graph of all their calls would take minutes to compile."""
        self.method.compile()
        self.denoise = torch.compile(self.denoise, dynamic=False)

    def forward(
        self,
        indices: Int[Tensor, " batch"],
        choices: Float[Tensor, "batch number"],
        tasks: Float[Tensor, "batch number"],
        noises: Float[Tensor, "batch noise prim 21"],
        uniform: Float[Tensor, "batch number"],
        trains_student: bool = True,
    ) -> Float[Tensor, "term batch"]:
        """The terms of the loss, then that of the critic."""
        x0, mask = self.data.clean_batch(indices, choices, tasks)
        problem = self._problem(x0, mask, [from_flat(noise) for noise in noises.unbind(dim=1)], uniform)
        return torch.stack(list(self.method.loss(self.denoise, problem, trains_student=trains_student)))

    def _problem(
        self, x0: SketchBatch, mask: ConditionMask, noises: Sequence[Noise], uniform: Float[Tensor, "batch number"]
    ) -> Problem:
        """Transitions, with the student's own previous prediction and, for some, its own state."""
        process, config, num_steps = self.student.process, self.config, self.student.process.num_steps
        step = draw_transitions(uniform[:, :4], config.student_steps, config.other_starts, num_steps)
        state = diffuse(LogitBatch.from_sketch(x0, process.label_smoothing), noises[0], process.levels(step.t))
        problem = Problem(
            process,
            self.student.config.data_std,
            x0,
            mask,
            state,
            null_prediction(x0.params),
            step.t,
            step.s,
            noises,
            uniform[:, 5],
        )
        with torch.no_grad():
            # Where there is no step before, any two levels do: the result is not used.
            t = torch.where(step.first, num_steps - 1, step.t)
            before = torch.where(step.first, num_steps, step.before)
            at_t, at_before = process.levels(t), process.levels(before)
            noisier = _step_forward(state, at_t, at_before, noises[1])
            prediction = problem.predict(self.denoise, noisier, before, problem.previous, t)
            moved = self.method.advance(process, prediction, noisier, StepData(at_before, at_t, noises[5], noises[6]))
            own = ~step.first & (uniform[:, 4] < config.rollouts)
            state = _where(own, moved, state)
            null = parts(problem.previous)
            previous = Prediction(*(_choose(step.first, a, b) for a, b in zip(null, parts(prediction), strict=True)))
        return replace(problem, state=state, previous=previous)


def sample_with_gradient(prediction: Prediction, noise: Noise) -> SketchBatch:
    """A clean sketch with sampled labels and the parameters of these kinds, differentiable in all of the prediction."""
    construction = draw_label_with_gradient(prediction.construction_logits, noise.construction)
    kind = draw_label_with_gradient(prediction.kind_logits, noise.kind)
    return SketchBatch(construction, kind, prediction.params * to_columns(kind[..., : layout.NONE].unbind(dim=-1)))


def _gradient_loss(value: Tensor, gradient: Tensor) -> Tensor:
    """½·gradient², with that gradient for `value`."""
    return functional.mse_loss(value, (value - gradient).detach(), reduction="none") / 2


def _divergence(target: Float[Tensor, "batch prim cat"], logits: Float[Tensor, "batch prim cat"]) -> Tensor:
    """KL(target ‖ softmax(logits)), averaged over rows."""
    return functional.kl_div(logits.log_softmax(dim=-1), target, reduction="none").sum(dim=-1).mean(dim=-1)


def _distance(fake: Prediction, real: Prediction, scale: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """The distance of two predictions: squared error of expected parameters, and divergences of labels."""
    params = superpose(fake.params, fake.kind, "expected") - superpose(real.params, real.kind, "expected")
    count = relevant(real.kind.argmax(dim=-1)).sum(dim=(1, 2)).clamp(min=1)
    squared = (params / like(scale, params)).square().sum(dim=(1, 2)) / count
    labels = _divergence(real.kind, fake.kind_logits), _divergence(real.construction, fake.construction_logits)
    return squared + labels[0] + labels[1]


def _posterior(x0: LogitBatch, x_t: LogitBatch, at_s: Levels, at_t: Levels, noise: Noise) -> LogitBatch:
    """X_s from the posterior q(x_s | x_t, x_0)."""

    def part(x0: Tensor, x_t: Tensor, level_s: Level, level_t: Level, noise: Tensor) -> Tensor:
        mean, std = gaussian.posterior(x0, x_t, level_s, level_t)
        return mean + std * noise

    return LogitBatch(*map(part, x0, x_t, at_s, at_t, parts(noise)))


def _step_forward(x_s: LogitBatch, at_s: Levels, at_t: Levels, noise: Noise) -> LogitBatch:
    return LogitBatch(*map(gaussian.step_forward, x_s, parts(noise), at_s, at_t))


def _average(
    mean: SketchBatch, piece: SketchBatch, start: Levels, at_u: Levels, at_next: Levels, moves: Bool[Tensor, " batch"]
) -> SketchBatch:
    """The mean over the path so far, with one more piece of it."""
    shares = [torch.where(moves, share_of_path(*levels), 0.0) for levels in zip(start, at_u, at_next, strict=True)]
    return SketchBatch(*map(_mix, parts(mean), parts(piece), shares))


def _mix(mean: Tensor, piece: Tensor, share: Float[Tensor, " batch"]) -> Tensor:
    return torch.lerp(mean, piece, like(share, mean).expand_as(mean))


def _where(condition: Bool[Tensor, " batch"], if_true: LogitBatch, if_false: LogitBatch) -> LogitBatch:
    return LogitBatch(*(_choose(condition, a, b) for a, b in zip(if_true, if_false, strict=True)))


def _choose(condition: Bool[Tensor, " batch"], if_true: Tensor, if_false: Tensor) -> Tensor:
    return torch.where(condition[:, None, None], if_true, if_false)
