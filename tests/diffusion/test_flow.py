"""The probability-flow ODE: marginals, inversion, order of convergence, and the mean prediction of a path."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from support.denoisers import wobbly
from support.toys import ARC_COLUMNS, ONLY_ARCS, centered, process_of, random_noise

from benchmarks.oracles import RowTarget
from sketchdnn.diffusion.flow import diffuse, expected_x0, flow_step, integrate, share_of_path
from sketchdnn.diffusion.gaussian import log_linear_snr
from sketchdnn.diffusion.process import JointProcess, LogitBatch, our_process, parts
from sketchdnn.diffusion.sampling import step_sequence
from sketchdnn.representation.batch import SketchBatch, relevant
from sketchdnn.systems.sketchdnn import SketchDNNSystem

# Coordinates depend on the kind: those of other kinds are zero. Construction depends on it too: none in empty rows.
TARGET = RowTarget((0.45, 0.25, 0.15, 0.1, 0.05), construction=0.2, std=0.5)
PROCESS = replace(our_process(2000), superposition="expected")


def _noise(seed: int, batch: int) -> LogitBatch:
    return parts(random_noise(seed, batch, dtype=torch.float64)(0))


def test_many_steps_reproduce_the_joint_marginals() -> None:
    denoise, rows = TARGET.denoiser(PROCESS), 150 * 16
    begin = _noise(0, 150)
    middle = integrate(denoise, PROCESS, begin, step_sequence(2000, 80, power=2)[:41])
    t = step_sequence(2000, 80, power=2)[40]
    at = PROCESS.params.at(t)
    shares = torch.tensor(TARGET.kind, dtype=torch.float64)[[0] * 4 + [1] * 3 + [2] * 5 + [3] * 2]
    expected = at.alpha_bar * 0.25 * shares + at.var
    torch.testing.assert_close(middle.params.var(dim=(0, 1)), expected, atol=0, rtol=0.12)
    end = integrate(denoise, PROCESS, begin, step_sequence(2000, 80, power=2)).batch().most_likely()
    frequencies = end.kind.mean(dim=(0, 1))
    for frequency, probability in zip(frequencies.tolist(), TARGET.kind, strict=True):
        assert abs(frequency - probability) < 3.5 * (probability * (1 - probability) / rows) ** 0.5
    is_empty = end.kind[..., 4] == 1
    construction = end.construction[..., 1][~is_empty].mean()
    assert abs(construction - 0.2) < 3.5 * (0.16 / rows) ** 0.5
    assert end.construction[..., 1][is_empty].mean() < 0.02
    own = relevant(end.kind.argmax(dim=-1))
    assert end.params[own].std().item() == pytest.approx(0.5, rel=0.05)


def test_inversion_leads_to_noise_and_back() -> None:
    x0 = TARGET.sample(8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    denoise, steps = TARGET.denoiser(PROCESS), (*step_sequence(2000, 100, power=2)[:-1], 1)[::-1][1:]
    clean = LogitBatch.from_sketch(x0, PROCESS.label_smoothing)
    # At t = 1: a clean state has no noise, and its way up would not be typical.
    begin = diffuse(clean, random_noise(2, 8, dtype=torch.float64)(0), PROCESS.levels(steps[0]))
    noise = integrate(denoise, PROCESS, begin, steps, order=2)
    again = integrate(denoise, PROCESS, noise, steps[::-1], order=2)
    assert noise.params.std().item() == pytest.approx(1, abs=0.1)
    torch.testing.assert_close(again.params, begin.params, atol=5e-3, rtol=0)
    prediction = denoise(again.batch(), torch.full((8,), steps[0]))
    assert torch.equal(prediction.kind.argmax(-1), x0.kind.argmax(-1))
    assert torch.equal(prediction.construction.argmax(-1), x0.construction.argmax(-1))


def test_a_gaussian_has_its_closed_form_at_the_order_of_the_method() -> None:
    schedule, std = log_linear_snr(960, 6.0, -6.0), 0.5
    process = process_of(schedule, superposition="none")
    denoise = RowTarget(ONLY_ARCS, std=std).denoiser(process)
    begin = _noise(2, 2)
    spread = [(level.alpha_bar * std**2 + level.var).sqrt() for level in (schedule.at(960), schedule.at(0))]
    exact = begin.params[..., ARC_COLUMNS] * spread[1] / spread[0]

    def error(count: int, order: int) -> float:
        # A kind of probability one has logits of −∞; only the parameters matter here.
        state = LogitBatch(begin.construction, begin.kind, begin.params)
        end = integrate(denoise, process, state, (*step_sequence(960, count)[:-1], 0), order=order)
        return float((end.params[..., ARC_COLUMNS] - exact).abs().max())

    # The last step, to t = 0, is Euler's in any case: it is left out of the comparison by making it short.
    assert error(20, 1) / error(40, 1) == pytest.approx(2, abs=0.25)
    assert error(40, 2) < error(40, 1) / 5


def test_joint_order_of_convergence() -> None:
    process = process_of(log_linear_snr(1920, 5.0, -5.0), superposition="expected")
    denoise, begin = TARGET.denoiser(process), _noise(3, 2)
    grid = [t + 20 for t in step_sequence(1900, 380)]
    reference = integrate(denoise, process, begin, grid, order=2)

    def error(count: int, order: int) -> float:
        state = integrate(denoise, process, begin, [t + 20 for t in step_sequence(1900, count)], order=order)
        differences = (centered(a) - centered(b) for a, b in zip(state[:2], reference[:2], strict=True))
        return max(float(d.abs().mean()) for d in (*differences, state.params - reference.params))

    assert error(25, 1) / error(50, 1) == pytest.approx(2, abs=0.4)
    assert error(25, 2) / error(50, 2) == pytest.approx(4, abs=1.2)


def test_the_mean_prediction_takes_the_path_at_once() -> None:
    steps, state = (1500, 900, 400, 100, 0), _noise(4, 3)
    levels, mean, begin = [PROCESS.levels(t) for t in steps], None, state
    for at_u, at_s in pairwise(levels):
        t = torch.full((3,), steps[levels.index(at_u)])
        piece = expected_x0(PROCESS, wobbly(state.batch(), t))
        state = flow_step(state, piece, at_u, at_s)
        shares = [share_of_path(*three) for three in zip(levels[0], at_u, at_s, strict=True)]
        assert all(0 <= share <= 1 for share in shares)
        mean = piece if mean is None else LogitBatch(*map(torch.lerp, mean, piece, shares))
        at_once = flow_step(begin, mean, levels[0], at_s)
        for a, b in zip(at_once, state, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("steps", [(5,), (5, 5), (5, 3, 4), (0, 5), (9, 0, 5)])
def test_steps_that_turn_back_or_leave_a_clean_sketch_are_refused(steps: tuple[int, ...]) -> None:
    process: JointProcess = our_process(9)
    with pytest.raises(ValueError, match="steps must be at least two"):
        integrate(wobbly, process, _noise(0, 1), steps)


@pytest.mark.slow
def test_a_sketch_is_inverted_by_the_shipped_model() -> None:
    from sketchdnn.data.procedural import procedural
    from sketchdnn.geometry import normalize
    from sketchdnn.systems import from_pretrained

    system = from_pretrained()
    assert isinstance(system, SketchDNNSystem)
    x0 = SketchBatch.from_sketches([normalize(procedural(0, index))[0] for index in range(2)])
    steps = [t for t in step_sequence(2000, 50, power=2)[::-1] if t >= 3]
    begin = diffuse(LogitBatch.from_sketch(x0, 0.99), random_noise(0, 2)(0), system.process.levels(steps[0]))
    # Without self-conditioning the prediction is a function of the state alone.
    noise = integrate(system.denoise, system.process, begin, steps, order=2)
    again = integrate(system.denoise, system.process, noise, [*steps[::-1], 0], order=2).batch().most_likely()
    assert torch.equal(again.kind, x0.kind)
    assert torch.equal(again.construction, x0.construction)
    own = relevant(x0.kind.argmax(dim=-1))
    error = (again.params - x0.params)[own].abs()
    assert error.median() < 0.005, error
    assert error.max() < 0.05, error
