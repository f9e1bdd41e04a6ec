"""Reports are self-contained and escaped, quote their protocol, and are read back, older versions included."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.evaluation_data import make_evaluator, sample_file, small_corpus
from support.pages import assert_self_contained

from sketchdnn.errors import FormatError
from sketchdnn.evaluation import load_report
from sketchdnn.evaluation.report import is_report, report_document
from sketchdnn.generation.quality import STEPS
from sketchdnn.systems import from_pretrained
from sketchdnn.systems.aliases import REPORT_KEYS, current_sampler
from sketchdnn.systems.pretrained import model_hash

HOSTILE = "<script>alert(1)</script>|*`.jsonl"
ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "benchmarks/reports/ours/report.json"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    small_corpus(folder / "corpus")
    path = sample_file(folder / HOSTILE.replace("/", "_"))
    make_evaluator(folder, command="a <b> & c").evaluate(str(path), folder / "out", is_model=False)
    return folder / "out"


def test_page_and_tables_are_whole_and_escaped(out: Path) -> None:
    html, markdown = ((out / f"report.{suffix}").read_text() for suffix in ("html", "md"))
    report, lines = load_report(out), markdown.splitlines()
    assert assert_self_contained(html).tags.count("figure") >= 15  # best, typical and worst
    assert html.count('<div class="plot"') == 4  # corruption, two distributions, neighbors
    assert not re.search("#222222|#444444|#666666", html)  # dark grays of plots follow the page
    assert not re.search(r"\| -\d", markdown)  # a minus, not a hyphen
    captions, protocol = re.findall(r"</table></div>\n(.*)", html), report["protocol"]["id"]
    assert len(captions) >= 9
    assert all(protocol in caption for caption in captions[:-2])  # the last two are the protocol itself, and timings
    assert markdown.count(protocol) >= len(captions) - 2
    for number, line in enumerate(lines):
        if line.startswith("|---"):
            for neighbor in (lines[number - 1], lines[number + 1]):
                assert len(re.findall(r"(?<!\\)\|", neighbor)) == line.count("|")
    assert not any("<script>" in line for line in lines)
    assert "\n    a <b> & c\n" in markdown
    assert "<code>a &lt;b&gt; &amp; c</code>" in html
    kid, near = report["scores"]["test"]["system"]["kid"], report["novelty"]["neighbors"]
    assert kid["standard_error"] == pytest.approx((kid["high"] - kid["value"]) / 1.96, rel=1e-3)
    assert f"| KID × 1000, standard error | {1000 * kid['standard_error']:.3g}"[:40] in markdown
    for percent in (1, 5, 25):
        (line,) = [line for line in lines if f"the closest {percent} % of the test split" in line]
        assert f"{100 * near[f'real_closer_than_{percent}']['value']:.1f} %" in line.split("|")[-2]


def test_report_is_read_back_and_old_keys_are_renamed(out: Path, tmp_path: Path) -> None:
    assert is_report(out)
    assert is_report(out / "report.json")
    assert load_report(out) == load_report(out / "report.json") == json.loads((out / "report.json").read_text())
    text = (out / "report.json").read_text()
    for old, new in REPORT_KEYS.items():
        text = text.replace(f'"{new}":', f'"{old}":')
    text = text.replace('"name": "regular"', '"name": "drawn"')
    (tmp_path / "report.json").write_text(text)
    assert '"neighbours":' in text
    assert text.count('"drawn"') == 3  # two shares and the name of a row
    assert load_report(tmp_path) == load_report(out)


def test_other_and_incomplete_files_are_refused(out: Path, tmp_path: Path) -> None:
    assert not any((is_report(out.parent / "corpus"), is_report(tmp_path)))
    for content in ("", "[]", "{", '{"protocol": {}}', '{"protocol": 3}', "null", "[" * 100_000):
        (tmp_path / "report.json").write_text(content)
        with pytest.raises(FormatError, match="is no report of an evaluation"):
            load_report(tmp_path)
    assert not is_report(tmp_path)
    original: dict[str, Any] = json.loads((out / "report.json").read_text())
    for part in ("system", "scores", "validity", "novelty", "warnings"):
        for value in (None, 3):
            (tmp_path / "report.json").write_text(json.dumps({**original, part: value}))
            with pytest.raises(FormatError, match=f"has no {part}"):
                load_report(tmp_path)
    (tmp_path / "report.json").write_text(json.dumps({**original, "system": {}}))
    with pytest.raises(FormatError, match=r"has no system\.name"):
        load_report(tmp_path)


def test_shipped_report_is_of_the_shipped_model() -> None:
    report = load_report(SHIPPED)
    assert report["system"]["sha256"] == model_hash("ours")
    sampler = current_sampler(report["system"]["sampler"])
    assert (sampler, report["system"]["steps"]) == (from_pretrained("ours").default_sampler, STEPS)
    document = report_document(report)
    assert "50 restart steps" in document.lead[0]
    assert report["repaired"]["actions"]["construction"] == 905
    assert not re.search(r"\baside\b|^\| drawn", document.to_markdown(), re.MULTILINE)
    assert document.to_markdown() == (ROOT / "docs/results/ours/report.md").read_text()
    report, card = load_report(SHIPPED), (ROOT / "docs/model_card.md").read_text()
    fid = report["scores"]["test"]["system"]["fid"]
    assert report["protocol"]["id"] in card
    assert f"**{fid['value']:.1f}** ({fid['low']:.1f}–{fid['high']:.1f})" in card
    assert f"{report['validity']['samples']['gaps']['within_loose']['value']:.1%}".replace("%", " %") in card
