"""Settings of any config: every number has a range, which is checked before anything is built or allocated."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from support.commands import refused

import sketchdnn
from sketchdnn import systems
from sketchdnn.data import Dataset, PrepareConfig
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.networks.dit import DiT, DiTConfig
from sketchdnn.representation.layout import REPRESENTATION_VERSION
from sketchdnn.representation.settings import LARGEST_NETWORK, RANGE, least_parameters
from sketchdnn.systems.registry import SYSTEMS, preset_names
from sketchdnn.training.config import TrainConfig, parse_train_config


def configs() -> list[type[Any]]:
    """Every config dataclass of the package."""
    found: set[type[Any]] = set()
    root = Path(sketchdnn.__file__).parent
    for file in root.rglob("*.py"):
        for name in re.findall(r"^class (\w+Config)\b", file.read_text(encoding="utf-8"), re.MULTILINE):
            module = ".".join(("sketchdnn", *file.relative_to(root).with_suffix("").parts))
            config = getattr(importlib.import_module(module), name)
            if is_dataclass(config):
                found.add(config)
    return sorted(found, key=lambda config: config.__name__)


def numeric(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType, tuple):
        return any(map(numeric, get_args(hint)))
    return hint in (int, float)


def numbers() -> Iterator[tuple[type[Any], str]]:
    for config in configs():
        hints = get_type_hints(config)
        yield from ((config, field.name) for field in fields(config) if numeric(hints[field.name]))


def example(config: type[Any]) -> Any:
    return TrainConfig(steps=1) if config is TrainConfig else config()


def test_numbers_of_configs_have_ranges_and_are_refused_beyond_them() -> None:
    assert {config.__name__ for config in configs()} >= {"TrainConfig", "PrepareConfig", "DiTConfig", "LatentConfig"}
    lacking = [f"{c.__name__}.{name}" for c, name in numbers() if RANGE not in c.__dataclass_fields__[name].metadata]
    assert lacking == []
    for config, name in numbers():
        there = example(config)
        allowed = config.__dataclass_fields__[name].metadata[RANGE]
        value = getattr(there, name)
        for wrong in (math.nan, math.inf, -math.inf, allowed.low - 1, allowed.high * 2 + 1, "1", True):
            given = (wrong, *value[1:]) if isinstance(value, tuple) else wrong
            others = {"steps": None} if name in ("epochs", "minutes") else {}
            with pytest.raises(SketchError, match=name):
                replace(there, **{name: given} | others)


def test_presets_are_in_range_and_no_smaller_than_estimated() -> None:
    for name in preset_names():
        preset = systems.load_preset(name)
        parse_train_config(preset.training)
        least = least_parameters(preset.config)
        assert least <= LARGEST_NETWORK
        if name.endswith("tiny"):  # the others differ in size alone, and take seconds to make
            there = sum(weight.numel() for weight in preset.make().parameters())
            assert 0.1 * there < least <= there
    small = DiTConfig(width=64, depth=2, heads=2)
    assert least_parameters(small) <= sum(weight.numel() for weight in DiT(small).parameters())


def test_hostile_config_is_refused_before_building() -> None:
    table = systems.config_to_dict(systems.load_preset("ours").config)
    networks = [("heads", 0), ("width", -1), ("width", 30_000), ("width", 16_384), ("depth", 10**7)]
    networks += [("dropout", math.nan), ("octaves", 10**6), ("time_features", 10**9)]
    for change, message in (
        *(({"network": table["network"] | {name: value}}, rf"here.*({name}|parameters)") for name, value in networks),
        ({"num_steps": 0}, "num_steps must lie in 1"),
        ({"data_std": 10**400}, "digits"),
    ):
        with pytest.raises(SketchError, match=message):
            systems.config_from_dict(SYSTEMS["sketchdnn"].config_class, table | change, "here")


def test_model_that_declares_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    """A config within its ranges could still ask for gigabytes that its files do not hold."""
    folder = tmp_path / "model"
    systems.save_pretrained(systems.load_preset("tiny").make(), folder)
    facts = json.loads((folder / "config.json").read_text())
    facts["config"]["network"] |= {"width": 4096, "depth": 12}
    (folder / "config.json").write_text(json.dumps(facts))
    program = (
        "import resource, sys\n"
        "from sketchdnn.systems import from_pretrained\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    from_pretrained(sys.argv[1])\n"
        "except ValueError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    *words, grown = done.stdout.splitlines()
    assert "its weights are fewer" in words[0]
    assert int(grown) < 200_000  # kilobytes; built, it would take gigabytes
    folder = tmp_path / "model"
    systems.save_pretrained(systems.load_preset("tiny").make(), folder)
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    for size in (2**62, len(data) + 1, 90_000_000):
        data[:8] = size.to_bytes(8, "little")
        weights.write_bytes(data)
        facts = json.loads((folder / "config.json").read_text())
        facts["sha256"] = hashlib.sha256(data).hexdigest()
        (folder / "config.json").write_text(json.dumps(facts))
        with pytest.raises(systems.PretrainedError, match="header of"):
            systems.from_pretrained(folder)


def test_deeply_nested_files_are_refused(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    model, corpus = tmp_path / "model", tmp_path / "corpus"
    for folder, file in ((model, "config.json"), (corpus, "dataset.json")):
        folder.mkdir()
        (folder / file).write_text(deep)
    (tmp_path / "deep.toml").write_text(f"a = {deep}")
    for arguments in (
        ["generate", "--model", model],
        ["train", "--data", corpus, "--preset", "tiny", "--steps", "1"],
        ["train", "--data", corpus, "--preset", tmp_path / "deep.toml"],
    ):
        assert "nested too deeply" in refused(*arguments, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    "config",
    [{"half_extent": math.nan}, {"half_extent": 0}, {"half_extent": "1"}, {"fractions": [1, math.inf, 0]}, 5, None],
)
def test_corpus_with_impossible_settings_is_refused(tmp_path: Path, config: object) -> None:
    facts = {"representation": REPRESENTATION_VERSION, "config": config, "counts": {}}
    (tmp_path / "dataset.json").write_text(json.dumps(facts))
    with pytest.raises(FormatError, match=r"invalid settings|NaN|Infinity"):
        Dataset.open(tmp_path)
    text = json.dumps(facts | {"config": {"half_extent": PrepareConfig().half_extent}, "counts": {"train": 1}})
    (tmp_path / "dataset.json").write_text(text.replace('"train": 1', '"train": 1e999'))
    with pytest.raises(FormatError, match="how many sketches"):
        Dataset.open(tmp_path).split("train")


def test_missing_path_is_not_looked_up_on_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def download(name: str, **_: object) -> str:
        asked.append(name)
        raise OSError("no network here")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    for model in ("runs/model", "./runs/model", "hub:", "hub:a", "hub:a/b/c"):
        with pytest.raises(systems.PretrainedError, match="hub:OWNER/NAME"):
            systems.from_pretrained(model)
    assert asked == []
    with pytest.raises(systems.PretrainedError, match="cannot be fetched from the Hub"):
        systems.from_pretrained("hub:someone/model")
    assert asked == ["someone/model"]
    for arguments in (
        ["generate", "--model", "runs/model", "--out", str(tmp_path)],
        ["evaluate", "--model", "runs/model", "--data", str(tmp_path), "--out", str(tmp_path / "out")],
    ):
        refused(*arguments)
    assert asked == ["someone/model"]


def test_arrays_with_an_impossible_header_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    facts = {"representation": REPRESENTATION_VERSION, "config": {}, "counts": {"train": 1}}
    (tmp_path / "dataset.json").write_text(json.dumps(facts))
    long_shape = "{'descr': '|u1', 'shape': (" + "9" * 40 + ",), 'fortran_order': False}"
    for header in (long_shape, "(" * 500, "'", "{'descr': ["):
        text = header.encode() + b"\n"
        data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        (tmp_path / "train" / "kind.npy").write_bytes(data)
        with pytest.raises(FormatError, match=r"kind\.npy: is damaged"):
            Dataset.open(tmp_path).split("train")
