"""Tracing with a model: proposals of its image encoder, the same as geometry without one, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from support.commands import refused, run
from support.images import small_image_model
from support.students import small_teacher

from sketchdnn import SketchDNN, TraceOptions, read, trace
from sketchdnn.errors import SketchError
from sketchdnn.generation.trace import ProposalOptions, propose
from sketchdnn.generation.trace import trace as trace_with_model
from sketchdnn.systems import save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.tracing.raster import Raster

FEW = ProposalOptions(count=3, steps=4)


def plate() -> Image.Image:
    image = Image.new("RGB", (350, 250), "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((75, 60, 275, 190), outline="black", width=3)
    pen.ellipse((125, 90, 200, 165), outline="black", width=3)
    return image


@pytest.fixture(scope="module")
def system() -> SketchDNNSystem:
    trunk = small_teacher(width=16, num_steps=60)
    trunk.attach_image(small_image_model(trunk, rank=2))
    return trunk


@pytest.fixture(scope="module")
def folder(system: SketchDNNSystem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    save_pretrained(system, folder / "model", eight_bit=True)
    save_pretrained(small_teacher(width=16, num_steps=60), folder / "plain")
    plate().save(folder / "photo.png")
    return folder


def test_proposals_are_sketches_of_the_picture_and_the_same_each_time(system: SketchDNNSystem) -> None:
    image = system.image
    assert image is not None
    raster = Raster(np.random.default_rng(0).random((128, 128), np.float32), 100.0, (0.0, 0.0))
    one, other = (propose(image, FEW, raster) for _ in range(2))
    assert list(one) == list(other)
    assert list(propose(image, ProposalOptions(3, 4, seed=1), raster)) != list(one)
    blank = Raster(np.zeros((128, 128), np.float32), 100.0, (0.0, 0.0))
    assert list(propose(image, FEW, blank)) != list(one)


def test_candidates_of_the_model_join_those_of_geometry(system: SketchDNNSystem) -> None:
    picture = np.asarray(plate())
    alone, both = trace(picture), trace_with_model(system, picture, TraceOptions(), FEW)
    assert both.candidates > alone.candidates
    # The small model has learned nothing, so geometry is the best.
    assert not both.is_proposal
    assert both.sketch == alone.sketch


def test_a_model_without_an_encoder_and_none_trace_by_geometry() -> None:
    picture = np.asarray(plate())
    alone = trace(picture)
    for system in (None, small_teacher()):
        result = trace_with_model(system, picture)
        assert (result.sketch, result.candidates) == (alone.sketch, alone.candidates)


def test_a_model_traces_files_and_checks_options(folder: Path, system: SketchDNNSystem) -> None:
    model = SketchDNN(system)
    result = model.trace(folder / "photo.png", size=50, count=2, steps=3)
    alone = trace(folder / "photo.png", TraceOptions(size=50))
    assert result.sketch == alone.sketch
    assert alone.candidates < result.candidates <= alone.candidates + 2
    with pytest.raises(SketchError, match="count"):
        model.trace(folder / "photo.png", count=0)
    with pytest.raises(TypeError):
        model.trace(folder / "photo.png", nonsense=1)


def test_command_uses_the_model_where_it_has_an_encoder(folder: Path) -> None:
    options = ["trace", folder / "photo.png", "--device", "cpu", "--out"]
    plain = run(*options, folder / "plain.json", "--model", folder / "plain").stderr
    both = run(*options, folder / "both.json", "--model", folder / "model").stderr
    off = run(*options, folder / "off.json", "--model", folder / "model", "--no-network").stderr

    def compared(text: str) -> int:
        return int(text.split(" candidates compared")[0].split()[-1])

    assert compared(plain) == compared(off) < compared(both) == compared(plain) + 8
    assert read(folder / "plain.json").sketches == read(folder / "off.json").sketches


def test_damaged_and_missing_models_are_refused_with_a_sentence(folder: Path, tmp_path: Path) -> None:
    save_pretrained(small_teacher(width=16, num_steps=60), tmp_path / "bad")
    config = json.loads((tmp_path / "bad" / "config.json").read_text())
    (tmp_path / "bad" / "config.json").write_text(json.dumps({**config, "image": {"rank": 0}}))
    options = ["trace", folder / "photo.png", "--device", "cpu", "--out", tmp_path / "out.json", "--model"]
    assert "image encoder does not fit" in refused(*options, tmp_path / "bad")
    assert "no model is there" in refused(*options, tmp_path / "none")
    assert not (tmp_path / "out.json").exists()


def test_an_encoder_of_another_size_gets_a_resized_raster(system: SketchDNNSystem) -> None:
    image = system.image
    assert image is not None
    assert image.image_config.size == 32
    with torch.no_grad():
        assert len(propose(image, FEW, Raster(np.ones((50, 50), np.float32), 1.0, (0.0, 0.0)))) <= 3
