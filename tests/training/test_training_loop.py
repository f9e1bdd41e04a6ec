"""A run: the same when interrupted, within its budget and memory, and validated as the system is used."""

import json
import math
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file
from support.corpora import prepared_parts
from support.generation import randomized
from support.training import assert_resume_is_exact, part_corpus
from torch.nn.functional import dropout
from torch.optim.swa_utils import AveragedModel
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.diffusion.gaussian import cosine
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import System, load_preset
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.training import load_model, loop
from sketchdnn.training.checkpoint import list_checkpoints
from sketchdnn.training.config import RunError, TimestepSampling, TrainConfig, parse_train_config
from sketchdnn.training.corpus import Corpus, DataOrder
from sketchdnn.training.loop import Hooks, train
from sketchdnn.training.run import Report, Run, _update_average
from sketchdnn.training.step import timestep_cdf
from sketchdnn.training.validation import validate


def _system(width: int = 32, num_steps: int = 2000) -> SketchDNNSystem:
    torch.manual_seed(0)
    network = SetDenoiserConfig(width=width, depth=1, heads=1)
    return SketchDNNSystem(SketchDNNConfig(network=network, num_steps=num_steps))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return part_corpus()


@pytest.fixture(scope="module")
def trained(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(_system(), corpus, _config(2), folder)
    return folder


def _config(steps: int, **changes: float) -> TrainConfig:
    config = TrainConfig(batch_size=8, steps=steps, warmup=2, decay=0.0, log_every=2, checkpoint_minutes=0.0)
    return replace(config, **changes)  # type: ignore[arg-type]


def test_resume_is_bit_exact(corpus: Corpus, tmp_path: Path) -> None:
    assert_resume_is_exact(_system, corpus, _config(8), tmp_path)
    assert [row.split(",")[0] for row in (tmp_path / "half" / "log.csv").read_text().split()[1:]] == list("2468")
    # The newest checkpoints are kept.
    assert [path.name for path in list_checkpoints(tmp_path / "whole" / "checkpoints")] == ["00000006", "00000008"]


def test_another_or_damaged_run_is_never_continued(corpus: Corpus, trained: Path, tmp_path: Path) -> None:
    fewer = Corpus(corpus.kind[:-1], corpus.construction[:-1], corpus.params[:-1])
    for system, rows, config, reason in (
        (_system(), corpus, _config(4, batch_size=4), r"made with training\.batch_size"),
        (_system(), corpus, _config(4, seed=1), r"made with training\.seed"),
        (_system(width=64), corpus, _config(4), r"system\.network\.width = 32, not 64"),
        (_system(), fewer, _config(4), "data"),
    ):
        with pytest.raises(RunError, match=reason):
            train(system, rows, config, trained, resume=True)
    with pytest.raises(RunError, match="holds a run at step 2; add --resume"):
        train(_system(), corpus, _config(2), trained)
    # Damaged checkpoints are refused.
    tensors = (list_checkpoints(trained / "checkpoints")[-1] / "state.safetensors").read_bytes()
    for name, content, reason in (
        ("state.json", b"[]", "it does not say how it was made"),
        ("state.json", b'{"identity": []}', "it does not say how it was made"),
        ("state.safetensors", tensors[:-100], r"does not fit or is damaged \((?!None).+\); delete it"),
    ):
        shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
        (list_checkpoints(tmp_path / "checkpoints")[-1] / name).write_bytes(content)
        with pytest.raises(RunError, match=reason):
            train(_system(), corpus, _config(4), tmp_path, resume=True)


@pytest.mark.parametrize("ema", [0.9, 0.0])
def test_the_model_of_an_unfinished_run_is_its_newest_checkpoint(corpus: Corpus, tmp_path: Path, ema: float) -> None:
    with pytest.raises(RunError, match="no checkpoint yet"):
        load_model(tmp_path)
    outcome = train(_system(), corpus, _config(4, ema=ema), tmp_path)
    loaded = load_model(tmp_path)
    assert not loaded.training
    assert loaded.config == outcome.model.config
    last = load_model(tmp_path, averaged=False).state_dict()
    raw = load_file(list_checkpoints(tmp_path / "checkpoints")[-1] / "state.safetensors")
    assert all(torch.equal(weight, raw[f"model.{name}"]) for name, weight in last.items())
    assert any(not torch.equal(weight, last[name]) for name, weight in loaded.state_dict().items()) == (ema > 0)
    for name, weight in outcome.model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name]), name
    (list_checkpoints(tmp_path / "checkpoints")[-1] / "state.json").write_text("[]")
    with pytest.raises(RunError, match="damaged"):
        load_model(tmp_path)


# As TensorFlow's: the decay is at most (1 + n) / (10 + n) after n updates.
SHORT = [1 / math.comb(n, 9) for n in range(10, 19)]


def test_average_is_short_in_the_first_steps_and_follows_the_weights(corpus: Corpus, tmp_path: Path) -> None:
    """What is left of the first weights after each step, if all later ones are 0."""
    for decay, left in ((0.9999, SHORT), (0.5, [*SHORT, *(SHORT[-1] / 2**n for n in range(1, 9))])):
        module = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(module.weight)
        average = AveragedModel(module)
        torch.nn.init.zeros_(module.weight)
        for expected in left:
            _update_average(average, module, decay)
            assert float(average.module.weight.detach()) == pytest.approx(expected, rel=1e-5)
    system = _system()
    averaged = train(system, corpus, _config(6), tmp_path / "with").model
    apart = [torch.dist(a, b) for a, b in zip(averaged.parameters(), system.parameters(), strict=True)]
    assert 0 < max(apart) < 0.1
    plain = _system()
    assert train(plain, corpus, _config(2, ema=0.0), tmp_path / "without").model is plain


def test_random_numbers_of_the_network_depend_on_seed_and_step(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes, no two steps share a seed."""
    seeds: list[int] = []
    run = Run(_system(), corpus, _config(3, seed=7))
    monkeypatch.setattr(torch, "manual_seed", seeds.append)
    while not run.done:
        run.advance()
    assert seeds == [7, 8, 9]
    run.ranks, run.step = replace(run.ranks, rank=1, world=2), 4
    run._loss_terms()
    assert seeds[-1] == 7 + 4 * 2 + 1


def test_a_full_disk_leaves_the_last_checkpoint_intact(corpus: Corpus, tmp_path: Path) -> None:
    train(_system(), corpus, _config(4), tmp_path)
    saved = {path: (path / "state.safetensors").read_bytes() for path in list_checkpoints(tmp_path / "checkpoints")}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(RunError, match=r"could not be written .* earlier ones are intact"):
            train(_system(), corpus, _config(8), tmp_path, resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path: (path / "state.safetensors").read_bytes() for path in saved} == saved
    assert sorted((tmp_path / "checkpoints").iterdir()) == sorted(saved)
    assert train(_system(), corpus, _config(8), tmp_path, resume=True).finished
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "checkpoints").write_text("in the way")
    with pytest.raises(RunError, match="could not be written"):
        train(_system(), corpus, _config(2), tmp_path / "new")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step_and_saves(corpus: Corpus, tmp_path: Path, number: int) -> None:
    hooks = Hooks(on_report=lambda report: signal.raise_signal(number) if report.step == 4 else None)
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    outcome = train(_system(), corpus, _config(1000, checkpoint_minutes=99), tmp_path, hooks=hooks)
    assert (outcome.finished, outcome.signal) == (False, number)
    assert [int(path.name) for path in list_checkpoints(tmp_path / "checkpoints")] == [outcome.step]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers


def test_repeated_signals_are_one_and_a_later_one_has_its_usual_effect(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`timeout` signals its command, and then the group of both: the second signal must not kill before the save."""

    def interrupt(report: Report) -> None:
        if report.step == 4:
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)

    outcome = train(_system(), corpus, _config(1000, checkpoint_minutes=99), tmp_path / "a", hooks=Hooks(interrupt))
    assert (outcome.finished, outcome.signal) == (False, signal.SIGINT)
    assert [int(path.name) for path in list_checkpoints(tmp_path / "a" / "checkpoints")] == [outcome.step]
    monkeypatch.setattr(loop, "_REPEATED_WITHIN", 0.0)
    # A shell starts programs in the background with SIGINT ignored.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train(_system(), corpus, _config(1000, checkpoint_minutes=99), tmp_path / "b", hooks=Hooks(interrupt))
    finally:
        signal.signal(signal.SIGINT, usual)


def test_a_run_that_is_asked_to_stop_is_saved(corpus: Corpus, tmp_path: Path) -> None:
    asked = iter([False, True])
    hooks = Hooks(stop=lambda: next(asked))
    outcome = train(_system(), corpus, _config(1000, checkpoint_minutes=99), tmp_path, hooks=hooks)
    assert (outcome.finished, outcome.signal, outcome.step) == (False, None, 4)
    assert [path.name for path in list_checkpoints(tmp_path / "checkpoints")] == ["00000004"]


def test_a_loss_that_is_no_number_stops_with_its_batch(corpus: Corpus, tmp_path: Path) -> None:
    train(_system(), corpus, _config(2), tmp_path)
    params, order = corpus.params.clone(), DataOrder(len(corpus), 8, 0, "cpu")
    spoilt = int(order.indices(4)[3])
    params[spoilt, 0, 0] = math.nan
    with pytest.raises(RunError, match=r"not finite; its batch is saved in .*failed"):
        train(_system(), Corpus(corpus.kind, corpus.construction, params), _config(20), tmp_path, resume=True)
    (folder,) = (tmp_path / "failed").iterdir()
    facts, batch = json.loads((folder / "facts.json").read_text()), load_file(folder / "batch.safetensors")
    # The first batch with the spoilt sketch, not the later one at which the loss was looked at.
    first = next(step for step in range(2, 20) if spoilt in order.indices(step))
    assert (facts["step"], facts["seed"]) == (first, 0)
    assert torch.equal(batch["indices"], order.indices(first))
    assert batch["params"].isnan().any()
    assert all(int(path.name) <= first for path in list_checkpoints(tmp_path / "checkpoints"))


def test_validation_and_previews_are_written(corpus: Corpus, tmp_path: Path) -> None:
    config = _config(4, validate_every=2, preview_every=4)
    train(_system(num_steps=100), corpus, config, tmp_path, validation=corpus)
    header, first, second = (row.split(",") for row in (tmp_path / "validation.csv").read_text().split())
    assert [header[0], first[0], second[0]] == ["step", "2", "4"]
    assert all(float(low) < 10 for low in second[1:])
    assert (tmp_path / "previews" / "00000004.png").read_bytes().startswith(b"\x89PNG")


def test_the_step_compiles_whole_and_its_budget_and_speed_are_by_the_clock(corpus: Corpus) -> None:
    """A graph that breaks would wait for the host in the middle of a step."""
    run = Run(_system(), corpus, _config(2))
    run.objective = torch.compile(run.objective, backend="eager", fullgraph=True)
    run.advance()
    assert run.first_bad_step() is None
    run = Run(_system(), Corpus(corpus.kind, corpus.construction, corpus.params * float("nan")), _config(2))
    for _ in range(2):
        run.advance()
    assert run.first_bad_step() == 0
    run = Run(_system(), corpus, replace(_config(1), steps=None, minutes=2.0))
    run.advance()
    assert 0 < run.progress <= run.seconds / 120
    assert run.progress == pytest.approx(run.seconds / 120, rel=0.5)
    run = Run(_system(), corpus, _config(4))
    for _ in range(2):
        run.advance()
    report = run.report()
    assert report.sketches_per_second * report.seconds == pytest.approx(2 * run.config.batch_size, rel=0.5)


def test_timestep_distributions() -> None:
    def density(num_steps: int, sampling: TimestepSampling) -> torch.Tensor:
        return timestep_cdf(num_steps, sampling).diff(prepend=torch.zeros(1))

    assert torch.allclose(density(100, "uniform"), torch.full((100,), 0.01, dtype=torch.float64))
    assert density(100, "authors")[-1] == 0
    schedule = cosine(2000)
    sigma = (schedule.var / schedule.alpha_bar).sqrt()[1:]
    low, mid = density(2000, "low_noise"), density(2000, "mid_noise")
    assert float(low.sum()) == pytest.approx(1)
    assert float(low[:401].sum()) > 0.4  # a fifth of the steps has well over a fifth of the weight
    # From σ = 1 on, only the uniform half of the distribution is left.
    assert torch.allclose(low[sigma > 1.01], torch.full((), 0.5 / 2000, dtype=torch.float64))
    assert bool((low[(sigma > 0.01) & (sigma < 0.99)] > 0.51 / 2000).all())
    middle = (sigma > 0.01) & (sigma < 0.6)
    assert float(low[middle].sum()) < 0.6 < 0.75 < float(mid[middle].sum())


@pytest.mark.parametrize("name", ["paper", "authors"])
def test_the_paper_and_its_authors_train_plainly(name: str, corpus: Corpus) -> None:
    """Adam at a constant rate; no average, decay, warm-up or clipping."""
    preset = load_preset(name)
    config = parse_train_config(preset.training, steps=1, batch_size=2)
    assert [config.rate(step, step / 1000) for step in (0, 10, 999)] == [1e-4] * 3
    assert (config.weight_decay, config.clip, config.ema, config.stratified) == (0, 0, 0, False)
    assert config.timestep_sampling == {"paper": "uniform", "authors": "authors"}[name]
    small = replace(preset.config, network=DiTConfig(width=16, depth=1, heads=1))
    run = Run(SketchDNNSystem(small), corpus, config)
    run.advance()
    assert run.model is run.system
    assert run.first_bad_step() is None


def test_memory_that_runs_out_in_a_step_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one: the process may have 6 GB, its rows alone would take several times that."""
    where = ("--data", str(prepared_parts(tmp_path, 30)), "--out", str(tmp_path / "run"), "--device", "cpu")
    arguments = ["train", "--preset", "tiny", *where, "--steps", "1", "--batch-size"]
    limited = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "limited", sys.executable, "-m", "sketchdnn"]
    result = subprocess.run([*limited, *arguments, str(10**8)], capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert result.stderr.strip() == f"sketchdnn: a batch of {10**8} does not fit in memory; lower --batch-size"
    for error, message in (
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"), "a batch of 8 does not fit"),
        (RuntimeError("shapes do not match"), "shapes do not match"),
    ):
        monkeypatch.setattr(Run, "advance", Mock(side_effect=error))
        assert message in str(CliRunner().invoke(app, [*arguments, "8"]).exception)


def with_dropout() -> System:
    """Loses half of what its network says, while it is trained."""
    system = randomized(load_preset("tiny").make(), std=0.05)
    for module in system.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda part, args, output: dropout(output, 0.5, training=part.training))
    return system


def test_dropout_is_off_the_mode_comes_back_and_the_batch_size_does_not_count() -> None:
    corpus, config = part_corpus(20), TrainConfig(steps=1, batch_size=8)
    for training in (True, False):
        system = with_dropout().train(training)
        first, again = validate(system, corpus, config), validate(system, corpus, config)
        assert (first, system.training) == (again, training)
    few, many = (validate(system, corpus, TrainConfig(steps=1, batch_size=size)) for size in (8, 64))
    assert (few, list(few)) == (pytest.approx(many, rel=1e-4), sorted(few))
    assert 1 <= min(few) < max(few) <= (system.max_steps or 1)
