"""`sketchdnn presets`: list, show and copy."""

from __future__ import annotations

from pathlib import Path

from support.commands import invoke

from sketchdnn.systems import load_preset, preset_names


def run(*arguments: str) -> str:
    result = invoke("presets", *arguments)
    return result.stdout if result.exit_code == 0 else str(result.exception)


def test_every_preset_is_listed_with_a_line() -> None:
    lines = run().splitlines()
    assert [line.split()[0] for line in lines] == preset_names()
    assert all(len(line.split()) > 3 for line in lines)


def test_a_copy_is_the_same_preset(tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    assert str(copy) in run("copy", "tiny", str(copy))
    assert copy.read_text() == run("show", "tiny")
    assert load_preset(copy).config == load_preset("tiny").config


def test_what_cannot_be_copied_is_refused(tmp_path: Path) -> None:
    existing = tmp_path / "mine.toml"
    existing.write_text("mine")
    assert "exists; name another file" in run("copy", "tiny", str(existing))
    assert "a preset is a .toml file" in run("copy", "tiny", str(tmp_path / "mine"))
    assert "'nosuch' is no preset" in run("copy", "nosuch", str(tmp_path / "new.toml"))
    assert existing.read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1
