"""Reconstruction losses: what they count, what they ignore, and how each averages."""

import math
from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch, random_prediction
from torch.nn import functional

from sketchdnn.diffusion.gaussian import cosine, denoised, like, preconditioning
from sketchdnn.diffusion.loss import Loss, authors_loss, our_loss, paper_loss
from sketchdnn.diffusion.process import our_process
from sketchdnn.geometry import Kind
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant
from sketchdnn.representation.layout import NONE, NUM_KINDS

LATE = torch.full((6,), 500)


def ours(prediction: Prediction, x0: SketchBatch, t: torch.Tensor) -> Loss:
    return our_loss(prediction, x0, cosine(2000).at(t), data_std=0.4)


LOSSES = {"paper": paper_loss, "authors": authors_loss, "ours": ours}


def certain(x0: SketchBatch) -> Prediction:
    return Prediction(100 * x0.construction, 100 * x0.kind, x0.params)


def sketches_of(kind: torch.Tensor, construction: torch.Tensor) -> SketchBatch:
    labels = functional.one_hot(construction, 2).float(), functional.one_hot(kind, NUM_KINDS).float()
    return SketchBatch(*labels, torch.zeros(*kind.shape, 14))


def terms(loss: Loss) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return loss.params_per_sample, loss.kind_per_sample, loss.construction_per_sample


def means(loss: Loss) -> list[float]:
    return [float(term.mean()) for term in terms(loss)]


@pytest.mark.parametrize("name", LOSSES)
def test_true_sketch_has_no_loss_and_other_parameters_are_ignored(name: str) -> None:
    x0 = clean_batch(6)
    assert LOSSES[name](certain(x0), x0, LATE).total.item() == pytest.approx(0, abs=1e-6)
    loss = LOSSES[name](random_prediction(6), x0, torch.tensor([1, 150, 151, 500, 1999, 2000]))
    assert loss.total > 0.1
    torch.testing.assert_close(loss.per_sample, sum(terms(loss)))
    assert loss.per_sample.shape == (6,)
    torch.testing.assert_close(loss.total, loss.per_sample.mean())
    prediction, mine = certain(x0), relevant(x0.kind.argmax(-1))
    elsewhere = replace(prediction, params=torch.where(mine, prediction.params, 7.0))
    assert not LOSSES[name](elsewhere, x0, LATE).params_per_sample.any()
    wrong = replace(prediction, params=(prediction.params + 0.1).requires_grad_())
    (gradient,) = torch.autograd.grad(LOSSES[name](wrong, x0, LATE).total, wrong.params)
    assert torch.equal(gradient != 0, mine)


def test_early_steps_are_weighted_by_sixteen_and_other_sketches_do_not_count() -> None:
    prediction, x0 = random_prediction(6), clean_batch(6)
    for loss in (paper_loss, authors_loss):
        plain, mixed = (loss(prediction, x0, t) for t in (LATE, torch.tensor([1, 149, 150, 151, 152, 2000])))
        expected = torch.tensor([16.0, 16, 16, 1, 1, 1]) * plain.params_per_sample
        torch.testing.assert_close(mixed.params_per_sample, expected)
        assert torch.equal(mixed.kind_per_sample, plain.kind_per_sample)
    alone = Prediction(prediction.construction_logits[2:3], prediction.kind_logits[2:3], prediction.params[2:3])
    for loss in (paper_loss, ours):
        whole = loss(prediction, x0, LATE).per_sample[2:3]
        torch.testing.assert_close(loss(alone, x0[2:3], LATE[:1]).per_sample, whole)


def test_paper_loss_by_hand() -> None:
    x0 = sketches_of(torch.tensor([[Kind.LINE, Kind.POINT, NONE]]), torch.tensor([[0, 1, 0]]))
    prediction = Prediction(torch.zeros(1, 3, 2), torch.zeros(1, 3, 5), torch.full((1, 3, 14), 0.5))
    loss = paper_loss(prediction, x0, torch.tensor([150]))
    assert means(loss) == pytest.approx([16 * 0.25, math.log(5), math.log(2)])
    # Two of three rows have a construction label at all.
    authors = authors_loss(prediction, x0, torch.tensor([150]))
    assert means(authors) == pytest.approx([16 * 0.25, math.log(5) / 5, math.log(2) / 2 * 2 / 3])


def test_authors_loss_pools_the_batch_and_ignores_empty_rows() -> None:
    kind = torch.full((2, 16), NONE)
    kind[0] = Kind.ARC
    kind[1, 0] = Kind.POINT
    x0 = sketches_of(kind, torch.zeros_like(kind))
    prediction = replace(certain(x0), params=torch.tensor([0.0, 1.0])[:, None, None].expand(2, 16, 14))
    losses = (loss(prediction, x0, torch.tensor([500, 500])) for loss in (authors_loss, paper_loss))
    assert [means(loss)[0] for loss in losses] == pytest.approx([2 / 82, 1 / 2])
    x0, prediction = clean_batch(6), random_prediction(6)
    empty = x0.kind[..., NONE, None] == 1
    blank = replace(x0, construction=torch.where(empty, 0.0, x0.construction))
    whole, bare = (authors_loss(prediction, each, LATE).per_sample for each in (x0, blank))
    torch.testing.assert_close(whole, bare)
    empty = replace(x0, kind=functional.one_hot(torch.full((6, 16), NONE), NUM_KINDS).float())
    for loss in LOSSES.values():
        result = loss(random_prediction(6), empty, LATE)
        assert not result.params_per_sample.any()
        assert result.total.isfinite()


@pytest.mark.parametrize("t", [1, 100, 1000, 2000])
def test_our_loss_is_uniform_in_the_output(t: int) -> None:
    """An error of 0.1 in every element of F costs 0.01 at any noise level."""
    process, data_std = our_process(), 0.4
    x0 = clean_batch(6, dtype=torch.float64)
    level = process.params.at(torch.full((6,), t))
    x_t = process.diffuse(x0, t, normal_batch(6, dtype=torch.float64))
    c = preconditioning(level, data_std)
    target = (x0.params - like(c.skip, x0.params) * x_t.params) / like(c.out, x0.params)
    params = denoised(x_t.params, target + 0.1, level, data_std)
    loss = our_loss(replace(certain(x0), params=params), x0, level, data_std)
    torch.testing.assert_close(loss.params_per_sample, torch.full((6,), 0.01, dtype=torch.float64))


def test_bad_input_names_the_argument() -> None:
    prediction, x0 = random_prediction(6), clean_batch(6)
    for loss in LOSSES.values():
        with pytest.raises(ValueError, match="prediction"):
            loss(random_prediction(5), x0, LATE)
    for t in (torch.tensor([1, 2]), torch.tensor(5)):
        for loss in (paper_loss, authors_loss):
            with pytest.raises(ValueError, match="t must"):
                loss(prediction, x0, t)
    with pytest.raises(ValueError, match="level_t must"):
        our_loss(prediction, x0, cosine(10).at(torch.tensor([1, 2])), 0.4)
