"""`sketchdnn train-image` as a person runs it: trained, resumed, refused, and used by `trace`."""

import csv
import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from support.commands import refused, run
from support.corpora import parts, written
from support.students import small_teacher

from sketchdnn.data import PrepareConfig, prepare
from sketchdnn.systems import save_pretrained

SMALL = [
    "--set", "encoder.size=32", "--set", "encoder.width=16", "--set", "encoder.heads=2", "--set", "encoder.depth=1",
    "--set", "encoder.adapter_width=16",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train-image")
    prepare([written(parts(40), folder / "parts.jsonl")], folder / "corpus", PrepareConfig(), workers=1)
    save_pretrained(small_teacher(width=16, num_steps=60), folder / "trunk")
    return folder


def test_an_encoder_is_trained_resumed_extended_and_used(folder: Path) -> None:
    options = ["--model", folder / "trunk", "--data", folder / "corpus", "--batch-size", 4, "--device", "cpu", *SMALL]
    options += ["--log-every", 1, "--validate-every", 2, "--noises", 2, "--adapter-rank", 2]
    assert "trained 2 steps" in run("train-image", *options, "--out", folder / "run", "--steps", 2).output
    again = run("train-image", *options, "--out", folder / "run", "--steps", 3, "--resume", "--eight-bit")
    assert "trained 3 steps" in again.output
    with (folder / "run" / "log.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3"]
    header = (folder / "run" / "validation.csv").read_text().splitlines()[0].split(",")
    assert {"mean", "blank_mean", "f1"} <= set(header)
    model = folder / "run" / "model"
    assert json.loads((model / "config.json").read_text())["image"]["rank"] == 2
    assert (model / "image.safetensors").is_file()
    more = ["--out", folder / "more", "--steps", 1, "--init-from", model]
    run("train-image", *options, *more)
    image = Image.new("RGB", (300, 200), "white")
    ImageDraw.Draw(image).rectangle((60, 40, 240, 160), outline="black", width=3)
    image.save(folder / "photo.png")
    traced = run("trace", folder / "photo.png", "--out", folder / "part.json", "--model", model, "--device", "cpu")
    assert "4 lines" in traced.stderr
    # The model is distilled and generates as before, and keeps its encoder.
    run("generate", "--model", model, "--out", folder / "drawn", "--count", 1, "--steps", 3, "--device", "cpu")


def test_wrong_settings_are_refused_with_a_sentence(folder: Path) -> None:
    options = ["train-image", "--model", folder / "trunk", "--data", folder / "corpus", "--device", "cpu", "--out"]
    assert "the corpus is there" in refused(*options, folder / "corpus")
    assert "has no image encoder" in refused(*options, folder / "new", *SMALL, "--init-from", folder / "trunk")
    assert "larger than the layers" in refused(*options, folder / "new", "--adapter-rank", 99)
    assert "has no meaning" in refused(*options, folder / "new", "--set", "training.conditioning=0.5")
    assert "is no section" in refused(*options, folder / "new", "--set", "picture.size=3")
