"""A report on disk: `report.json` for programs, `report.md` and `report.html` for people, sheets, and the samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.formats import write
from sketchdnn.io import atomic_write, load_json

from .document import markdown
from .evaluate import Evaluation
from .page import page
from .protocol import Protocol
from .samples import Samples
from .sections import document
from .sheets import galleries, write_sheet

REPORT, SAMPLES = "report.json", "samples.jsonl"
# What a comparison reads of a report.
_PARTS = {"system": dict, "scores": dict, "validity": dict, "novelty": dict, "warnings": list}


def write_samples(samples: Samples, folder: Path) -> None:
    """The sketches as they came, so that scores can be computed again from them."""
    write(samples.sketches, folder / SAMPLES)


def write_report(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write all of it but the samples; `report.json` comes last, so a folder that has it is whole."""
    report = evaluation.report
    which = {name: report["galleries"][name] for name in ("best", "typical", "worst")}
    said = document(report, galleries(evaluation.samples.compact, which))
    write_sheet(evaluation.samples.compact, folder / "sheet.png")
    write_sheet(evaluation.real, folder / "real.png")
    _write(folder / "report.md", markdown(said))
    _write(folder / "report.html", page(said))
    _write(folder / REPORT, json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [folder / name for name in ("report.html", "report.md", REPORT, "sheet.png", "real.png")]


def load_report(path: Path) -> dict[str, Any]:
    """A report made before: its folder or its JSON."""
    file = path / REPORT if path.is_dir() else path
    try:
        report: Any = load_json(file)
        Protocol.from_json(report["protocol"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SketchError) as error:
        raise FormatError(file, f"is no report of an evaluation ({quoted(error)})") from error
    for name, kind in _PARTS.items():
        if not isinstance(report.get(name), kind):
            raise FormatError(file, f"is no report of an evaluation: it has no {name}")
    if not isinstance(report["system"].get("name"), str):
        raise FormatError(file, "is no report of an evaluation: its system has no name")
    return dict(report)


def is_report(path: Path) -> bool:
    """Whether a path is worth loading as a report: a corpus has a `report.json` of another kind."""
    file = path / REPORT if path.is_dir() else path
    if file.suffix != ".json" or not file.is_file():
        return False
    try:
        found = load_json(file)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "protocol" in found


def _write(path: Path, words: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(words, encoding="utf-8")
