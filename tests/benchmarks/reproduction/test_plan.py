"""Systems by name: settings, canonical names, and refusals."""

import re
from dataclasses import replace

import pytest

from benchmarks.reproduction import PAPER_SYSTEMS, parse_systems
from sketchdnn.systems import SYSTEMS, ConfigError
from sketchdnn.training.config import RunError, parse_train_config


def test_setting_changes_nothing_else() -> None:
    assert [variant.system for variant in parse_systems(PAPER_SYSTEMS)] == list(SYSTEMS)
    ours = {"predict": "noise", "mse_weighting": "all", "superposition": "max", "reverse_logits": "2log"}
    settings = {f"sketchdnn:{name}": value for name, value in ours.items()}
    for name, value in (settings | {"vitruvion:arcs": "sweep", "sketchgen:top_p": 0.5}).items():
        system, _, setting = name.partition(":")
        plain, changed = (variant.preset for variant in parse_systems([system, f"{name}={value}"], "tiny"))
        assert (changed.config, changed.training) == (replace(plain.config, **{setting: value}), plain.training)


def test_settings_may_be_nested_or_of_training_or_a_preset() -> None:
    (variant,) = parse_systems(["sketchdnn:network.depth=1+training.batch_size=7"], "tiny")
    assert variant.preset.config.network.depth == 1
    assert parse_train_config(variant.preset.training, steps=1).batch_size == 7
    (unknown,) = parse_systems(["sketchdnn:training.speed=3"], "tiny")
    with pytest.raises((ConfigError, RunError), match="'speed'"):
        parse_train_config(unknown.preset.training, steps=1)
    (paper,) = parse_systems(["sketchdnn:preset=paper"])
    assert paper.preset.config.variant == "paper"
    for system in ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat"):
        plain, changed = parse_systems([system, f"{system}:network.self_conditioning=true"], "tiny")
        assert changed.preset.config.network == replace(plain.preset.config.network, self_conditioning=True)
        assert changed.label.endswith(", network.self_conditioning = true")
    # Names are canonical.
    names = ["sketchdnn:predict=noise+boost=everywhere", " sketchdnn:mse_weighting=all+predict=noise"]
    (variant,) = parse_systems(names, "tiny")
    assert variant.name == "sketchdnn:mse_weighting=all+predict=noise"
    assert not {"/", ":"} & set(variant.folder)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sketchnet", "'sketchnet'"),
        ("sketchdnn:", "settings like predict=noise"),
        ("sketchdnn:predict", "settings like predict=noise"),
        ("sketchdnn:predict=all", "predict must be one of x0, noise"),
        ("sketchdnn:color=red", "'color'"),
        ("sketchdnn:predict=x0+predict=noise", "sets predict twice"),
        ("sketchdnn:boost=low+mse_weighting=all", "sets mse_weighting twice"),
        ("sketchdnn:variant.depth=1", "variant has no settings below it"),
        ("sketchdnn:network.depth=many", "depth must be a whole number"),
        ("sketchdnn:preset=none", "'none'"),
        ("sketchdnn:training.minutes=3", "the same for all systems"),
        ("sketchdnn:preset=paper+network.self_conditioning=true", "'self_conditioning'"),
        ("latent:preset=paper", "system sketchdnn"),
        (" , ", "no system is named"),
    ],
)
def test_bad_names_are_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)) as refused:
        parse_systems(name.split(","))
    assert "\n" not in str(refused.value)
