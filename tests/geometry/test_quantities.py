"""Lengths, ranges and counts of kinds are parsed, or refused with the name of the option."""

import pytest

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind
from sketchdnn.geometry.quantities import parse_int_range, parse_kind_counts, parse_length, parse_range


def test_quantities_are_parsed_or_refused() -> None:
    assert [parse_length(text) for text in ("4in", " 1.5e2 mm ", "120")] == [(4, "in"), (150, "mm"), (120, "mm")]
    assert [parse_range(text, "--aspect", "1..2") for text in ("0.5..2", "-3")] == [(0.5, 2), (-3, -3)]
    assert parse_int_range("8..16", "--primitives", "8..16") == (8, 16)
    expected = {Kind.LINE: 8, Kind.CIRCLE: 2}
    for counts in ("line=8, circles=2", {"Lines": 8, "circle": 2}, {Kind.LINE: 8, Kind.CIRCLE: 2}):
        assert parse_kind_counts(counts) == expected
    for text in ("", "mm", "0mm", "-1", "inf", "4 furlong", "1e999"):
        with pytest.raises(SketchError, match="--size is a length"):
            parse_length(text)
    for text, message in (("a..b", "is a number or a range"), ("2..1", "put the smaller number first")):
        with pytest.raises(SketchError, match=message):
            parse_range(text, "--aspect", "1..2")
    with pytest.raises(SketchError, match="--primitives is a whole number"):
        parse_int_range("1.5", "--primitives", "8..16")
    for text, message in (("ellipse=1", "is no kind"), ("line=1,lines=2", "names line twice"), ("line", "is such as")):
        with pytest.raises(SketchError, match=message):
            parse_kind_counts(text)
