"""Bounds on the likelihood agree with known probabilities, and every system gives the figures it can."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.sketch_sets import parts
from support.toys import process_of

from benchmarks.oracles import RowTarget, oracle
from sketchdnn.diffusion.gaussian import log_linear_snr
from sketchdnn.diffusion.likelihood import Bins
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.likelihood import Bits, Bound, Likelihoods, clean_batch, measure_likelihood
from sketchdnn.geometry import Kind
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import Compact, layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems import SYSTEMS, RowForm, load_preset
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem

# Without arcs and circles, since Gaussian parameters of these may be invalid.
TARGET = RowTarget((0.5, 0.0, 0.0, 0.3, 0.2), construction=0.3, std=0.4)
SETTINGS = SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=2), num_steps=200, canonical_lines=False)


class ExactSystem(SketchDNNSystem):
    """Has the exact denoiser of `TARGET`."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.process = process_of(log_linear_snr(1000), superposition="expected")

    def denoise(self, batch_t, t, conditioning=None):  # type: ignore[no-untyped-def]
        return TARGET.denoiser(self.process)(batch_t.to(torch.float64), t)


class OracleSystem(SketchDNNSystem):
    """Predicts the true sketches."""

    truth: SketchBatch

    def denoise(self, batch_t, t, conditioning=None):  # type: ignore[no-untyped-def]
        return oracle(self.truth)(batch_t, t)


def target_rows(count: int, seed: int = 0) -> Compact:
    """Samples of `TARGET` as compact rows."""
    sample = TARGET.sample(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    kind = sample.kind.argmax(-1)
    params = torch.zeros(count, layout.MAX_PRIMITIVES, layout.MAX_KIND_PARAMS)
    for k in (Kind.LINE, Kind.POINT):
        own = sample.of_kind(k)
        params[..., : own.shape[-1]] += own * (kind == k.value)[..., None]
    flags = sample.construction.argmax(-1) == 1
    return Compact(kind.numpy().astype(np.uint8), flags.numpy(), params.numpy())


@pytest.fixture(scope="module")
def untrained() -> SketchDNNSystem:
    torch.manual_seed(0)
    return SketchDNNSystem(replace(SETTINGS, canonical_lines=True)).eval()


def test_oracle_pays_for_the_reconstruction_only() -> None:
    count = 12
    system, compact = OracleSystem(SETTINGS), parts(count)
    system.truth = clean_batch(compact, system.rows)
    result = measure_likelihood(system, compact, draws=3, batch=count)
    for bound in (result.density, result.grid):
        assert abs(bound.terms["diffusion"].value) < 1e-9
        assert abs(bound.terms["prior"].value) < 1e-9
        assert abs(bound.parts["kind"].value) < 1e-5
    assert abs(result.authors.per_sketch.value) < 1e-9
    # The cell of each parameter is known, and the noise is narrower than a cell.
    used = sum(len(layout.PARAM_NAMES[Kind(k)]) for k in compact.kind[compact.kind != layout.NONE])
    assert 0 < result.grid.bits.per_sketch.value < 2 * used / count


def test_exact_denoiser_is_close_to_the_entropy_on_the_grid() -> None:
    compact, grid = target_rows(300), Bins(6)
    result = measure_likelihood(ExactSystem(), compact, draws=8, batch=300, grid=grid).grid.bits.per_sketch
    x0 = clean_batch(compact, RowForm(canonical_lines=False))
    kind, flag = x0.kind.argmax(-1), x0.construction.argmax(-1)
    of_kind = torch.tensor(TARGET.kind, dtype=torch.float64).log()[kind]
    of_flag = torch.where(flag == 1, math.log(TARGET.construction), math.log(1 - TARGET.construction))
    of_cells = grid.log_mass(x0.params, torch.zeros_like(x0.params), TARGET.std)
    of_cells = of_cells * (kind[..., None] == torch.tensor(layout.KIND_OF_PARAM))
    exact = -(of_kind + of_flag * (kind != layout.NONE) + of_cells.sum(-1)).sum(-1).mean() / math.log(2)
    half = (result.high - result.low) / 2
    assert exact - half < result.value < 1.1 * exact + half
    # With an exact denoiser and a single draw, most of the spread is that of t.
    bits = [measure_likelihood(ExactSystem(), target_rows(200), draws=draws).grid.bits for draws in (1, 4, 16)]
    widths = [each.per_sketch.high - each.per_sketch.low for each in bits]
    assert widths[0] > 1.3 * widths[1] > 1.3 * widths[2]


def test_terms_and_parts_add_up_and_divisors_are_correct(untrained: SketchDNNSystem) -> None:
    compact = parts(20)
    result = measure_likelihood(untrained, compact, draws=2)
    for bound in (result.density, result.grid):
        whole = bound.bits.per_sketch.value
        assert sum(term.value for term in bound.terms.values()) == pytest.approx(whole)
        assert sum(part.value for part in bound.parts.values()) == pytest.approx(whole)
    for bits in figures(result):
        assert bits.per_row.value == pytest.approx(bits.per_sketch.value / 16)
    same = compact[np.full(4, 3)]
    alike = measure_likelihood(untrained, same, draws=2)
    number = int(same.counts[0])
    assert alike.mean_primitives == number
    assert alike.grid.bits.per_primitive.value == pytest.approx(alike.grid.bits.per_sketch.value / number)
    # For sketches of different sizes: all bits over all primitives, not the mean of ratios.
    for bits in figures(result):
        assert bits.per_primitive.value == pytest.approx(bits.per_sketch.value / result.mean_primitives)
        assert bits.per_primitive.low < bits.per_primitive.value < bits.per_primitive.high
    distinct = math.log2(math.factorial(16) / math.factorial(16 - number))
    assert alike.grid.bits.per_sketch.value - alike.grid_set.per_sketch.value == pytest.approx(distinct)


def test_grids_batches_and_line_directions(untrained: SketchDNNSystem) -> None:
    compact = parts(10)
    turned = Compact(compact.kind, compact.construction, compact.params.copy())
    lines = turned.kind == Kind.LINE
    turned.params[lines] = turned.params[lines][:, [2, 3, 0, 1, 4]]
    progress: list[float] = []
    one = measure_likelihood(untrained, compact, draws=3, on_progress=progress.append)
    other = measure_likelihood(untrained, turned, draws=3, batch=4)
    assert figures(one) != figures(measure_likelihood(untrained, compact, draws=3, seed=1))
    for a, b in zip(figures(one), figures(other), strict=True):
        assert a.per_sketch.value == pytest.approx(b.per_sketch.value, rel=1e-4)
    assert (progress, progress[-1]) == (sorted(progress), 1)
    assert len(progress) > 6
    assert progress[0] == pytest.approx(1 / 9)  # calls of the network: three for each draw of a step, and three more


@pytest.mark.parametrize("variant", ["paper", "authors"])
def test_variants_of_the_paper_have_a_likelihood(variant: str) -> None:
    torch.manual_seed(0)
    network = DiTConfig(width=32, depth=1, heads=2, num_steps=50)
    rows = {"arc_scalar": "signed_radius", "canonical_lines": False}
    rows |= {"none_construction": "zero" if variant == "authors" else "one_hot"}
    system = SketchDNNSystem(SketchDNNConfig(network=network, variant=variant, num_steps=50, **rows)).eval()
    result = measure_likelihood(system, parts(6), draws=2)
    for bits in figures(result):
        assert math.isfinite(bits.per_sketch.value)
        assert bits.per_sketch.low < bits.per_sketch.value < bits.per_sketch.high


def test_sketches_without_a_likelihood_are_refused(untrained: SketchDNNSystem) -> None:
    compact = parts(4)
    kind, construction, params = compact.kind, compact.construction, compact.params
    for invalid, message in (
        (compact[:1], "two sketches"),
        (Compact(kind, construction, np.full_like(params, np.nan)), "finite"),
        (Compact(np.full_like(kind, layout.NONE), construction, params * 0), "without a primitive"),
        (Compact(kind[:, :9], construction[:, :9], params[:, :9]), "16 rows"),
    ):
        with pytest.raises(SketchError, match=message):
            measure_likelihood(untrained, invalid)
    with pytest.raises(SketchError, match="at least 1"):
        measure_likelihood(untrained, compact, draws=0)


def figures(result: Likelihoods) -> tuple[Bits, ...]:
    return (result.authors, result.density.bits, result.grid.bits, result.grid_set)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_gives_the_figures_it_can_in_any_batch(name: str) -> None:
    torch.manual_seed(0)
    system = load_preset("tiny", name).make().eval()
    progress: list[float] = []
    result = measure_likelihood(system, parts(6), draws=2, batch=4, on_progress=progress.append)
    whole, parted = (measure_likelihood(system, parts(6), draws=2, batch=batch, grid=Bins(bits=6)) for batch in (6, 2))
    assert progress[-1] == 1
    for key in ("grid_set", "tokens"):
        one, other = getattr(whole, key), getattr(parted, key)
        assert (one is None) == (other is None)
        if one is not None and name != "vitruvion":
            assert one.per_sketch.value == pytest.approx(other.per_sketch.value, rel=1e-4)
    if system.max_steps is None:
        assert result.tokens is not None
        assert result.tokens.per_sketch.value > 0
        assert (result.density, result.authors, result.reconstruction_step, result.draws) == (None, None, None, 0)
        return
    assert result.tokens is None
    assert (result.authors is not None) == name.removesuffix("-pos").endswith("sketchdnn")
    for bound in (result.density, result.grid):
        assert isinstance(bound, Bound)
        for decomposition in (bound.terms, bound.parts):
            total = sum(part.value for part in decomposition.values())
            assert total == pytest.approx(bound.bits.per_sketch.value, rel=1e-6)
    assert result.grid is not None
    assert result.grid_set is not None
    # The order is subtracted for systems that do not depend on it.
    gain = result.grid.bits.per_sketch.value - result.grid_set.per_sketch.value
    assert (gain > 1) == (not system.ordered)
