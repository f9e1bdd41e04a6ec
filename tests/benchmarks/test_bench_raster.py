"""Timing of pictures: both ways draw the same sketches, and what is said follows from what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.commands.app import app
from support.corpora import parts, written
from typer.testing import CliRunner

from benchmarks.raster import RasterTiming, plot, time_raster
from sketchdnn.data import PRESETS, prepare
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Point, Sketch


def test_both_ways_are_timed_and_written(tmp_path: Path) -> None:
    out = tmp_path / "raster.md"
    arguments = ["raster", "--count", "30", "--plotted", "2", "--repeats", "1", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.exception
    page = out.read_text()
    assert "| ratio | **" in page
    assert "30 of the built-in corpus" in page
    assert "python -m benchmarks raster --device cpu --count 30" in page


def test_a_test_split_is_drawn(tmp_path: Path) -> None:
    prepare([written(parts(150), tmp_path / "parts.jsonl")], tmp_path / "out", PRESETS["ours"], workers=1)
    timing = time_raster(count=20, plotted=1, data=tmp_path / "out", repeats=1)
    assert timing.count == 20
    assert "test split" in timing.data
    assert 8 <= timing.primitives <= 16


def test_the_ratio_is_of_rates() -> None:
    timing = RasterTiming("a device", "cpu", "sketches", 10.0, 1000, 0.5, 10, 0.2)
    assert timing.rate == 2000
    assert timing.ratio == pytest.approx(40)


def test_the_loop_draws_what_it_is_given() -> None:
    empty, full = plot([Sketch(()), Sketch((Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((0, 1))))])
    assert empty.shape == full.shape == (480, 640, 3)
    assert empty.min() == 255
    assert 1000 < np.count_nonzero(full.min(axis=-1) < 128) < 10_000


def test_one_core_draws_thirty_times_as_fast_as_the_authors() -> None:
    """960 pictures a second; tests share the machine, so a third of it must be reached at the least."""
    assert time_raster(count=200, plotted=1).rate > 320


def test_a_device_that_is_not_there_is_said() -> None:
    with pytest.raises(SketchError, match="cpu or cuda"):
        time_raster("tpu", 1, 1)
