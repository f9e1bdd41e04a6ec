"""Every system is asked how likely a sketch is in one way, and says what it can."""

from __future__ import annotations

import pytest
import torch

from sketchdnn.data.procedural import procedural
from sketchdnn.diffusion.likelihood import Bins
from sketchdnn.evaluation.likelihood import Bound, measure_likelihood
from sketchdnn.geometry import normalize
from sketchdnn.representation import Compact, encode
from sketchdnn.systems import SYSTEMS, load_preset


@pytest.fixture(scope="module")
def sketches() -> Compact:
    found = [normalize(procedural(0, i))[0] for i in range(6)]
    return encode([sketch for sketch in found if len(sketch) <= 16], canonical_lines=True)


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_says_what_it_can(name: str, sketches: Compact) -> None:
    torch.manual_seed(0)
    system = load_preset("tiny", name).make().eval()
    shares: list[float] = []
    found = measure_likelihood(system, sketches, draws=2, batch=4, on_progress=shares.append)
    assert shares[-1] == 1
    if system.max_steps is None:
        assert found.tokens is not None
        assert found.tokens.per_sketch.value > 0
        assert (found.density, found.authors, found.read_at, found.draws) == (None, None, None, 0)
        return
    assert found.tokens is None
    assert (found.authors is not None) == name.removesuffix("-pos").endswith("sketchdnn")
    for bound in (found.density, found.grid):
        assert isinstance(bound, Bound)
        for pieces in (bound.terms, bound.parts):
            total = sum(piece.value for piece in pieces.values())
            assert total == pytest.approx(bound.bits.per_sketch.value, rel=1e-6)
    assert found.grid is not None
    assert found.grid_set is not None
    # Only where no order is told can it be taken off.
    gain = found.grid.bits.per_sketch.value - found.grid_set.per_sketch.value
    assert (gain > 1) == (not system.ordered)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "vitruvion"])
def test_batches_only_decide_how_much_memory_is_used(name: str, sketches: Compact) -> None:
    torch.manual_seed(0)
    system = load_preset("tiny", name).make().eval()
    whole, parts = (measure_likelihood(system, sketches, draws=2, batch=batch, grid=Bins(bits=6)) for batch in (6, 2))
    for key in ("grid_set", "tokens"):
        one, other = getattr(whole, key), getattr(parts, key)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.per_sketch.value == pytest.approx(other.per_sketch.value, rel=1e-4)
