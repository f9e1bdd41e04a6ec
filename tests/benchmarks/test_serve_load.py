"""The load test: a real server and a few clients."""

from pathlib import Path

import pytest
from support.benchmarks import write_page

from benchmarks.serve_load import PART, Answer, LoadLog, ServeLoad, compare_answers, run_load
from sketchdnn.errors import SketchError
from sketchdnn.generation import SketchDNN


@pytest.mark.slow
def test_answers_under_load_are_those_of_the_library(tmp_path: Path) -> None:
    options = ("--clients", 3, "--seconds", 1, "--steps", 4, "--compare", 6, "--complete-share", 0.3)
    page = write_page(tmp_path / "serve.md", "serve-load", *options)
    command = (
        "python -m benchmarks serve-load --clients 3 --seconds 1 --steps 4 --complete-share 0.3 --compare 6 --seed 0"
    )
    assert f"    {command}" in page
    assert "- only 429 and 503 beside 200: 0 others (met)." in page
    assert "- at least 99% of sketches equal: 100.00% (met)." in page


def test_other_sketches_and_failures_are_counted() -> None:
    library = SketchDNN.from_pretrained(device="cpu")
    body = {"count": 2, "seed": 5, "steps": 4}
    own = [sketch.to_dict() for sketch in library.generate(2, seed=5, steps=4)]
    answers = [Answer(body, own), Answer({**body, "seed": 6}, own)]
    assert compare_answers(library, answers, 10, 0) == (4, 2)
    assert Answer({"part": PART.to_dict()}, []).completes
    log = LoadLog(failures=["ReadError"], answers=answers)
    log.statuses.update({200: 2, 500: 1})
    result = ServeLoad(5, 1.0, 4, 0.0, log, 8.0, 9.0, 10.0, (0.1, 0.1), 4, 2, (100.0, 120.0), 6.0, 0)
    sentences = list(result.sentences())
    assert sum("(not met)" in sentence for sentence in sentences) == 5
    assert sentences[-1] == "- A failure: ReadError."
    with pytest.raises(SketchError, match="the share of completions"):
        run_load(complete_share=2)
