"""The joint process: rows on their own, presets that differ as they should, and a step that compiles whole."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from support.random_batches import clean_batch, normal_batch, random_prediction
from support.toys import centered

from sketchdnn.diffusion import JointProcess, authors_process, cosine, our_process, paper_process
from sketchdnn.diffusion.gaussian_softmax import GaussianSoftmax, smooth
from sketchdnn.diffusion.process import LogitBatch, check_shape, check_simplex, check_step, parts, superpose
from sketchdnn.geometry import Kind
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant
from sketchdnn.representation.layout import NONE, NUM_PARAMS, PARAMS_OF_KIND

PROCESSES = [paper_process, authors_process, our_process]


def truth(process: JointProcess, x0: SketchBatch) -> LogitBatch:
    certain = Prediction(x0.construction.log(), x0.kind.log(), x0.params)
    return replace(process, reverse_logits="log", superposition="none").x0_logits(certain)


@pytest.mark.parametrize("make", PROCESSES)
def test_diffuse_to_t_and_step_back_to_s_is_diffuse_to_s(make) -> None:
    """With zero noise: the mean of every part of a row, for steps that differ by sample. Forward steps compose too."""
    process = make(100)
    x0 = clean_batch(6, dtype=torch.float64)
    zero = SketchBatch(*map(torch.zeros_like, parts(x0)))
    t = torch.tensor([1, 2, 50, 99, 100, 100])
    s = torch.tensor([0, 1, 20, 98, 99, 0])
    there, direct = process.diffuse(x0, t, zero), process.diffuse(x0, s, zero)
    back = process.step_back(truth(process, x0), there, s, t, zero)
    again = process.step_forward(direct, s, t, zero)
    exact = {"rtol": 1e-10, "atol": 1e-10}
    for found, wanted in ((back, direct), (again, there)):
        torch.testing.assert_close(centered(found.kind.log()), centered(wanted.kind.log()), **exact)
        torch.testing.assert_close(centered(found.construction.log()), centered(wanted.construction.log()), **exact)
        torch.testing.assert_close(found.params, wanted.params, **exact)


def test_rows_are_independent() -> None:
    process = our_process(100)
    x0, noise, prediction = clean_batch(4), normal_batch(4), random_prediction(4)
    order = torch.rand(4, 16, generator=torch.Generator().manual_seed(5)).argsort(dim=-1)
    x_t = process.diffuse(x0, 60, noise)
    permuted_x_t = process.diffuse(x0.permuted(order), 60, noise.permuted(order))
    assert torch.equal(x_t.permuted(order).flat(), permuted_x_t.flat())
    clean = Prediction(*parts(SketchBatch(*parts(prediction)).permuted(order)))
    x_s = process.step_back(process.x0_logits(prediction), x_t, 30, 60, noise)
    permuted_x_s = process.step_back(process.x0_logits(clean), permuted_x_t, 30, 60, noise.permuted(order))
    assert torch.equal(x_s.permuted(order).flat(), permuted_x_s.flat())


def test_processes_of_paper_and_code_differ() -> None:
    paper, authors, ours = paper_process(), authors_process(), our_process()
    assert (paper.label_smoothing, authors.label_smoothing) == (0.99, 0.9999)
    assert (paper.reverse_logits, authors.reverse_logits, ours.reverse_logits) == ("log", "2log", "expected")
    assert paper.num_steps == authors.num_steps == ours.num_steps == 2000
    assert (paper.params.alpha_bar[-1], authors.params.alpha_bar[-1]) == (0, 1e-4)
    assert paper.kind.alpha_bar[1000] != paper.construction.alpha_bar[1000]
    # f(√ᾱ) keeps a label longer than f(ᾱ), each with its own k.
    kept = []
    for process in (authors, paper):
        level, label = process.kind.at(1000), smooth(torch.eye(5).double()[0], process.label_smoothing)
        kept.append(GaussianSoftmax(level.alpha_bar.sqrt() * label.log(), level.var.sqrt()).argmax_probs()[0])
    assert kept[0] > kept[1] + 0.05


def test_superposition_weights_kinds() -> None:
    kind = torch.tensor([[[0.5, 0.25, 0.0, 0.05, 0.2]]])
    params = torch.ones(1, 1, NUM_PARAMS)
    faded = superpose(params, kind)[0, 0]
    for which, weight in ((Kind.LINE, 1.0), (Kind.CIRCLE, 0.5), (Kind.ARC, 0.0), (Kind.POINT, 0.1)):
        assert torch.allclose(faded[PARAMS_OF_KIND[which]], torch.tensor(weight))
    # A certain prediction keeps its own parameters and nothing else; an empty row keeps none.
    for which in (*Kind, NONE):
        certain = torch.eye(5)[which][None, None]
        assert torch.equal(superpose(params, certain)[0, 0] == 1, relevant(torch.tensor(which)))
    # The most likely kind alone: nothing is superposed.
    alone = superpose(params, kind, "most_likely")[0, 0]
    assert torch.equal(alone == 1, relevant(torch.tensor(Kind.LINE)))
    assert set(alone.tolist()) == {0.0, 1.0}
    process, prediction = our_process(10), random_prediction(3)
    assert torch.equal(process.x0_logits(prediction).params, superpose(prediction.params, prediction.kind))
    assert not torch.allclose(process.x0_logits(prediction).params, prediction.params)
    assert torch.equal(replace(process, superposition="none").x0_logits(prediction).params, prediction.params)
    expected = replace(process, superposition="expected").x0_logits(prediction).params
    assert torch.allclose(expected, superpose(prediction.params, prediction.kind) * prediction.kind.amax(-1)[..., None])


@pytest.mark.parametrize("make", PROCESSES)
def test_joint_step_is_one_graph(make) -> None:
    """No branch on a value, no break: fullgraph refuses both. Other steps need no other graph."""
    process = make(100)
    x0, noise, prediction = clean_batch(4), normal_batch(4), random_prediction(4)
    torch._dynamo.reset()

    def step(prediction: Prediction, *arguments: Any) -> SketchBatch:
        return process.step_back(process.x0_logits(prediction), *arguments)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for s, t in ((30, 60), (0, 1), (0, 100)):
            x_t = process.diffuse(x0, t, noise)
            steps = torch.full((4,), s), torch.full((4,), t)
            whole = compiled(prediction, x_t, *steps, noise)
            torch.testing.assert_close(whole.flat(), step(prediction, x_t, *steps, noise).flat())
    forward = torch.compile(process.diffuse, fullgraph=True, backend="aot_eager")
    t = torch.tensor([1, 20, 50, 100])
    torch.testing.assert_close(forward(x0, t, noise).flat(), process.diffuse(x0, t, noise).flat())


def test_impossible_processes_steps_labels_and_shapes_are_refused() -> None:
    process, x0, noise = our_process(10), clean_batch(4), normal_batch(4)
    for match, options in (
        ("reverse_logits", {"reverse_logits": "exp"}),
        ("superposition", {"superposition": "most"}),
        ("label_smoothing", {"label_smoothing": 1.0}),
        ("same number of steps", {"params": cosine(11)}),
    ):
        with pytest.raises(ValueError, match=match):
            replace(process, **options)
    check_step(0, 10)
    check_step(torch.tensor([1, 10]), 10, lowest=1)
    for wrong in (-1, 11, torch.tensor([3, 11]), torch.tensor([0.5])):
        with pytest.raises(ValueError, match="when"):
            check_step(wrong, 10, "when")
    kind = clean_batch(2).kind
    check_simplex(kind, "start.kind")
    for wrong in (kind * 0.5, kind - 0.1, kind * torch.nan, kind.int()):
        with pytest.raises(ValueError, match=r"start\.kind"):
            check_simplex(wrong, "start.kind")
    with pytest.raises(ValueError, match="noise"):
        check_shape(normal_batch(3), "noise", like=clean_batch(2))
    for t in (-1, 11, torch.tensor([1, 2, 3])):
        with pytest.raises(ValueError, match=r"^t must"):
            process.diffuse(x0, t, noise)
    with pytest.raises(ValueError, match=r"^noise\."):
        process.diffuse(x0, 5, normal_batch(1))  # one sample's noise would broadcast to all
    x_t, clean = process.diffuse(x0, 5, noise), process.x0_logits(random_prediction(4))
    for s in (5, 6):
        with pytest.raises(ValueError, match=r"^s must"):
            process.step_back(clean, x_t, s, 5, noise)
    with pytest.raises(ValueError, match=r"^noise\."):
        process.step_back(clean, x_t, 4, 5, normal_batch(1))
