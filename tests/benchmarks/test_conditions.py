import pytest
from support.small_systems import small_system

from benchmarks.conditions import measure_conditions
from sketchdnn.errors import SketchError


def test_given_primitives_are_kept_by_an_untrained_model() -> None:
    result = measure_conditions(small_system(), 18, steps=4)
    scores = {score.name: score for score in result.scores}
    assert all(score.requests == 18 for score in result.scores)
    assert all(score.first <= score.met <= score.requests for score in result.scores)
    assert scores["given primitives unchanged"].met == 18
    # With given kinds, only circles without a radius miss; numbers of rows are not learned.
    assert scores["number of each kind"].met > scores["number of each kind"].first > 0
    assert scores["number of primitives"].attempts > 1
    page = result.markdown("python -m benchmarks conditions")
    assert page.count("100.0 %") >= 2
    assert all(words in page for words in ("`python -m benchmarks conditions`", "4 restart steps"))
    # Without a training index too.
    result = measure_conditions(small_system(knows=False), 4, steps=3)
    assert {score.name for score in result.scores} >= {"number of each kind", "closed profile"}
    with pytest.raises(SketchError, match="at least one"):
        measure_conditions(small_system(), 0)
