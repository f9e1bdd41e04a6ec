"""Sheets to guess at: the answer is true, either side can be real, and nothing but the drawing tells which is."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from random import Random

import pytest
from benchmarks.commands.app import app
from support.evaluation_data import sample_file, small_corpus, small_model
from typer.testing import CliRunner

from benchmarks.figures import Source, choose, write_guess, write_mixed_guess
from sketchdnn.data.procedural import procedural
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Point, Sketch

runner = CliRunner()

RAYS = Sketch(tuple(Line((0, 0), (1, k / 9)) for k in range(10)))
RINGS = Sketch(tuple(Circle((0, 0), k / 9) for k in range(1, 11)))
# Sketches that even a test can tell apart.
REAL, DRAWN = Source("real, of a corpus", [RAYS] * 9), Source("drawn, by a model", [RINGS] * 9)


def answer(folder: Path, name: str = "answer.txt") -> dict[str, str]:
    lines = (folder / name).read_text(encoding="utf-8").split("\n" * 40)[-1].strip().splitlines()
    return dict(tuple(line.split(": ", 1)) for line in lines)


def chunks(path: Path) -> list[bytes]:
    data, at, found = path.read_bytes(), 8, []
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        found.append(data[at + 4 : at + 8])
        at += length + 12
    return found


def cells_of(svg: Path) -> list[list[str]]:
    """The strokes of each cell, without their colors."""
    text = re.sub(r'(stroke|fill)="#\w+"', "", svg.read_text(encoding="utf-8"))
    groups = re.findall(r'<g fill="none" stroke-linecap="round">\n(.*?)\n</g>', text, re.DOTALL)
    return [group.splitlines() for group in groups]


def test_the_answer_is_true_and_either_side_can_be_real(tmp_path: Path) -> None:
    sides = set()
    for _ in range(40):
        write_guess(tmp_path, Source("real", [RAYS]), Source("drawn", [RINGS]))
        told = answer(tmp_path)
        for name in "ab":
            assert ("<circle" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")) == (told[name] == "drawn")
        sides.add(told["a"])
    assert sides == {"real", "drawn"}


@pytest.mark.parametrize("seed", range(6))
def test_nothing_beside_the_drawing_tells(seed: int, tmp_path: Path) -> None:
    from PIL import Image

    written = write_guess(tmp_path, REAL, DRAWN, chance=Random(seed))
    assert [path.name for path in written] == ["a.png", "a.svg", "b.png", "b.svg", "answer.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in written)
    # In the order of their names, whichever is real.
    times = [path.stat().st_mtime_ns for path in written]
    assert times == sorted(times)
    for name in "ab":
        png = tmp_path / f"{name}.png"
        assert set(chunks(png)) == {b"IHDR", b"IDAT", b"IEND"}
        with Image.open(png) as image:
            assert (image.size, image.mode, image.info) == ((2028, 516), "RGB", {})
    heads = [(tmp_path / f"{name}.svg").read_text(encoding="utf-8").split("<g ")[0] for name in "ab"]
    assert heads[0] == heads[1]
    for name in "ab":
        svg = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert not re.search("real|drawn|corpus|model|<title|<metadata|<text|id=", svg)
    # What a preview of the answer shows does not give it away.
    begins = (tmp_path / "answer.txt").read_text(encoding="utf-8").splitlines()[:60]
    assert not re.search("real|drawn|corpus|model", " ".join(begins))


def test_the_answer_is_as_long_whichever_it_is(tmp_path: Path) -> None:
    sizes = {}
    for seed in range(8):
        write_guess(tmp_path, REAL, DRAWN, chance=Random(seed))
        sizes[answer(tmp_path)["a"]] = (tmp_path / "answer.txt").stat().st_size
    assert len(sizes) == 2
    assert len(set(sizes.values())) == 1


def test_size_place_order_and_names_of_a_source_are_not_seen(tmp_path: Path) -> None:
    parts = [procedural(3, i) for i in range(6)]
    moved = [
        Sketch(tuple(reversed(part.moved(64.0, (128.0, -32.0)).primitives)), units="mm", extra={"id": f"sketch {i}"})
        for i, part in enumerate(parts)
    ]
    write_guess(tmp_path, Source("real", parts), Source("drawn", moved))
    a, b = (cells_of(tmp_path / f"{name}.svg") for name in "ab")
    assert [sorted(cell) for cell in a] == [sorted(cell) for cell in b]
    assert len(a) == 6


def test_colors_follow_no_order_of_the_source(tmp_path: Path) -> None:
    write_guess(tmp_path, Source("real", [RAYS] * 30), Source("drawn", [RAYS] * 30))
    for name in "ab":
        assert len({cell[0] for cell in cells_of(tmp_path / f"{name}.svg")}) > 3


def test_a_mixed_sheet_has_a_key_to_every_cell(tmp_path: Path) -> None:
    written = write_mixed_guess(tmp_path, REAL, DRAWN)
    assert [path.name for path in written] == ["mixed.png", "mixed.svg", "mixed_answer.txt"]
    key = {name: [int(word) for word in words.split()] for name, words in answer(tmp_path, "mixed_answer.txt").items()}
    assert sorted(number for numbers in key.values() for number in numbers) == list(range(1, 19))
    cells = cells_of(tmp_path / "mixed.svg")
    drawn = [number for number, cell in enumerate(cells, 1) if "<circle" in cell[0]]
    assert key == {REAL.name: sorted(set(range(1, 19)) - set(drawn)), DRAWN.name: drawn}
    assert "<text" in (tmp_path / "mixed.svg").read_text(encoding="utf-8")  # the numbers


def test_a_run_that_is_stopped_leaves_no_wrong_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    write_guess(tmp_path, REAL, DRAWN)
    monkeypatch.setattr("sketchdnn.render.gallery_svg", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_guess(tmp_path, REAL, DRAWN)
    assert not (tmp_path / "answer.txt").exists()


def test_sketches_are_chosen_by_lot_from_those_with_an_extent() -> None:
    parts = [procedural(3, i) for i in range(20)]
    many = Source("some", [Sketch((Point((1, 1)),)), *parts])
    first, again, other = (choose(many, 5, seed).sketches for seed in (1, 1, 2))
    assert first == again != other
    assert all(sketch in parts for sketch in first)
    with pytest.raises(SketchError, match="some: a sheet of 21 needs more than the 20"):
        choose(many, 21, 0)


def test_an_unfair_guess_is_refused(tmp_path: Path) -> None:
    for write in (write_guess, write_mixed_guess):
        for unfair in (Source("drawn", [RINGS]), Source("drawn", [])):
            with pytest.raises(SketchError, match="as many"):
                write(tmp_path / "new", REAL, unfair)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("turing-test")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    sample_file(folder / "parts.jsonl")
    return folder


@pytest.mark.parametrize("options", [[], ["--samples"], ["--samples", "--repair"], ["--repair", "--split", "train"]])
def test_the_command(options: list[str], made: Path, tmp_path: Path) -> None:
    file, drawing = str(made / "parts.jsonl"), ["--model", str(made / "model"), "--steps", "3"]
    words = [word for option in options for word in ([option, file] if option == "--samples" else [option])]
    command = ["figures", "turing-test", "--data", str(made / "corpus"), "--count", "4", "--out", str(tmp_path / "new")]
    result = runner.invoke(app, [*command, *drawing, *words])
    assert result.exit_code == 0, result.output
    # What it says names the files, in the same order always, and no more.
    said = result.output.replace("\n", " ").replace(str(tmp_path / "new"), "").split()
    assert said == ["/a.png", "/a.svg", "/b.png", "/b.svg", "/answer.txt"]
    told = sorted(answer(tmp_path / "new").values())
    assert told[1].startswith(f"real, the {'train' if '--split' in options else 'test'} split of ")
    assert told[0].startswith("drawn")
    assert ("repaired" in told[0]) == ("--repair" in options)


def test_the_command_refuses_before_it_draws(made: Path, tmp_path: Path) -> None:
    command = [
        "figures",
        "turing-test",
        "--data",
        str(made / "corpus"),
        "--out",
        str(tmp_path / "new"),
        "--model",
        "nowhere",
    ]
    result = runner.invoke(app, [*command, "--mixed"])
    assert isinstance(result.exception, SketchError)
    assert "a sheet of 64 needs more than the 43" in str(result.exception)
    assert not list(tmp_path.iterdir())
