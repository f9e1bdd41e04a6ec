"""The command `sketchdnn prepare`."""

from pathlib import Path

from support.commands import program, refused


def test_procedural_corpus_and_odd_paths(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = program("prepare", "--source", "procedural", "--count", 40, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar where there is no terminal
    assert "of 40 found" in done.stdout
    files = {path.name for path in out.iterdir()}
    assert files >= {"dataset.json", "report.html", "report.json", "gallery.png", "train"}
    assert "<svg" in (out / "report.html").read_text()
    bad = Path(str(tmp_path) + "/caf\udce9.jsonl")
    bad.write_text("{")
    done = program("prepare", bad, "--out", tmp_path / "bad")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_bad_input_is_an_error_of_one_line(tmp_path: Path) -> None:
    for arguments, sentence in (
        (["missing.npy"], "missing.npy: cannot be read (No such file or directory)"),
        ([], "nothing to prepare"),
        (["--source", "thin air"], "'thin air' is unknown"),
        (["--source", "procedural", "--preset", "best"], "'best' is no preset"),
        (
            ["--source", "procedural", "--min-primitives", "12", "--max-primitives", "9"],
            "no sketch has at least 12 primitives",
        ),
        (["--source", "procedural", "--count", "5", "--preset", "authors"], "fewer constraints than primitives"),
    ):
        assert sentence in refused("prepare", *arguments, "--out", tmp_path / "out")
        assert not list(tmp_path.iterdir())
