"""The counting of failure cases: on sketches whose failures are known, and of a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarks.commands.app import app
from support.corpora import parts, written
from typer.testing import CliRunner

from benchmarks.failures import OURS, REAL, REPAIRED, count_failures, draw_failures, failures
from sketchdnn.data import PRESETS, prepare
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Sketch, normalize
from sketchdnn.representation import encode
from sketchdnn.systems import System, load_preset, save_pretrained

CORNERS = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
SQUARE = tuple(Line(a, b) for a, b in zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True))
SCATTERED = (Line((-1, -1), (0.2, 0.1)), Line((0.5, -0.3), (1, 0.7)), Circle((-0.6, 0.5), 0.2))


@pytest.fixture(scope="module")
def system() -> System:
    torch.manual_seed(0)
    system = load_preset("tiny").make().eval()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    return system


def counted(*sketches: tuple[object, ...]) -> tuple[float, float, float]:
    found = failures("these", encode([normalize(Sketch(items))[0] for items in sketches]), len(sketches))  # type: ignore[arg-type]
    return found.no_pattern.value, found.gap.value, found.overlap.value


@pytest.mark.parametrize(
    ("sketch", "no_pattern", "gap", "overlap"),
    [
        (SQUARE, 0, 0, 0),
        (SQUARE[:3], 0, 1, 0),
        ((*SQUARE, Line((-0.5, 1), (0.5, 1))), 0, 1, 1),  # its ends meet no other
        ((*SQUARE, Circle((0, 0), 0.5), Circle((0, 0), 0.504)), 0, 0, 1),
        (SCATTERED, 1, 1, 0),
        ((Line((-1, 0), (-0.5, 0)), Line((0.5, 0), (1, 0))), 0, 1, 0),  # a mirror image is a pattern
        ((Circle((0, 0), 1), Circle((0.3, 0.2), 0.1)), 1, 0, 0),
    ],
)
def test_each_failure_is_seen_where_it_is(
    sketch: tuple[object, ...], no_pattern: float, gap: float, overlap: float
) -> None:
    assert counted(sketch) == (no_pattern, gap, overlap)


def test_shares_and_twins() -> None:
    turned = tuple(Line((-line.start[1], line.start[0]), (-line.end[1], line.end[0])) for line in SCATTERED[:2])
    sets = encode([normalize(Sketch(items))[0] for items in (SQUARE, SQUARE, SCATTERED[:2], turned)])
    found = failures("these", sets, 5)
    assert (found.sketches, found.empty, found.distinct) == (4, 1, 2)
    assert found.shares["line"] == 1
    assert found.no_pattern.value == 0.5


def test_every_weight_is_drawn_and_counted(system: System, tmp_path: Path) -> None:
    prepare([written(parts(150), tmp_path / "parts.jsonl")], tmp_path / "out", PRESETS["ours"], workers=1)
    kept = tmp_path / "draws.safetensors"
    drawn, seconds = draw_failures(system, count=6, steps=3, weights=(1.0, 2.0), kept=kept)
    bench = count_failures(drawn, seconds, 3, system, tmp_path / "out")
    assert bench.count == 6
    assert seconds is not None
    names = [OURS, REPAIRED, "authors', weight 1", "authors', weight 2", REAL]
    assert [each.name for each in bench.sets] == names
    assert bench.sets[-1].gap.value < 1
    again, none = draw_failures(system, count=6, steps=3, weights=(1.0, 2.0), kept=kept)
    assert none is None
    assert count_failures(again, none, 3, system).sets == bench.sets[:-1]


def test_the_command_writes_a_page(system: System, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path / "model")
    out = tmp_path / "failures.md"
    arguments = ["failures", "--count", "6", "--steps", "2", "--model", str(tmp_path / "model")]
    result = CliRunner().invoke(app, [*arguments, "--weight", "1.5", "--out", str(out)])
    assert result.exit_code == 0, result.exception
    assert "| authors', weight 1.5 |" in out.read_text()
    assert "- **ours**: the sampler `closing`" in out.read_text()


def test_what_cannot_be_measured_is_refused(system: System) -> None:
    with pytest.raises(SketchError, match="steps"):
        draw_failures(system, count=2, steps=100_000)
    result = CliRunner().invoke(app, ["failures", "--weight", "0"])
    assert isinstance(result.exception, SketchError)
    assert "above zero" in str(result.exception)
