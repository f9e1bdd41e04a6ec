"""Training of an image encoder: it learns, resumes exactly, spreads noise levels, and leaves the trunk."""

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from support.images import SMALL_ENCODER
from support.students import small_teacher
from support.training import part_corpus

from sketchdnn.drawing.ink import InkOptions
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems.image_conditioned import ImageConditionedSystem, image_tensors, make_image_model
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.training.checkpoint import list_checkpoints
from sketchdnn.training.config import RunError, TrainConfig
from sketchdnn.training.image import ImageRun, primitive_f1, validate_images
from sketchdnn.training.image_objective import ImageObjective, image_numbers, sample_image_frame
from sketchdnn.training.image_settings import ImageTrainConfig, parse_image_settings
from sketchdnn.training.loop import Outcome, train

CORPUS = part_corpus(24)
CONFIG = TrainConfig(steps=4, batch_size=4, warmup=1, decay=0, ema=0.9, conditioning=0.0, timestep_sampling="uniform")
IMAGE = ImageTrainConfig(SMALL_ENCODER, InkOptions(size=32), noises=2)


def new_model(image: ImageTrainConfig = IMAGE) -> ImageConditionedSystem:
    trunk = small_teacher()
    torch.manual_seed(0)
    return make_image_model(trunk, image.encoder, image.adapter_rank)


def run(config: TrainConfig, out: Path, image: ImageTrainConfig = IMAGE, *, resume: bool = False) -> Outcome:
    make_run: Any = partial(ImageRun, image=image, trunk="trunk")
    return train(new_model(image), CORPUS, config, out, resume=resume, make_run=make_run)


@pytest.mark.parametrize(("rank", "optimizer"), [(0, "muon"), (2, "adamw")])
def test_resume_is_bit_exact(tmp_path: Path, rank: int, optimizer: Any) -> None:
    image, config = replace(IMAGE, adapter_rank=rank, dropped=0.3), replace(CONFIG, optimizer=optimizer)
    run(config, tmp_path / "whole", image)
    run(replace(config, steps=2), tmp_path / "half", image)
    run(config, tmp_path / "half", image, resume=True)
    last = [list_checkpoints(tmp_path / name / "checkpoints")[-1] / "state.safetensors" for name in ("whole", "half")]
    assert last[0].read_bytes() == last[1].read_bytes()
    with pytest.raises(RunError, match=r"image\.dropped"):
        run(config, tmp_path / "half", replace(image, dropped=0.2), resume=True)


def test_training_reduces_the_loss_with_a_picture_and_leaves_the_trunk(tmp_path: Path) -> None:
    trunk = small_teacher(num_steps=50)
    before = {name: weight.clone() for name, weight in trunk.state_dict().items()}
    torch.manual_seed(0)
    model = make_image_model(trunk, SMALL_ENCODER)
    corpus = part_corpus(2)
    config = replace(CONFIG, steps=60, batch_size=8, learning_rate=1e-2, augment=False, log_every=10)
    image = replace(IMAGE, min_scale=1.0, ink=InkOptions(size=32, exact=1.0))
    first = validate_images(model, corpus, config, image)
    assert first["mean"] == pytest.approx(first["blank_mean"], rel=0.2)
    outcome = train(model, corpus, config, tmp_path, make_run=partial(ImageRun, image=image, trunk="trunk"))
    last = validate_images(outcome.model, corpus, config, image)  # type: ignore[arg-type]
    assert last["mean"] < 0.8 * first["mean"]
    assert last["blank_mean"] == pytest.approx(first["blank_mean"], rel=1e-5)
    assert 0 <= last["f1"] <= 1
    assert all(torch.equal(weight, before[name]) for name, weight in trunk.state_dict().items())
    with (tmp_path / "log.csv").open() as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert losses[-1] < losses[0]


def test_gradients_reach_all_that_is_stored_and_nothing_else() -> None:
    image = replace(IMAGE, adapter_rank=2, dropped=0.0)
    model = new_model(image)
    for weight in model.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.1)
    objective = ImageObjective(model, CORPUS, CONFIG, image)
    numbers = image_numbers(0, torch.arange(8), 16, image.noises)
    objective(torch.arange(8), torch.arange(8), numbers).sum().backward()
    trained = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert trained == image_tensors(model).keys()
    assert all(bool(weight.grad.any()) for weight in model.parameters() if weight.grad is not None)


def test_each_sample_depends_on_its_own_number_only() -> None:
    objective = ImageObjective(new_model(), CORPUS, CONFIG, IMAGE)
    indices = torch.tensor([3, 7, 1, 9])
    every = objective.samples(indices, image_numbers(5, torch.arange(4), 16, 2))
    alone = objective.samples(indices[2:3], image_numbers(5, torch.arange(2, 3), 16, 2))
    assert torch.equal(every.pictures[2:3], alone.pictures)
    assert torch.equal(every.x0.flat()[2:3], alone.x0.flat())
    again = objective.samples(indices, image_numbers(6, torch.arange(4), 16, 2))
    assert not torch.equal(every.pictures, again.pictures)


@pytest.mark.parametrize("noises", [1, 2, 4])
def test_noise_levels_are_spread_over_the_batch_and_over_both_halves(noises: int) -> None:
    config = replace(CONFIG, batch_size=64)
    objective = ImageObjective(new_model(), CORPUS, config, replace(IMAGE, noises=noises))
    quantile = torch.rand(64, noises, generator=torch.Generator().manual_seed(0))
    levels = objective._levels(torch.arange(64), quantile).double() / 200
    spread = torch.linspace(0, 1, levels.numel() + 1, dtype=torch.float64)[1:]
    assert (levels.flatten().sort().values - spread).abs().max() < 2 / levels.numel() + 0.01
    # Every other sample of the batch gets a previous prediction: both halves have all levels.
    for half in (levels.flatten()[::2], levels.flatten()[1::2]):
        assert (half.sort().values - torch.linspace(0, 1, len(half), dtype=torch.float64)).abs().max() < 0.1


def test_frames_hold_the_sketch_and_half_of_them_nearly_fill_theirs() -> None:
    numbers = image_numbers(0, torch.arange(2000), 16, 1)
    frame = sample_image_frame(numbers.own, IMAGE)
    assert 0.6 <= float(frame.scale.min()) < float(frame.scale.max()) <= 1
    assert bool((frame.shift.abs().amax(dim=1) <= 1 - frame.scale + 1e-6).all())
    assert 0.5 < float((frame.scale >= 0.85).double().mean()) < 0.9
    assert float(frame.shift.abs().max()) > 0.2


def test_pictures_show_the_sketch_where_it_is() -> None:
    """Ink of exact pictures lies at the ends of the primitives, in rows that go down."""
    image = replace(IMAGE, encoder=replace(SMALL_ENCODER, size=128), ink=InkOptions(exact=1.0, rotation=0.0, skew=0.0))
    image = replace(image, ink=replace(image.ink, perspective=0.0))
    objective = ImageObjective(new_model(image), CORPUS, CONFIG, image)
    samples = objective.samples(torch.arange(24), image_numbers(0, torch.arange(24), 16, 1))
    hits = []
    for sketch, picture in zip(samples.x0.to_sketches(), samples.pictures, strict=True):
        for line in (p for p in sketch if isinstance(p, Line) and not p.construction):
            for x, y in (line.start, line.end):
                column, row = ((v / 1.125 + 1) * 64 - 0.5 for v in (x, -y))
                around = picture[round(row) - 1 : round(row) + 2, round(column) - 1 : round(column) + 2]
                hits.append(float(around.max()) > 0.3)
    assert sum(hits) > 0.99 * len(hits) > 50


def test_primitive_f1_counts_each_primitive_once() -> None:
    truth = Sketch((Line((-1, 0), (1, 0)), Circle((0, 0), 0.5), Line((-1, 0.5), (1, 0.5))))
    near = Sketch((Circle((0.05, 0), 0.45), Line((-1, 0.1), (1, 0.1))))
    twice = Sketch((Line((-1, 0), (1, 0)), Line((-1, 0), (1, 0))))
    batch = SketchBatch.from_sketches([truth, near, twice, Sketch(())])
    scores = primitive_f1(batch, SketchBatch.from_sketches([truth] * 4))
    assert scores.tolist() == pytest.approx([1.0, 0.8, 0.4, 0.0])


def test_settings_are_parsed_and_wrong_ones_refused() -> None:
    config, image = parse_image_settings(
        ["encoder.size=64", "encoder.width=64", "ink.wobble=[0.001,0.03]", "image.centered=0.7", "training.ema=0.9"],
        {"noises": 2},
        {"steps": 5},
    )
    assert (config.steps, config.ema, config.timestep_sampling, config.optimizer) == (5, 0.9, "uniform", "muon")
    assert (image.encoder.size, image.ink.size, image.ink.wobble) == (64, 64, (0.001, 0.03))
    assert (image.centered, image.noises) == (0.7, 2)
    assert parse_image_settings((), {}, {})[0].minutes == 24
    for wrong in (
        "encoder.size=100", "ink.size=64", "nothing.x=1", "image.encoder=3", "ink.extent=1", "image.dropped=1.0",
        "training.conditioning=0.5", "training.completion_tasks=true", "training.min_primitives=8", "ink.width=[0,1]",
    ):  # fmt: skip
        with pytest.raises(SketchError):
            parse_image_settings([wrong], {}, {})


def test_only_changes_of_the_trunk_learn_from_dropped_pictures() -> None:
    assert replace(IMAGE, dropped=0.4).share_dropped == 0
    image = replace(IMAGE, dropped=0.4, adapter_rank=2)
    objective = ImageObjective(new_model(image), CORPUS, CONFIG, image)
    present = objective.samples(torch.zeros(500, dtype=torch.long), image_numbers(0, torch.arange(500), 16, 1)).present
    assert 0.5 < float(present.double().mean()) < 0.7


def test_another_system_is_refused() -> None:
    class Other(SketchDNNSystem):
        pass

    with pytest.raises(SketchError):
        make_image_model(torch.nn.Linear(2, 2), SMALL_ENCODER)  # type: ignore[arg-type]
