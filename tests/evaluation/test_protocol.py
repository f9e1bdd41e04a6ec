"""Sizes follow the settings and the data; the protocol identifies everything that a score depends on."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from support.evaluation_data import small_corpus

from sketchdnn.data import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation import protocol

RASTER = {"size": 299, "stroke": 1.75, "margin": 0.05, "point_radius": 1.5, "construction_ink": 0.5}
SIZES = {"against_test": 2000, "against_train": 10000, "validity": 2000, "seed": 0, "fast": False}
LIKELIHOOD = {"likelihood_sketches": 2888, "likelihood_draws": 16}
SAMPLING = {"samples": 10000, "sampler": "ancestral", "steps": 50, "sample_seed": 0}
PROTOCOL = protocol.Protocol(version=1, extractor="abc", data="def", **RASTER, **SIZES, **LIKELIHOOD, **SAMPLING)


def test_sizes_settings_and_warnings() -> None:
    for samples, test, train, expected in (
        (10_000, 2_888, 22_400, protocol.Sizes(2_000, 10_000)),
        (10_000, 2_888, 15_000, protocol.Sizes(2_000, 7_500)),
        (10_000, 500, 22_400, protocol.Sizes(500, 10_000)),
        (300, 2_888, 22_400, protocol.Sizes(300, 300)),
        (10_000, 50, 10, protocol.Sizes(10, 0)),
    ):
        assert protocol.available_sizes(protocol.Settings(), samples, test, train) == expected
    assert protocol.available_sizes(protocol.FAST, 500, 2_888, 22_400) == protocol.Sizes(500, 0)
    for samples, test, train in ((5, 99, 99), (99, 5, 99), (99, 99, 0)):
        with pytest.raises(SketchError, match=f"at least {protocol.MIN_SKETCHES}"):
            protocol.available_sizes(protocol.Settings(), samples, test, train)
    full = protocol.make_settings()
    assert (full.likelihood, full.corruption, full.fast, full.repaired) == (True, True, False, False)
    assert full.likelihood_sketches is None  # the whole split
    assert not protocol.FAST.corruption
    assert protocol.make_settings(fast=True, repaired=True, count=None) == replace(protocol.FAST, repaired=True)
    with pytest.raises(SketchError, match="'train' is no reference split; use test or validation"):
        protocol.Settings(split="train")
    with pytest.raises(SketchError, match="at least 6, not 5"):
        protocol.Settings(count=5)
    full = " ".join(protocol.size_warnings(protocol.Settings(), protocol.Sizes(2_000, 10_000), 10_000))
    assert "2,048" in full  # 2,000 are fewer than that
    assert "cut" not in full
    enough = protocol.Settings(against_test=2_048)
    assert protocol.size_warnings(enough, protocol.Sizes(2_048, 10_000), 10_000) == []
    cut = " ".join(protocol.size_warnings(enough, protocol.Sizes(2_048, 3_000), 3_000))
    assert "10,000 sketches were to be compared with the training split" in cut
    assert "fast form" in " ".join(protocol.size_warnings(protocol.FAST, protocol.Sizes(500, 0), 500))


def test_protocols_are_identified_and_compared() -> None:
    for field in fields(protocol.Protocol):
        value = getattr(PROTOCOL, field.name)
        changed = not value if isinstance(value, bool) else value + type(value)(1)
        other = replace(PROTOCOL, **{field.name: changed})
        assert other.id != PROTOCOL.id
        assert bool(PROTOCOL.differences(other)) == (field.name not in SAMPLING)
    assert PROTOCOL.id == "299px-2000t-10000-4ea704d7"
    assert replace(PROTOCOL, fast=True).id.startswith("fast-")
    assert protocol.Protocol.from_json(PROTOCOL.to_json()) == PROTOCOL
    for values, message in (
        ({**PROTOCOL.to_json(), "size": 64}, "does not match its id"),
        ({"id": "x"}, "another version"),
        (3, "not an object"),
    ):
        with pytest.raises(SketchError, match=message):
            protocol.Protocol.from_json(values)
    with pytest.raises(SketchError, match=r"one and two .* corpus \(def and xyz\).*seed") as refused:
        protocol.refuse_incomparable({"one": PROTOCOL, "two": replace(PROTOCOL, data="xyz", seed=3)})
    assert "\n" not in str(refused.value)
    protocol.refuse_incomparable({"one": PROTOCOL, "two": replace(PROTOCOL, steps=2000, sampler="ddim")})
    file = replace(PROTOCOL, likelihood_sketches=0, likelihood_draws=0)
    assert not PROTOCOL.differences(file)
    assert PROTOCOL.differences(replace(PROTOCOL, likelihood_draws=4))


def test_data_hash_follows_the_rows(tmp_path: Path) -> None:
    folder = small_corpus(tmp_path / "corpus")
    before = protocol.data_hash(Dataset.open(folder))
    assert before == protocol.data_hash(Dataset.open(folder))
    rows = np.load(folder / "test" / "params.npy")
    for change, is_another in ((1e-9, False), (1e-5, True)):  # within and beyond differences of machines
        changed = rows.copy()
        changed[rows == 0] -= change
        np.save(folder / "test" / "params.npy", changed)
        assert (protocol.data_hash(Dataset.open(folder)) != before) == is_another
