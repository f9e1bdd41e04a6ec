"""Columns hold exactly what the sketches hold."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import primitives

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Line, Primitive
from sketchdnn.geometry.table import sketches_to_table, table_to_sketches

CORPORA = st.lists(st.lists(primitives, max_size=6), max_size=8)


@given(CORPORA)
def test_a_table_holds_sketches_exactly(corpus: list[list[Primitive]]) -> None:
    table = sketches_to_table(corpus)
    assert [list(sketch) for sketch in table_to_sketches(table)] == corpus
    assert table.num_sketches == len(corpus)
    assert table.counts.tolist() == [len(items) for items in corpus]
    assert len(table) == sum(map(len, corpus))


@given(CORPORA, st.randoms(use_true_random=False))
def test_selecting_keeps_the_marked_sketches_in_order(corpus: list[list[Primitive]], dice: random.Random) -> None:
    keep = np.array([dice.random() < 0.5 for _ in corpus], dtype=bool)
    chosen = sketches_to_table(corpus).select(keep)
    assert [list(sketch) for sketch in table_to_sketches(chosen)] == [c for c, k in zip(corpus, keep, strict=True) if k]
    again = sketches_to_table([c for c, k in zip(corpus, keep, strict=True) if k])
    for f in fields(chosen):
        np.testing.assert_array_equal(getattr(chosen, f.name), getattr(again, f.name))


def test_a_row_of_no_kind_is_refused() -> None:
    table = sketches_to_table([[Line((0, 0), (1, 0))]])
    with pytest.raises(GeometryError, match="no primitive has kind 9"):
        table_to_sketches(replace(table, kind=np.array([9], dtype=np.uint8)))


def test_a_row_that_is_no_primitive_is_refused() -> None:
    table = sketches_to_table([[Line((0, 0), (1, 0))]])
    with pytest.raises(GeometryError, match="not a number"):
        table_to_sketches(replace(table, x=np.array([np.nan])))
