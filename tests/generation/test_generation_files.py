"""Files of sketches: names, formats, and what is left when drawing stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from strategies import assert_same

from sketchdnn import read
from sketchdnn.formats import FormatError
from sketchdnn.generation import Drawing, write_sketches
from sketchdnn.geometry import Circle, Line, Sketch, SketchError

SKETCH = Sketch((Line((0, 0), (80, 0)), Line((80, 0), (0, 60)), Circle((40, 20), 5, True)), units="mm")


def drawings(count: int) -> Iterator[Drawing]:
    return (Drawing(number, SKETCH) for number in range(count))


def test_every_sketch_is_written_in_every_format(tmp_path: Path) -> None:
    written = write_sketches(drawings(2), 2, tmp_path / "new" / "folder", ["json", "svg", "dxf", "fcstd"])
    names = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert names == sorted(path.name for path in written)
    assert names[:1] == ["gallery.png"]
    assert names[1:] == [f"sketch-000{n}.{suffix}" for n in (0, 1) for suffix in ("FCStd", "dxf", "json", "svg")]
    for suffix in ("json", "dxf", "FCStd", "svg"):
        found = read(tmp_path / "new" / "folder" / f"sketch-0001.{suffix}").sketches
        assert_same(SKETCH, found[0].in_units("mm"), tolerance=1e-4, construction=suffix != "dxf")


def test_names_are_long_enough_for_all(tmp_path: Path) -> None:
    late = (Drawing(number, SKETCH) for number in (0, 123_456))
    write_sketches(late, 200_000, tmp_path, ["json"])
    assert {path.name for path in tmp_path.glob("*.json")} == {"sketch-000000.json", "sketch-123456.json"}


def test_what_is_done_stays_when_drawing_stops(tmp_path: Path) -> None:
    def stopped() -> Iterator[Drawing]:
        yield from drawings(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_sketches(stopped(), 5, tmp_path, ["json"])
    assert {path.name for path in tmp_path.iterdir()} == {"sketch-0000.json", "sketch-0001.json", "gallery.png"}


@pytest.mark.parametrize("formats", [["stl"], [], ["json", "jsonl"], [" "]])
def test_unknown_formats_are_refused_before_anything_is_written(tmp_path: Path, formats: list[str]) -> None:
    with pytest.raises(SketchError, match="json, svg, dxf, fcstd"):
        write_sketches(drawings(1), 1, tmp_path / "out", formats)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FormatError, match="file"):
        write_sketches(drawings(1), 1, tmp_path / "file", ["json"])
