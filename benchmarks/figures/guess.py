"""Real or drawn? Sheets of sketches for people to tell apart, by what is drawn and by nothing else.

Whatever its source, a sketch gets here by the same way: single precision, one frame, one look, and its primitives in an
order by lot, since colors follow the order and a corpus is sorted where a model is not. Which sheet is which is up to
the machine's own randomness: neither the seed nor another run tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.comparison import Source, random_sample
from sketchdnn.evaluation.samples import normalize_sketches
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write
from sketchdnn.representation import decode_compact

CELL, COLUMNS, MIXED_COLUMNS = 240, 8, 16
# Empty lines between the question and the answer, so that no preview shows it.
_SPACE = 80
_CHANCE = SystemRandom()


def choose(source: Source, count: int, seed: int) -> Source:
    """So many of its sketches, by lot; those of no extent make no picture and take no part."""
    sketches = normalize_sketches(source.sketches)[0]
    if len(sketches) < count:
        raise SketchError(f"{source.name}: a sheet of {count} needs more than the {len(sketches)} sketches there are")
    return Source(source.name, random_sample(sketches, count, seed))


def write_guess(folder: Path, one: Source, other: Source, *, chance: Random = _CHANCE) -> list[Path]:
    """Two sheets, `a` and `b`, as PNG and SVG, and in `answer.txt` which is which."""
    sides = dict(zip("ab", chance.sample(_alike(one, other, chance), 2), strict=True))
    answer = folder / "answer.txt"
    _forget(answer)
    written: list[Path] = []
    for name, source in sides.items():
        written += _write_sheet(folder / name, source.sketches, COLUMNS)
    _write_answer(answer, "Which sheet is which?", [f"{name}: {source.name}" for name, source in sides.items()])
    return [*written, answer]


def write_mixed_guess(folder: Path, one: Source, other: Source, *, chance: Random = _CHANCE) -> list[Path]:
    """One sheet of numbered cells, `mixed` as PNG and SVG, and in `mixed_answer.txt` which cells are whose."""
    cells = [(source.name, sketch) for source in _alike(one, other, chance) for sketch in source.sketches]
    chance.shuffle(cells)
    answer = folder / "mixed_answer.txt"
    _forget(answer)
    captions = [str(number) for number in range(1, len(cells) + 1)]
    written = _write_sheet(folder / "mixed", [sketch for _, sketch in cells], MIXED_COLUMNS, captions)
    lines = []
    for name in (one.name, other.name):
        numbers = [caption for caption, (whose, _) in zip(captions, cells, strict=True) if whose == name]
        lines.append(f"{name}: {' '.join(numbers)}")
    _write_answer(answer, "Which cells are whose? There are as many of one as of the other.", lines)
    return [*written, answer]


def _alike(one: Source, other: Source, chance: Random) -> list[Source]:
    """Nothing left but geometry: no names, no constraints, no more digits than the other has, no order."""
    alike = []
    for source in (one, other):
        plain = [decoded.sketch for decoded in decode_compact(normalize_sketches(source.sketches)[1])]
        mixed = [Sketch(tuple(chance.sample(sketch.primitives, len(sketch)))) for sketch in plain]
        alike.append(Source(source.name, mixed))
    counts = [len(source.sketches) for source in alike]
    if not counts[0] == counts[1] > 0:
        raise SketchError(
            f"a guess needs as many sketches of one as of the other: there are {counts[0]} ({one.name}) "
            f"and {counts[1]} ({other.name})"
        )
    return alike


def _write_sheet(
    path: Path, cells: Sequence[Sketch], columns: int, captions: Sequence[str] | None = None
) -> list[Path]:
    """PNG and SVG of one size, whoever drew the sketches, and with nothing in them but the picture."""
    from sketchdnn.render import Style, gallery_png, gallery_svg

    # A little bolder than elsewhere: a sheet is looked at whole, smaller than it is.
    look: dict[str, Any] = {"columns": columns, "captions": captions, "cell": CELL, "style": Style().times(1.25)}
    paths = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with atomic_write(paths[0]) as temporary:
        gallery_png(cells, **look).save(temporary, format="png", optimize=True)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(gallery_svg(cells, **look), encoding="utf-8")
    return paths


def _forget(answer: Path) -> None:
    """An earlier answer goes first: should this run be stopped, there is none, rather than a wrong one."""
    with suppress(OSError):  # what cannot be removed cannot be replaced either, which is said then
        answer.unlink()


def _write_answer(path: Path, question: str, lines: Sequence[str]) -> None:
    with atomic_write(path) as temporary:
        text = [question, "Guess first: the answer is at the end of this file.", *[""] * _SPACE, *lines]
        temporary.write_text("\n".join(text) + "\n", encoding="utf-8")
