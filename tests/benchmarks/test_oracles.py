"""The perfect denoisers that samplers and bounds are measured against are perfect."""

import pytest
import torch
from support.toys import process_of, random_noise
from torch.distributions import Normal

from benchmarks.oracles import RowTarget, entropy, oracle
from sketchdnn.diffusion.gaussian import cosine
from sketchdnn.diffusion.gaussian_softmax import GaussianSoftmax
from sketchdnn.diffusion.process import Superposition
from sketchdnn.representation import layout

TARGET = RowTarget((0.4, 0.2, 0.15, 0.1, 0.15), construction=0.3, std=0.4)


@pytest.mark.parametrize("superposition", ["max", "none"])
@pytest.mark.parametrize("t", [1, 20, 60, 100])
def test_the_denoiser_is_bayes_rule(t: int, superposition: Superposition) -> None:
    """Every kind and flag tried in turn, with densities of the distributions themselves."""
    process = process_of(cosine(100), superposition=superposition)
    x0 = TARGET.sample(3, generator=torch.Generator().manual_seed(t), dtype=torch.float64)
    x_t = process.diffuse(x0, t, random_noise(t, 3, dtype=torch.float64)(0))
    at = process.levels(t)
    said = TARGET.denoiser(process)(x_t, torch.full((3,), t))

    def of_label(y_t: torch.Tensor, c: int, level) -> torch.Tensor:
        width = y_t.shape[-1]
        logits = (0.99 * torch.eye(width, dtype=torch.float64)[c] + 0.01 / width).log()
        return GaussianSoftmax(level.alpha_bar.sqrt() * logits, level.var.sqrt()).log_prob(y_t)

    joint = torch.full((3, 16, 5, 2), -torch.inf, dtype=torch.float64)
    used_std = (at.params.alpha_bar * TARGET.std**2 + at.params.var).sqrt()
    for kind in range(5):
        used = torch.tensor([k == kind for k in layout.KIND_OF_PARAM])
        evidence = Normal(0.0, torch.where(used, used_std, at.params.var.sqrt())).log_prob(x_t.params)
        for flag in range(2):
            chance = TARGET.kind[kind] * (0.7, 0.3)[flag] if kind != layout.NONE else TARGET.kind[kind] * (1 - flag)
            if chance > 0:
                labels = of_label(x_t.kind, kind, at.kind) + of_label(x_t.construction, flag, at.construction)
                joint[..., kind, flag] = torch.tensor(chance).log() + evidence.sum(-1) + labels
    posterior = joint.flatten(-2).softmax(-1).reshape(joint.shape)
    torch.testing.assert_close(said.kind, posterior.sum(-1), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(said.construction, posterior.sum(-2), atol=1e-6, rtol=1e-6)
    # Regression of x_0 on x_t, given that the column is in use.
    gain = at.params.alpha_bar.sqrt() * TARGET.std**2 / used_std**2
    share = 1.0 if superposition == "max" else posterior.sum(-1)[..., list(layout.KIND_OF_PARAM)]
    torch.testing.assert_close(said.params, gain * x_t.params * share, atol=1e-6, rtol=1e-6)


def test_sampled_rows_and_the_oracle_are_those_of_the_target() -> None:
    x0 = TARGET.sample(4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kind, flag = x0.kind.argmax(-1), x0.construction.argmax(-1)
    shares = torch.bincount(kind.flatten(), minlength=5) / kind.numel()
    torch.testing.assert_close(shares, torch.tensor(TARGET.kind), atol=0.01, rtol=0)
    assert not flag[kind == layout.NONE].any()
    assert float(flag[kind != layout.NONE].double().mean()) == pytest.approx(0.3, abs=0.01)
    lines = x0.params[kind == 0]
    assert (lines[:, 4:] == 0).all()
    assert float(lines[:, :4].std()) == pytest.approx(0.4, abs=0.01)
    # An oracle always returns the truth.
    x0 = TARGET.sample(2, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    said = oracle(x0)(x0, torch.tensor([3, 5]))
    assert all(torch.equal(getattr(said, name), getattr(x0, name)) for name in ("kind", "construction", "params"))
    # Impossible targets are refused, and the entropy is known.
    two, few, one = (0.5, 0.5), (0.5, 0.4, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0, 0.0)
    for shares, std, message in ((two, 1.0, "kind"), (few, 1.0, "kind"), (one, -1.0, "std")):
        with pytest.raises(ValueError, match=message):
            RowTarget(shares, std=std)
    assert (entropy((0.25,) * 4), entropy((1.0, 0.0))) == (pytest.approx(1.3862943611), 0)
