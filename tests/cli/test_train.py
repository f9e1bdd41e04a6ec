"""`sketchdnn train` as a person runs it: killed, shared, refused, finished."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.commands import invoke, run, start, wait_for
from support.corpora import parts, written

from sketchdnn.data import PrepareConfig, prepare
from sketchdnn.generation import Conditions
from sketchdnn.generation.conditions import ConditionChecker
from sketchdnn.systems import SYSTEMS, from_pretrained
from sketchdnn.training.checkpoint import list_checkpoints

PRESET = """
[system]
name = "sketchdnn"
num_steps = 100
[system.network]
type = "SetDenoiser"
width = 32
depth = 1
heads = 1
[training]
batch_size = 8
learning_rate = 1e-3
warmup = 5
ema = 0.9
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    prepare([written(parts(60), folder / "parts.jsonl")], folder / "made", PrepareConfig(), workers=1)
    return folder / "made"


@pytest.fixture(scope="module")
def preset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("preset") / "small.toml"
    path.write_text(PRESET)
    return path


def _arguments(preset: Path, corpus: Path, out: Path, *more: str) -> list[str]:
    quiet = ("--device", "cpu", "--validate-every", "0", "--preview-every", "0")
    return ["train", "--preset", str(preset), "--data", str(corpus), "--out", str(out), *quiet, *more]


def _fails(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code != 0
    return str(result.exception)


def _losses(out: Path) -> list[float]:
    return [float(row.split(",")[2]) for row in (out / "log.csv").read_text().split()[1:]]


def _final(out: Path) -> dict[str, torch.Tensor]:
    return load_file(list_checkpoints(out / "checkpoints")[-1] / "state.safetensors")


def test_killed_at_any_moment_and_resumed_elsewhere_it_ends_the_same(
    preset: Path, corpus: Path, tmp_path: Path
) -> None:
    """A run and its corpus are copied to other folders and continued by another process, as on another machine."""
    how = ("--steps", "100", "--log-every", "4", "--checkpoint-minutes", "0")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(*_arguments(preset, corpus, whole, *how))
    with start(*_arguments(preset, corpus, killed, *how)) as process:
        wait_for(lambda: list_checkpoints(killed / "checkpoints"), process)
        time.sleep(random.random() * 0.5)
        process.kill()
    at = int(list_checkpoints(killed / "checkpoints")[-1].name)
    moved = tmp_path / "elsewhere"
    shutil.copytree(killed, moved / "run")
    shutil.copytree(corpus, moved / "corpus")
    shutil.rmtree(killed)
    killed = moved / "run"
    run(*_arguments(preset, moved / "corpus", killed, *how, "--resume"))
    one, other = _final(whole), _final(killed)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one), f"killed at {at}"
    assert (_losses(whole)[-1], len(_losses(whole))) == (_losses(killed)[-1], len(_losses(killed)))


def test_two_processes_see_the_loss_of_one(preset: Path, corpus: Path, tmp_path: Path) -> None:
    how = ("--steps", "6", "--log-every", "1", "--checkpoint-minutes", "9")
    run(*_arguments(preset, corpus, tmp_path / "one", *how))
    shared = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "sketchdnn"]
    arguments = _arguments(preset, corpus, tmp_path / "two", *how)
    result = subprocess.run([*shared, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("trained 6 steps") == 1
    assert _losses(tmp_path / "two") == pytest.approx(_losses(tmp_path / "one"), rel=1e-4)
    one, two = _final(tmp_path / "one"), _final(tmp_path / "two")
    assert all(torch.allclose(one[n], two[n], rtol=1e-3, atol=1e-5) for n in one if n.startswith("model."))


def test_sigterm_saves_and_says_so(preset: Path, corpus: Path, tmp_path: Path) -> None:
    with start(*_arguments(preset, corpus, tmp_path, "--minutes", "5", "--log-every", "1")) as process:
        wait_for((tmp_path / "log.csv").exists, process)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "continue with --resume" in said
    assert len(list_checkpoints(tmp_path / "checkpoints")) == 1


def test_the_model_is_written_and_can_start_another_run(preset: Path, corpus: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    result = run(*_arguments(preset, corpus, first, "--epochs", "1"))
    assert "the model is in" in result.output
    model = from_pretrained(first / "model")
    more = ("--steps", "1", "--learning-rate", "1e-9", "--init-from", str(first / "model"))
    run(*_arguments(preset, corpus, second, *more))
    begun = from_pretrained(second / "model").state_dict()
    assert all(torch.allclose(w, begun[name], atol=1e-3) for name, w in model.state_dict().items())
    wider = tmp_path / "wider.toml"
    wider.write_text(PRESET.replace("width = 32", "width = 64"))
    assert "another shape" in _fails(*_arguments(wider, corpus, tmp_path / "x", *more))


def test_loss_is_printed_at_each_validation(preset: Path, corpus: Path, tmp_path: Path) -> None:
    often = ("--steps", "8", "--log-every", "4", "--validate-every", "4")
    result = run(*_arguments(preset, corpus, tmp_path, *often))
    _, *rows = (tmp_path / "validation.csv").read_text().split()
    means = [sum(map(float, row.split(",")[1:])) / row.count(",") for row in rows]
    told = [f"validation at step {step}: loss {mean:.4f}" for step, mean in zip((4, 8), means, strict=True)]
    assert result.stderr.splitlines() == told


@pytest.mark.parametrize("choices", [{}, {"half_extent": 0.5}, {"frame": "authors"}])
def test_training_sketches_are_not_novel(choices: dict[str, Any], preset: Path, tmp_path: Path) -> None:
    source = written(parts(20), tmp_path / "parts.jsonl")
    prepare([source], tmp_path / "corpus", PrepareConfig(fractions=(1, 0, 0), **choices), workers=1)
    out = tmp_path / "run"
    run(*_arguments(preset, tmp_path / "corpus", out, "--steps", "3"))
    model = str(out / "model")
    checker = ConditionChecker(Conditions(novel=True), from_pretrained(model).training_index)
    seen = [checker.find_shortfall(sketch) for sketch in parts(40)]
    assert all(each is not None and each.sentence == "it is in the training corpus" for each in seen[:20])
    assert seen[20:].count(None) > 15
    options = ["--model", model, "--novel", "--count", "1", "--steps", "2", "--format", "json"]
    run("generate", "--out", tmp_path / "drawn", *options)


def test_what_cannot_be_trained_is_one_sentence(preset: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def says(*more: str, data: Path = corpus, to: Path = out) -> str:
        return _fails(*_arguments(preset, data, to, *more))

    assert f"sketchdnn prepare {tmp_path} --out corpus" in says("--steps", "1", data=tmp_path)
    sequences = tmp_path / "sg t16.npy"
    sequences.write_bytes(b"")
    assert f"sketchdnn prepare '{sequences}' --out corpus" in says("--steps", "1", data=sequences)
    assert "exactly one of" in says()
    assert "exactly one of" in says("--steps", "1", "--minutes", "1")
    assert "steps must lie in 1.." in says("--steps", "0")
    assert "lower --batch-size" in says("--steps", "1", "--batch-size", str(10**15))
    assert "'tpu' is no device" in says("--steps", "1", "--device", "tpu")
    assert "system" in says("--steps", "1", "--system", "other")
    if not torch.cuda.is_available():
        assert "use cpu or auto" in says("--steps", "1", "--device", "cuda")
    (tmp_path / "file").write_text("")
    assert "name another folder" in says("--steps", "1", to=tmp_path / "file" / "run")
    copy = tmp_path / "copy"
    (copy / "train").mkdir(parents=True)
    for file in corpus.glob("train/*.npy"):
        (copy / "train" / file.name).write_bytes(file.read_bytes()[:200])
    description = json.loads((corpus / "dataset.json").read_text())
    (copy / "dataset.json").write_text(json.dumps(description))
    assert "prepare the corpus again" in _fails(*_arguments(preset, copy, tmp_path / "out", "--steps", "1"))
    (copy / "dataset.json").write_text(json.dumps({**description, "representation": 0}))
    assert "prepare it again" in _fails(*_arguments(preset, copy, tmp_path / "out", "--steps", "1"))


def test_settings_are_overridden_and_loggers_used(preset: Path, corpus: Path, tmp_path: Path) -> None:
    overrides = ["--set", "system.network.width=16", "--set", "training.learning_rate=3e-4", "--set", "training.ema=0"]
    overrides += ["--set", "training.seed=5"]
    arguments = _arguments(preset, corpus, tmp_path / "run", "--steps", "1", *overrides)
    run(*arguments)
    assert from_pretrained(tmp_path / "run" / "model").config.network.width == 16
    (checkpoint,) = list_checkpoints(tmp_path / "run" / "checkpoints")
    training = json.loads((checkpoint / "state.json").read_text())["identity"]["training"]
    assert (training["learning_rate"], training["ema"], training["seed"]) == (3e-4, 0, 5)
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = _arguments(preset, corpus, tmp_path / "logged", "--steps", "4", "--log-every", "2")
    arguments += ["--validate-every", "4", "--logger", "tensorboard"]
    run(*arguments)
    events = EventAccumulator(str(tmp_path / "logged" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [2, 4]
    assert "validation/t5" in events.Tags()["scalars"]


def test_wrong_overrides_and_loggers_are_refused(
    preset: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("wandb", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, package, None)
    for option, value, message in (
        ("--set", "width=16", "write it as training.learning_rate=3e-4"),
        ("--set", "training.learning_rate", "write it as training.learning_rate=3e-4"),
        ("--set", "training.speed=1", "'speed' is no setting"),
        ("--set", "training.learning_rate=fast", "must be a number"),
        ("--set", "system.name.x=1", "'name' is a setting, not a section"),
        ("--set", "other.x=1", "'other' is no section"),
        ("--logger", "paper", "use tensorboard or wandb"),
        ("--logger", "wandb", "pip install wandb"),
        ("--logger", "tensorboard", "pip install tensorboard"),
    ):
        assert message in _fails(*_arguments(preset, corpus, tmp_path / option, "--steps", "1", option, value))
    assert not (tmp_path / "--set").exists()


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_trains_and_its_model_loads(name: str, corpus: Path, tmp_path: Path) -> None:
    run(*_arguments(Path("tiny"), corpus, tmp_path, "--steps", "2", "--system", name))
    assert from_pretrained(tmp_path / "model").name == name
    other = "latent" if name == "sketchdnn" else "sketchdnn"
    begin = ["--steps", "2", "--system", other, "--init-from", str(tmp_path / "model")]
    assert "and the preset's is a" in _fails(*_arguments(Path("tiny"), corpus, tmp_path / "again", *begin))
    for preset, system, complaint in (
        ("tiny", "teapot", "'teapot' is no system; use one of sketchdnn, sketchdnn-pos, sketchdnn-cat, latent"),
        ("paper", "latent", "preset 'paper' is of the system sketchdnn, not latent"),
        ("huge", name, "'huge' is no preset"),
    ):
        assert complaint in _fails(*_arguments(Path(preset), corpus, tmp_path, "--system", system))


def test_the_latent_stages_are_two_runs(corpus: Path, tmp_path: Path) -> None:
    small = "width = 32\ndepth = 1\nheads = 2\n"
    for stage in ("vae", "diffusion"):
        table = f'[system]\nname = "latent"\nstage = "{stage}"\n[system.vae]\n{small}[system.network]\n{small}'
        (tmp_path / f"{stage}.toml").write_text(table)
    first, second = tmp_path / "first", tmp_path / "second"
    run(*_arguments(tmp_path / "vae.toml", corpus, first, "--steps", "2"))
    begin = ["--steps", "2", "--init-from", str(first / "model")]
    run(*_arguments(tmp_path / "diffusion.toml", corpus, second, *begin))
    one, other = (from_pretrained(folder / "model").state_dict() for folder in (first, second))
    assert all(torch.equal(one[key], other[key]) for key in one if key.startswith("vae."))
    assert not all(torch.equal(one[key], other[key]) for key in one)
