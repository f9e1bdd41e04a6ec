"""A report for people and programs: whole, escaped, with nothing from outside, its protocol beside every table."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sketchdnn.evaluation.document import Section, Table
from sketchdnn.evaluation.page import page
from support.judging import SMALL, StandIn, sample_file, small_corpus

from sketchdnn.errors import FormatError
from sketchdnn.evaluation import EvaluationRequest, Evaluator, load_report
from sketchdnn.evaluation.estimates import to_json
from sketchdnn.evaluation.report import is_report
from sketchdnn.evaluation.report_format import Document, markdown

HOSTILE = "<script>alert(1)</script>|*`.jsonl"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    small_corpus(folder / "corpus")
    path = sample_file(folder / HOSTILE.replace("/", "_"))
    request = EvaluationRequest(
        folder / "corpus", settings=SMALL, device="cpu", cache=folder / "cache", command="a <b> & c"
    )
    Evaluator(request, extractor=lambda device: StandIn()).evaluate(str(path), folder / "out", is_model=False)
    return folder / "out"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "rect", "line", "polyline", "circle", "path"):
            self.open.append(tag)
        self.outside += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "data", "action")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_the_page_needs_nothing_but_itself_and_runs_nothing(out: Path) -> None:
    words = (out / "report.html").read_text()
    found = Page()
    found.feed(words)
    assert not found.outside
    assert not {"script", "link", "iframe", "img"} & set(found.tags)
    assert not found.open  # every tag is closed
    assert "url(" not in words
    assert "@import" not in words
    assert found.tags.count("figure") >= 15  # best, typical and worst
    assert "<polyline" in words  # the plot of corruption


def test_every_table_of_numbers_names_its_protocol(out: Path) -> None:
    name = json.loads((out / "report.json").read_text())["protocol"]["id"]
    tables = re.findall(r"</table></div>\n(.*)", (out / "report.html").read_text())
    assert len(tables) >= 9
    assert all(name in caption for caption in tables[:-2])  # the last two are the protocol itself, and timings
    assert (out / "report.md").read_text().count(name) >= len(tables) - 2


def test_markdown_keeps_its_tables_whole_whatever_a_name_holds(out: Path) -> None:
    lines = (out / "report.md").read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("|---"):
            width = line.count("|")
            assert len(re.findall(r"(?<!\\)\|", lines[number - 1])) == width
            assert len(re.findall(r"(?<!\\)\|", lines[number + 1])) == width
    assert not any("<script>" in line for line in lines)


def test_a_report_is_read_back(out: Path) -> None:
    assert is_report(out)
    assert is_report(out / "report.json")
    assert load_report(out) == load_report(out / "report.json")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"protocol": {}}', '{"protocol": 3}', "null", "[" * 100_000])
def test_what_is_no_report_is_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(FormatError, match="is no report of an evaluation"):
        load_report(tmp_path)


def test_a_report_of_a_corpus_is_no_report_of_an_evaluation(out: Path, tmp_path: Path) -> None:
    assert not is_report(out.parent / "corpus")
    assert not is_report(tmp_path)
    (tmp_path / "report.json").write_text("[" * 100_000)
    assert not is_report(tmp_path)


@pytest.mark.parametrize("part", ["system", "scores", "validity", "novelty", "warnings"])
@pytest.mark.parametrize("value", [None, 3])
def test_a_report_that_lacks_a_part_is_one_sentence(out: Path, tmp_path: Path, part: str, value: int | None) -> None:
    changed: dict[str, Any] = json.loads((out / "report.json").read_text())
    changed[part] = value
    (tmp_path / "report.json").write_text(json.dumps(changed))
    with pytest.raises(FormatError, match=f"has no {part}"):
        load_report(tmp_path)


def test_the_command_can_be_copied_as_it_is(out: Path) -> None:
    assert "\n    a <b> & c\n" in (out / "report.md").read_text()
    assert "<code>a &lt;b&gt; &amp; c</code>" in (out / "report.html").read_text()


def test_a_table_of_scores_has_kids_standard_error(out: Path) -> None:
    report = json.loads((out / "report.json").read_text())
    kid = report["scores"]["test"]["system"]["kid"]
    assert kid["standard_error"] == pytest.approx((kid["high"] - kid["value"]) / 1.96, rel=1e-3)
    assert f"| KID × 1000, standard error | {1000 * kid['standard_error']:.3g}"[:40] in (out / "report.md").read_text()


def test_what_the_test_split_itself_does_stands_beside_the_samples(out: Path) -> None:
    near = json.loads((out / "report.json").read_text())["novelty"]["neighbours"]
    words = (out / "report.md").read_text()
    for share in (1, 5, 25):
        own = f"{100 * near[f'real_closer_than_{share}']['value']:.1f} %"
        (line,) = [one for one in words.splitlines() if f"the closest {share} % of the test split" in one]
        assert own in line.split("|")[-2]


def test_words_are_escaped_in_both_forms() -> None:
    said = Document("<b>", ["a|b"], ["*x*"], [Section("#", ["<i>"], [Table(("<h>", "|"), [("<c>", "`")], "<p>")])])
    for tag in ("<b>", "<i>", "<h>", "<c>"):
        assert tag not in page(said)
    assert "| \\<h\\> | \\| |" in markdown(said)


def test_numbers_that_are_none_become_null() -> None:
    found = to_json({"a": float("nan"), "b": [float("inf"), 1.23456789], "c": True})
    assert json.dumps(found, allow_nan=False) == '{"a": null, "b": [null, 1.23457], "c": true}'
