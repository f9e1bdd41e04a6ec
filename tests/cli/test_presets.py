"""`sketchdnn presets`: list, show and copy."""

from pathlib import Path

from support.commands import invoke

from sketchdnn.systems import load_preset, preset_names


def run(*arguments: str) -> str:
    result = invoke("presets", *arguments)
    return result.stdout if result.exit_code == 0 else str(result.exception)


def test_presets_are_listed_and_copied(tmp_path: Path) -> None:
    lines = run().splitlines()
    assert [line.split()[0] for line in lines] == preset_names()
    assert all(len(line.split()) > 3 for line in lines)
    copy = tmp_path / "copy.toml"
    assert str(copy) in run("copy", "tiny", str(copy))
    assert (copy.read_text(), load_preset(copy).config) == (run("show", "tiny"), load_preset("tiny").config)
    existing = tmp_path / "mine.toml"
    existing.write_text("mine")
    assert "exists; name another file" in run("copy", "tiny", str(existing))
    assert "a preset is a .toml file" in run("copy", "tiny", str(tmp_path / "mine"))
    assert "'nosuch' is no preset" in run("copy", "nosuch", str(tmp_path / "new.toml"))
    assert (existing.read_text(), len(list(tmp_path.iterdir()))) == ("mine", 2)
