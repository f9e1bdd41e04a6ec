"""Features are computed once, known by what they came from, and never taken from a damaged file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sketchdnn.evaluation import features
from sketchdnn.evaluation.estimates import EvaluationError
from sketchdnn.evaluation.features import default_cache, sketch_features
from sketchdnn.evaluation.metrics import check_features
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.representation import Compact, encode


class Counting:
    """Means over a coarse grid; remembers how many pictures it saw."""

    device = torch.device("cpu")

    def __init__(self, sha256: str = "a") -> None:
        self.sha256 = sha256
        self.seen = 0

    def features(self, images: Tensor) -> Tensor:
        self.seen += len(images)
        return torch.nn.functional.adaptive_avg_pool2d(images[:, None].float(), 4).flatten(1)


@pytest.fixture
def compact() -> Compact:
    return encode([Sketch((Circle((0, 0), 1), Line((-1, 0), (0.1 * i, 0.5)))) for i in range(7)])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "BLOCK", 3)


def test_what_is_kept_is_what_was_computed(compact: Compact, tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    fresh = sketch_features(compact, first, cache=tmp_path)
    kept = sketch_features(compact, second, cache=tmp_path)
    assert torch.equal(fresh, sketch_features(compact, Counting()))
    assert torch.equal(fresh, kept)
    assert (first.seen, second.seen) == (7, 0)
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}


def _other_rows(compact: Compact) -> Compact:
    return Compact(compact.kind, compact.construction, compact.params * 0.5)


def _other_flags(compact: Compact) -> Compact:
    return Compact(compact.kind, ~compact.construction, compact.params)


@pytest.mark.parametrize("change", [_other_rows, _other_flags])
def test_other_sketches_are_other_features(
    compact: Compact, tmp_path: Path, change: Callable[[Compact], Compact]
) -> None:
    sketch_features(compact, Counting(), cache=tmp_path)
    extractor = Counting()
    sketch_features(change(compact), extractor, cache=tmp_path)
    assert extractor.seen == 7


def test_another_extractor_or_drawing_takes_nothing_that_was_kept(
    compact: Compact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sketch_features(compact, Counting(), cache=tmp_path)
    extractor = Counting("b")
    sketch_features(compact, extractor, cache=tmp_path)
    sketch_features(compact, extractor, cache=tmp_path, construction=False)
    monkeypatch.setattr(features, "STROKE", 3.0)
    sketch_features(compact, extractor, cache=tmp_path)
    # The settings are the same, but the program draws otherwise.
    draw = features.rasterize
    monkeypatch.setattr(features, "rasterize", lambda *args, **kwargs: 255 - draw(*args, **kwargs))
    sketch_features(compact, extractor, cache=tmp_path)
    assert extractor.seen == 4 * 7


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"\xff" * 64])
def test_a_damaged_file_is_computed_again(compact: Compact, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    fresh = sketch_features(compact, Counting(), cache=tmp_path)
    victim = sorted(tmp_path.iterdir())[0]
    whole = victim.read_bytes()
    victim.write_bytes(damage(whole))
    extractor = Counting()
    assert torch.equal(sketch_features(compact, extractor, cache=tmp_path), fresh)
    assert extractor.seen in (1, 3)  # one block
    assert victim.read_bytes() == whole


def test_an_interrupted_run_goes_on_where_it_was(compact: Compact, tmp_path: Path) -> None:
    def interrupt(done: float) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sketch_features(compact, Counting(), cache=tmp_path, on_progress=interrupt)
    extractor = Counting()
    sketch_features(compact, extractor, cache=tmp_path)
    assert extractor.seen == 1


def test_progress_rises_to_one(compact: Compact) -> None:
    told: list[float] = []
    sketch_features(compact, Counting(), on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1


def test_no_sketches_have_no_features(compact: Compact) -> None:
    with pytest.raises(EvaluationError, match="no sketches"):
        sketch_features(compact[:0], Counting())


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "sketchdnn" / "features"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "sketchdnn" / "features"


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (torch.zeros(3, 2), torch.zeros(3, 4), "cannot be compared"),
        (torch.zeros(1, 2), torch.zeros(3, 2), "at least 2"),
        (torch.full((3, 2), torch.nan), torch.zeros(3, 2), "not finite"),
    ],
)
def test_sets_that_cannot_be_compared_are_refused(a: Tensor, b: Tensor, sentence: str) -> None:
    with pytest.raises(EvaluationError, match=sentence):
        check_features(a, b)
