"""The shapes in the signatures of samplers and likelihood are true: everything runs with them checked.

In a process of its own, since checking must be switched on before the modules are imported.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKED = """
from jaxtyping import install_import_hook

with install_import_hook(["sketchdnn.diffusion", "sketchdnn.representation"], "beartype.beartype"):
    import torch
    from support.toys import random_noise
    from sketchdnn.diffusion import bins, bits, given, likelihood, oracles, samplers, step_draws
    from sketchdnn.systems.baselines.latent import process as vectors
    from sketchdnn.systems.baselines.multinomial.likelihood import cat_elbo
    from sketchdnn.systems.baselines.multinomial.process import CatProcess
    from sketchdnn.systems.baselines.multinomial.sampler import cat_ancestral
    from sketchdnn.diffusion.process import our_process

process, target = our_process(12), oracles.RowTarget((0.3, 0.2, 0.2, 0.1, 0.2), 0.3, 0.5)
x0 = target.sample(4, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
known = given.given_rows(x0, torch.rand(4, 16) < 0.5, resamples=2)
for sampler in (samplers.ancestral, samplers.authors, samplers.ddim, samplers.dpm_solver_pp):
    sampler(target.denoiser(process), process, random_noise(0, 4), given=known, on_step=lambda progress: None)
steps = step_draws.draw_steps(process, 4, 3, torch.Generator())
for grid in (None, bins.Bins(6)):
    found = likelihood.elbo(oracles.oracle(x0), process, x0, random_noise(0, 4), steps, bins=grid)
    found.nats, found.bits
for reverse in ("predicted", "expected"):
    cat = CatProcess(process.params, process.params, "max", reverse)
    cat_ancestral(oracles.oracle(x0), cat, random_noise(0, 4), given=known, on_step=lambda progress: None)
    cat_elbo(oracles.oracle(x0), cat, x0, random_noise(0, 4), steps)
for weights in vectors.VECTOR_SAMPLERS.values():
    noise = lambda number: torch.randn(4, 3, 2)
    vectors.walk_back(lambda x, t: x, process.params, noise(0), noise, weights, steps=(12, 6, 0))
vectors.vector_bound(lambda x, t: x, process.params, noise(0), noise, steps)
likelihood.authors_estimate(target.denoiser(process), process, x0, random_noise(0, 4), steps).total
bits.report_bits(found.nats - bits.log_arrangements(x0, grid), bits.num_primitives(x0))
bits.log_factorial(bits.num_primitives(x0))
print("checked")
"""


def test_shapes_hold() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", CHECKED], cwd=tests, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "checked"
