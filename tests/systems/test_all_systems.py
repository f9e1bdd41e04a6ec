"""All six systems, in their tiny presets, through one door: train, draw, save, load, judge."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.small_systems import plain_samplers
from support.training import assert_resume_is_exact, part_corpus

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.representation import SketchBatch
from sketchdnn.systems import SYSTEMS, ConfigError, System, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.baselines.latent import LatentDiffusion
from sketchdnn.training.config import RunError, TrainConfig, parse_train_config
from sketchdnn.training.corpus import Corpus
from sketchdnn.training.loop import Hooks, Outcome, train
from sketchdnn.training.run import Report

DENOISERS = ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat", "latent")
TOKENS = ("vitruvion", "sketchgen")
# Rows are a set to these: permuted noise gives permuted rows.
WITHOUT_ORDER = ("sketchdnn", "sketchdnn-cat")
STEPS = 40


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return part_corpus()


@pytest.fixture(scope="module", params=SYSTEMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fresh(name: str) -> System:
    torch.manual_seed(0)
    return load_preset("tiny", name).make()


def config(name: str, steps: int = STEPS, **said: object) -> TrainConfig:
    settings = {"batch_size": 16, "log_every": 4, "checkpoint_minutes": 0.0} | said
    training = {**load_preset("tiny", name).training, "warmup": 4, "decay": 0.0}
    return parse_train_config(training, name, steps=steps, **settings)


@pytest.fixture(scope="module")
def trained(name: str, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[Report], Path]:
    out, reports = tmp_path_factory.mktemp(name), []  # type: tuple[Path, list[Report]]
    told = config(name, validate_every=STEPS, preview_every=STEPS)
    outcome = train(fresh(name), corpus, told, out, validation=corpus, hooks=Hooks(on_report=reports.append))
    outcome.model.eval()
    return outcome, reports, out


@pytest.fixture
def system(trained: tuple[Outcome, list[Report], Path]) -> System:
    return trained[0].model


def drawn(
    system: System, numbers: list[int], change: Callable[[SketchBatch], SketchBatch] = lambda n: n
) -> SketchBatch:
    noise = seeded_noise(3, torch.tensor(numbers))
    return system.sample(lambda draw: change(noise(draw)), SamplingOptions(steps=6))


def test_loss_is_finite_and_falls(trained: tuple[Outcome, list[Report], Path]) -> None:
    outcome, reports, out = trained
    assert outcome.finished
    assert all(0 < report.loss < float("inf") for report in reports)
    assert reports[-1].loss < 0.9 * reports[0].loss
    assert (out / "previews" / f"{STEPS:08d}.png").exists()
    assert (out / "validation.csv").read_text().count("\n") >= 2


def test_training_is_resumed_to_the_bit_but_not_from_another_system(name: str, corpus: Corpus, tmp_path: Path) -> None:
    assert_resume_is_exact(lambda: fresh(name), corpus, config(name, 4, log_every=2), tmp_path)
    other = "latent" if name == "sketchdnn" else "sketchdnn"
    train(fresh(other), corpus, config(other, 1), tmp_path)
    with pytest.raises(RunError, match=f"is of a {other}, not of a {name}"):
        train(fresh(name), corpus, config(name, 2), tmp_path, resume=True)


def test_noise_determines_the_sample_which_a_saved_system_repeats(name: str, system: System, tmp_path: Path) -> None:
    some = drawn(system, [0, 1, 2, 3])
    assert torch.equal(some.flat(), drawn(system, [0, 1, 2, 3]).flat())
    alone = drawn(system, [2])
    assert torch.allclose(alone.flat()[0], some.flat()[2], atol=1e-3)
    assert not torch.equal(some.flat()[0], some.flat()[1])
    order = torch.rand(2, 16, generator=torch.Generator().manual_seed(2)).argsort(dim=-1)
    plain = drawn(system, [0, 1]).permuted(order)
    permuted = drawn(system, [0, 1], lambda noise: noise.permuted(order))
    assert torch.allclose(plain.flat(), permuted.flat(), atol=1e-3) == (name in WITHOUT_ORDER)
    for weight in system.parameters():
        weight.data = weight.data.half().float()  # as it is stored
    save_pretrained(system, tmp_path / "model")
    loaded = from_pretrained(tmp_path / "model")
    assert (type(loaded), loaded.name, loaded.config) == (type(system), system.name, system.config)
    assert loaded.can_init_from(system)
    assert torch.equal(drawn(loaded, [5, 6]).flat(), drawn(system, [5, 6]).flat())


def test_supported_samplers_and_numbers_of_steps_run_and_others_are_refused(name: str, system: System) -> None:
    noise = seeded_noise(0, torch.arange(2))
    for sampler in plain_samplers(name):
        batch = system.sample(noise, SamplingOptions(sampler=sampler, steps=3))
        assert bool(batch.flat().isfinite().all()), sampler
        assert system.resolve(SamplingOptions(sampler)).sampler == sampler
    if "authors" not in system.samplers:
        with pytest.raises(SketchError, match="cannot draw with authors; use ancestral"):
            system.sample(noise, SamplingOptions("authors", 2))
    own = system.resolve(SamplingOptions()).sampler
    assert own == system.default_sampler == ("restart" if name in ("sketchdnn", "sketchdnn-pos") else "ancestral")
    default, named = (system.sample(noise, SamplingOptions(sampler, 3)) for sampler in (None, own))
    assert torch.equal(default.flat(), named.flat())
    assert (system.max_steps is None) == (name in TOKENS)
    system.resolve(SamplingOptions(steps=50))
    if system.max_steps is not None:
        with pytest.raises(SketchError, match="1 to 2000 steps"):
            system.resolve(SamplingOptions(steps=2001))


def test_preset_is_of_its_system() -> None:
    assert tuple(SYSTEMS) == (*DENOISERS, *TOKENS)
    for name in SYSTEMS:
        assert load_preset("tiny", name).make().name == load_preset(system=name).system == name
    assert (load_preset().name, load_preset("paper", "sketchdnn").name) == ("ours-base", "paper")
    with pytest.raises(ConfigError, match="'teapot' is no system; use one of sketchdnn, "):
        load_preset(system="teapot")
    with pytest.raises(ConfigError, match="preset 'paper' is of the system sketchdnn, not latent"):
        load_preset("paper", "latent")


def test_latent_diffusion_trains_in_stages(corpus: Corpus, tmp_path: Path) -> None:
    settings = load_preset("tiny", "latent").config
    torch.manual_seed(0)
    first = LatentDiffusion(replace(settings, stage="vae"))
    before = {key: weight.clone() for key, weight in first.state_dict().items()}
    train(first, corpus, config("latent", 2, ema=0.0), tmp_path / "vae")
    after = first.state_dict()
    assert {key.split(".")[0] for key in before if not torch.equal(before[key], after[key])} == {"vae"}
    second = LatentDiffusion(replace(settings, stage="diffusion"))
    assert second.can_init_from(first)
    second.load_state_dict(after)
    train(second, corpus, config("latent", 2, ema=0.0), tmp_path / "diffusion")
    assert {key.split(".")[0] for key, w in second.state_dict().items() if not torch.equal(after[key], w)} == {
        "network"
    }


def test_own_system_trains_saves_loads_and_generates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        runpy.run_path(str(Path(__file__).parents[2] / "examples" / "own_system.py"))["main"](tmp_path)
        assert capsys.readouterr().out.count("primitives") == 4
        system = from_pretrained(tmp_path / "model", "cpu")
        assert system.name == "plain"
        assert system.to_device("cpu") is system
        noise = seeded_noise(0, torch.arange(2))
        one, two = (system.sample(noise, SamplingOptions(steps=5)) for _ in range(2))
        assert torch.equal(one.flat(), two.flat())
        assert len(list(stream(system, GenerateRequest(count=2, steps=5, repair=False)))) == 2
    finally:
        SYSTEMS.pop("plain", None)
