"""Blind looks: sheets in a random order, their key, and what was accepted."""

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from PIL import Image
from support.benchmarks import run_benchmark
from support.corpora import prepared_parts
from support.evaluation_data import small_model

from benchmarks.blind_look import (
    CELL,
    COLUMNS,
    CORRUPTED,
    KEY,
    REAL,
    SHEET_CELL,
    Cell,
    control_sketches,
    score_look,
    slotted_plate,
    write_look,
)
from sketchdnn.errors import SketchError
from sketchdnn.generation.completion_request import ADDED_COLOR
from sketchdnn.geometry import Circle, Line, Sketch, profile

PLATE = Sketch((Line((0, 0), (4, 0)), Line((4, 0), (4, 2)), Line((4, 2), (0, 2)), Line((0, 2), (0, 0))))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared_parts(tmp_path_factory.mktemp("look"))


def test_sheets_are_numbered_and_the_key_names_each_source(tmp_path: Path) -> None:
    cells = [Cell("plain", PLATE)] * 20 + [Cell("added", Sketch((*PLATE, Circle((2, 1), 0.5))), 4)] * 10
    paths = write_look(tmp_path, cells, rng=Random(1))
    assert [path.name for path in paths] == ["look-1.png", "look-2.png", KEY]
    key = json.loads((tmp_path / KEY).read_text())
    assert [int(number) for number in key] == list(range(1, 31))
    assert (list(key.values()).count("plain"), list(key.values())[:20] == ["plain"] * 20) == (20, False)
    page = Image.open(paths[0]).convert("RGB")
    blue = tuple(int(ADDED_COLOR[i : i + 2], 16) for i in (1, 3, 5))
    pixels = page.load()
    first_added = next(int(number) for number, source in key.items() if source == "added") - 1
    row, column = divmod(first_added, COLUMNS)
    height = page.height // 4
    card = [(x, y) for x in range(column * CELL, (column + 1) * CELL) for y in range(row * height, (row + 1) * height)]
    assert min(sum(abs(a - b) for a, b in zip(pixels[at], blue, strict=True)) for at in card) < 40


def test_accepted_shares_and_void_looks(tmp_path: Path) -> None:
    (tmp_path / KEY).write_text(json.dumps({str(n): (REAL, CORRUPTED, "suggestion")[n % 3] for n in range(30)}))
    real, corrupted = set(range(0, 30, 3)), set(range(1, 30, 3))
    good = score_look(tmp_path / KEY, real | {2, 5})
    assert {source: share.value for source, share in good.accepted.items()} == {
        REAL: 1.0,
        CORRUPTED: 0.0,
        "suggestion": 0.2,
    }
    assert not good.is_void
    assert score_look(tmp_path / KEY, sorted(real)[:8]).is_void
    lenient = score_look(tmp_path / KEY, real | set(sorted(corrupted)[:4]))
    assert lenient.is_void
    assert "void" in list(lenient.sentences())[-1]
    with pytest.raises(SketchError, match="no cell 77"):
        score_look(tmp_path / KEY, [77])
    (tmp_path / KEY).write_text("[]")
    with pytest.raises(SketchError, match="not the key"):
        score_look(tmp_path / KEY, [1])


def test_plate_of_the_sheet_is_finished() -> None:
    shape = profile(slotted_plate())
    assert shape.is_extrudable
    assert [loop.depth for loop in shape.loops] == [0, 1, 1, 1]


def test_controls_are_real_and_corrupted_originals(corpus: Path) -> None:
    cells = control_sketches(corpus, 3)
    assert [cell.source for cell in cells] == [REAL] * 3 + [CORRUPTED] * 3
    assert len({cell.sketch.primitives for cell in islice(cells, 6)}) == 6
    with pytest.raises(SketchError, match="too few originals"):
        control_sketches(corpus, 10_000)


def test_commands_write_sheets_and_score_them(corpus: Path, tmp_path: Path) -> None:
    model = small_model(tmp_path)
    options = ["--data", corpus, "--model", model, "--steps", 2, "--controls", 1, "--count", 1]
    result = run_benchmark("look-closed", *options, "--out", tmp_path / "closed")
    assert result.exit_code == 0, result.exception
    key = json.loads((tmp_path / "closed" / KEY).read_text())
    assert sorted(key.values()) == [CORRUPTED, "generated", REAL]
    accepted = next(number for number, source in key.items() if source == REAL)
    assert "100" in run_benchmark("look-score", tmp_path / "closed", "--accepted", accepted).stdout
    sheet = ["--data", corpus, "--model", model, "--steps", 2, "--count", 2, "--parts", 2]
    result = run_benchmark("completion-sheet", *sheet, "--out", tmp_path / "sheet.png")
    assert result.exit_code == 0, result.exception
    with Image.open(tmp_path / "sheet.png") as page:
        assert page.width >= 3 * SHEET_CELL
    result = run_benchmark("look-completions", *options, "--parts", 2, "--out", tmp_path / "completions")
    assert result.exit_code == 0, result.exception
    assert (tmp_path / "completions" / "look-1.png").is_file()
