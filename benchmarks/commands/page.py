"""A result as a Markdown page, for the commands that measure something."""

from __future__ import annotations

from pathlib import Path

from sketchdnn.errors import SketchError, display_path
from sketchdnn.io import atomic_write


def check_file(file: Path | None) -> None:
    """Refuses a folder, before hours are spent on what is to be written there."""
    if file is not None and file.is_dir():
        raise SketchError(f"{file} is a folder; name a file for the result")


def of_model(model: str) -> str:
    """How the command says which model was measured; of the bundled one it need not."""
    return "" if model == "ours" else f" --model {display_path(model)}"


def write_page(out: Path, words: str) -> None:
    """Whole or not at all."""
    with atomic_write(out) as temporary:
        temporary.write_text(words, encoding="utf-8")
