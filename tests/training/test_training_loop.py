"""A run: the same from its seed, the same when interrupted, and it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sketchdnn.data.procedural import procedural
from sketchdnn.geometry import normalise
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.compact import encode
from sketchdnn.systems.sketchdnn import SketchDNN, SketchDNNConfig
from sketchdnn.training.checkpoint import RunError, found
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.corpus import Corpus, to_device
from sketchdnn.training.loop import Report, train
from sketchdnn.training.order import DataOrder


def _system() -> SketchDNN:
    torch.manual_seed(0)
    return SketchDNN(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=1)))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    sketches = [normalise(procedural(0, i))[0] for i in range(24)]
    return to_device(encode([s for s in sketches if len(s) <= 16], canonical_lines=True), "cpu")


def _config(steps: int) -> TrainConfig:
    return TrainConfig(batch_size=8, steps=steps, warmup=2, decay=0.0, log_every=2, checkpoint_minutes=0.0)


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(corpus: Corpus, tmp_path: Path) -> None:
    whole = _system()
    train(whole, corpus, _config(8), tmp_path / "whole")
    half = _system()
    train(half, corpus, _config(4), tmp_path / "half")
    resumed = _system()
    average = train(resumed, corpus, _config(8), tmp_path / "half", resume=True)
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name
    assert int(average.n_averaged) == 8


def test_the_loss_falls(corpus: Corpus, tmp_path: Path) -> None:
    reports: list[Report] = []
    config = TrainConfig(batch_size=32, steps=60, warmup=5, learning_rate=5e-3, log_every=5)
    train(_system(), corpus, config, tmp_path, on_report=reports.append)
    assert reports[-1].loss < 0.7 * reports[0].loss
    assert (tmp_path / "log.csv").read_text().count("\n") == len(reports) + 1


def test_only_the_newest_checkpoints_are_kept(corpus: Corpus, tmp_path: Path) -> None:
    train(_system(), corpus, _config(8), tmp_path)
    assert [path.name for path in found(tmp_path / "checkpoints")] == ["00000006", "00000008"]


def test_a_folder_that_cannot_be_written_is_said(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(RunError, match="could not be written"):
        train(_system(), corpus, _config(2), tmp_path)


def test_every_pass_sees_every_sketch_once() -> None:
    order = DataOrder(10, 4, seed=3, device="cpu")
    seen = torch.cat([order.indices(step) for step in range(5)])
    assert sorted(seen[:10].tolist()) == sorted(seen[10:].tolist()) == list(range(10))
    assert not torch.equal(seen[:10], seen[10:])
    assert torch.equal(DataOrder(10, 4, 3, "cpu").indices(4), order.indices(4))


@pytest.mark.parametrize("budget", [{}, {"steps": 1, "minutes": 1.0}, {"minutes": 0.0}])
def test_a_budget_must_be_one_and_positive(budget: dict[str, float]) -> None:
    with pytest.raises(RunError):
        TrainConfig(**budget)  # type: ignore[arg-type]
