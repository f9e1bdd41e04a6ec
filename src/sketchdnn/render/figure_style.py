"""How our figures look: quiet axes, two colors that print, the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sketchdnn.io import atomic_write

ORANGE, BLUE, GREEN, GRAY, INK = "#d95f02", "#1f6fb4", "#2e8b57", "#8a8a8a", "#222222"

_SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "svg.hashsalt": "sketchdnn",
}


@contextmanager
def drawing() -> Iterator[Any]:
    """matplotlib's pyplot, drawing to files only and in our style; every figure is closed at the end."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(_SETTINGS):
        try:
            yield plt
        finally:
            plt.close("all")


def save(figure: Any, folder: Path, name: str, suffixes: tuple[str, ...] = (".png", ".svg")) -> list[Path]:
    """Write a figure in each form, whole or not at all, and say where."""
    paths = [folder / f"{name}{suffix}" for suffix in suffixes]
    for path in paths:
        with atomic_write(path) as temporary:
            undated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
            figure.savefig(temporary, bbox_inches="tight", metadata=undated)
    return paths


def save_csv(folder: Path, name: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> Path:
    """The numbers behind a figure."""
    path = folder / f"{name}.csv"
    with atomic_write(path) as temporary:
        lines = [",".join(map(str, row)) for row in [header, *rows]]
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
