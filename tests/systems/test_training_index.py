"""The training index: it contains every training sketch, is saved with the model, and damage is refused."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from support.sketch_sets import parts, shuffled

from sketchdnn import systems
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.hashing import symmetric_keys, turned
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.training_index import HASH_GRID_LEVELS, read_training_index, write_training_index


@pytest.fixture(scope="module")
def index() -> systems.TrainingIndex:
    return systems.build_training_index(parts(80))


@pytest.fixture
def system() -> SketchDNNSystem:
    torch.manual_seed(0)
    return SketchDNNSystem(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=2)))


def equal(a: systems.TrainingIndex, b: systems.TrainingIndex) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("keys", "kind_counts", "frequency"))


def test_contains_training_sketches_up_to_symmetry_and_their_counts(index: systems.TrainingIndex) -> None:
    compact = parts(80)
    copies = symmetric_keys(shuffled(turned(compact, 6), 4), HASH_GRID_LEVELS)
    assert all(index.contains(int(key)) for key in copies)
    others = symmetric_keys(parts(40, seed=9), HASH_GRID_LEVELS)
    assert sum(index.contains(int(key)) for key in others) < 4
    assert index.frequency.sum() == 80
    assert index.primitive_count_range == (compact.counts.min(), compact.counts.max())
    assert (index.kind_counts[:, Kind.LINE] * index.frequency).sum() == (compact.kind == Kind.LINE).sum()


def test_saved_and_loaded_unless_missing_or_changed(
    system: SketchDNNSystem, index: systems.TrainingIndex, tmp_path: Path
) -> None:
    systems.save_pretrained(system, tmp_path)
    assert systems.from_pretrained(tmp_path).training_index is None
    systems.save_training_index(index, tmp_path)
    loaded = systems.from_pretrained(tmp_path)
    systems.save_pretrained(loaded, tmp_path / "again")
    for found in (loaded.training_index, systems.from_pretrained(tmp_path / "again").training_index):
        assert found is not None
        assert equal(found, index)
    path = tmp_path / "training_index.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(systems.PretrainedError, match="not the one it was saved with"):
        systems.from_pretrained(tmp_path)
    path.write_bytes(b"no tensors")
    config = tmp_path / "config.json"
    facts = json.loads(config.read_text()) | {"training_index": hashlib.sha256(b"no tensors").hexdigest()}
    config.write_text(json.dumps(facts))
    with pytest.raises(systems.PretrainedError, match=re.escape(str(tmp_path))):
        systems.from_pretrained(tmp_path)
    path.unlink()
    with pytest.raises(systems.PretrainedError, match="is missing"):
        systems.from_pretrained(tmp_path)


def test_impossible_contents_are_refused(index: systems.TrainingIndex, tmp_path: Path) -> None:
    path = tmp_path / "training_index.safetensors"
    write_training_index(index, path)
    assert equal(read_training_index(path), index)
    for change in (
        {"keys": np.array([3, 3], np.uint64)},
        {"keys": np.array([3, 4], np.int64)},
        {"frequency": np.array([], np.int64)},
        {"frequency": np.zeros(1, np.int64), "kind_counts": np.ones((1, 4), np.int64)},
        {"kind_counts": np.ones((1, 3), np.int64)},
    ):
        save_file({"keys": index.keys, "kind_counts": index.kind_counts, "frequency": index.frequency} | change, path)
        with pytest.raises(SketchError):
            read_training_index(path)
    path.write_bytes(b"nothing")
    with pytest.raises(SketchError, match="cannot be read"):
        read_training_index(path)
