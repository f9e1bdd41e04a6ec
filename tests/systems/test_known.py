"""What a model remembers of its corpus: every sketch of it is found, it survives saving, and damage is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from support.drawn_sets import parts, shuffled

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.symmetric import symmetric_keys, turned
from sketchdnn.systems import (
    PretrainedError,
    TrainingIndex,
    build_training_index,
    from_pretrained,
    save_pretrained,
    save_training_index,
)
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.training_index import GRID, read_training_index, write_training_index


@pytest.fixture(scope="module")
def known() -> TrainingIndex:
    return build_training_index(parts(80))


@pytest.fixture
def system() -> SketchDNNSystem:
    torch.manual_seed(0)
    return SketchDNNSystem(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=2)))


def equal(a: TrainingIndex, b: TrainingIndex) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("keys", "mixtures", "often"))


def test_sketches_of_the_corpus_are_found_however_they_lie_and_others_are_not(known: TrainingIndex) -> None:
    copies = symmetric_keys(shuffled(turned(parts(80), 6), 4), GRID)
    assert all(known.holds(int(key)) for key in copies)
    others = symmetric_keys(parts(40, seed=9), GRID)
    assert sum(known.holds(int(key)) for key in others) < 4


def test_mixtures_and_numbers_are_those_of_the_corpus(known: TrainingIndex) -> None:
    compact = parts(80)
    assert known.often.sum() == 80
    assert known.primitives == (compact.counts.min(), compact.counts.max())
    lines = (compact.kind == Kind.LINE).sum()
    assert (known.mixtures[:, Kind.LINE] * known.often).sum() == lines


def test_it_is_saved_with_the_model_and_loaded(system: SketchDNNSystem, known: TrainingIndex, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path)
    assert from_pretrained(tmp_path).training_index is None
    save_training_index(known, tmp_path)
    loaded = from_pretrained(tmp_path)
    assert loaded.training_index is not None
    assert equal(loaded.training_index, known)
    save_pretrained(loaded, tmp_path / "again")
    again = from_pretrained(tmp_path / "again").training_index
    assert again is not None
    assert equal(again, known)


def test_a_missing_or_changed_file_is_refused(system: SketchDNNSystem, known: TrainingIndex, tmp_path: Path) -> None:
    system.training_index = known
    save_pretrained(system, tmp_path)
    path = tmp_path / "known.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(PretrainedError, match="not the one it was saved with"):
        from_pretrained(tmp_path)
    path.unlink()
    with pytest.raises(PretrainedError, match="is missing"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"keys": np.array([3, 3], np.uint64)},
        {"keys": np.array([3, 4], np.int64)},
        {"often": np.array([], np.int64)},
        {"often": np.zeros(1, np.int64), "mixtures": np.ones((1, 4), np.int64)},
        {"mixtures": np.ones((1, 3), np.int64)},
    ],
)
def test_nonsense_is_refused(known: TrainingIndex, tmp_path: Path, change: dict[str, np.ndarray]) -> None:
    path = tmp_path / "known.safetensors"
    write_training_index(known, path)
    assert equal(read_training_index(path), known)
    tensors = {"keys": known.keys, "mixtures": known.mixtures, "often": known.often} | change
    save_file(tensors, path)
    with pytest.raises(SketchError):
        read_training_index(path)
    path.write_bytes(b"nothing")
    with pytest.raises(SketchError, match="cannot be read"):
        read_training_index(path)


def test_the_bundled_model_knows_its_corpus() -> None:
    import sketchdnn

    folder = Path(sketchdnn.__file__).parent / "weights" / "ours"
    known = read_training_index(folder / "known.safetensors")
    assert known.primitives == (8, 16)
    assert known.often.sum() == 22_400
    assert (folder / "known.safetensors").stat().st_size < 2_000_000
    assert "known" in json.loads((folder / "config.json").read_text())
