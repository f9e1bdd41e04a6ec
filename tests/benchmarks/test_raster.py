from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import prepared_parts, write_page

from benchmarks.raster import RasterTiming, plot, time_raster
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Point, Sketch


def test_page_compares_with_matplotlib(tmp_path: Path) -> None:
    arguments = ["raster", "--device", "cpu", "--count", 30, "--matplotlib-count", 2, "--repeats", 1]
    page = write_page(tmp_path / "page.md", *arguments)
    for words in ("| ratio | **", "30 of the built-in corpus", "python -m benchmarks raster --device cpu --count 30"):
        assert words in page
    timing = time_raster(count=20, matplotlib_count=1, data=prepared_parts(tmp_path), repeats=1)
    assert timing.count == 20
    assert "test split" in timing.data
    assert 8 <= timing.primitives <= 16
    timing = RasterTiming("a device", "cpu", "sketches", 10.0, 1000, 0.5, 10, 0.2)
    assert (timing.rate, timing.ratio) == (2000, pytest.approx(40))
    with pytest.raises(SketchError, match="cpu or cuda"):
        time_raster("tpu", 1, 1)


def test_matplotlib_loop_draws_the_sketch() -> None:
    empty, full = plot([Sketch(()), Sketch((Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((0, 1))))])
    assert empty.shape == full.shape == (480, 640, 3)
    assert empty.min() == 255
    assert 1000 < np.count_nonzero(full.min(axis=-1) < 128) < 10_000
