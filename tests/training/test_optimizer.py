"""Muon beside AdamW: it moves as torch's does, moves what it should, and a run with it is a run like any other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.commands import refused
from support.corpora import prepared_parts
from support.training import assert_resume_is_exact, fake_process_group, part_corpus
from torch import nn

from sketchdnn.systems import SYSTEMS, System, load_preset
from sketchdnn.training import start
from sketchdnn.training.config import RunError, TrainConfig, parse_train_config
from sketchdnn.training.corpus import Corpus
from sketchdnn.training.distributed import Ranks
from sketchdnn.training.loop import Hooks, train
from sketchdnn.training.optimizer import Muon, make_optimizer, orthogonalize, split_parameters
from sketchdnn.training.run import Report, Run

CPU = torch.device("cpu")
# Of the tiny presets: linear maps a block, times blocks.
MATRICES = {"sketchdnn": 12, "sketchdnn-pos": 12, "sketchdnn-cat": 12, "latent": 28, "vitruvion": 12, "sketchgen": 12}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return part_corpus(48)


def _fresh(name: str = "sketchdnn", preset: str = "tiny") -> System:
    torch.manual_seed(0)
    return load_preset(preset, name).make()


def _config(name: str = "sketchdnn", steps: int = 4, **said: object) -> TrainConfig:
    settings = {"batch_size": 8, "warmup": 2, "decay": 0.0, "log_every": 2, "checkpoint_minutes": 0.0} | said
    return parse_train_config(load_preset("tiny", name).training, steps=steps, **{"optimizer": "muon", **settings})


def _pushed(system: nn.Module, step: int) -> None:
    """Gradients of any kind, the same for all who ask."""
    for number, weight in enumerate(system.parameters()):
        weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1000 * step + number))


def test_matrices_become_orthogonal() -> None:
    stack = torch.randn(3, 24, 64, generator=torch.Generator().manual_seed(0))
    for given in (stack, stack.mT):
        result = orthogonalize(given)
        assert (result.is_contiguous(), result.dtype) == (True, torch.bfloat16)
        u, _, v = torch.linalg.svd(given, full_matrices=False)
        along = (u.mT @ result.float() @ v.mT).diagonal(dim1=-2, dim2=-1)
        assert 0.65 < float(along.min()) < float(along.max()) < 1.25
        # Each as if it were alone.
        assert torch.allclose(orthogonalize(given[1:2])[0].float(), result[1].float(), atol=0.02)
    assert not orthogonalize(torch.zeros(2, 3, 3)).any()


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon to compare with")
@pytest.mark.parametrize("name", ["sketchdnn", "vitruvion"])
def test_it_moves_as_that_of_torch_beside_adamw(name: str) -> None:
    start, ours, theirs = _fresh(name), _fresh(name), _fresh(name)
    config = _config(name, weight_decay=0.1, learning_rate=1e-2)
    mine = make_optimizer(ours, config, CPU)
    matrices, others = split_parameters(theirs)
    muon = torch.optim.Muon(matrices, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    both = [muon, torch.optim.AdamW(others, betas=config.betas, weight_decay=0.1)]
    for step in range(4):
        for group in (group for one in (mine, *both) for group in one.param_groups):
            group["lr"] = config.rate(step, step / 4)
        for system in (ours, theirs):
            _pushed(system, step)
        for one in (mine, *both):
            one.step()
    with torch.no_grad():
        for before, here, there in zip(start.parameters(), ours.parameters(), theirs.parameters(), strict=True):
            assert torch.dist(here, there) <= 0.02 * torch.dist(before, there)  # bfloat16
    for here, there in zip(split_parameters(ours)[1], others, strict=True):
        assert torch.equal(here, there)


@pytest.mark.parametrize("name", SYSTEMS)
def test_matrices_of_blocks_are_its_own_and_every_weight_is_moved_once(name: str) -> None:
    system = _fresh(name)
    matrices, others = split_parameters(system)
    assert sorted(map(id, (*matrices, *others))) == sorted(map(id, system.parameters()))
    names = {id(weight): key for key, weight in system.named_parameters()}
    assert len(matrices) == MATRICES[name]
    assert all(weight.ndim == 2 for weight in matrices)
    lists = ("blocks.", "encoder.", "decoder.")  # an autoencoder has two
    assert all(any(part in names[id(weight)] for part in lists) for weight in matrices)
    # What is left of blocks: norms, biases and the tables of modulations.
    left = [names[id(weight)] for weight in others if "blocks." in names[id(weight)] and weight.ndim == 2]
    assert all(key.endswith(".table") for key in left)
    optimizer = make_optimizer(system, _config(name), CPU)
    assert isinstance(optimizer, Muon)
    held = [weight for group in optimizer.param_groups for weight in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, system.parameters()))


def test_modulations_of_the_papers_blocks_are_matrices_and_weights_that_do_not_learn_stay(corpus: Corpus) -> None:
    preset = load_preset("paper")
    small = replace(preset.config.network, width=16, depth=2, heads=1)
    system = replace(preset, config=replace(preset.config, network=small)).make()
    matrices, others = split_parameters(system)
    assert len(matrices) == 2 * 6
    assert any("embed_step" in key for key, w in system.named_parameters() if any(w is other for other in others))
    preset = load_preset("tiny", "latent")
    system = replace(preset, config=replace(preset.config, stage="vae")).make()
    before = {key: weight.clone() for key, weight in system.state_dict().items()}
    run = Run(system, corpus, _config("latent", warmup=0))
    run.advance()
    for key, weight in system.named_parameters():
        assert torch.equal(weight, before[key]) == key.startswith("network."), key


@pytest.mark.parametrize("name", ["sketchdnn", "latent", "vitruvion"])
def test_resume_is_bit_exact(name: str, corpus: Corpus, tmp_path: Path) -> None:
    assert_resume_is_exact(lambda: _fresh(name), corpus, _config(name), tmp_path)


def test_the_loss_falls_and_the_rate_is_for_all(corpus: Corpus, tmp_path: Path) -> None:
    reports: list[Report] = []
    config = _config(steps=60, batch_size=32, warmup=5, learning_rate=5e-3, log_every=5, checkpoint_minutes=99)
    train(_fresh(), corpus, config, tmp_path, hooks=Hooks(on_report=reports.append))
    assert reports[-1].loss < 0.7 * reports[0].loss
    assert (tmp_path / "log.csv").read_text().count("\n") == len(reports) + 1
    run = Run(_fresh(), corpus, replace(config, warmup=10))
    run.advance()
    assert [group["lr"] for group in run.state.optimizer.param_groups] == [5e-4, 5e-4]
    assert all(weight.grad is None for weight in run.system.parameters())


def test_a_run_goes_on_with_the_optimizer_it_began_with(corpus: Corpus, tmp_path: Path) -> None:
    for first, then, reason in (("muon", "adamw", "muon, not its default"), ("adamw", "muon", "its default, not muon")):
        train(_fresh(), corpus, _config(steps=2, optimizer=first), tmp_path / first)
        with pytest.raises(RunError, match=rf"made with training\.optimizer = {reason}"):
            train(_fresh(), corpus, _config(optimizer=then), tmp_path / first, resume=True)


def _arguments(folder: Path, optimizer: str) -> list[object]:
    """The command that trains a small network with an optimizer on an own corpus."""
    tiny = '[system]\nname = "sketchdnn"\n[system.network]\ntype = "SetDenoiser"\nwidth = 32\ndepth = 1\nheads = 1\n'
    (folder / "small.toml").write_text(f'{tiny}[training]\nbatch_size = 8\noptimizer = "{optimizer}"\n')
    data = prepared_parts(folder, 30)
    return ["train", "--preset", folder / "small.toml", "--data", data, "--out", folder / "run", "--steps", 1]


def test_unknown_optimizer_and_split_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "optimizer must be one of adamw, muon, not 'lion'" in refused(*_arguments(tmp_path, "lion"))

    @contextmanager
    def two(device: str, *, shards: bool) -> Iterator[Ranks]:
        with fake_process_group(2):
            yield Ranks(0, 2, shards=shards)

    monkeypatch.setattr(start, "process_group", two)
    (tmp_path / "muon").mkdir()
    error = refused(*_arguments(tmp_path / "muon", "muon"), "--fsdp", "--device", "cpu")
    assert "--fsdp shards them; train without --fsdp" in error
