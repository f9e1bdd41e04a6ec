"""Systems by name with settings of their own: one name for one thing, and a sentence for what is none."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks.reproduction import SIX, named_systems
from sketchdnn.systems import SYSTEMS, ConfigError
from sketchdnn.training.config import RunError, parse_train_config


def test_the_six_are_all_the_systems_there_are() -> None:
    assert [one.system for one in named_systems(SIX)] == list(SYSTEMS)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("sketchdnn:predict=noise", "predict", "noise"),
        ("sketchdnn:boost=everywhere", "boost", "everywhere"),
        ("sketchdnn:boost=nowhere", "boost", "nowhere"),
        ("sketchdnn:superposition=none", "superposition", "none"),
        ("sketchdnn:superposition=max", "superposition", "max"),
        ("sketchdnn:label_schedule=raw", "label_schedule", "raw"),
        ("sketchdnn:reverse_logits=log", "reverse_logits", "log"),
        ("sketchdnn:reverse_logits=2log", "reverse_logits", "2log"),
        ("sketchdnn:reverse_logits=expected", "reverse_logits", "expected"),
        ("vitruvion:arcs=sweep", "arcs", "sweep"),
        ("sketchgen:top_p=0.5", "top_p", 0.5),
    ],
)
def test_a_setting_changes_that_and_nothing_else(name: str, setting: str, value: object) -> None:
    plain, changed = (named_systems([one], "tiny")[0].preset for one in (name.partition(":")[0], name))
    assert getattr(changed.config, setting) == value
    for field in type(plain.config).__dataclass_fields__:
        if field != setting:
            assert getattr(changed.config, field) == getattr(plain.config, field)
    assert changed.training == plain.training


def test_settings_lie_deeper_or_in_training_or_are_another_preset() -> None:
    (one,) = named_systems(["sketchdnn:network.depth=1+training.batch_size=7"], "tiny")
    assert one.preset.config.network.depth == 1
    assert parse_train_config(one.preset.training, steps=1).batch_size == 7
    (other,) = named_systems(["sketchdnn:preset=paper"])
    assert other.preset.config.form == "paper"


@pytest.mark.parametrize("system", ["sketchdnn", "sketchdnn-pos", "sketchdnn-cat"])
def test_a_network_may_be_asked_to_hear(system: str) -> None:
    deaf, hearing = named_systems([system, f"{system}:network.hears=true"], "tiny")
    assert hearing.preset.config.network == replace(deaf.preset.config.network, hears=True)
    assert hearing.label.endswith(", network.hears = true")


def test_one_thing_has_one_name() -> None:
    both = named_systems(["sketchdnn:predict=noise+boost=low", " sketchdnn:boost=low+predict=noise"], "tiny")
    assert [one.name for one in both] == ["sketchdnn:boost=low+predict=noise"]
    assert "/" not in both[0].folder
    assert ":" not in both[0].folder


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sketchnet", "'sketchnet' is no system; use one of"),
        ("sketchdnn:", "settings like predict=noise"),
        ("sketchdnn:predict", "settings like predict=noise"),
        ("sketchdnn:predict=all", "predict must be one of x0, noise"),
        ("sketchdnn:color=red", "'color' is no setting"),
        ("sketchdnn:predict=x0+predict=noise", "says predict twice"),
        ("sketchdnn:form.depth=1", "form has no settings below it"),
        ("sketchdnn:network.depth=many", "depth must be a whole number"),
        ("sketchdnn:preset=none", "'none' is no preset"),
        ("sketchdnn:training.minutes=3", "one for all systems"),
        ("sketchdnn:preset=paper+network.hears=true", "'hears' is no setting"),
        ("latent:preset=paper", "is of the system sketchdnn"),
        (" , ", "no system is named"),
    ],
)
def test_what_is_none_is_one_sentence(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)) as refused:
        named_systems(name.split(","))
    assert "\n" not in str(refused.value)


def test_an_unknown_setting_of_training_is_found_before_anything_is_done() -> None:
    (one,) = named_systems(["sketchdnn:training.speed=3"], "tiny")
    with pytest.raises((ConfigError, RunError), match="'speed' is no setting"):
        parse_train_config(one.preset.training, steps=1)
