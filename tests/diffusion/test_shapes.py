"""The shapes in the signatures are true: everything runs with them checked, and a wrong shape is caught.

In a process of its own, since checking must be switched on before the modules are imported.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKED = """
from jaxtyping import TypeCheckError, install_import_hook

rooms = ["sketchdnn.diffusion", "sketchdnn.networks", "sketchdnn.representation"]
with install_import_hook(rooms, "beartype.beartype"):
    import torch
    from support.random_batches import clean_batch, normal_batch, random_prediction
    from sketchdnn import diffusion
    from sketchdnn.diffusion import precondition, times
    from sketchdnn.systems.baselines.multinomial import transitions as multinomial
    from sketchdnn.networks import DiT, DiTConfig
    from sketchdnn.representation.batch import SketchBatch

x0, noise, prediction = clean_batch(4), normal_batch(4), random_prediction(4)
network = DiT(DiTConfig(width=16, depth=1, heads=2, num_steps=10))
s, t = torch.tensor([0, 1, 4, 9]), torch.tensor([1, 2, 8, 10])
for process in (diffusion.paper_process(10), diffusion.authors_process(10), diffusion.our_process(10)):
    x_t = process.diffuse(x0, t, noise)
    process.step_forward(process.diffuse(x0, s, noise), s, t, noise)
    process.step_back(process.clean(network(x_t, t)), x_t, s, t, noise)
    process.step_back(process.clean(prediction), x_t, 3, 7, noise)
    precondition.target(x0.params, x_t.params, process.params.at(t), 0.5)
    diffusion.our_loss(prediction, x0, process.params.at(t), 0.5).total
diffusion.paper_loss(prediction, x0, t).total
diffusion.authors_loss(prediction, x0, t).per_sample
raw = diffusion.cosine(10)
probs = multinomial.posterior_probs(x0.kind, x0.kind, raw.at(s), raw.at(t))
multinomial.kl(probs, multinomial.draw(probs, multinomial.gumbel_from_normal(noise.kind)))
times.draw_times(times.stratified(torch.rand(4)), times.logit_normal_times(10))
diffusion.seeded_noise(0, torch.arange(3))(1)
gs = diffusion.GaussianSoftmax(torch.zeros(2, 3), 1.0)
gs.log_prob(gs.sample()), gs.argmax_probs(), torch.distributions.kl_divergence(gs, gs)

try:
    SketchBatch(x0.construction, x0.kind, x0.params[..., :13])
except TypeCheckError:
    print("caught")
"""


def test_shapes_hold_and_wrong_ones_are_caught() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", CHECKED], cwd=tests, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "caught"
