"""A corpus opened again: batches, and one sentence for everything that may be wrong with the folder."""

from __future__ import annotations

import json
import shutil
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


def test_arrays_are_mapped_and_cannot_be_written(prepared: Path) -> None:
    train = Dataset.open(prepared).split("train")
    assert isinstance(train.compact.params, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        train.compact.params[0] = 0
    assert Dataset.open(prepared).half_extent == 1


def test_an_empty_split_is_a_split(tmp_path: Path) -> None:
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


def test_no_such_split(prepared: Path) -> None:
    with pytest.raises(FormatError, match="no split 'dev'"):
        Dataset.open(prepared).split("dev")


def test_a_missing_array(copy: Path) -> None:
    (copy / "train" / "kind.npy").unlink()
    with pytest.raises(FormatError, match="is missing"):
        Dataset.open(copy).split("train")


@pytest.mark.parametrize("keep", [0, 5, 100, 1000])
def test_a_truncated_array(copy: Path, keep: int) -> None:
    path = copy / "train" / "params.npy"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FormatError, match="is damaged"):
        Dataset.open(copy).split("train")


def test_an_array_that_does_not_fit(copy: Path) -> None:
    np.save(copy / "train" / "construction.npy", np.zeros((3, 16), bool))
    with pytest.raises(FormatError, match="does not fit"):
        Dataset.open(copy).split("train")


def test_a_pickle_is_never_loaded(copy: Path) -> None:
    np.save(copy / "train" / "kind.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(FormatError, match="is damaged"):
        Dataset.open(copy).split("train")


def test_kinds_that_do_not_exist(copy: Path) -> None:
    path = copy / "train" / "kind.npy"
    kinds = np.load(path)
    kinds[0, 0] = 9
    np.save(path, kinds)
    with pytest.raises(FormatError, match="kinds that do not exist"):
        Dataset.open(copy).split("train")
