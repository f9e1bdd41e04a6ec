"""Presets: those that come with the package, and files that are wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sketchdnn.networks.dit import DiT
from sketchdnn.systems import (
    SYSTEMS,
    ConfigError,
    config_from_dict,
    config_to_dict,
    from_pretrained,
    load_preset,
    preset_names,
)
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.training.config import config_from

OF_SKETCHDNN = ["authors", "bundled", "ours", "paper", "tiny"]


def test_every_system_has_one_and_a_tiny_one() -> None:
    others = [name for name in SYSTEMS if name != "sketchdnn"]
    assert preset_names() == sorted([*OF_SKETCHDNN, *others, *(f"{name}-tiny" for name in others)])


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains(name: str) -> None:
    preset = load_preset(name)
    assert config_from(preset.training, name)  # whose budget and settings make sense
    assert config_from_dict(type(preset.config), config_to_dict(preset.config), "here") == preset.config


def test_the_ablations_are_ours_but_for_one_thing() -> None:
    ours, pos, cat = load_preset("ours"), load_preset("sketchdnn-pos"), load_preset("sketchdnn-cat")
    assert pos.config == replace(ours.config, network=replace(ours.config.network, positions=True))
    shared = config_to_dict(ours.config).keys() & config_to_dict(cat.config).keys()
    assert shared >= {"network", "form", "num_steps", "superposition", "data_std"}
    assert all(getattr(ours.config, name) == getattr(cat.config, name) for name in shared)
    assert ours.training == pos.training == cat.training


@pytest.mark.parametrize("name", ["paper", "authors"])
def test_the_network_of_the_paper_is_of_its_size(name: str) -> None:
    config = load_preset(name).config
    with torch.device("meta"):
        assert sum(weight.numel() for weight in DiT(config.network).parameters()) == 138_167_829


def test_where_text_and_code_differ() -> None:
    paper, authors = load_preset("paper"), load_preset("authors")
    assert (paper.config.label_smoothing, authors.config.label_smoothing) == (0.99, 0.9999)
    assert (paper.config.none_construction, authors.config.none_construction) == ("one_hot", "zero")
    assert (paper.training["batch_size"], authors.training["batch_size"]) == (4096, 1024)
    assert (paper.training["times"], authors.training["times"]) == ("uniform", "authors")


def test_the_bundled_model_is_of_its_preset() -> None:
    assert from_pretrained("ours").config == load_preset("bundled").config


def test_tiny_is_tiny() -> None:
    system = load_preset("tiny").make()
    assert isinstance(system, SketchDNNSystem)
    assert sum(weight.numel() for weight in system.parameters()) < 500_000


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[system", "cannot be read"),
        ("[sistem]", "'sistem' is no section"),
        ("system = 3", "must be a table"),
        ("[system]", "'None' is no system"),
        ("[system]\nname = 'teapot'", "'teapot' is no system"),
        ("[system]\nname = 'sketchdnn'\nwidth = 3", "'width' is no setting"),
        ("[system]\nname = 'sketchdnn'\nnum_steps = 2.5", "num_steps must be a whole number"),
        ("[system]\nname = 'sketchdnn'\nnum_steps = true", "num_steps must be a whole number"),
        ("[system]\nname = 'sketchdnn'\nform = 'theirs'", "form must be one of ours, paper, authors"),
        ("[system]\nname = 'sketchdnn'\n[system.network]\nwidth = 3", "must say its type"),
        ("[system]\nname = 'sketchdnn'\n[system.network]\ntype = 'DiT'\nheads = 7", "width must be a multiple"),
        ("[system]\nname = 'sketchdnn'\n[system.network]\ntype = 'DiT'\nnum_steps = 9", "knows 9 steps"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        load_preset(tmp_path / "mine.toml")


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="'huge' is no preset; use one of authors, "):
        load_preset("huge")


def test_what_a_file_says_is_quoted_in_short(tmp_path: Path) -> None:
    long = "Z" * 5000
    for text in (f'["{long}"]', f'[system]\nname = "{long}"', f'[system]\nname = "sketchdnn"\n"{long}" = 1'):
        (tmp_path / "own.toml").write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_preset(str(tmp_path / "own.toml"))
        assert "Z" * 100 in str(caught.value)
        assert "Z" * 201 not in str(caught.value)


def test_a_preset_of_more_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("#" * (2**20 + 1))
    with pytest.raises(ConfigError, match="the preset is larger than 1024 KiB"):
        load_preset(str(tmp_path / "own.toml"))
