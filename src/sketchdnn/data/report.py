"""What went in, what came out and why: `report.json` for programs, `report.html` and `gallery.png` for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sketchdnn.errors import FormatError
from sketchdnn.geometry import Kind, Sketch
from sketchdnn.io import atomic_write, load_json
from sketchdnn.representation import Compact, decode_compact

from .blocks import Tally
from .config import SPLITS
from .page import corpus_page
from .staging import write_json
from .summary import Summary

REPORT = "report.json"
GALLERY_SIZE = 60
GALLERY_COLUMNS = 10
MOST_FILES_NAMED = 200


@dataclass(frozen=True, slots=True)
class Report:
    """The choices made, what became of everything found, groups of duplicates by size, what is kept, and what was left
    out of each split because an earlier split has it."""

    config: Mapping[str, Any]
    tally: Tally
    group_sizes: Counter[int]
    summary: Summary
    repeated: Mapping[str, int]

    @property
    def kept(self) -> int:
        return self.summary.splits.total()

    @property
    def duplicates(self) -> int:
        """How many sketches were left out because another stands for them."""
        return sum((size - 1) * count for size, count in self.group_sizes.items())

    def to_json(self) -> dict[str, Any]:
        tally, summary = self.tally, self.summary
        licences: dict[str, dict[str, int]] = {}
        for (source, licence), count in sorted(summary.licences.items()):
            licences.setdefault(source, {})[licence or "not stated"] = count
        return {
            "config": dict(self.config),
            "found": tally.found,
            "refused": _sorted(tally.refused),
            "duplicates": self.duplicates,
            "repeats_of_an_earlier_split": dict(self.repeated),
            "kept": self.kept,
            "splits": {split: summary.splits[split] for split in SPLITS},
            "passed_over": _sorted(tally.left_out),
            "files": tally.files,
            "files_not_read": dict(sorted(tally.bad_files.items())[:MOST_FILES_NAMED]),
            "kinds": {kind.label: summary.kinds[kind.label] for kind in Kind},
            "construction": {kind.label: summary.construction[kind.label] for kind in Kind},
            "primitives_per_sketch": {str(n): summary.primitives[n] for n in sorted(summary.primitives)},
            "sizes_mm": {_size_range(n): summary.sizes[n] for n in sorted(summary.sizes)},
            "units": {unit or "not stated": count for unit, count in sorted(summary.units.items())},
            "duplicate_group_sizes": {str(n): self.group_sizes[n] for n in sorted(self.group_sizes)},
            "licences": licences,
        }


def load_report(folder: Path) -> dict[str, Any]:
    """What `Report.to_json` gave, from a prepared corpus."""
    try:
        report = load_json(folder / REPORT)
    except (OSError, ValueError) as error:
        raise FormatError(folder / REPORT, f"cannot be read ({error})") from error
    if not isinstance(report, dict):
        raise FormatError(folder / REPORT, "is no report of a corpus")
    return report


def write_report(folder: Path, report: Report) -> None:
    """Write all three beside the corpus."""
    from sketchdnn.render import gallery_png

    numbers = report.to_json()
    write_json(folder / REPORT, numbers)
    sketches = _some(folder)
    with atomic_write(folder / "report.html") as temporary:
        temporary.write_text(corpus_page(numbers, sketches), encoding="utf-8")
    with atomic_write(folder / "gallery.png") as temporary:
        gallery_png(sketches, columns=GALLERY_COLUMNS).save(temporary)


def _some(folder: Path) -> list[Sketch]:
    """The first sketches of the corpus, which is in no order that means anything."""
    sketches: list[Sketch] = []
    for split in SPLITS:
        arrays = [np.load(folder / split / f"{name}.npy", mmap_mode="r") for name in ("kind", "construction", "params")]
        some = Compact(*(np.array(array[: GALLERY_SIZE - len(sketches)]) for array in arrays))
        sketches += [decoded.sketch for decoded in decode_compact(some)]
    return sketches


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _size_range(half_decades: int) -> str:
    """
    >>> _size_range(3)
    '32–100'
    """
    low, high = (float(f"{10 ** (n / 2):.2g}") for n in (half_decades, half_decades + 1))
    return f"{low:g}–{high:g}"
