"""The shapes in the signatures hold: everything runs with them checked, and a wrong shape is caught.

In a process of its own, since checking must be switched on before the modules are imported.
"""

import subprocess
import sys
from pathlib import Path

CHECKED = """
from jaxtyping import TypeCheckError, install_import_hook

packages = ["sketchdnn.diffusion", "sketchdnn.networks", "sketchdnn.representation"]
with install_import_hook(packages, "beartype.beartype"):
    import torch
    from support.random_batches import clean_batch, normal_batch, random_prediction
    from support.toys import random_noise
    from benchmarks.oracles import RowTarget, oracle
    from sketchdnn import diffusion
    from sketchdnn.diffusion import gaussian, likelihood, loss, process as processes, sampling, timesteps
    from sketchdnn.networks import DiT, DiTConfig
    from sketchdnn.representation.batch import SketchBatch

x0, noise, prediction = clean_batch(4), normal_batch(4), random_prediction(4)
network = DiT(DiTConfig(width=16, depth=1, heads=2, num_steps=10))
s, t = torch.tensor([0, 1, 4, 9]), torch.tensor([1, 2, 8, 10])
for process in (processes.paper_process(10), processes.authors_process(10), processes.our_process(10)):
    x_t = process.diffuse(x0, t, noise)
    process.step_forward(process.diffuse(x0, s, noise), s, t, noise)
    process.step_back(process.x0_logits(network(x_t, t)), x_t, s, t, noise)
    process.step_back(process.x0_logits(prediction), x_t, 3, 7, noise)
    gaussian.denoised(x0.params, x_t.params, process.params.at(t), 0.5)
    loss.our_loss(prediction, x0, process.params.at(t), 0.5).total
loss.paper_loss(prediction, x0, t).total
loss.authors_loss(prediction, x0, t).per_sample
timesteps.steps_at(torch.rand(4), timesteps.uniform_weights(10))
diffusion.seeded_noise(0, torch.arange(3))(1)
gs = diffusion.GaussianSoftmax(torch.zeros(2, 3), 1.0)
gs.log_prob(gs.sample()), gs.argmax_probs(), torch.distributions.kl_divergence(gs, gs)

process, target = diffusion.our_process(12), RowTarget((0.3, 0.2, 0.2, 0.1, 0.2), 0.3, 0.5)
x0 = target.sample(4, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
known = sampling.condition_on_rows(x0, torch.rand(4, 16) < 0.5, resamples=2)
denoise = target.denoiser(process)
for sampler in sampling.SAMPLERS.values():
    options = diffusion.SamplingOptions(conditioning=known, on_step=lambda progress: None)
    sampler(lambda batch_t, t, s=None: denoise(batch_t, t), process, random_noise(0, 4), options)
steps = timesteps.draw_steps(process, 4, 3, torch.Generator())
for grid in (None, likelihood.Bins(6)):
    bound = likelihood.elbo(oracle(x0), process, x0, random_noise(0, 4), steps, bins=grid)
    bound.nats.sum()
likelihood.authors_estimate(target.denoiser(process), process, x0, random_noise(0, 4), steps).total
likelihood.log_arrangements(x0, grid), likelihood.num_primitives(x0)

try:
    SketchBatch(x0.construction, x0.kind, x0.params[..., :13])
except TypeCheckError:
    print("caught")
"""


def test_shapes_hold_and_wrong_ones_are_caught() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, '..')\n" + CHECKED],
        cwd=tests,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "caught"
