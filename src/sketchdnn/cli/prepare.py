"""The command `sketchdnn prepare`: a training corpus from files."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from sketchdnn.errors import SketchError, display_path

from .console import stderr_console
from .options import Workers, path_argument, path_option
from .progress import progress

EPILOG = "Example: sketchdnn prepare sg_t16_train.npy parts/ --preset ours --out corpus"
# The number of unreadable files that are printed; the report lists more.
_MAX_PRINTED = 20


def prepare(
    out: Annotated[Path, path_option(help="The folder of the corpus.")],
    files: Annotated[list[Path] | None, path_argument(metavar="SOURCE", help="Files, folders or archives.")] = None,
    preset: Annotated[str, Option(help="ours; paper: as its text describes; authors: as their code does.")] = "ours",
    source: Annotated[str | None, Option(help="'procedural': generated parts, no download.")] = None,
    count: Annotated[int, Option(min=1, help="The number of procedural parts.")] = 10_000,
    seed: Annotated[int, Option(min=0, help="The seed of procedural parts.")] = 0,
    min_primitives: Annotated[int | None, Option(help="The fewest primitives of a sketch; else the preset's.")] = None,
    max_primitives: Annotated[int | None, Option(help="The most primitives of a sketch; else the preset's.")] = None,
    order: Annotated[
        str, Option(help="canonical: rows sorted by kind and place; drawn: as in the source.")
    ] = "canonical",
    half_extent: Annotated[
        float | None, Option(help="Half the larger side of the stored sketches; else the preset's.")
    ] = None,
    constrained: Annotated[
        bool | None,
        Option("--constrained/--no-constrained", help="Only sketches with enough constraints; else the preset's."),
    ] = None,
    workers: Workers = None,
    force: Annotated[bool, Option("--force", help="Replace an existing corpus.")] = False,
) -> None:
    """Make a training corpus: filter, normalize, encode, remove duplicates, split. An interrupted run is resumed."""
    from sketchdnn import data

    if preset not in data.PRESETS:
        raise SketchError(f"'{preset}' is no preset; use one of {', '.join(data.PRESETS)}")
    if source not in (None, "procedural"):
        raise SketchError(f"--source '{source}' is unknown; the only source is 'procedural'")
    if not files and source is None:
        raise SketchError("nothing to prepare: name files or folders, or use --source procedural")
    changes: dict[str, Any] = {"min_primitives": min_primitives, "max_primitives": max_primitives}
    changes |= {"half_extent": half_extent, "constrained": constrained, "order": order}
    given = {name: value for name, value in changes.items() if value is not None}
    config = replace(data.PRESETS[preset], **given)
    parts = data.Procedural(count, seed) if source else None
    console = stderr_console()
    with progress(console, "reading") as bar:
        report = data.prepare(
            files or [],
            out,
            config,
            parts=parts,
            workers=workers,
            force=force,
            on_progress=lambda stage, done, total: bar.update(done, total, stage),
        )
    for name, reason in islice(report["files_not_read"].items(), _MAX_PRINTED):
        console.print(f"{name}: not read, it {reason}")
    typer.echo(_summary(out, report))


def _summary(out: Path, report: dict[str, Any]) -> str:
    name = display_path(out)
    splits = ", ".join(f"{count:,} {split}" for split, count in report["splits"].items())
    refused = sum(report["refused"].values())
    repeats = sum(report["repeats_of_an_earlier_split"].values())
    unread = len(report["files_not_read"])
    return (
        f"{name}: {report['kept']:,} sketches ({splits}) of {report['found']:,} found; "
        f"{refused:,} refused, {report['duplicates']:,} duplicates"
        + (f", {repeats:,} left out of validation and test, which repeat an earlier split" if repeats else "")
        + (f"; {unread:,} files could not be read" if unread else "")
        + f". See {name}/report.html"
    )
