"""Sketches to be judged: normalized, every loss counted, and too few of them refused."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from support.generation import draw
from support.judging import drawn_parts, sample_file, small_model

from sketchdnn.errors import FormatError
from sketchdnn.evaluation.samples import (
    MAX_SAMPLE_PRIMITIVES,
    NO_EXTENT,
    TOO_MANY,
    TOO_SMALL,
    generate_samples,
    normalize_split,
    read_samples,
)
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Kind, Line, Point, Sketch, normalize
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import encode
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.decoding import SHORT_RADIUS
from sketchdnn.representation.layout import PARAMS_OF_KIND
from sketchdnn.systems import from_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


def test_any_file_is_normalized(tmp_path: Path) -> None:
    moved = [sketch.moved(7.0, (30.0, -4.0)) for sketch in drawn_parts(8)]
    write(moved, tmp_path / "moved.jsonl")
    found = read_samples(tmp_path / "moved.jsonl", 100)
    plain = encode([normalize(sketch)[0] for sketch in drawn_parts(8)])
    assert np.abs(found.compact.params - plain.params).max() < 1e-5
    assert (found.compact.kind == plain.kind).all()


def test_a_folder_and_an_archive_hold_what_a_file_does(tmp_path: Path) -> None:
    for number, sketch in enumerate(drawn_parts(7)):
        write(sketch, tmp_path / "folder" / f"{number}.json")
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(tmp_path / "folder", "folder")
    folder, archived = (read_samples(tmp_path / name, 100) for name in ("folder", "all.tar"))
    assert len(folder) == len(archived) == 7
    assert folder.sha256 == archived.sha256


def test_only_as_many_are_read_as_asked_for(tmp_path: Path) -> None:
    path = sample_file(tmp_path / "many.jsonl", 20)
    few = read_samples(path, 9)
    assert len(few) == 9
    assert (few.compact.params == read_samples(path, 20).compact.params[:9]).all()


def test_what_is_lost_is_counted(tmp_path: Path) -> None:
    line = Line((0, 0), (1, 0))
    odd = [
        Sketch((Point((1, 2)),)),
        Sketch(tuple(Circle((i, 0), 1 + i) for i in range(MAX_SAMPLE_PRIMITIVES + 1))),
        Sketch((line, Line((0.5, 0.5), (0.5 + 1e-12, 0.5)), Circle((0, 0), 1e-30), Circle((3, 0), 1e-30))),
    ]
    path = tmp_path / "odd.jsonl"
    write([*drawn_parts(6), *odd], path)
    with path.open("a") as file:
        file.write(json.dumps({"primitives": [{"type": "circle", "center": [0, "x"], "radius": 1}]}) + "\n")
        file.write('{"primitives": [{"type": "line", "start": [NaN, 0], "end": [1, 0]}]}\n')
    found = read_samples(path, 100)
    assert len(found) == len(found.sketches) == 7
    assert found.skipped[NO_EXTENT] == found.skipped[TOO_MANY] == 1
    assert sum(found.skipped.values()) == 4
    assert found.rejected[TOO_SMALL] >= 1
    assert not collapsed(found.compact).any()
    assert found.compact.counts[-1] == 4 - found.rejected[TOO_SMALL]


@pytest.mark.parametrize(("count", "words"), [(0, "is empty"), (1, "only one sketch"), (5, "only 5 sketches")])
def test_too_few_are_one_sentence(count: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    write(drawn_parts(count), path)
    with pytest.raises(FormatError, match=words) as refused:
        read_samples(path, 100)
    assert str(path) in str(refused.value)


def test_a_file_of_nothing_but_nan_says_so(tmp_path: Path) -> None:
    path = tmp_path / "nan.jsonl"
    path.write_text('{"primitives": [{"type": "line", "start": [NaN, 0], "end": [1, 0]}]}\n' * 30)
    with pytest.raises(FormatError, match=r"no sketch that can be judged.*30 ×"):
        read_samples(path, 100)


def test_drawn_samples_are_those_of_generate_and_survive_a_file(tmp_path: Path) -> None:
    system = from_pretrained(small_model(tmp_path / "model"))
    heard: list[float] = []
    drawn = generate_samples(system, "tiny", 8, seed=2, steps=4, sampler=None, on_progress=heard.append)
    same = [drawing.sketch for drawing in draw(system, 8, seed=2, steps=4)]
    assert list(drawn.sketches) == same
    assert drawn.origin["sampler"] == system.default_sampler == "restart"
    assert heard[-1] == 1
    write(drawn.sketches, tmp_path / "drawn.jsonl")
    again = read_samples(tmp_path / "drawn.jsonl", 8)
    assert (again.compact.kind == drawn.compact.kind).all()
    assert np.abs(again.compact.params - drawn.compact.params).max() < 1e-5


def test_repairs_rejects_and_empty_draws_are_counted(tmp_path: Path) -> None:
    system = from_pretrained(small_model(tmp_path / "model"))
    genuine = system.sample
    asked = 0

    def spoiled(*args: object, **options: object) -> object:
        nonlocal asked
        batch = genuine(*args, **options)  # type: ignore[arg-type]
        if options["steps"] == 1:  # the step that the engine tries the size of a batch with
            return batch
        asked += 1
        batch.params[0, 0] = torch.nan
        batch.kind[0, 0] = torch.tensor([1.0, 0, 0, 0, 0])
        if asked == 1:
            batch.kind[1] = torch.tensor([0.0, 0, 0, 0, 1])
        return batch

    system.sample = spoiled  # type: ignore[method-assign, assignment]
    found = generate_samples(system, "tiny", 6, seed=0, steps=3, sampler="ancestral", on_progress=lambda share: None)
    assert found.empty_draws == 1
    assert found.rejected["a number that is not finite"] >= 1


def test_repaired_arcs_are_counted() -> None:
    config = SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=1), arc_scalar="signed_radius")
    system = SketchDNNSystem(config).eval()
    genuine = system.sample

    def short(*args: object, **options: object) -> object:
        """The first row of every sketch an arc whose radius is less than half its chord."""
        batch = genuine(*args, **options)  # type: ignore[arg-type]
        batch.kind[:, 0] = torch.eye(5)[Kind.ARC]
        batch.params[:, 0] = 0.0
        batch.params[:, 0, PARAMS_OF_KIND[Kind.ARC]] = torch.tensor([-1.0, 0, 1, 0, 0.5])
        return batch

    system.sample = short  # type: ignore[method-assign, assignment]
    found = generate_samples(system, "short", 6, seed=0, steps=3, sampler="ancestral", on_progress=lambda share: None)
    assert found.repaired[SHORT_RADIUS] >= 6


def test_a_corpus_in_another_frame_is_brought_into_ours() -> None:
    parts = [normalize(sketch, 0.5)[0] for sketch in drawn_parts(5)]
    wanted = encode([normalize(sketch)[0] for sketch in parts])
    found = normalize_split(encode(parts), is_normalized=False)
    assert np.abs(found.params - wanted.params).max() < 1e-5
    assert normalize_split(wanted, is_normalized=True) is wanted
