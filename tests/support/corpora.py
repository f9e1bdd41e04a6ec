"""Corpora for tests: procedural parts written to files, the open corpus, and the bytes of results."""

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

from sketchdnn.data import prepare
from sketchdnn.data.procedural import procedural
from sketchdnn.formats import scan, write
from sketchdnn.geometry import Sketch
from support.outlines import backwards


def parts(count: int, *, per_group: int = 3, twins: int = 0) -> list[Sketch]:
    """Procedural parts in groups, some of them again under other names, scaled and moved."""
    plain = [procedural(5, index) for index in range(count)]
    sketches = [replace(s, extra={**s.extra, "group": f"model {i // per_group}"}) for i, s in enumerate(plain)]
    again = [replace(s.moved(3.0, (7.0, -2.0)), extra={**s.extra, "id": f"twin of {s.extra['id']}"}) for s in sketches]
    return sketches + again[:twins]


def shuffled(sketches: list[Sketch], seed: int) -> list[Sketch]:
    """The same sketches in another order, their primitives too, and half of their lines turned round."""
    rng = random.Random(seed)
    mixed = []
    for sketch in sketches:
        primitives = [backwards(p) if rng.random() < 0.5 else p for p in sketch]
        rng.shuffle(primitives)
        mixed.append(replace(sketch, primitives=tuple(primitives)))
    rng.shuffle(mixed)
    return mixed


def written(sketches: list[Sketch], path: Path) -> Path:
    write(sketches, path)
    return path


def prepared_parts(folder: Path, count: int = 150) -> Path:
    prepare([written(parts(count), folder / "parts.jsonl")], folder / "corpus", workers=1)
    return folder / "corpus"


def contents(folder: Path, *, without: tuple[str, ...] = ("inputs.json",)) -> dict[str, bytes]:
    """The bytes of every file of a corpus, without the list of its inputs."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name not in without]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def open_sketches(folder: Path, count: int) -> list[Sketch]:
    return list(islice((s for s in scan(folder / "open-sketches.jsonl.xz") if isinstance(s, Sketch)), count))
