"""The arguments of the tools of `sketchdnn mcp`: types, defaults, ranges and descriptions, from which the schemas are
made.

Sketches come as JSON or as the content of a file. No argument names a path.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sketchdnn.constraints import ConstrainOptions, RoundOptions
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import FORMATS, ReadOptions, loads
from sketchdnn.geometry import Sketch

# The most sketches of one call, and what a sketch and a file may hold. A picture and a file are sent for each sketch.
MAX_COUNT = 16
MAX_PRIMITIVES, MAX_CONSTRAINTS = 2000, 10_000
MAX_FILE_BYTES = 4 * 2**20
MAX_STEPS = 250

ReadFormat = Literal["json", "jsonl", "dxf", "svg", "freecad", "onshape"]
WriteFormat = Literal["json", "dxf", "svg", "freecad", "step", "stl", "cadquery", "build123d", "onshape"]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT, description="How many results.")]
Seed = Annotated[int, Field(ge=0, lt=2**64, description="The same seed gives the same results, another seed others.")]
Output = Annotated[WriteFormat, Field(description="The format of the files in the result.")]
Height = Annotated[float, Field(gt=0, le=1e6, description="Height of the solid in millimeters: step, stl, scripts.")]
Tolerance = Annotated[
    float, Field(gt=0, le=0.03, description="How far off things may be drawn, as a share of the size.")
]
Primitives = Annotated[str, Field(max_length=40, description="Number of primitives, such as 12 or 8..16.")]
Kinds = Annotated[str, Field(max_length=80, description="Number of each kind, such as line=8,circle=2.")]
Units = Annotated[Literal["um", "mm", "cm", "dm", "m", "km", "mil", "in", "ft", "yd"], Field(description="A unit.")]
Closed = Annotated[bool, Field(description="Only sketches that can be extruded; of completions, these first.")]
Round = Annotated[bool, Field(description="Round the free dimensions: 79.98 becomes 80.")]
Steps = Annotated[int, Field(ge=1, le=MAX_STEPS, description="Denoising steps, in place of those of the quality.")]
Quality = Annotated[Literal["best", "fast"], Field(description="fast takes few steps, for a look.")]


class Arguments(BaseModel):
    """Arguments of a tool. Unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")

    format: Output = "json"
    height: Height = 10.0

    @property
    def write_options(self) -> dict[str, Any]:
        """The options of the writer of `format`."""
        takes_height = any(f.name == self.format and "height" in f.write_options for f in FORMATS)
        return {"height": self.height} if takes_height else {}


class File(BaseModel):
    """The content of a file: text, or base64 for a binary format."""

    model_config = ConfigDict(extra="forbid")

    format: Annotated[ReadFormat, Field(description="The format of the content.")]
    text: Annotated[str | None, Field(max_length=MAX_FILE_BYTES, description="The content as text.")] = None
    base64: Annotated[
        str | None, Field(max_length=MAX_FILE_BYTES * 4 // 3 + 4, description="The content as base64, for freecad.")
    ] = None
    index: Annotated[int, Field(ge=0, le=10_000, description="Which sketch of a file with several, from 0.")] = 0

    def content(self) -> bytes:
        """The bytes of the file."""
        if (self.text is None) == (self.base64 is None):
            raise SketchError("a file has its content either as text or as base64")
        if self.text is not None:
            return self.text.encode()
        try:
            return base64.b64decode(self.base64 or "", validate=True)
        except binascii.Error as error:
            raise SketchError("the base64 of the file is damaged") from error


class SketchArguments(Arguments):
    """Arguments of a tool that takes a sketch."""

    sketch: Annotated[
        dict[str, Any] | None,
        Field(
            description='The sketch as JSON: {"primitives": [{"type": "line", "start": [0, 0], "end": [40, 0]}, …]}.'
        ),
    ] = None
    file: Annotated[File | None, Field(description="The sketch as the content of a file, in place of sketch.")] = None
    units: Annotated[Units | None, Field(description="The unit of a sketch or file that states none.")] = None

    def read(self) -> tuple[Sketch, list[str]]:
        """The sketch, and sentences on what was left out of its file."""
        if (self.sketch is None) == (self.file is None):
            raise SketchError("give the sketch either as sketch or as file")
        notes: list[str] = []
        if self.file is None:
            if len(json.dumps(self.sketch)) > MAX_FILE_BYTES:
                raise SketchError(f"a sketch has at most {MAX_FILE_BYTES >> 20} MiB of JSON")
            sketch = Sketch.from_dict(self.sketch)
        else:
            sketch, notes = _read_file(self.file)
        if len(sketch) > MAX_PRIMITIVES or len(sketch.constraints) > MAX_CONSTRAINTS:
            most = f"{MAX_PRIMITIVES:,} primitives and {MAX_CONSTRAINTS:,} constraints"
            raise SketchError(f"a sketch has at most {most}")
        if self.units is not None and sketch.units is None:
            sketch = sketch.in_units(self.units)
        return sketch, notes


def _read_file(file: File) -> tuple[Sketch, list[str]]:
    try:
        result = loads(file.content(), file.format, ReadOptions())
    except FormatError as error:
        raise SketchError(str(error)) from error
    if not result.sketches:
        reason = next(iter(result.skipped), "it is empty")
        raise SketchError(f"the {file.format} data has no sketch: {reason}")
    if file.index >= len(result.sketches):
        raise SketchError(f"the {file.format} data has {len(result.sketches)} sketches, numbered from 0")
    notes = [f"left out: {reason} ({count})" for reason, count in result.skipped.items()]
    notes += [f"changed: {text} ({count})" for text, count in result.notes.items()]
    if len(result.sketches) > 1:
        notes.append(f"sketch {file.index} of {len(result.sketches)}")
    return result.sketches[file.index], notes


class GenerateArguments(Arguments):
    """Generate new sketches."""

    count: Count = 4
    seed: Seed = 0
    start_index: Annotated[int, Field(ge=0, le=10**6, description="Index of the first sketch of the seed.")] = 0
    primitives: Primitives | None = None
    kinds: Kinds | None = None
    construction: Annotated[
        str | None, Field(max_length=40, description="Share of construction geometry, such as 0.1..0.3.")
    ] = None
    aspect: Annotated[str | None, Field(max_length=40, description="Width over height, such as 0.5..2.")] = None
    closed: Closed = False
    unique: Annotated[bool, Field(description="No two results alike.")] = False
    size: Annotated[str | None, Field(max_length=40, description="Larger side, such as 100mm or 4in.")] = None
    init_sketch: Annotated[dict[str, Any] | None, Field(description="A sketch, as JSON, to make variations of.")] = None
    strength: Annotated[
        float | None, Field(gt=0, le=1, description="How much variations differ: 0.3 by default, 1 is any sketch.")
    ] = None
    repair: Annotated[bool, Field(description="Join near ends, and add the constraints that hold.")] = True
    round: Round = False
    quality: Quality = "best"
    steps: Steps | None = None

    def request_options(self) -> dict[str, Any]:
        """The options of `GenerateRequest.parse`."""
        options = self.model_dump(exclude={"format", "height", "round", "init_sketch"})
        if self.init_sketch is not None:
            options["init_sketch"] = Sketch.from_dict(self.init_sketch)
        return options | {"rounding": RoundOptions() if self.round else None}


class CompleteArguments(SketchArguments):
    """Complete a part: it stays exactly as it is, and the model adds the rest in several ways, the best first."""

    count: Count = 4
    seed: Seed = 0
    goal: Annotated[
        Literal["close", "inside", "extend"] | None,
        Field(description="Finish an open part, add features inside a closed one, or extend it; by default as fits."),
    ] = None
    kinds: Annotated[str | None, Field(max_length=80, description="What to add, such as circle=2.")] = None
    closed: Closed = False
    inside: Annotated[
        str | None, Field(max_length=100, description="Add only inside this box: x0,y0,x1,y1 in the part's units.")
    ] = None
    primitives: Primitives | None = None
    scale: Annotated[str | None, Field(max_length=40, description="Finished size over the part's: 1.5 or 1..2.")] = None
    repair: Annotated[bool, Field(description="Join what was added, and add the constraints that hold.")] = True
    round: Round = False
    quality: Quality = "best"
    steps: Steps | None = None

    def request_options(self) -> dict[str, Any]:
        """The options of `CompleteRequest` without the part."""
        options = self.model_dump(exclude={"format", "height", "round", "sketch", "file", "units"})
        return options | {"rounding": RoundOptions() if self.round else None}


class ConstrainArguments(SketchArguments):
    """Constrain a sketch: close small gaps, infer its constraints, and move it so that all of them hold."""

    tolerance: Tolerance | None = None
    repair: Annotated[bool, Field(description="Also close gaps and drop duplicates.")] = True
    close: Annotated[bool, Field(description="Also add the line that an open outline lacks.")] = False
    dimensions: Annotated[bool, Field(description="Add dimensions until nothing is free to move.")] = False
    origin: Annotated[bool, Field(description="Put points near the origin or an axis there.")] = False
    round: Round = False
    alternatives: Annotated[
        bool, Field(description="Several results, from coincidences only to fully dimensioned ones.")
    ] = False

    def options(self) -> ConstrainOptions:
        """The options of `constrain`."""
        names = ("tolerance", "repair", "close", "dimensions", "origin")
        rounding = RoundOptions() if self.round else None
        return ConstrainOptions(**{name: getattr(self, name) for name in names}, rounding=rounding)


class RepairArguments(SketchArguments):
    """Repair a sketch: join ends, drop duplicates, make near relations exact. Says where the outline is open."""

    tolerance: Tolerance = 0.01
    close: Annotated[bool, Field(description="Add the line that an open outline lacks.")] = True
    keep: Annotated[
        list[int], Field(max_length=MAX_PRIMITIVES, description="Indices of primitives that stay as they are.")
    ] = []


class ConvertArguments(SketchArguments):
    """Convert a sketch to a CAD file, in other units if wanted."""

    to_units: Annotated[Units | None, Field(description="Convert to this unit.")] = None
