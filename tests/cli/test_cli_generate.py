"""`sketchdnn generate`: files on the disk, equal for equal seeds, and one sentence for invalid input."""

import json
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.commands import refused, run, start, wait_for
from support.evaluation_data import small_model
from support.strategies import assert_same
from typer.testing import Result

import sketchdnn
from sketchdnn.generation import manifest
from sketchdnn.geometry import bounds
from sketchdnn.systems import load_preset, save_pretrained
from sketchdnn.systems.pretrained import model_hash

GALLERY = ["gallery.html", "gallery.png", "manifest.json"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def generate(out: Path, *options: object, repair: bool = False) -> Result:
    """Sketches of an untrained model take long to repair, so they are repaired only where that is the point."""
    return run("generate", "--out", out, *options, *([] if repair else ["--no-repair"]))


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()}


def facts(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "manifest.json").read_text()))


def test_files_do_not_depend_on_the_request(tmp_path: Path, model: Path) -> None:
    options = ["--model", model, "--steps", 4, "--aspect", "1..1.5", "--format", "json,dxf"]
    generate(tmp_path / "many", "--count", 20, *options)
    many = contents(tmp_path / "many")
    assert len(many) == 43
    for first, count in ((0, 3), (18, 1)):
        out = tmp_path / str(first)
        generate(out, "--start-index", first, "--count", count, *options)
        few = contents(out)
        names = [f"sketch-{index:04d}.{suffix}" for index in range(first, first + count) for suffix in ("dxf", "json")]
        assert sorted(few) == [*GALLERY, *names]
        assert all(few[name] == many[name] for name in names)


def test_manifest_describes_request_and_model(tmp_path: Path, model: Path) -> None:
    options = ["--kinds", "lines=5,circle=1", "--construction", "0..0.9", "--unique", "--best-of", 2, "--size", "2in"]
    generate(tmp_path, "--count", 2, "--model", model, "--steps", 3, "--seed", 9, *options)
    again = generate(tmp_path, "--count", 2, "--model", model, "--steps", 3, "--seed", 9, *options)
    assert "8 files of an earlier run there were removed" in again.output
    content = facts(tmp_path)
    assert content["model"] == {"name": str(model), "sha256": model_hash(model)}
    assert (content["seed"], content["count"], content["start_index"]) == (9, 2, 0)
    assert (content["sampler"], content["steps"], content["size"], content["units"]) == ("restart", 3, 2, "in")
    conditions = {"kinds": "line=5,circle=1", "construction": "0..0.9", "best_of": 2, "unique": True}
    assert content["conditions"] == conditions
    assert content["finished"] is True
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".svg", ".dxf", ".FCStd", ".png", ".html"}
    (sketch,) = sketchdnn.read(tmp_path / "sketch-0000.json").sketches
    assert (bounds(sketch).size, sketch.units) == (pytest.approx(2.0), "in")
    assert set(content["seconds"]) == {"loading", "drawing", "writing"}
    assert [entry["files"][0] for entry in content["sketches"]] == ["sketch-0000.json", "sketch-0001.json"]


def test_unmet_conditions_are_reported(tmp_path: Path, model: Path) -> None:
    options = ["--count", 2, "--model", model, "--steps", 2, "--format", "svg"]
    result = generate(tmp_path / "flat", *options, "--aspect", "0.0001..0.0002")
    assert "2 of 2 do not meet what was asked for: " in result.output
    assert all("of its height, not" in entry["shortfall"] for entry in facts(tmp_path / "flat")["sketches"])
    assert "of its height, not" in (tmp_path / "flat" / "gallery.html").read_text()
    result = generate(tmp_path / "best", *options, "--aspect", "0.5..1.05", "--best-of", 40)
    few = [entry["fewer"] for entry in facts(tmp_path / "best")["sketches"] if "fewer" in entry]
    assert few
    assert all("not of 40" in words for words in few)
    assert f"{len(few)} of them are the best of fewer than --best-of" in result.output


def test_all_formats_hold_the_repaired_sketch(tmp_path: Path, model: Path) -> None:
    options = ["--model", model, "--steps", 4, "--count", 3]
    generate(tmp_path / "repaired", *options, repair=True)
    generate(tmp_path / "raw", *options)
    repaired, raw = (facts(tmp_path / name) for name in ("repaired", "raw"))
    assert (repaired["repair"], raw["repair"]) == (True, False)
    assert not any("repair" in entry for entry in raw["sketches"])
    same = sketchdnn.SketchDNN.from_pretrained(model).generate(3, steps=4)
    for entry, sketch in zip(repaired["sketches"], same, strict=True):
        assert {"summary", "actions", "displacement", "dof", "warning"} == set(entry["repair"])
        stem = tmp_path / "repaired" / f"sketch-{entry['number']:04d}"
        by_suffix = {
            suffix: sketchdnn.read(f"{stem}.{suffix}").sketches[0] for suffix in ("json", "svg", "dxf", "FCStd")
        }
        for each in by_suffix.values():
            assert_same(by_suffix["json"], each.in_units("mm"), tolerance=1e-4, construction=True)
        assert len(by_suffix["json"]) == entry["primitives"]
        # The Python interface gives the same. A file keeps where an arc ends, not its sweep.
        assert_same(by_suffix["json"], sketch, 1e-12)
        assert by_suffix["json"].constraints == sketch.constraints != ()
    assert not sketchdnn.read(tmp_path / "raw" / "sketch-0000.json").sketches[0].constraints


def test_autoregressive_system_has_no_denoising(tmp_path: Path) -> None:
    save_pretrained(load_preset("tiny", "sketchgen").make(), tmp_path / "model")
    generate(tmp_path / "out", "--model", tmp_path / "model", "--count", 1, "--format", "json")
    assert facts(tmp_path / "out")["steps"] is None
    page = (tmp_path / "out" / "gallery.html").read_text()
    assert "drawn token by token" in page
    assert " steps" not in page


def test_variations_of_a_file(tmp_path: Path, model: Path) -> None:
    lines = "".join(f'<line x1="{x}" y1="0" x2="{x + 9}" y2="40"/>' for x in range(0, 60, 10))
    (tmp_path / "part.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg" stroke="black">{lines}</svg>')
    options = ["--model", model, "--steps", 5, "--count", 2, "--format", "json", "--strength", 0.2, "--trajectory"]
    generate(tmp_path / "out", "--init-sketch", tmp_path / "part.svg", *options)
    assert sum(".trajectory." in name for name in contents(tmp_path / "out")) == 6
    content = facts(tmp_path / "out")
    assert (content["init_sketch"], content["strength"]) == (str(tmp_path / "part.svg"), 0.2)
    assert len(content["sketches"]) == 2
    before = contents(tmp_path / "out")
    again = ["--out", tmp_path / "out", *options, "--init-sketch", tmp_path / "out" / "sketch-0000.json"]
    assert "name another output" in refused("generate", *again)
    assert contents(tmp_path / "out") == before


def test_interrupt_keeps_finished_sketches(tmp_path: Path, model: Path) -> None:
    options = ["--model", model, "--steps", 60, "--count", 5000, "--format", "json", "--no-repair"]
    with start("generate", "--out", tmp_path, *options) as process:
        wait_for((tmp_path / "sketch-0016.json").exists, process)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "stopped" in error
    assert "Traceback" not in error
    content = facts(tmp_path)
    assert content["finished"] is False
    listed = {name for entry in content["sketches"] for name in entry["files"]}
    assert 17 <= len(listed) < 5000
    assert set(contents(tmp_path)) == listed | set(GALLERY)


@pytest.mark.slow
def test_several_processes_write_what_one_does(tmp_path: Path, model: Path) -> None:
    options = ["--model", str(model), "--steps", "4", "--count", "21", "--format", "json,svg"]
    generate(tmp_path / "alone", *options, repair=True)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "sketchdnn", "generate"]
    subprocess.run([sys.executable, *command, "--out", str(tmp_path / "both"), *options], check=True, timeout=300)
    alone, both = contents(tmp_path / "alone"), contents(tmp_path / "both")
    assert both.keys() == alone.keys()
    assert all(both[name] == alone[name] for name in alone if name.startswith("sketch"))
    assert facts(tmp_path / "both")["sketches"] == facts(tmp_path / "alone")["sketches"]


def test_invalid_options_are_refused(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    for words, sentence in (
        ("--count 0", "count must be at least 1"),
        ("--format stl", "'stl' is no format"),
        ("--format ,", "at least one format"),
        ("--size 12parsecs", "size is a length"),
        ("--seed -1", "seed"),
        ("--steps 0", "steps"),
        ("--sampler euler", "'euler' is no sampler"),
        ("--model nowhere", "no model is there"),
        ("--start-index -3", "numbered from 0"),
        ("--primitives few", "primitives is a number or a range such as 8..16"),
        ("--kinds spline=3", "kinds is such as line=8,circle=2"),
        ("--kinds line=9,circle=8", "17 primitives do not fit"),
        ("--count-construction", "name kinds as well"),
        ("--construction 0.5..1.5", "share of construction is 0 to 1"),
        ("--aspect -1..2", "aspect ratio"),
        ("--best-of 0", "at least 1"),
        ("--novel", "no record of its training sketches"),
        ("--device tpu", "cpu, cuda or cuda:1"),
        ("--strength 0.3", "init_sketch"),
        ("--init-sketch nowhere.dxf", "nowhere.dxf"),
        ("--compile", "compile is for a GPU"),
    ):
        chosen = [] if "--model" in words else ["--model", model]
        assert sentence in refused("generate", "--out", out, *chosen, *words.split())
        assert not out.exists()
    monkeypatch.setattr(manifest, "process_share", lambda: nullcontext(manifest.ProcessShare(0, 2)))
    assert "use one process" in refused("generate", "--out", out, "--model", model, "--unique")
    (tmp_path / "file").write_text("in the way")
    assert str(tmp_path / "file") in refused("generate", "--out", tmp_path / "file", "--model", model)


def test_invalid_initial_sketches_are_refused(tmp_path: Path, model: Path) -> None:
    line, out, part = '{"primitives": [["L", 0, 0, 0, 1, 0]]}\n', tmp_path / "out", tmp_path / "part.jsonl"
    for content, words, sentence in ((line, "--strength 5", "goes up to 1"), (line * 2, "", "holds 2 sketches")):
        part.write_text(content)
        said = refused("generate", "--out", out, "--model", model, "--init-sketch", part, *words.split())
        assert sentence in said
        assert not out.exists()


@pytest.mark.parametrize("example", ["generate --count 16", "complete part.dxf", "evaluate --model ours"])
def test_help_has_an_example_and_does_not_import_torch(example: str) -> None:
    name = example.split()[0]
    assert f"sketchdnn {example}" in run(name, "--help").output
    code = f"import sys; from sketchdnn.cli import {name}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rounded_sketches_name_their_dimensions(tmp_path: Path, model: Path) -> None:
    options = ["--count", 3, "--model", model, "--steps", 3, "--format", "json", "--round", "auto"]
    generate(tmp_path, *options, repair=True)
    assert facts(tmp_path)["rounding"] == {"step": "auto", "units": None, "origin": "auto", "max_move": 0.02}
    for entry in facts(tmp_path)["sketches"]:
        assert "rounded" in entry["repair"]["rounding"]
        (sketch,) = sketchdnn.read(tmp_path / entry["files"][0]).sketches
        values = [c.value for c in sketch.constraints if "label" in c.extra and c.type != "angle"]
        # Steps are 1 mm in 100 mm, and down to a 500th of that for small lengths.
        assert all(value == pytest.approx(round(500 * value) / 500, abs=1e-12) for value in values if value)
        assert bool(values) == entry["repair"]["rounding"].startswith(tuple("123456789"))
    assert "rounding needs" in refused("generate", "--out", tmp_path / "raw", *options, "--no-repair")
