"""Samples are normalized, losses are counted, and too few are refused."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.evaluation_data import procedural_sketches, sample_file, small_model

from sketchdnn.errors import FormatError
from sketchdnn.evaluation import samples as module
from sketchdnn.formats import write
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.generation.repair import RepairReport, RepairResult
from sketchdnn.geometry import Circle, Kind, Line, Point, Sketch, normalize
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import encode
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.decoding import SHORT_RADIUS
from sketchdnn.representation.layout import PARAMS_OF_KIND
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem

NAN_LINE = '{"primitives": [{"type": "line", "start": [NaN, 0], "end": [1, 0]}]}\n'


def change_samples(system: System, change: Callable[[Any], None]) -> None:
    """Apply `change` to every sampled batch, except for the single step that measures the batch size."""
    original = system.sample

    def sample(noise: Any, options: Any) -> Any:
        batch = original(noise, options)
        if options.steps != 1:
            change(batch)
        return batch

    system.sample = sample  # type: ignore[method-assign]


def test_sketches_are_read_and_normalized(tmp_path: Path) -> None:
    write([sketch.moved(7.0, (30.0, -4.0)) for sketch in procedural_sketches(8)], tmp_path / "moved.jsonl")
    samples = module.read_samples(tmp_path / "moved.jsonl", 100)
    expected = encode([normalize(sketch)[0] for sketch in procedural_sketches(8)])
    assert np.abs(samples.compact.params - expected.params).max() < 1e-5
    assert (samples.compact.kind == expected.kind).all()
    for number, sketch in enumerate(procedural_sketches(7)):
        write(sketch, tmp_path / "folder" / f"{number}.json")
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(tmp_path / "folder", "folder")
    folder, archived = (module.read_samples(tmp_path / name, 100) for name in ("folder", "all.tar"))
    assert len(folder) == len(archived) == 7
    assert folder.sha256 == archived.sha256
    path = sample_file(tmp_path / "many.jsonl", 20)
    few = module.read_samples(path, 9)
    assert len(few) == 9
    assert (few.compact.params == module.read_samples(path, 20).compact.params[:9]).all()
    smaller = [normalize(sketch, 0.5)[0] for sketch in procedural_sketches(5)]
    expected = encode([normalize(sketch)[0] for sketch in smaller])
    normalized = module.normalize_split(encode(smaller), is_normalized=False)
    assert np.abs(normalized.params - expected.params).max() < 1e-5
    assert module.normalize_split(expected, is_normalized=True) is expected


def test_losses_are_counted_and_too_few_refused(tmp_path: Path) -> None:
    invalid = [
        Sketch((Point((1, 2)),)),
        Sketch(tuple(Circle((i, 0), 1 + i) for i in range(module.MAX_SAMPLE_PRIMITIVES + 1))),
        Sketch(
            (Line((0, 0), (1, 0)), Line((0.5, 0.5), (0.5 + 1e-12, 0.5)), Circle((0, 0), 1e-30), Circle((3, 0), 1e-30))
        ),
    ]
    path = tmp_path / "odd.jsonl"
    write([*procedural_sketches(6), *invalid], path)
    with path.open("a") as file:
        file.write(json.dumps({"primitives": [{"type": "circle", "center": [0, "x"], "radius": 1}]}) + "\n" + NAN_LINE)
    samples = module.read_samples(path, 100)
    assert len(samples) == len(samples.sketches) == 7
    assert samples.skipped[module.NO_EXTENT] == samples.skipped[module.TOO_MANY] == 1
    assert sum(samples.skipped.values()) == 4
    assert samples.rejected[module.TOO_SMALL] >= 1
    assert not collapsed(samples.compact).any()
    assert samples.compact.counts[-1] == 4 - samples.rejected[module.TOO_SMALL]
    path = tmp_path / "few.jsonl"
    for count, message in ((0, "is empty"), (1, "only one sketch"), (5, "only 5 sketches")):
        write(procedural_sketches(count), path)
        with pytest.raises(FormatError, match=message) as refused:
            module.read_samples(path, 100)
        assert str(path) in str(refused.value)
    path.write_text(NAN_LINE * 30)
    with pytest.raises(FormatError, match=r"no sketch that can be scored.*30 ×"):
        module.read_samples(path, 100)


def test_generated_samples_are_those_of_generate(tmp_path: Path) -> None:
    system = from_pretrained(small_model(tmp_path / "model"))
    progress: list[float] = []
    request = GenerateRequest(count=8, seed=2, steps=4, repair=False)
    samples = module.generate_samples(system, "tiny", request, progress.append)
    assert list(samples.sketches) == [generated.sketch for generated in stream(system, request)]
    assert samples.origin["sampler"] == system.default_sampler == "restart"
    assert progress[-1] == 1
    write(samples.sketches, tmp_path / "drawn.jsonl")
    again = module.read_samples(tmp_path / "drawn.jsonl", 8)
    assert (again.compact.kind == samples.compact.kind).all()
    assert np.abs(again.compact.params - samples.compact.params).max() < 1e-5


def test_rejected_and_repaired_primitives_are_counted(tmp_path: Path) -> None:
    system = from_pretrained(small_model(tmp_path / "model"))
    batches: list[Any] = []

    def damage(batch: Any) -> None:
        batch.params[0, 0] = torch.nan
        batch.kind[0, 0] = torch.eye(5)[0]
        if not batches:
            batch.kind[1] = torch.eye(5)[4]
        batches.append(batch)

    change_samples(system, damage)
    request = GenerateRequest(count=6, seed=0, steps=3, sampler="ancestral", repair=False)
    samples = module.generate_samples(system, "tiny", request)
    assert samples.empty_draws == 1
    assert samples.rejected["a number that is not finite"] >= 1
    config = SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=1), arc_scalar="signed_radius")
    system = SketchDNNSystem(config).eval()

    def shorten(batch: Any) -> None:
        """Make the first row of every sketch an arc whose radius is less than half its chord."""
        batch.kind[:, 0] = torch.eye(5)[Kind.ARC]
        batch.params[:, 0] = 0.0
        batch.params[:, 0, PARAMS_OF_KIND[Kind.ARC]] = torch.tensor([-1.0, 0, 1, 0, 0.5])

    change_samples(system, shorten)
    request = GenerateRequest(count=6, seed=0, steps=3, sampler="ancestral", repair=False)
    assert module.generate_samples(system, "short", request).repaired[SHORT_RADIUS] >= 6


def test_sample_lost_in_repair_stays_as_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = module.read_samples(sample_file(tmp_path / "parts.jsonl"), 24)

    def repair(sketches: list[Sketch], **_: object) -> list[RepairResult]:
        point = Sketch((Point((0, 0)),))
        return [RepairResult(point if i == 2 else sketch, RepairReport()) for i, sketch in enumerate(sketches)]

    monkeypatch.setattr(module, "repair_sketches", repair)
    repaired = module.repair_samples(samples, 10)
    assert (len(repaired.compact), repaired.lost) == (10, 1)
    assert np.array_equal(repaired.compact.params, samples.compact.params[:10])
