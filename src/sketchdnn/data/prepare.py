"""The pipeline from files to a corpus: read → filter → normalize → encode → de-duplicate → split → write.

The first of two passes reads the input on all cores and stores candidates on disk, with five 64-bit keys each. The
second selects and splits candidates by the keys of all, and writes the corpus in shards. Memory holds some blocks of
sketches and the keys, whatever the size of the corpus.

The result depends on the set of sketches, not on their order, the order of their primitives (except for the preset
`authors`, as in their code), the number of cores, the cuts into tasks, or interruptions.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.io import exit_with_parent
from sketchdnn.representation.layout import MAX_PRIMITIVES, REPRESENTATION_VERSION

from .candidates import Selection, make_candidates, select_candidates
from .config import PRESETS, SPLITS, PrepareConfig, config_to_dict
from .report import load_report, report_data, write_report
from .sources import Input, InputError, Procedural, Tally, Task, plan, read_task
from .staging import DATASET, INPUTS, Staging, check_output, fingerprint, staging_folder, write_json
from .store import KEYS, SHARD_SIZE, Summary, create_arrays, plan_shards, read_keys, write_chunk, write_shard

T = TypeVar("T")
R = TypeVar("R")
# Called with the stage, the number of finished pieces, and their total.
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
    """Make a corpus from files, folders and procedural parts.

    An interrupted run is resumed; a finished one is not repeated.

    Args:
        sources: Files, folders and archives.
        out: The folder of the corpus.
        config: The settings.
        parts: Procedural parts to add.
        workers: The number of processes; by default one per core.
        force: Whether to replace a corpus of other input or settings.
        on_progress: Called after each piece of work.

    Returns:
        The report, as in `report.json`.
    """
    on_progress = on_progress or (lambda stage, done, total: None)
    workers = workers or os.cpu_count() or 1
    # The output may be in a folder that is read.
    tasks, inputs = plan(sources, parts, exclude=(out, staging_folder(out)))
    staging = Staging(out.resolve(), fingerprint(inputs, config))
    if not staging.folder.exists() and check_output(out, staging.fingerprint, force=force):
        return load_report(out)
    with staging.locked():
        if not check_output(out, staging.fingerprint, force=force):
            staging.open()
            _make_corpus(staging, tasks, inputs, config, workers, on_progress)
    return load_report(out)


def _make_corpus(
    staging: Staging,
    tasks: Sequence[Task],
    inputs: Sequence[Input],
    config: PrepareConfig,
    workers: int,
    on_progress: Progress,
) -> None:
    try:
        tally, chunks = _stage_candidates(staging, tasks, config, workers, on_progress)
        selection = _select(chunks, config)
        if not len(selection):
            raise InputError(_empty_message(tally, inputs))
    except InputError:
        staging.discard()
        raise
    create_arrays(staging.result, selection)
    shards = plan_shards(staging.result, chunks, selection, config.half_extent)
    summary: Summary = defaultdict(Counter)
    # Starting processes takes longer than writing a small corpus.
    summaries = run_all(write_shard, shards, workers if len(selection) > SHARD_SIZE else 1)
    for done, shard_summary in enumerate(summaries, start=1):
        for name, counts in shard_summary.items():
            summary[name].update(counts)
        on_progress("writing", done, len(shards))
    description = {
        "representation": REPRESENTATION_VERSION,
        "max_primitives": MAX_PRIMITIVES,
        "config": config_to_dict(config),
        "counts": {split: selection.count(split) for split in SPLITS},
    }
    write_json(staging.result / DATASET, description)
    files = [asdict(source) for source in inputs]
    write_json(staging.result / INPUTS, {"fingerprint": staging.fingerprint, "files": files})
    write_report(staging.result, report_data(config, tally, selection, summary))
    staging.publish()


def _stage_candidates(
    staging: Staging, tasks: Sequence[Task], config: PrepareConfig, workers: int, on_progress: Progress
) -> tuple[Tally, dict[Path, int]]:
    """Read, filter, normalize and encode every task that is not staged yet; the chunks and their sizes."""
    staged = {number: record for number in range(len(tasks)) if (record := staging.load_task(number))}
    missing = [(number, task) for number, task in enumerate(tasks) if number not in staged]
    on_progress("reading", len(staged), len(tasks))
    for number, tally, sizes in run_all(partial(_stage_task, staging, config), missing, workers):
        staged[number] = (tally, sizes)
        on_progress("reading", len(staged), len(tasks))
    total = Tally()
    chunks: dict[Path, int] = {}
    for number, (tally, sizes) in sorted(staged.items()):
        total.add(tally)
        chunks |= {staging.chunk(number, i): size for i, size in enumerate(sizes)}
    return total, chunks


def _stage_task(staging: Staging, config: PrepareConfig, numbered: tuple[int, Task]) -> tuple[int, Tally, list[int]]:
    number, task = numbered
    tally = Tally()
    sizes: list[int] = []
    for block in read_task(task, tally):
        candidates = make_candidates(block, config, tally)
        if len(candidates):
            write_chunk(staging.chunk(number, len(sizes)), candidates)
            sizes.append(len(candidates))
    staging.save_task(number, tally, sizes)
    return number, tally, sizes


def _select(chunks: Mapping[Path, int], config: PrepareConfig) -> Selection:
    """The selection from the keys of all candidates."""
    keys = np.empty((len(KEYS), sum(chunks.values())), np.uint64)
    end = 0
    for path, size in chunks.items():
        start, end = end, end + size
        keys[:, start:end] = read_keys(path)
    return select_candidates(keys, config)


def _empty_message(tally: Tally, inputs: Sequence[Input]) -> str:
    names = ", ".join(i.name for i in inputs[:3]) + (f" and {len(inputs) - 3} more" if len(inputs) > 3 else "")
    if not tally.found:
        bad = "; ".join(f"{name}: {reason}" for name, reason in list(tally.bad_files.items())[:3])
        return f"{names or 'the input'}: no sketch was found" + (f" ({bad})" if bad else "")
    reasons = [f"{count:,} with {reason}" for reason, count in (tally.refused + tally.skipped).most_common(3)]
    return f"{names}: none of the {tally.found:,} sketches found can be kept: {', '.join(reasons)}"


def run_all(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    """The results of a function for all tasks, in the order in which they finish.

    One worker or one task runs in this process. Workers exit with their parent.

    Raises:
        SketchError: A task failed, or a worker was killed.
    """
    if min(workers, len(tasks)) <= 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), context, exit_with_parent) as pool:
        # Only a few tasks are submitted at a time: there may be thousands, each with its own arguments.
        remaining = iter(tasks)
        running = {pool.submit(_attempt, function, task) for task in islice(remaining, 2 * workers)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(_attempt, function, task) for task in islice(remaining, len(done))}
                for future in done:
                    result, error = future.result()
                    if error is not None:
                        raise error
                    yield cast("R", result)
        except BrokenProcessPool as error:
            raise SketchError("a worker process was killed (out of memory?); run again to resume") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _attempt(function: Callable[[T], R], task: T) -> tuple[R | None, SketchError | None]:
    """The result, or the error as one that can be pickled."""
    try:
        return function(task), None
    except InputError as error:
        return None, error
    except SketchError as error:
        return None, SketchError(str(error))
