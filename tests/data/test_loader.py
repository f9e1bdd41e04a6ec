"""Datasets: batches, and an error for each kind of damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from sketchdnn.data import Dataset, Procedural, prepare
from sketchdnn.errors import FormatError
from sketchdnn.representation import decode, decode_compact


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("loader") / "out"
    prepare([], out, parts=Procedural(80), workers=1)
    return out


@pytest.fixture
def copy(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "copy"))


def test_batches(prepared: Path) -> None:
    train = Dataset.open(prepared).split("train")
    index = np.array([3, 0, 5])
    batch = train.batch(index, arc_scalar="sweep")
    assert batch.flat().shape == (3, 16, 21)
    assert batch.params.dtype == torch.float32
    for one, other in zip(decode(batch, "sweep"), decode_compact(train.compact[index]), strict=True):
        assert [p.kind for p in one.sketch] == [p.kind for p in other.sketch]
    kind, construction, params = train.tensors()
    assert (kind.dtype, construction.dtype, params.dtype) == (torch.uint8, torch.bool, torch.float32)
    assert len(kind) == len(train)


def test_arrays_are_mapped_read_only(prepared: Path) -> None:
    train = Dataset.open(prepared).split("train")
    assert isinstance(train.compact.params, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        train.compact.params[0] = 0
    assert Dataset.open(prepared).half_extent == 1


def test_empty_split(tmp_path: Path) -> None:
    prepare([], tmp_path / "out", parts=Procedural(3), workers=1)
    data = Dataset.open(tmp_path / "out")
    sizes = [len(data.split(name).tensors()[0]) for name in ("train", "validation", "test")]
    assert 0 in sizes


def test_not_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is no prepared corpus"):
        Dataset.open(tmp_path)
    (tmp_path / "dataset.json").write_text("[")
    with pytest.raises(FormatError, match="cannot be read"):
        Dataset.open(tmp_path)
    (tmp_path / "dataset.json").write_text("[]")
    with pytest.raises(FormatError, match="prepare it again"):
        Dataset.open(tmp_path)


def test_another_version(copy: Path) -> None:
    path = copy / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "representation": 99}))
    with pytest.raises(FormatError, match="prepared for representation 99"):
        Dataset.open(copy)


def test_damaged_arrays_are_refused(copy: Path) -> None:
    folder = copy / "train"
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    kinds = np.load(folder / "kind.npy")
    kinds[0, 0] = 9

    def truncate(size: int) -> None:
        (folder / "params.npy").write_bytes(whole[folder / "params.npy"][:size])

    damages: list[tuple[Callable[[], object], str]] = [
        ((folder / "kind.npy").unlink, "is missing"),
        *((partial(truncate, size), "is damaged") for size in (0, 5, 100, 1000)),
        (lambda: np.save(folder / "construction.npy", np.zeros((3, 16), bool)), "does not fit"),
        (lambda: np.save(folder / "kind.npy", np.array([{"a": 1}], object), allow_pickle=True), "is damaged"),
        (lambda: np.save(folder / "kind.npy", kinds), "kinds that do not exist"),
    ]
    for damage, message in damages:
        damage()
        with pytest.raises(FormatError, match=message):
            Dataset.open(copy).split("train")
        for path, content in whole.items():
            path.write_bytes(content)
    with pytest.raises(FormatError, match="no split 'dev'"):
        Dataset.open(copy).split("dev")
