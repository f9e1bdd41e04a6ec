"""Sequences say what the rows say, to half a level; every sequence obeys the syntax; one set sorted is one sequence."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.random_batches import clean_batch
from support.strategies import arcs, sketches
from support.toys import untokenize

from sketchdnn.geometry import Arc, Kind, Sketch, normalize
from sketchdnn.representation import Compact, decode, encode, layout
from sketchdnn.representation.batch import SketchBatch, expand, relevant
from sketchdnn.systems.baselines.tokens import tokens as grammar

SYNTAX = {arcs: grammar.make_syntax(arcs) for arcs in ("sweep", "points")}
HALF = grammar.STEP / 2 * (1 + 1e-5)

forms = pytest.mark.parametrize("arcs", ["sweep", "points"])
orders = pytest.mark.parametrize("order", ["stored", "sorted"])


def rows(compact: Compact) -> SketchBatch:
    parts = (torch.tensor(array) for array in (compact.kind, compact.construction, compact.params))
    return expand(*parts, arc_scalar="sweep")


def positive(batch: SketchBatch) -> SketchBatch:
    """Radii above zero, as those of real rows are."""
    params = batch.params.clone()
    params[..., layout.PARAMS_OF_KIND[Kind.CIRCLE].start + layout.RADIUS].abs_()
    return SketchBatch(batch.construction, batch.kind, params)


def follows(tokens: grammar.Tokens, syntax: grammar.Syntax) -> bool:
    """Whether each sequence is one that can be read from the left, token by token."""
    for values, places, real in zip(tokens.value.tolist(), tokens.place.tolist(), tokens.real.tolist(), strict=True):
        where = grammar.KIND_PLACE
        for index, (value, place) in enumerate(zip(values, places, strict=True)):
            if not real[index]:
                return values[index - 1] == grammar.STOP
            full = where == grammar.KIND_PLACE and place == syntax.end and value == grammar.STOP
            if not (place == where or full) or not syntax.legal[place, value]:
                return False
            where = (
                int(syntax.first[value - grammar.LEVELS]) if place == grammar.KIND_PLACE else int(syntax.after[place])
            )
    return values[-1] == grammar.STOP


@given(st.lists(st.floats(-1, 1, width=32), min_size=14, max_size=14))
def test_a_level_is_within_half_a_level(numbers: list[float]) -> None:
    syntax, params = SYNTAX["sweep"], torch.tensor(numbers)
    params = torch.where(syntax.lowest == grammar.LEVELS // 2, params.abs(), params)  # a radius is no less than zero
    levels = grammar.quantize(params, syntax)
    assert bool(((grammar.dequantize(levels, syntax) - params).abs() <= HALF).all())
    assert torch.equal(grammar.quantize(grammar.dequantize(levels, syntax), syntax), levels)


def test_common_numbers_and_flat_arcs_are_kept() -> None:
    syntax = SYNTAX["sweep"]
    for number in (0.0, 0.5, -0.5, 1.0, -1.0, 1 / 3, 0.1, -0.7):
        for near in (number - 1e-6, number, number + 1e-6):
            line = torch.full((14,), near)
            assert grammar.dequantize(grammar.quantize(line, syntax), syntax)[0].item() == pytest.approx(
                number, abs=1e-6
            )
    for end in (-1.0, 1.0):
        values = grammar.dequantize(grammar.quantize(torch.full((14,), end), syntax), syntax)
        assert abs(values[layout.PARAMS_OF_KIND[Kind.ARC]][layout.BEND]) < 1
        assert values[layout.PARAMS_OF_KIND[Kind.CIRCLE]][layout.RADIUS] > 0
    kind = torch.full((1, 16), layout.NONE)
    kind[0, 0] = Kind.ARC
    params = torch.zeros(1, 16, 5)
    params[0, 0] = torch.tensor([0.0, 0.0, 0.1, 0.0, 0.05])  # a sweep of three degrees: flat
    x0 = expand(kind, torch.zeros(1, 16, dtype=torch.bool), params, arc_scalar="sweep")
    (back,) = decode(untokenize(grammar.tokenize(x0, SYNTAX["points"]), SYNTAX["points"], 16), "sweep")
    assert (back.repairs, back.rejects) == ((), ())
    assert next(iter(back.sketch)).sweep < 0.05


@orders
@forms
def test_every_sequence_obeys_the_syntax(arcs: grammar.ArcTokens, order: grammar.Order) -> None:
    syntax = SYNTAX[arcs]
    full = clean_batch(8, seed=3)
    full.kind[0] = torch.eye(layout.NUM_KINDS)[Kind.ARC]  # the longest there is
    tokens = grammar.tokenize(full, syntax, order)
    assert (tokens.value.shape, int(tokens.real[0].sum())) == ((8, syntax.length(16)), syntax.length(16))
    assert follows(tokens, syntax)
    assert int(tokens.value.max()) < grammar.NUM_VALUES


def test_rows_come_back_to_half_a_level_and_empty_ones_leave_no_trace() -> None:
    x0 = positive(clean_batch(16, seed=1))
    first = (x0.kind.argmax(dim=-1) == layout.NONE).long().argsort(dim=1, stable=True)
    x0 = x0.permuted(first)  # empty rows last, as in a corpus
    back = untokenize(grammar.tokenize(x0, SYNTAX["sweep"]), SYNTAX["sweep"], 16)
    assert torch.equal(back.kind, x0.kind)
    filled = x0.kind[..., layout.NONE] == 0
    assert torch.equal(back.construction[filled], x0.construction[filled])
    mine = relevant(x0.kind.argmax(dim=-1))
    assert bool(((back.params - x0.params).abs()[mine] <= HALF).all())
    assert not back.params[~mine].any()
    x0 = clean_batch(4, seed=5)
    empty_last = (x0.kind.argmax(dim=-1) == layout.NONE).long().argsort(dim=1, stable=True)
    one, other = (grammar.tokenize(batch, SYNTAX["sweep"]) for batch in (x0, x0.permuted(empty_last)))
    assert all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("value", "place", "row", "real"))


@given(sketches(min_size=1, max_size=16))
def test_real_geometry_comes_back_with_the_kinds_it_had(sketch: Sketch) -> None:
    x0 = rows(encode([normalize(sketch)[0]]))
    for syntax in SYNTAX.values():
        tokens = grammar.tokenize(x0, syntax)
        assert follows(tokens, syntax)
        back = untokenize(tokens, syntax, 16)
        assert torch.equal(back.kind, x0.kind)
        assert bool(back.params.isfinite().all())


@given(arcs)
def test_an_arc_of_three_points_is_the_arc(arc: Arc) -> None:
    """If it stands out from its chord by a level or more. A short chord turns when its ends are rounded, and the middle
    with it, the further the more it stands out."""
    sketch, _ = normalize(Sketch((arc,)))
    true = next(iter(sketch))
    rise, chord = math.tan(true.sweep / 4), math.dist(true.start, true.end)
    if chord < 4 * grammar.STEP or chord * rise < 4 * grammar.STEP:
        return
    x0 = rows(encode([sketch]))
    (back,) = decode(untokenize(grammar.tokenize(x0, SYNTAX["points"]), SYNTAX["points"], 16), "sweep")
    drawn = next(iter(back.sketch))
    assert max(math.dist(drawn.start, true.start), math.dist(drawn.end, true.end)) <= HALF * math.sqrt(2)
    assert math.dist(drawn.mid, true.mid) < 2 * grammar.STEP * (1 + rise)


@forms
def test_stored_order_is_kept_and_sorted_order_forgets_it(arcs: grammar.ArcTokens) -> None:
    syntax, x0 = SYNTAX[arcs], clean_batch(6, seed=2)
    shuffled = x0.permuted(torch.rand(6, 16, generator=torch.Generator().manual_seed(0)).argsort(dim=-1))
    stored = [grammar.tokenize(batch, syntax).value for batch in (x0, shuffled)]
    assert all(not torch.equal(a, b) for a, b in zip(*stored, strict=True))
    one, other = (grammar.tokenize(batch, syntax, "sorted") for batch in (x0, shuffled))
    assert torch.equal(one.value, other.value)
    assert torch.equal(one.place, other.place)
