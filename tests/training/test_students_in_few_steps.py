"""Both methods of distillation work: in four steps a student is closer to its teacher than the teacher itself."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from support.set_features import energy_distance, set_features
from support.training import part_corpus

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.students import make_student
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.corpus import Corpus
from sketchdnn.training.distill import DistillRun
from sketchdnn.training.distill_settings import DistillConfig
from sketchdnn.training.loop import train

COUNT = 384
TRAINING = {"batch_size": 64, "augment": True, "timestep_sampling": "low_noise"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return part_corpus(2000)


@pytest.fixture(scope="module")
def teacher(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> SketchDNNSystem:
    """The preset `tiny` with self-conditioning."""
    torch.manual_seed(0)
    network = SetDenoiserConfig(width=64, depth=3, heads=2, self_conditioning=True)
    system = SketchDNNSystem(SketchDNNConfig(network=network))
    config = TrainConfig(steps=1000, learning_rate=3e-3, warmup=50, ema=0.99, **TRAINING)  # type: ignore[arg-type]
    model = train(system, corpus, config, tmp_path_factory.mktemp("teacher")).model
    assert isinstance(model, SketchDNNSystem)
    return model.eval()


def _features(system: Any, sampler: str, steps: int, seed: int) -> torch.Tensor:
    with torch.no_grad():
        batch = system.sample(seeded_noise(seed, torch.arange(COUNT)), SamplingOptions(sampler, steps))
    return set_features(batch)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["flow_map", "moment_matching"])
def test_four_steps_of_a_student_are_closer_to_the_teacher(
    method: Any, teacher: SketchDNNSystem, corpus: Corpus, tmp_path: Path
) -> None:
    settings = {"learning_rate": 5e-4, "warmup": 20, "decay": 0.3, "ema": 0.98, "weight_decay": 0.0}
    config = TrainConfig(steps=300, **settings, **TRAINING)  # type: ignore[arg-type]
    make_run = partial(DistillRun, teacher=teacher, distill=DistillConfig(method, student_steps=(4,)))
    torch.manual_seed(0)
    student = train(make_student(teacher, method), corpus, config, tmp_path, make_run=make_run).model.eval()
    reference = _features(teacher, "ancestral", 100, 1)
    of_student = energy_distance(_features(student, "few_step", 4, 2), reference)
    samplers = ("predictor_corrector", "ancestral", "ddim", "dpm++")
    of_teacher = {name: energy_distance(_features(teacher, name, 4, 2), reference) for name in samplers}
    same = energy_distance(_features(teacher, "ancestral", 100, 2), reference)
    report = f"{method}: {of_student:.3f}; teacher in 4 steps {of_teacher}; in 100 {same:.3f}"
    assert of_student < 0.5 * min(of_teacher.values()), report
