"""`sketchdnn generate`: files on the disk, the same for the same seed, and sentences for what is wrong."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from support.evaluation_data import small_model
from support.strategies import assert_same
from typer.testing import CliRunner

import sketchdnn
from sketchdnn.cli.app import app, main

runner = CliRunner()
BESIDE = ["gallery.html", "gallery.png", "manifest.json"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def drawn(out: Path, *options: str, repair: bool = False) -> dict[str, bytes]:
    """What an untrained model draws takes long to repair, so it is repaired only where that is the point."""
    result = runner.invoke(app, ["generate", "--out", str(out), *options, *([] if repair else ["--no-repair"])])
    assert result.exit_code == 0, result.output
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_files_do_not_depend_on_how_many_are_asked_for(tmp_path: Path, model: Path) -> None:
    options = ["--model", str(model), "--steps", "4", "--format", "json"]
    few = drawn(tmp_path / "few", "--count", "3", *options)
    many = drawn(tmp_path / "many", "--count", "20", *options)
    assert sorted(few) == [*BESIDE, "sketch-0000.json", "sketch-0001.json", "sketch-0002.json"]
    assert len(many) == 23
    assert all(many[name] == content for name, content in few.items() if name.startswith("sketch"))
    sketch = json.loads(few["sketch-0002.json"])
    assert sketch["units"] == "mm"
    assert sketch["primitives"]


def test_all_formats_by_default_and_the_size_asked_for(tmp_path: Path, model: Path) -> None:
    drawn(tmp_path / "out", "--count", "1", "--model", str(model), "--steps", "3", "--size", "2in")
    names = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert names == {".json", ".svg", ".dxf", ".FCStd", ".png", ".html"}
    from sketchdnn.geometry import bounds

    sketch = sketchdnn.read(tmp_path / "out" / "sketch-0000.json").sketches[0]
    assert (bounds(sketch).size, sketch.units) == (pytest.approx(2.0), "in")


def test_one_sketch_of_a_seed_can_be_had_alone(tmp_path: Path, model: Path) -> None:
    options = ["--model", str(model), "--steps", "4", "--aspect", "1..1.5"]
    many = drawn(tmp_path / "many", "--count", "20", *options)
    for number in (5, 18):
        alone = drawn(tmp_path / str(number), "--first", str(number), "--count", "1", *options)
        files = {name: content for name, content in alone.items() if name.startswith("sketch")}
        assert len(files) == 4
        assert all(many[name] == content for name, content in files.items())


def test_the_manifest_says_what_was_asked_for_and_by_whom_it_was_drawn(tmp_path: Path, model: Path) -> None:
    from sketchdnn.systems.pretrained import model_hash

    options = ["--kinds", "lines=5,circle=1", "--construction", "0..0.9", "--unique", "--best-of", "2"]
    drawn(tmp_path / "out", "--count", "2", "--model", str(model), "--steps", "3", "--seed", "9", *options)
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["model"] == {"name": str(model), "sha256": model_hash(model)}
    assert (told["seed"], told["count"], told["sampler"], told["steps"]) == (9, 2, "restart", 3)
    assert told["conditions"] == {
        "kinds": "line=5,circle=1",
        "construction": "0..0.9",
        "best_of": 2,
        "unique": True,
    }
    assert told["finished"] is True
    assert set(told["seconds"]) == {"loading", "drawing", "writing"}
    assert [entry["files"][0] for entry in told["sketches"]] == ["sketch-0000.json", "sketch-0001.json"]


def test_what_cannot_be_met_is_said(tmp_path: Path, model: Path) -> None:
    options = ["--count", "2", "--model", str(model), "--steps", "2", "--format", "svg", "--aspect", "0.0001..0.0002"]
    options += ["--no-repair"]
    result = runner.invoke(app, ["generate", "--out", str(tmp_path / "out"), *options])
    assert result.exit_code == 0
    assert "2 of them come only close" in result.output
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert all("of its height, not" in entry["shortfall"] for entry in told["sketches"])
    assert "of its height, not" in (tmp_path / "out" / "gallery.html").read_text()


def test_all_formats_are_of_the_repaired_sketch_unless_told(tmp_path: Path, model: Path) -> None:
    options = ["--model", str(model), "--steps", "4", "--count", "3"]
    drawn(tmp_path / "repaired", *options, repair=True)
    drawn(tmp_path / "raw", *options)
    told, plain = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("repaired", "raw"))
    assert (told["repair"], plain["repair"]) == (True, False)
    assert not any("repair" in entry for entry in plain["sketches"])
    for entry in told["sketches"]:
        assert {"summary", "actions", "displacement", "dof", "warning"} == set(entry["repair"])
        of = {
            suffix: sketchdnn.read(tmp_path / "repaired" / f"sketch-{entry['number']:04d}.{suffix}").sketches[0]
            for suffix in ("json", "svg", "dxf", "FCStd")
        }
        for sketch in of.values():
            assert_same(of["json"], sketch.in_units("mm"), tolerance=1e-4, construction=True)
        assert len(of["json"]) == entry["primitives"]
    sketches = {name: sketchdnn.read(tmp_path / name / "sketch-0000.json").sketches[0] for name in ("repaired", "raw")}
    assert sketches["repaired"].constraints
    assert not sketches["raw"].constraints


def test_the_command_and_the_model_give_the_same(tmp_path: Path, model: Path) -> None:
    drawn(tmp_path / "out", "--model", str(model), "--steps", "4", "--count", "2", "--format", "json", repair=True)
    written = [sketchdnn.read(path).sketches[0] for path in sorted((tmp_path / "out").glob("sketch-*.json"))]
    same = sketchdnn.SketchDNN.from_pretrained(model).generate(2, steps=4)
    for file, sketch in zip(written, same, strict=True):
        assert_same(file, sketch, 1e-12)  # a file keeps where an arc ends, not its sweep
        assert file.constraints == sketch.constraints


def test_a_second_run_replaces_the_first_and_says_so(tmp_path: Path, model: Path) -> None:
    options = ["generate", "--out", str(tmp_path / "out"), "--model", str(model), "--steps", "3"]
    options += ["--format", "json", "--no-repair"]
    first = runner.invoke(app, [*options, "--count", "5"])
    second = runner.invoke(app, [*options, "--count", "2", "--seed", "1"])
    assert "earlier run" not in first.output
    assert "5 files of an earlier run there were removed" in second.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *BESIDE,
        "sketch-0000.json",
        "sketch-0001.json",
    ]


def test_a_sketch_is_not_varied_where_it_would_be_replaced(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", str(model), "--steps", "3", "--count", "1", "--format", "json"]
    before = drawn(tmp_path, *options)
    like = ["--like", str(tmp_path / "sketch-0000.json")]
    assert "name another output" in refused(monkeypatch, capsys, "--out", str(tmp_path), *options, *like)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_has_no_noise_to_take_away_tells_of_no_steps(tmp_path: Path) -> None:
    from sketchdnn.systems import load_preset, save_pretrained

    save_pretrained(load_preset("tiny", "sketchgen").make(), tmp_path / "model")
    drawn(tmp_path / "out", "--model", str(tmp_path / "model"), "--count", "1", "--format", "json")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["steps"] is None
    page = (tmp_path / "out" / "gallery.html").read_text()
    assert "drawn token by token" in page
    assert "steps" not in page


def test_too_few_for_the_best_is_said(tmp_path: Path, model: Path) -> None:
    options = ["--model", str(model), "--steps", "2", "--count", "2", "--format", "json", "--no-repair"]
    asked = ["--aspect", "0.5..1.05", "--best-of", "40"]
    result = runner.invoke(app, ["generate", "--out", str(tmp_path / "out"), *options, *asked])
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())["sketches"]
    fewer = [entry["fewer"] for entry in told if "fewer" in entry]
    assert fewer, told
    assert all("not of 40" in words for words in fewer)
    assert f"{len(fewer)} of them are the best of fewer than --best-of" in result.output


def test_variations_of_a_file(tmp_path: Path, model: Path) -> None:
    lines = "".join(f'<line x1="{x}" y1="0" x2="{x + 9}" y2="40"/>' for x in range(0, 60, 10))
    (tmp_path / "part.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg" stroke="black">{lines}</svg>')
    options = ["--model", str(model), "--steps", "5", "--count", "2", "--format", "json", "--strength", "0.2"]
    drawn(tmp_path / "out", "--like", str(tmp_path / "part.svg"), *options)
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (told["like"], told["strength"]) == (str(tmp_path / "part.svg"), 0.2)
    assert len(told["sketches"]) == 2


def test_trajectories_are_written_beside(tmp_path: Path, model: Path) -> None:
    files = drawn(
        tmp_path / "out", "--count", "2", "--model", str(model), "--steps", "5", "--format", "svg", "--trajectory"
    )
    moving = [name for name in files if ".trajectory" in name]
    assert moving
    assert all(files[name] for name in moving)


SLOW_MODEL = ["--steps", "60", "--count", "5000", "--format", "json", "--no-repair"]


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, model: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "sketchdnn", "generate", "--out", str(out), "--model", str(model), *SLOW_MODEL]
    # Whoever runs the tests in the background has them ignore SIGINT, and so would the child.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    try:
        deadline = time.monotonic() + 60
        while not list(out.glob("sketch-0016.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopped" in said
    assert "Traceback" not in said
    told = json.loads((out / "manifest.json").read_text())
    assert told["finished"] is False
    listed = {name for entry in told["sketches"] for name in entry["files"]}
    assert 17 <= len(listed) < 5000
    assert {path.name for path in out.iterdir()} == listed | set(BESIDE)


@pytest.mark.slow
def test_processes_share_a_job(tmp_path: Path, model: Path) -> None:
    """As torchrun starts them: the same files as one process writes."""
    options = ["--model", str(model), "--steps", "4", "--count", "21", "--format", "json,svg"]
    alone = drawn(tmp_path / "alone", *options, repair=True)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "sketchdnn", "generate"]
    subprocess.run([sys.executable, *command, "--out", str(tmp_path / "both"), *options], check=True, timeout=300)
    both = {path.name: path.read_bytes() for path in (tmp_path / "both").iterdir()}
    assert both.keys() == alone.keys()
    assert all(both[name] == alone[name] for name in alone if name.startswith("sketch"))
    told, listed = (json.loads(files["manifest.json"])["sketches"] for files in (both, alone))
    assert told == listed


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    monkeypatch.setattr(sys, "argv", ["sketchdnn", "generate", *options])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--count", "0"], "--count must be at least 1"),
        (["--format", "stl"], "'stl' is no format"),
        (["--format", ""], "at least one format"),
        (["--size", "12 parsecs"], "--size is a length"),
        (["--size", "-5mm"], "--size is a length"),
        (["--seed", "-1"], "seed"),
        (["--steps", "0"], "steps"),
        (["--steps", "100000"], "1 to 2000 steps"),
        (["--sampler", "euler"], "'euler' is no sampler"),
        (["--model", "nowhere"], "no model is there"),
        (["--first", "-3"], "numbered from 0"),
        (["--primitives", "20"], "20 primitives do not fit"),
        (["--primitives", "a few"], "--primitives is a number or a range such as 8..16"),
        (["--primitives", "8.5"], "--primitives is a whole number"),
        (["--primitives", "12..8"], "put the smaller number first"),
        (["--kinds", "spline=3"], "--kinds is such as line=8,circle=2"),
        (["--kinds", "line=3,lines=4"], "names line twice"),
        (["--kinds", "line=9,circle=8"], "17 primitives do not fit"),
        (["--construction", "0.5..1.5"], "share of construction is 0 to 1"),
        (["--aspect", "-1..2"], "aspect ratio"),
        (["--aspect", "nan"], "--aspect is a number"),
        (["--best-of", "0"], "at least 1"),
        (["--novel"], "does not say what it was trained on"),
        (["--device", "tpu"], "cpu, cuda or cuda:1"),
        (["--strength", "0.3"], "--like"),
        (["--like", "nowhere.dxf"], "nowhere.dxf"),
        (["--like", "nowhere.dxf", "--size", "5mm"], "leave --size out"),
        (["--compile"], "--compile is for a GPU"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_leaves_nothing(
    options: list[str],
    words: str,
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = [] if "--model" in options else ["--model", str(model)]
    assert words in refused(monkeypatch, capsys, "--out", str(tmp_path / "out"), *chosen, *options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("sketches", "options", "words"),
    [
        ([[{"type": "line", "start": [0, 0], "end": [1, 0]}]], ["--strength", "5"], "above 0 and goes up to 1"),
        ([[{"type": "circle", "center": [i, 0], "radius": 1} for i in range(17)]], [], "has 17 primitives"),
        ([[{"type": "point", "at": [0, 0]}]], [], "no extent"),
        ([[{"type": "line", "start": [0, 0], "end": [1, 0]}]] * 2, [], "holds 2 sketches"),
    ],
)
def test_a_sketch_that_cannot_be_varied_is_one_sentence_and_leaves_nothing(
    sketches: list[object],
    options: list[str],
    words: str,
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [json.dumps({"primitives": primitives}) for primitives in sketches]
    (tmp_path / "part.jsonl").write_text("\n".join(lines))
    chosen = ["--out", str(tmp_path / "out"), "--model", str(model), "--like", str(tmp_path / "part.jsonl")]
    assert words in refused(monkeypatch, capsys, *chosen, *options)
    assert not (tmp_path / "out").exists()


def test_several_processes_cannot_tell_what_is_unique(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from contextlib import nullcontext

    from sketchdnn.generation import share

    monkeypatch.setattr(share, "joined", lambda: nullcontext(share.Share(0, 2)))
    assert "use one process" in refused(
        monkeypatch, capsys, "--out", str(tmp_path / "out"), "--model", str(model), "--unique"
    )


def test_a_broken_model_is_one_sentence(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    shutil.copytree(model, tmp_path / "changed")
    weights = bytearray((tmp_path / "changed" / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "changed" / "model.safetensors").write_bytes(weights)
    said = refused(monkeypatch, capsys, *out, "--model", str(tmp_path / "changed"))
    assert "not those it was saved with" in said
    (tmp_path / "changed" / "model.safetensors").unlink()
    assert "is missing" in refused(monkeypatch, capsys, *out, "--model", str(tmp_path / "changed"))


def test_a_file_in_the_way_is_named(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert str(tmp_path / "file") in refused(
        monkeypatch, capsys, "--out", str(tmp_path / "file"), "--model", str(model)
    )


def test_help_has_an_example_and_does_not_wait_for_torch() -> None:
    assert "sketchdnn generate --count 16" in runner.invoke(app, ["generate", "--help"]).output
    code = "import sys; from sketchdnn.cli import generate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
