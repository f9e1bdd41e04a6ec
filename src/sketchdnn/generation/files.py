"""Sketches as files in a folder: each whole or not at all, named by its number, and a picture of them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sketchdnn.formats import FormatError, write, writer_of
from sketchdnn.formats.atomic import replacing
from sketchdnn.geometry import Sketch, SketchError

from .generate import Drawing

FORMATS = ("json", "svg", "dxf", "fcstd")
GALLERY = "gallery.png"
# More would be too large a picture to look at.
MOST_IN_GALLERY = 100
_DIGITS = 4


def check_formats(names: Iterable[str]) -> list[str]:
    """Formats by name, each once; refuses one that is none of `FORMATS`."""
    chosen = list(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    for name in chosen:
        if name not in FORMATS:
            raise SketchError(f"'{name}' is no format that sketches are drawn in; use {', '.join(FORMATS)}")
    if not chosen:
        raise SketchError(f"name at least one format: {', '.join(FORMATS)}")
    return chosen


def make_folder(folder: Path) -> None:
    """The folder to write to, made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(folder, f"cannot be made a folder ({error.strerror})") from error


def write_sketches(drawings: Iterable[Drawing], count: int, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write each sketch as it comes, in every format, and a gallery of the first at the end. Says which were written.

    Whatever ends it early, Ctrl-C included, what was drawn stays and has its gallery.
    """
    chosen = check_formats(formats)
    make_folder(folder)
    digits = max(_DIGITS, len(str(count - 1)))
    written: list[Path] = []
    shown: list[Sketch] = []
    try:
        for drawing in drawings:
            stem = f"sketch-{drawing.number:0{digits}d}"
            for name in chosen:
                path = folder / f"{stem}{writer_of('', name).suffixes[0]}"
                write(drawing.sketch, path, name)
                written.append(path)
            if len(shown) < MOST_IN_GALLERY:
                shown.append(drawing.sketch)
    finally:
        if shown:
            written.append(_write_gallery(shown, folder / GALLERY))
    return written


def _write_gallery(sketches: Sequence[Sketch], path: Path) -> Path:
    from sketchdnn.render import gallery_png

    captions = [str(number) for number in range(len(sketches))]
    with replacing(path) as temporary:
        gallery_png(sketches, captions=captions).save(temporary, format="png")
    return path
