"""Weights split over processes: the same run as in one, on disk too."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.commands import refused, run
from support.corpora import prepared_parts
from support.training import fake_process_group, part_corpus
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import from_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.training.checkpoint import list_checkpoints
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.distributed import Ranks
from sketchdnn.training.run import Run

DEPTH = 2
# Clipping must bite, or a norm over one part of the weights would go unseen.
NETWORK = f'{{type = "SetDenoiser", width = 34, depth = {DEPTH}, heads = 1}}'
PRESET = f"""
system = {{name = "sketchdnn", num_steps = 100, network = {NETWORK}}}
training = {{batch_size = 8, learning_rate = 1e-3, warmup = 5, ema = 0.9, clip = 0.1}}
"""
STEPS, HALF = 6, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("split")
    prepared_parts(folder, 60)
    (folder / "small.toml").write_text(PRESET)
    return folder


def _arguments(folder: Path, out: Path, steps: int, *more: str) -> list[str]:
    what = ("--preset", str(folder / "small.toml"), "--data", str(folder / "corpus"), "--out", str(out))
    how = ("--device", "cpu", "--log-every", "1", "--checkpoint-minutes", "0", "--keep", "99", "--steps", str(steps))
    return ["train", *what, *how, "--validate-every", "3", "--preview-every", "0", *more]


def _started(folder: Path, out: Path, *more: str) -> list[subprocess.Popen[bytes]]:
    """Two processes as torchrun starts them, but ours to kill: its own outlive it for a while."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    environment = {**os.environ, **meeting, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "sketchdnn", *_arguments(folder, out, STEPS, "--fsdp", *more)]
    return [subprocess.Popen(program, env=environment | {"RANK": str(rank)}) for rank in range(2)]


def _split(folder: Path, out: Path, *more: str) -> None:
    assert [process.wait(timeout=300) for process in _started(folder, out, *more)] == [0, 0]


@pytest.fixture(scope="module")
def one(folder: Path) -> Path:
    run(*_arguments(folder, folder / "one", STEPS))
    return folder / "one"


@pytest.fixture(scope="module")
def two(folder: Path) -> Path:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "sketchdnn"]
    arguments = _arguments(folder, folder / "two", STEPS, "--fsdp")
    result = subprocess.run([*launch, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(f"trained {STEPS} steps") == 1
    return folder / "two"


def _losses(out: Path, name: str = "log.csv") -> list[float]:
    rows = [row.split(",") for row in (out / name).read_text().split()[1:]]
    return [float(number) for row in rows for number in (row[2:3] if name == "log.csv" else row[1:])]


def _final(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "checkpoints" / f"{STEPS:08d}" / "state.safetensors")


def _assert_same(run: Path, other: Path, *, exactly: bool = False) -> None:
    here, there = _final(run), _final(other)
    assert here.keys() == there.keys()
    for name, value in here.items():
        # The sum of gradients is taken in another order, and where one is nearly zero Adam takes only its sign.
        near = {"rtol": 0.0, "atol": 0.0} if exactly else {"rtol": 1e-3, "atol": 1e-5}
        torch.testing.assert_close(value, there[name], **near, msg=lambda said, name=name: f"{name}: {said}")


def _half_of(run: Path, out: Path) -> Path:
    shutil.copytree(run / "checkpoints" / f"{HALF:08d}", out / "checkpoints" / f"{HALF:08d}")
    return out


def test_split_over_two_processes_it_trains_as_in_one(one: Path, two: Path) -> None:
    assert len(_losses(two)) == STEPS
    for name in ("log.csv", "validation.csv"):
        assert _losses(two, name) == pytest.approx(_losses(one, name), rel=1e-4)
    _assert_same(one, two)
    whole, gathered = (from_pretrained(run / "model").state_dict() for run in (one, two))
    average = {name.removeprefix("average.module."): value for name, value in _final(two).items() if "average" in name}
    for name, weight in gathered.items():
        assert torch.allclose(weight, whole[name], rtol=1e-2, atol=1e-4), name
        assert torch.equal(weight, average[name].half().float()), name


def test_begun_in_two_it_goes_on_in_one_and_back(folder: Path, one: Path, two: Path, tmp_path: Path) -> None:
    run(*_arguments(folder, _half_of(two, tmp_path / "one"), STEPS, "--resume"))
    _split(folder, _half_of(one, tmp_path / "two"), "--resume")
    for name in ("one", "two"):
        _assert_same(tmp_path / name, one)


def test_killed_in_two_and_resumed_in_two_it_ends_the_same(folder: Path, two: Path, tmp_path: Path) -> None:
    processes = _started(folder, tmp_path)
    until = time.monotonic() + 120
    while not list_checkpoints(tmp_path / "checkpoints") and time.monotonic() < until and processes[0].poll() is None:
        time.sleep(0.01)
    for process in processes:
        process.kill()
        process.wait()
    _split(folder, tmp_path, "--resume")
    _assert_same(tmp_path, two, exactly=True)


def test_one_process_alone_is_told_how_to_start_more(folder: Path, tmp_path: Path) -> None:
    assert "torchrun --nproc-per-node" in refused(*_arguments(folder, tmp_path, 1, "--fsdp"))
    assert not list(tmp_path.iterdir())


class _Watch(TorchDispatchMode):
    """Counts what is said between processes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if DTensor in types:
            return NotImplemented  # to see what it does inside
        if func.namespace in ("c10d", "_c10d_functional"):
            self.seen[func._opname] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def first_of_four() -> Iterator[Ranks]:
    with fake_process_group(4):
        yield Ranks(0, 4, shards=True)


def test_a_process_keeps_its_part_and_no_more(first_of_four: Ranks) -> None:
    system = SketchDNNSystem(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=DEPTH, heads=1)))
    whole = sum(weight.numel() for weight in system.parameters())
    run = Run(system, part_corpus(), TrainConfig(batch_size=8, steps=9, clip=1.0), first_of_four)
    run.advance()
    with _Watch() as watch:
        run.advance()
    # The blocks are units, gathered for the way there and the way back; all else is another, which stays in between.
    assert watch.seen.pop("_allgather_base_") == 2 * DEPTH + 1
    assert watch.seen.pop("_reduce_scatter_base_") == DEPTH + 1
    assert watch.seen["all_reduce"] == 1  # the norm that clips
    moments = [value for kept in run.state.optimizer.state.values() for value in kept.values() if value.ndim]
    for tensors in (list(system.parameters()), list(run.state.average.parameters()), moments):
        assert all(isinstance(value, DTensor) for value in tensors)
        kept = sum(value.to_local().numel() for value in tensors)  # type: ignore[attr-defined]
        assert kept < (2 if tensors is moments else 1) * 0.27 * whole
