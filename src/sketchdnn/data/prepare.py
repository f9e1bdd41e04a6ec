"""From files to a corpus: read → filter → normalize → encode → de-duplicate → split → write.

Two passes. The first reads the input piece by piece on all cores and leaves candidates on disk, with five 64-bit keys
each. The second looks at the keys of all candidates at once to decide which stay and where they go, and writes the
corpus part by part. Memory holds some blocks of sketches and the keys, whatever the size of the corpus.

What comes out depends on which sketches went in, not on their order, nor on that of their primitives (`authors`
excepted: there, as in their code, the order of primitives tells sketches apart), nor on cores, cuts or interruptions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sketchdnn.representation.layout import MAX_PRIMITIVES, REPRESENTATION_VERSION

from .blocks import Tally
from .chunks import KEYS, read_keys, write_chunk
from .config import PRESETS, SPLITS, PrepareConfig
from .dedup import Survivors, survivors
from .report import Report, load_report, write_report
from .sources import Input, InputError, Procedural, Task, plan, read_task
from .staging import DATASET, INPUTS, Staging, check_output, fingerprint, partial_folder, write_json
from .steps import candidates
from .store import PART_SIZE, Places, create_arrays, cut_parts, write_part
from .summary import Summary
from .workers import run_all

# What is being done, how many pieces of it are done, and of how many.
Progress = Callable[[str, int, int], None]


def prepare(
    sources: Sequence[Path],
    out: Path,
    config: PrepareConfig = PRESETS["ours"],
    *,
    parts: Procedural | None = None,
    workers: int | None = None,
    force: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Make the corpus `out` from files, folders and built-in parts, and say what went into it (as `report.json` does).

    An interrupted run is taken up where it stopped; a finished one is not done again.
    """
    on_progress = on_progress or (lambda stage, done, total: None)
    workers = workers or os.cpu_count() or 1
    # The output may lie in a folder that is read: it is no input of its own.
    tasks, inputs = plan(sources, parts, leave_out=(out, partial_folder(out)))
    staging = Staging(out.resolve(), fingerprint(inputs, config))
    if not staging.folder.exists() and check_output(out, staging.fingerprint, force=force):
        return load_report(out)
    with staging.held():
        if not check_output(out, staging.fingerprint, force=force):
            staging.open()
            _make(staging, tasks, inputs, config, workers, on_progress)
    return load_report(out)


def _make(
    staging: Staging,
    tasks: Sequence[Task],
    inputs: Sequence[Input],
    config: PrepareConfig,
    workers: int,
    on_progress: Progress,
) -> None:
    try:
        tally, chunks = stage_candidates(staging, tasks, config, workers, on_progress)
        kept, places = choose(chunks, config)
        if not len(kept):
            raise InputError(_nothing_left(tally, inputs))
    except InputError:
        staging.discard()
        raise
    summary = write_corpus(staging, chunks, kept, places, config, workers, on_progress)
    report = Report(asdict(config), tally, kept.group_sizes, summary, kept.repeated)
    write_json(staging.result / DATASET, _description(config, kept))
    write_json(staging.result / INPUTS, _origin(staging.fingerprint, inputs))
    write_report(staging.result, report)
    staging.publish()


def stage_candidates(
    staging: Staging, tasks: Sequence[Task], config: PrepareConfig, workers: int, on_progress: Progress
) -> tuple[Tally, dict[Path, int]]:
    """Read, filter, normalize and encode every task that no earlier run finished; the chunks and their sizes."""
    found = {number: done for number in range(len(tasks)) if (done := staging.done(number))}
    todo = [(number, task) for number, task in enumerate(tasks) if number not in found]
    on_progress("reading", len(found), len(tasks))
    for number, tally, chunks in run_all(partial(_stage, staging, config), todo, workers):
        found[number] = (tally, chunks)
        on_progress("reading", len(found), len(tasks))
    total = Tally()
    sizes: dict[Path, int] = {}
    for number, (tally, chunks) in sorted(found.items()):
        total.add(tally)
        sizes |= {staging.chunk(number, i): size for i, size in enumerate(chunks)}
    return total, sizes


def choose(chunks: Mapping[Path, int], config: PrepareConfig) -> tuple[Survivors, Places]:
    """De-duplicate and split: from the keys of all candidates, those that stay."""
    keys = np.empty((len(KEYS), sum(chunks.values())), np.uint64)
    places = Places(np.empty(keys.shape[1], np.int32), np.empty(keys.shape[1], np.int32))
    end = 0
    for number, (path, size) in enumerate(chunks.items()):
        start, end = end, end + size
        keys[:, start:end] = read_keys(path)
        places.chunk[start:end], places.row[start:end] = number, np.arange(size)
    duplicate, content, tie, split, symmetric = keys
    return survivors(duplicate, content, tie, split, symmetric, config), places


def write_corpus(
    staging: Staging,
    chunks: Mapping[Path, int],
    kept: Survivors,
    places: Places,
    config: PrepareConfig,
    workers: int,
    on_progress: Progress,
) -> Summary:
    """Write the survivors in the order of the corpus, in parts, on all cores."""
    create_arrays(staging.result, kept)
    parts = cut_parts(staging.result, list(chunks), kept, places, config.half_extent)
    summary = Summary()
    # Starting processes takes longer than writing little.
    for done, one in enumerate(run_all(write_part, parts, workers if len(kept) > PART_SIZE else 1)):
        summary.add(one)
        on_progress("writing", done + 1, len(parts))
    return summary


def _stage(staging: Staging, config: PrepareConfig, numbered: tuple[int, Task]) -> tuple[int, Tally, list[int]]:
    number, task = numbered
    tally = Tally()
    chunks: list[int] = []
    for block in read_task(task, tally):
        found = candidates(block, config, tally)
        if len(found):
            write_chunk(staging.chunk(number, len(chunks)), found)
            chunks.append(len(found))
    staging.finish(number, tally, chunks)
    return number, tally, chunks


def _description(config: PrepareConfig, kept: Survivors) -> dict[str, object]:
    return {
        "representation": REPRESENTATION_VERSION,
        "max_primitives": MAX_PRIMITIVES,
        "config": asdict(config),
        "counts": {split: kept.count(split) for split in SPLITS},
    }


def _origin(work: str, inputs: Sequence[Input]) -> dict[str, object]:
    return {"fingerprint": work, "files": [asdict(i) for i in inputs]}


def _nothing_left(tally: Tally, inputs: Sequence[Input]) -> str:
    read = ", ".join(i.name for i in inputs[:3]) + (f" and {len(inputs) - 3} more" if len(inputs) > 3 else "")
    if not tally.found:
        bad = "; ".join(f"{name}: {reason}" for name, reason in list(tally.bad_files.items())[:3])
        return f"{read or 'the input'}: no sketch was found" + (f" ({bad})" if bad else "")
    reasons = [f"{count:,} with {reason}" for reason, count in (tally.refused + tally.left_out).most_common(3)]
    return f"{read}: none of the {tally.found:,} sketches found can be kept: {', '.join(reasons)}"
