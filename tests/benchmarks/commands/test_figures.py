from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.commands.app import app, main
from typer.testing import CliRunner

runner = CliRunner()


def test_the_figures_are_written_where_told(tmp_path: Path) -> None:
    made = tmp_path / "new" / "folder"
    result = runner.invoke(app, ["figures", "schedule", "--out", str(made), "--steps", "50", "--samples", "1000"])
    assert result.exit_code == 0, result.output
    result = runner.invoke(app, ["figures", "simplex", "--out", str(made), "--steps", "50", "--samples", "20"])
    assert result.exit_code == 0, result.output
    result = runner.invoke(app, ["figures", "bias", "--out", str(made), "--steps", "10", "--samples", "4"])
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in made.iterdir())
    assert names == [
        "bias.csv",
        "bias.png",
        "bias.svg",
        "simplex.png",
        "simplex.svg",
        "schedule.csv",
        "schedule.png",
        "schedule.svg",
    ]


@pytest.mark.parametrize("figure", ["schedule", "simplex", "bias"])
def test_every_figure_has_help_with_an_example(figure: str) -> None:
    result = runner.invoke(app, ["figures", figure, "--help"])
    assert result.exit_code == 0
    assert f"python -m benchmarks figures {figure} --out" in result.output


@pytest.mark.parametrize(
    "wrong",
    [
        ["schedule"],
        ["schedule", "--categories", "1"],
        ["schedule", "--smoothing", "1"],
        ["schedule", "--smoothing", "nan"],
        ["simplex", "--steps", "0"],
        ["bias", "--samples", "many"],
        ["teapot"],
    ],
)
def test_bad_options_are_refused_in_a_sentence(wrong: list[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)] if len(wrong) > 1 else []
    result = runner.invoke(app, ["figures", *wrong, *out])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setattr(
        sys, "argv", ["benchmarks", "figures", "schedule", "--out", str(file), "--steps", "10", "--samples", "9"]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert str(file) in said
    assert "Traceback" not in said


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys; from benchmarks.commands import app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
