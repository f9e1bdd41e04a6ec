"""The quick calls, as functions from JSON to JSON. They run in worker processes and do not depend on HTTP."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sketchdnn.constraints import (
    ConstrainOptions,
    ConstrainResult,
    Drag,
    RoundOptions,
    alternatives,
    solve,
    solve_edited,
)
from sketchdnn.constraints import constrain as constrain_sketch
from sketchdnn.constraints import drag as drag_part
from sketchdnn.constraints import repair as repair_sketch
from sketchdnn.design import score_design
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import Losses, ReadOptions, find_writer, loads
from sketchdnn.formats.registry import write
from sketchdnn.geometry import Constraint, Profile, Sketch, profile
from sketchdnn.geometry.quantities import parse_step
from sketchdnn.io import temporary_folder
from sketchdnn.tracing import TraceOptions
from sketchdnn.tracing import trace as trace_picture

Record = dict[str, Any]
# Characters that some system cannot store in the name of a file.
_UNSAFE = re.compile(r"[^\w\-. ]+", re.ASCII)
_MAX_NAME = 80
_SAME_DATE = (1980, 1, 1, 0, 0, 0)
_JPEG_QUALITY = 85


def parse(record: object) -> Sketch:
    """The sketch of a record that a client sent; text that is not Unicode is refused."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise SketchError("a text in it is not Unicode") from error
    return Sketch.from_dict(record)


def rounding_of(value: str | float | None) -> RoundOptions | None:
    """The options of rounding: auto, or a step."""
    if value is None:
        return None
    if value == "auto":
        return RoundOptions()
    step, units = parse_step(str(value), "round")
    return RoundOptions(step, units)


def inspect(record: Record) -> Record:
    """What is free, open, redundant or unusual in a sketch."""
    sketch = parse(record)
    solution, score, parts = solve(sketch), score_design(sketch), profile(sketch)
    return {
        "dof": solution.dof,
        "freedom": [str(each) for each in solution.freedom],
        "profile": profile_record(parts),
        "redundant": _indices(sketch, solution.redundant),
        "conflicting": _indices(sketch, solution.conflicting),
        "unsupported": _indices(sketch, (*solution.unsupported, *solution.skipped)),
        "defects": [
            {"kind": str(each.kind), "message": each.sentence, "primitives": list(each.primitives)}
            for each in score.defects
        ],
        "score": score.value,
    }


def profile_record(parts: Profile) -> Record:
    """A profile as JSON."""
    return {
        "is_extrudable": parts.is_extrudable,
        "area": parts.area,
        "open_ends": open_ends(parts),
        "crossings": [list(contact.at) for contact in parts.contacts],
        "reasons": list(parts.reasons),
    }


def open_ends(parts: Profile) -> list[list[float]]:
    """Where chains of curves end."""
    return [list(end) for chain in parts.chains for end in (chain.start, chain.end)]


def drag(
    record: Record, primitive: int, part: str, to: tuple[float, float], origin: tuple[float, float] | None
) -> Record:
    """The sketch after a step of dragging."""
    result = drag_part(parse(record), Drag(primitive, part, to, origin))
    return {"sketch": result.sketch.to_dict(), "dof": result.dof, "moved": result.moved, "message": result.message}


def solve_after_edit(record: Record, changed: int | None) -> Record:
    """The sketch after a constraint was edited or added."""
    result = solve_edited(parse(record), changed)
    return {"sketch": result.sketch.to_dict(), "dof": result.dof, "message": result.message}


def constrain(record: Record, options: Mapping[str, Any], several: bool) -> Record:
    """The constrained sketch, or several alternatives."""
    sketch = parse(record)
    values = {name: value for name, value in options.items() if name != "round"}
    chosen = ConstrainOptions(**values, rounding=rounding_of(options.get("round")))
    if not several:
        result = constrain_sketch(sketch, chosen)
        return {"result": _alternative("constrained", result)}
    found = alternatives(sketch, chosen)
    return {"alternatives": [_alternative(each.name, each.result) for each in found]}


def repair(record: Record, keep: Sequence[int], tolerance: float | None, close: bool) -> Record:
    """The repaired sketch, and where it was and is open."""
    sketch = parse(record)
    given = {} if tolerance is None else {"tolerance": tolerance}
    result = repair_sketch(sketch, keep=keep, close=close, **given)
    before, after = profile(sketch), profile(result.sketch)
    actions = [str(action) for action in result.actions]
    done = f"{len(actions)} change{'s' * (len(actions) != 1)}" if actions else "nothing to repair"
    moved = f"nothing moved by more than {result.displacement:.2%} of the size" if actions else ""
    return {
        "sketch": result.sketch.to_dict(),
        "summary": "; ".join(filter(None, (result.warning, done, moved))),
        "actions": actions,
        "open_ends_before": open_ends(before),
        "open_ends_after": open_ends(after),
        "is_extrudable": after.is_extrudable,
        "dof": result.dof,
        "warning": result.warning,
    }


def read(data: bytes, name: str, units: str | None, max_sketches: int, max_primitives: int) -> Record:
    """The sketches of an uploaded file."""
    result = loads(data, name, ReadOptions(assume_units=units))
    notes = [f"{count:,} × {text}" if count > 1 else text for text, count in result.notes.most_common(50)]
    sketches: list[Record] = []
    total = 0
    for sketch in result.sketches[:max_sketches]:
        total += len(sketch)
        if total > max_primitives:
            break
        sketches.append(sketch.to_dict())
    if len(sketches) < len(result):
        notes.insert(0, f"the file has {len(result):,} sketches, of which the first {len(sketches):,} are shown")
    skipped = [{"reason": reason, "count": count} for reason, count in result.skipped.most_common(50)]
    return {"sketches": sketches, "skipped": skipped, "notes": notes}


def trace(data: bytes, options: TraceOptions) -> Record:
    """The sketch of a picture, and the straightened picture with the places of the sketch in it."""
    from PIL import Image

    try:
        result = trace_picture(data, options)
    except FormatError as error:
        raise SketchError(f"the picture {error.reason}") from (error.__cause__ or error)
    height, width = result.picture.shape[:2]
    content = io.BytesIO()
    Image.fromarray(result.picture).save(content, format="jpeg", quality=_JPEG_QUALITY)
    return {
        "sketch": result.sketch.to_dict(),
        "picture": {
            "media_type": "image/jpeg",
            "data": base64.b64encode(content.getvalue()).decode("ascii"),
            "width": width,
            "height": height,
        },
        "to_picture": result.to_picture.tolist(),
        "to_source": (result.to_source / result.to_source[2, 2]).tolist(),
        "is_extrudable": profile(result.sketch).is_extrudable,
        "dof": result.dof,
        "noise": result.noise,
        "distance": result.distance,
        "warning": result.warning,
    }


def export(
    records: Sequence[Record], name: str, names: Sequence[str] | None, height: float | None
) -> tuple[str, bytes, list[str]]:
    """The name and the content of a file with the sketch, or of a zip with one file each, and what was left out."""
    options = {} if height is None else {"height": height}
    chosen = find_writer("", name, options)
    suffix = f".{name.lower()}" if f".{name.lower()}" in chosen.suffixes else chosen.suffixes[0]
    losses = Losses()
    files: dict[str, bytes] = {}
    for number, record in enumerate(records):
        wanted = names[number] if names is not None and number < len(names) else ""
        file_name = _unique(_safe(wanted) or (f"sketch-{number + 1}" if len(records) > 1 else "sketch"), suffix, files)
        with temporary_folder() as folder:
            path = folder / f"data{suffix}"
            try:
                losses.update(write(parse(record), path, chosen.name, **options))
            except SketchError as error:
                reason = str(getattr(error, "reason", error))
                raise SketchError(f"sketch {number + 1} cannot be written as {chosen.name}: {reason}") from error
            files[file_name] = path.read_bytes()
    notes = [f"left out: {count:,} × {reason}" for reason, count in losses.left_out.most_common(20)]
    notes += [f"changed: {count:,} × {reason}" for reason, count in losses.changed.most_common(20)]
    if len(files) == 1:
        ((file_name, content),) = files.items()
        return file_name, content, notes
    return f"sketches-{chosen.name}.zip", _zip(files.items()), notes


def _alternative(name: str, result: ConstrainResult) -> Record:
    dimensions = sum(each.value is not None for each in result.sketch.constraints)
    return {
        "name": name,
        "sketch": result.sketch.to_dict(),
        "constraints": len(result.sketch.constraints) - dimensions,
        "dimensions": dimensions,
        "dof": result.dof,
        "fully_constrained": result.fully_constrained,
        "displacement": result.displacement,
        "actions": [str(action) for action in result.actions],
        "warning": result.warning or result.skipped,
    }


def _indices(sketch: Sketch, constraints: Iterable[Constraint]) -> list[int]:
    """The places of constraints, which are the sketch's own objects."""
    ids = {id(each) for each in constraints}
    return [number for number, each in enumerate(sketch.constraints) if id(each) in ids]


def _safe(name: str) -> str:
    """A name without folders and without letters that a system may not store."""
    return _UNSAFE.sub("-", name).strip(" .-")[:_MAX_NAME]


def _unique(stem: str, suffix: str, taken: Iterable[str]) -> str:
    used = {each.lower() for each in taken}
    name, number = f"{stem}{suffix}", 2
    while name.lower() in used:
        name, number = f"{stem}-{number}{suffix}", number + 1
    return name


def _zip(files: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name, _SAME_DATE), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
