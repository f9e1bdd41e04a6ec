"""Datasets: batches, and an error for each kind of damage."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sketchdnn.data import Dataset, Procedural, prepare
from sketchdnn.errors import FormatError


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("loader") / "out"
    prepare([], out, parts=Procedural(80), workers=1)
    return out


def test_arrays_are_mapped_read_only_and_may_be_empty(prepared: Path, tmp_path: Path) -> None:
    dataset = Dataset.open(prepared)
    train, rows = dataset.split("train"), dataset.split("train").compact
    assert len(train) == len(rows.kind) > 0
    assert (rows.kind.dtype, rows.construction.dtype, rows.params.dtype) == (np.uint8, bool, np.float32)
    assert isinstance(rows.params, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        rows.params[0] = 0
    assert (dataset.half_extent, dataset.tight) == (1, True)
    prepare([], tmp_path / "few", parts=Procedural(3), workers=1)
    few = Dataset.open(tmp_path / "few")
    assert 0 in [len(few.split(name)) for name in ("train", "validation", "test")]


def test_damaged_or_missing_corpora_are_refused(prepared: Path, tmp_path: Path) -> None:
    description = json.loads((prepared / "dataset.json").read_text())
    with pytest.raises(FormatError, match="is no prepared corpus: it has no"):
        Dataset.open(tmp_path)
    path = tmp_path / "dataset.json"
    for content, reason in (
        ("[", "cannot be read"),
        ("[]", "prepare it again"),
        (json.dumps({**description, "representation": 99}), "prepared for representation 99"),
        (json.dumps({**description, "config": {"half_extent": -1}}), "has invalid settings"),
        (json.dumps({**description, "counts": {}}), "does not say how many sketches are in train"),
    ):
        path.write_text(content)
        with pytest.raises(FormatError, match=reason):
            Dataset.open(tmp_path).split("train")
    with pytest.raises(FormatError, match="is a file, not a prepared corpus"):
        Dataset.open(prepared / "report.json")
    # Damaged arrays.
    copy = Path(shutil.copytree(prepared, tmp_path / "copy"))
    folder, params = copy / "train", copy / "train" / "params.npy"
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    kinds = np.load(folder / "kind.npy")
    kinds[0, 0] = 9
    damages: list[tuple[Callable[[], object], str]] = [
        ((folder / "kind.npy").unlink, "is missing"),
        *((partial(params.write_bytes, whole[params][:size]), "is damaged") for size in (0, 5, 100, 1000)),
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
