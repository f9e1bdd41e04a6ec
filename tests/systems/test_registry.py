"""Presets of the package and of files, and the registry of systems."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch

from sketchdnn import systems
from sketchdnn.networks.dit import DiT
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.training.config import parse_train_config

OF_SKETCHDNN = ["authors", "ours", "ours-base", "paper", "tiny"]


def test_presets_are_those_of_each_system_and_of_the_paper() -> None:
    others = [name for name in systems.SYSTEMS if name != "sketchdnn"]
    assert systems.preset_names() == sorted([*OF_SKETCHDNN, *others, *(f"{name}-tiny" for name in others)])
    ours, pos, cat = (
        systems.load_preset("ours-base"),
        systems.load_preset("sketchdnn-pos"),
        systems.load_preset("sketchdnn-cat"),
    )
    assert pos.config == replace(ours.config, network=replace(ours.config.network, positions=True))
    shared = systems.config_to_dict(ours.config).keys() & systems.config_to_dict(cat.config).keys()
    assert shared >= {"network", "variant", "num_steps", "superposition", "data_std"}
    assert all(getattr(ours.config, name) == getattr(cat.config, name) for name in shared)
    assert ours.training == pos.training == cat.training
    paper, authors = systems.load_preset("paper"), systems.load_preset("authors")
    assert (paper.config.label_smoothing, authors.config.label_smoothing) == (0.99, 0.9999)
    assert (paper.config.none_construction, authors.config.none_construction) == ("one_hot", "zero")
    assert (paper.training["batch_size"], authors.training["batch_size"]) == (4096, 1024)
    assert (paper.training["timestep_sampling"], authors.training["timestep_sampling"]) == ("uniform", "authors")
    for preset in (paper, authors):
        with torch.device("meta"):
            assert sum(weight.numel() for weight in DiT(preset.config.network).parameters()) == 138_167_829
    assert sum(weight.numel() for weight in systems.load_preset("tiny").make().parameters()) < 500_000


@pytest.mark.parametrize("name", systems.preset_names())
def test_preset_is_valid(name: str) -> None:
    preset = systems.load_preset(name)
    assert parse_train_config(preset.training, name)  # whose budget and settings make sense
    assert systems.config_from_dict(type(preset.config), systems.config_to_dict(preset.config), "here") == preset.config


OF = "[system]\nname = 'sketchdnn'\n"
WRONG = [("[system", "cannot be read"), ("[sistem]", "'sistem' is no section"), ("system = 3", "must be a table")]
WRONG += [("[system]", "'None' is no system"), ("[system]\nname = 'teapot'", "'teapot' is no system")]
WRONG += [(f"{OF}width = 3", "'width' is no setting"), (f"{OF}[system.network]\nwidth = 3", "must say its type")]
WRONG += [(f"{OF}num_steps = {number}", "num_steps must be a whole number") for number in ("2.5", "true")]
WRONG += [(f"{OF}variant = 'theirs'", "variant must be one of ours, paper, authors")]
WRONG += [(f"{OF}[system.network]\ntype = 'DiT'\nheads = 7", "width must be a multiple")]
WRONG += [(f"{OF}[system.network]\ntype = 'DiT'\nnum_steps = 9", "has 9 steps")]
WRONG += [("#" * (2**20 + 1), "the preset is larger than 1024 KiB")]


@pytest.mark.parametrize(("text", "complaint"), WRONG)
def test_wrong_file_is_explained(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(systems.ConfigError, match=complaint):
        systems.load_preset(tmp_path / "mine.toml")
    with pytest.raises(systems.ConfigError, match="'huge' is no preset; use one of authors, "):
        systems.load_preset("huge")


def test_long_names_are_quoted_in_short(tmp_path: Path) -> None:
    long = "Z" * 5000
    for text in (f'["{long}"]', f'[system]\nname = "{long}"', f'[system]\nname = "sketchdnn"\n"{long}" = 1'):
        (tmp_path / "own.toml").write_text(text)
        with pytest.raises(systems.ConfigError) as caught:
            systems.load_preset(str(tmp_path / "own.toml"))
        assert "Z" * 100 in str(caught.value)
        assert "Z" * 201 not in str(caught.value)


def test_systems_are_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems.registry, "SYSTEMS", dict(systems.SYSTEMS))

    class Mine(SketchDNNSystem):
        name = "mine"

    assert systems.register_system(Mine) is Mine
    assert systems.find_system("mine") is Mine
    with pytest.raises(ValueError, match="'mine' already"):
        systems.register_system(type("Other", (Mine,), {}))
    point = EntryPoint("theirs", "sketchdnn.systems.sketchdnn:SketchDNNSystem", systems.registry.SYSTEM_ENTRY_POINTS)
    monkeypatch.setattr(systems.registry, "entry_points", lambda group: [point] if group == point.group else [])
    with pytest.raises(systems.ConfigError, match="'theirs' is no system; use one of sketchdnn, "):  # named otherwise
        systems.find_system("theirs")
