"""The protocol: one name for all that a score depends on."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from support.judging import small_corpus

from sketchdnn.data import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.protocol import Protocol, data_hash, refuse_incomparable

PROTOCOL = Protocol(
    version=1,
    size=299,
    stroke=1.75,
    margin=0.05,
    point_radius=1.5,
    construction_ink=0.5,
    extractor="abc",
    data="def",
    against_test=2000,
    against_train=10000,
    validity=2000,
    seed=0,
    likelihood_sketches=2888,
    likelihood_draws=16,
    fast=False,
    samples=10000,
    sampler="ancestral",
    steps=50,
    sample_seed=0,
)
OF_THE_SYSTEM = {"samples", "sampler", "steps", "sample_seed"}


def changed(name: str) -> Protocol:
    value = getattr(PROTOCOL, name)
    return replace(PROTOCOL, **{name: not value if isinstance(value, bool) else value + type(value)(1)})


@pytest.mark.parametrize("name", [field.name for field in fields(Protocol)])
def test_every_field_changes_the_name_and_all_but_the_drawing_forbid_comparison(name: str) -> None:
    other = changed(name)
    assert other.id != PROTOCOL.id
    assert bool(PROTOCOL.differences(other)) == (name not in OF_THE_SYSTEM)


def test_the_name_is_short_readable_and_stays() -> None:
    assert PROTOCOL.id.startswith("299px-2000t-10000-")
    assert len(PROTOCOL.id) < 40
    assert replace(PROTOCOL).id == PROTOCOL.id
    assert replace(PROTOCOL, fast=True).id.startswith("fast-")


def test_json_and_back() -> None:
    assert Protocol.from_json(PROTOCOL.to_json()) == PROTOCOL
    with pytest.raises(SketchError, match="not the one it is named by"):
        Protocol.from_json({**PROTOCOL.to_json(), "size": 64})
    with pytest.raises(SketchError, match="another version"):
        Protocol.from_json({"id": "x"})


def test_a_refusal_names_both_and_what_differs() -> None:
    with pytest.raises(SketchError, match=r"one and two .* corpus \(def and xyz\).*seed") as refused:
        refuse_incomparable({"one": PROTOCOL, "two": replace(PROTOCOL, data="xyz", seed=3)})
    assert "\n" not in str(refused.value)
    refuse_incomparable({"one": PROTOCOL, "two": replace(PROTOCOL, steps=2000, sampler="ddim")})


def test_sketches_from_a_file_have_no_likelihood_to_disagree_in() -> None:
    file = replace(PROTOCOL, likelihood_sketches=0, likelihood_draws=0)
    assert not PROTOCOL.differences(file)
    assert PROTOCOL.differences(replace(PROTOCOL, likelihood_draws=4))


def test_the_hash_of_a_corpus_follows_its_rows(tmp_path: Path) -> None:
    folder = small_corpus(tmp_path / "corpus")
    before = data_hash(Dataset.open(folder))
    assert before == data_hash(Dataset.open(folder))
    rows = np.load(folder / "test" / "params.npy")
    for change, is_another in ((1e-9, False), (1e-5, True)):  # what machines differ in, and more than that
        changed = rows.copy()
        changed[rows == 0] -= change
        np.save(folder / "test" / "params.npy", changed)
        assert (data_hash(Dataset.open(folder)) != before) == is_another
