"""The bodies of requests and answers as pydantic models, which check them and describe them in OpenAPI.

A sketch has the form of the project's JSON files. Unknown keys of sketches, primitives and constraints are kept.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sketchdnn.geometry import ConstraintType, Kind, Sketch
from sketchdnn.geometry.sketch import MM_PER_UNIT

Number = Annotated[float, Field(allow_inf_nan=False)]
Vec = tuple[Number, Number]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Index = Annotated[int, Field(ge=0, lt=2**32)]
Count = Annotated[int, Field(ge=1, le=10_000)]
Steps = Annotated[int, Field(ge=1, le=100_000)]
Share = Annotated[float, Field(gt=0, le=1)]
Words = Annotated[str, Field(max_length=200)]
Quality = Literal["best", "fast"]
KindName = Literal["line", "circle", "arc", "point"]
Range = Words | int | tuple[Number, Number] | float
# Sketches may have keys of other programs; requests may not have unknown keys.
_OPEN = ConfigDict(extra="allow")
_CLOSED = ConfigDict(extra="forbid")

assert {kind.label for kind in Kind} == set(KindName.__args__)  # type: ignore[attr-defined]  # noqa: S101


class LineModel(BaseModel):
    """A straight line."""

    model_config = _OPEN
    type: Literal["line"]
    construction: bool = False
    start: Vec
    end: Vec


class CircleModel(BaseModel):
    """A full circle."""

    model_config = _OPEN
    type: Literal["circle"]
    construction: bool = False
    center: Vec
    radius: Number


class ArcModel(BaseModel):
    """An arc, counter-clockwise from the start angle to the end angle, in radians."""

    model_config = _OPEN
    type: Literal["arc"]
    construction: bool = False
    center: Vec
    radius: Number
    start_angle: Number
    end_angle: Number


class PointModel(BaseModel):
    """A point."""

    model_config = _OPEN
    type: Literal["point"]
    construction: bool = False
    at: Vec


PrimitiveModel = Annotated[LineModel | CircleModel | ArcModel | PointModel, Field(discriminator="type")]
PointName = Literal["start", "end", "center", "point", "whole"]
OutsideName = Literal["origin", "x_axis", "y_axis", "external"]


class ConstraintModel(BaseModel):
    """A relation between parts of primitives: `[0, "start"]`, or `["origin"]`. Dimensions have a value."""

    model_config = _OPEN
    type: ConstraintType
    refs: list[tuple[Index, PointName] | tuple[OutsideName]] = Field(min_length=1, max_length=1000)
    value: Number | None = None
    name: str | None = None


# A longer list is refused before its items are checked. The limits of `Limits` are lower, with a clearer sentence.
_MAX_ITEMS = 20_000


class SketchModel(BaseModel):
    """A sketch."""

    model_config = _OPEN
    primitives: list[PrimitiveModel] = Field(max_length=_MAX_ITEMS)
    constraints: list[ConstraintModel] = Field(default=[], max_length=_MAX_ITEMS)
    units: str | None = Field(default=None, json_schema_extra={"enum": [*MM_PER_UNIT, None]})

    def record(self) -> dict[str, Any]:
        """The sketch as `Sketch.from_dict` takes it."""
        return self.model_dump(mode="json", exclude_unset=True)

    def parse(self) -> Sketch:
        """The sketch itself."""
        return Sketch.from_dict(self.record())


class ErrorModel(BaseModel):
    """An error: one sentence."""

    error: str


# Quick calls


class SketchBody(BaseModel):
    """One sketch."""

    model_config = _CLOSED
    sketch: SketchModel


class DragBody(SketchBody):
    """Drag a part of a primitive; `from` is where the pointer was, for a primitive as a whole."""

    primitive: Index
    part: Literal["start", "end", "center", "point", "whole", "radius"]
    to: Vec
    origin: Vec | None = Field(default=None, alias="from")


class SolveBody(SketchBody):
    """Solve after a constraint was edited or added."""

    changed: Index | None = None


class ConstrainOptionsModel(BaseModel):
    """How to constrain; see `sketchdnn constrain --help`."""

    model_config = _CLOSED
    tolerance: Share | None = Field(
        default=None, description="How far off things may be drawn, as a share of the size."
    )
    tolerance_mm: Number | None = Field(default=None, description="The same as a length in millimeters.")
    repair: bool = True
    close: bool = False
    dimensions: bool = False
    origin: bool = False
    round: Words | Number | None = Field(default=None, description="auto, or a step such as 0.5 or 1/16in.")


class ConstrainBody(SketchBody):
    """Constrain a sketch, in one way or in several."""

    options: ConstrainOptionsModel = ConstrainOptionsModel()
    alternatives: bool = False


class RepairBody(SketchBody):
    """Repair a sketch."""

    keep: list[Index] = Field(default=[], max_length=10_000, description="Primitives that do not move.")
    tolerance: Share | None = None
    close: bool = False


class ExportBody(BaseModel):
    """Sketches as files."""

    model_config = _CLOSED
    sketches: list[SketchModel] = Field(min_length=1, max_length=1000)
    format: Words = Field(description="A suffix or a name of `write_formats`.")
    names: list[Words] | None = Field(default=None, max_length=1000)
    height: Number | None = Field(default=None, description="Height of a solid, in millimeters.")


class DragAnswer(BaseModel):
    sketch: SketchModel
    dof: int
    moved: bool
    message: str | None = None


class SolveAnswer(BaseModel):
    sketch: SketchModel
    dof: int
    message: str | None = None


class ProfileModel(BaseModel):
    """Whether a sketch can be extruded, its area, and where it is open or crosses itself."""

    is_extrudable: bool
    area: float
    open_ends: list[Vec]
    crossings: list[Vec]
    reasons: list[str]


class DefectModel(BaseModel):
    kind: str
    message: str
    primitives: list[int]


class InspectAnswer(BaseModel):
    dof: int
    freedom: list[Literal["fixed", "partly", "free", "over"]]
    profile: ProfileModel
    redundant: list[int]
    conflicting: list[int]
    unsupported: list[int]
    defects: list[DefectModel]
    score: float


class AlternativeModel(BaseModel):
    """One way to constrain a sketch."""

    name: str
    sketch: SketchModel
    constraints: int
    dimensions: int
    dof: int
    fully_constrained: bool
    displacement: float
    actions: list[str]
    warning: str | None = None


class ConstrainAnswer(BaseModel):
    """`result`, or `alternatives` if they were asked for."""

    result: AlternativeModel | None = None
    alternatives: list[AlternativeModel] | None = None


class RepairAnswer(BaseModel):
    sketch: SketchModel
    summary: str
    actions: list[str]
    open_ends_before: list[Vec]
    open_ends_after: list[Vec]
    is_extrudable: bool
    dof: int
    warning: str | None = None


class SkippedModel(BaseModel):
    reason: str
    count: int


class ReadAnswer(BaseModel):
    sketches: list[SketchModel]
    skipped: list[SkippedModel]
    notes: list[str]


Row = tuple[Number, Number, Number]
Matrix = Annotated[tuple[Row, Row, Row], Field(description="3 by 3, of homogeneous coordinates.")]


class PictureModel(BaseModel):
    """A picture, with its content in Base64."""

    media_type: Literal["image/jpeg"]
    data: str
    width: int
    height: int


class TraceAnswer(BaseModel):
    """A traced sketch, and the straightened picture.

    `to_picture` maps positions of the sketch to pixels of this picture, with y down, and `to_source` these to pixels
    of the picture that was sent. `noise` and `distance`, that of ink to curves, are shares of the size.
    """

    sketch: SketchModel
    picture: PictureModel
    to_picture: Matrix
    to_source: Matrix
    is_extrudable: bool
    dof: int
    noise: float
    distance: float
    warning: str | None = None


class ModelFacts(BaseModel):
    name: str
    sha256: str
    parameters: int


class QueueFacts(BaseModel):
    running: int
    waiting: int
    limit: int


class HealthAnswer(BaseModel):
    status: Literal["ok", "stopping"]
    version: str
    model: ModelFacts
    queue: QueueFacts


class ReadFormat(BaseModel):
    name: str
    suffixes: list[str]


class WriteFormat(BaseModel):
    name: str
    suffix: str
    many: bool


class InfoAnswer(BaseModel):
    limits: dict[str, float]
    defaults: dict[str, JsonValue]
    kinds: list[str]
    goals: list[str]
    samplers: list[str]
    qualities: list[str]
    primitives: tuple[int, int]
    read_formats: list[ReadFormat]
    write_formats: list[WriteFormat]
    picture_formats: list[str]
    units: list[str]
    round: list[str]


# Model calls


class ConditionsBody(BaseModel):
    """Requirements on every sketch; see docs/conditions.md."""

    model_config = _CLOSED
    primitives: Words | int | tuple[int, int] | None = None
    kinds: Words | dict[KindName, Annotated[int, Field(ge=0, le=1000)]] | None = None
    count_construction: bool = False
    construction: Words | tuple[Number, Number] | None = None
    aspect: Words | tuple[Number, Number] | None = None
    closed: bool = False
    unique: bool = False
    novel: bool = False
    best_of: Count = 1


class GenerateBody(ConditionsBody):
    """New sketches: the fields of `sketchdnn generate`."""

    count: Count = 1
    seed: Seed = 0
    start_index: Index = 0
    quality: Quality = "best"
    steps: Steps | None = Field(default=None, description="In place of those of the quality.")
    sampler: Words | None = None
    size: Words | Number | None = None
    units: Words = "mm"
    repair: bool = True
    round: Words | Number | None = None


class VariationsBody(ConditionsBody):
    """Variations of a sketch."""

    init_sketch: SketchModel
    strength: Number | None = None
    count: Count = 1
    seed: Seed = 0
    start_index: Index = 0
    quality: Quality = "best"
    steps: Steps | None = Field(default=None, description="In place of those of the quality.")
    sampler: Words | None = None
    repair: bool = True
    round: Words | Number | None = None


class CompleteBody(BaseModel):
    """Suggestions that complete a part: the fields of `sketchdnn complete`."""

    model_config = _CLOSED
    part: SketchModel
    count: Count = 8
    seed: Seed = 0
    goal: Literal["close", "inside", "extend"] | None = None
    kinds: Words | dict[KindName, Annotated[int, Field(ge=0, le=1000)]] | None = None
    closed: bool = False
    inside: Words | tuple[Number, Number, Number, Number] | None = None
    primitives: Words | int | tuple[int, int] | None = None
    like: SketchModel | None = None
    unlike: list[SketchModel] = Field(default=[], max_length=64)
    candidates: Count = 3
    method: Literal["conditional", "repaint"] = "conditional"
    scale: Words | Number | tuple[Number, Number] | None = None
    quality: Quality = "best"
    steps: Steps | None = Field(default=None, description="In place of those of the quality.")
    sampler: Words | None = None
    repair: bool = True
    round: Words | Number | None = None


class TrajectoryBody(ConditionsBody):
    """The denoising steps of one sketch of a seed."""

    seed: Seed = 0
    index: Index = 0
    quality: Quality = "best"
    steps: Steps | None = Field(default=None, description="In place of those of the quality.")
    frames: Count = 40
    sampler: Words | None = None
    size: Words | Number | None = None
    units: Words = "mm"
    repair: bool = True


class RepairModel(BaseModel):
    summary: str
    dof: int
    warning: str | None = None


class ExtrudableModel(BaseModel):
    is_extrudable: bool


class ResultModel(BaseModel):
    """A generated sketch or a suggestion."""

    index: int
    sketch: SketchModel
    repair: RepairModel | None
    shortfall: str | None
    profile: ExtrudableModel
    score: float | None = None
    num_given: int | None = None


class ResultsAnswer(BaseModel):
    results: list[ResultModel]
    seconds: float


class FrameItem(BaseModel):
    primitive: PrimitiveModel
    probability: float
    row: int


class FrameModel(BaseModel):
    """What a sketch may be at step t: every primitive with its probability."""

    t: int
    items: list[FrameItem]


class TrajectoryAnswer(BaseModel):
    frames: list[FrameModel]
    sketch: SketchModel
    seconds: float


class JobAnswer(BaseModel):
    id: str
    kind: str
    state: Literal["waiting", "running", "done", "failed", "canceled"]
    position: int
    progress: float
    seconds: float
    error: str | None = None
