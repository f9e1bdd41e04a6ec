"""The calls that are answered at once and never wait for the model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends, Query, Request
from starlette.responses import PlainTextResponse, Response

import sketchdnn
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import FORMATS
from sketchdnn.generation import CompleteRequest, GenerateRequest
from sketchdnn.generation.conditions import trained_range
from sketchdnn.generation.generate import SIZE
from sketchdnn.generation.goals import SCALES
from sketchdnn.generation.quality import QUALITIES, STEPS
from sketchdnn.geometry import MM_PER_UNIT, Kind
from sketchdnn.tracing import TraceOptions
from sketchdnn.tracing.reading import MAX_PIXELS, SUFFIXES

from . import tasks
from .limits import Limits
from .model_calls import check_size
from .responses import ApiError, AsciiJSONResponse
from .schema import (
    ConstrainAnswer,
    ConstrainBody,
    DragAnswer,
    DragBody,
    ErrorModel,
    ExportBody,
    HealthAnswer,
    InfoAnswer,
    InspectAnswer,
    ReadAnswer,
    RepairAnswer,
    RepairBody,
    SketchBody,
    SolveAnswer,
    SolveBody,
    TraceAnswer,
)
from .service import Service

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorModel, "description": words}
    for status, words in {
        400: "The sketch or an option is not valid.",
        401: "The token is missing or wrong.",
        403: "Foreign host or origin.",
        408: "The body did not arrive in time.",
        413: "Too large.",
        415: "Not JSON.",
        422: "The body does not have the right form.",
        429: "Too many requests of this client.",
        503: "Busy or stopping.",
        504: "It took too long.",
    }.items()
}
_BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter(responses=ERRORS)


def client_of(request: Request) -> str:
    """The address of the client."""
    return request.client.host if request.client else ""


def service_of(request: Request) -> Service:
    """The service of the application."""
    service: Service = request.app.state.service
    return service


async def limit_client(request: Request) -> AsyncIterator[None]:
    """Count the call to its client while it is in work, and refuse it if the client has too many."""
    service, client = service_of(request), client_of(request)
    most = service.limits.quick_per_client
    if service.quick_calls[client] >= most:
        raise ApiError(429, f"you have {most} requests of this kind in work; wait for one of them", 1)
    service.quick_calls[client] += 1
    try:
        yield
    finally:
        service.quick_calls[client] -= 1
        if not service.quick_calls[client]:
            del service.quick_calls[client]


computed = APIRouter(dependencies=[Depends(limit_client)])


@router.get("/health", response_model=HealthAnswer)
async def health(request: Request) -> Response:
    """Whether the server works, which model it has, and how many model calls run and wait."""
    service = service_of(request)
    running, waiting = service.jobs.numbers
    info = service.info
    return AsciiJSONResponse(
        {
            "status": "stopping" if service.stopping else "ok",
            "version": sketchdnn.__version__,
            "model": {"name": info.name, "sha256": info.sha256, "parameters": info.parameters},
            "queue": {"running": running, "waiting": waiting, "limit": service.limits.waiting},
        }
    )


@router.get("/info", response_model=InfoAnswer)
async def info(request: Request) -> Response:
    """Limits, defaults, and the names that requests may use."""
    service = service_of(request)
    limits = service.limits
    generate, fields = GenerateRequest(), CompleteRequest.__dataclass_fields__
    complete = {name: fields[name].default for name in ("count", "candidates", "quality")}
    return AsciiJSONResponse(
        {
            "limits": {
                "count": limits.count,
                "candidates": limits.candidates,
                "frames": limits.frames,
                "primitives": limits.primitives,
                "drag_primitives": limits.drag_primitives,
                "upload_bytes": limits.body_bytes,
                "picture_pixels": MAX_PIXELS,
                "seconds": limits.job_seconds,
            },
            "defaults": {
                "generate": {
                    "count": generate.count,
                    "quality": generate.quality,
                    "steps": STEPS,
                    "size": SIZE,
                    "units": generate.units,
                },
                "complete": complete | {"steps": STEPS},
            },
            "kinds": [kind.label for kind in Kind],
            "goals": list(SCALES),
            "samplers": sorted(service.info.system.available_samplers),
            "qualities": list(QUALITIES),
            "primitives": list(trained_range(service.info.system)),
            "read_formats": [{"name": f.name, "suffixes": list(f.suffixes)} for f in FORMATS if f.read],
            "write_formats": [
                {"name": f.name, "suffix": f.suffixes[0], "many": f.multiple_sketches} for f in FORMATS if f.write
            ],
            "picture_formats": list(SUFFIXES),
            "units": list(MM_PER_UNIT),
            "round": ["auto", "0.1", "0.5", "1", "5", "1/16in"],
        }
    )


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counts for Prometheus."""
    text = "\n".join(service_of(request).metric_lines()) + "\n"
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@computed.post("/inspect", response_model=InspectAnswer)
async def inspect(request: Request, body: SketchBody) -> Response:
    """Degrees of freedom, profile, redundant constraints, defects and score of a sketch."""
    service = service_of(request)
    check_size(body.sketch, service.limits.primitives, service.limits)
    # A small sketch is inspected after every step of dragging.
    small = len(body.sketch.primitives) <= service.limits.drag_primitives
    pool = service.interactive if small else service.heavy
    return AsciiJSONResponse(await pool.run(tasks.inspect, body.sketch.record()))


@computed.post("/drag", response_model=DragAnswer)
async def drag(request: Request, body: DragBody) -> Response:
    """Drag a part of a primitive: the constraints hold, and it goes as near to `to` as they allow."""
    service = service_of(request)
    check_size(body.sketch, service.limits.drag_primitives, service.limits)
    arguments = body.sketch.record(), body.primitive, body.part, body.to, body.origin
    return AsciiJSONResponse(await service.interactive.run(tasks.drag, *arguments))


@computed.post("/solve", response_model=SolveAnswer)
async def solve(request: Request, body: SolveBody) -> Response:
    """The nearest sketch in which the constraints hold, after one was edited or added."""
    service = service_of(request)
    check_size(body.sketch, service.limits.drag_primitives, service.limits)
    return AsciiJSONResponse(await service.interactive.run(tasks.solve_after_edit, body.sketch.record(), body.changed))


@computed.post("/constrain", response_model=ConstrainAnswer, response_model_exclude_unset=True)
async def constrain(request: Request, body: ConstrainBody) -> Response:
    """Constrain a sketch in one way, or in several to choose from."""
    service = service_of(request)
    check_size(body.sketch, service.limits.primitives, service.limits)
    arguments = body.sketch.record(), body.options.model_dump(), body.alternatives
    return AsciiJSONResponse(await service.heavy.run(tasks.constrain, *arguments))


@computed.post("/repair", response_model=RepairAnswer)
async def repair(request: Request, body: RepairBody) -> Response:
    """Close gaps, drop duplicates and square up."""
    service = service_of(request)
    check_size(body.sketch, service.limits.primitives, service.limits)
    arguments = body.sketch.record(), body.keep, body.tolerance, body.close
    return AsciiJSONResponse(await service.heavy.run(tasks.repair, *arguments))


@computed.post(
    "/read",
    response_model=ReadAnswer,
    openapi_extra={"requestBody": {"required": True, "content": _BINARY}},
)
async def read(
    request: Request,
    format: Annotated[str, Query(max_length=40, description="A suffix such as dxf, svg or fcstd.")],  # noqa: A002
    units: Annotated[str | None, Query(max_length=10, description="The unit of a file that names none.")] = None,
) -> Response:
    """The sketches of a file, whose bytes are the body."""
    service = service_of(request)
    data = await request.body()
    if not data:
        raise SketchError("the file is empty")
    limits: Limits = service.limits
    arguments = data, format, units, limits.read_sketches, limits.read_primitives
    return AsciiJSONResponse(await service.heavy.run(tasks.read, *arguments))


@computed.post(
    "/trace",
    response_model=TraceAnswer,
    openapi_extra={"requestBody": {"required": True, "content": _BINARY}},
)
async def trace(
    request: Request,
    size: Annotated[float, Query(gt=0, lt=1e9, description="The larger side of the drawing, in `units`.")] = 100.0,
    units: Annotated[str, Query(max_length=10, description="The unit of the sketch.")] = "mm",
    page: Annotated[int, Query(ge=1, le=100_000, description="The page of a PDF.")] = 1,
    constrain: Annotated[bool, Query(description="Repair the sketch and infer its constraints.")] = True,
    close: Annotated[bool, Query(description="Close open outlines of drawings by hand.")] = True,
) -> Response:
    """The sketch of a picture: a PNG, JPEG, BMP, TIFF or PDF, whose bytes are the body. The content decides."""
    service = service_of(request)
    options = TraceOptions(size, units, page, constrain, close)
    data = await request.body()
    if not data:
        raise SketchError("the picture is empty")
    return AsciiJSONResponse(await service.heavy.run(tasks.trace, data, options))


@computed.post(
    "/export",
    response_class=Response,
    responses={200: {"description": "The file, or a zip of several.", "content": _BINARY}},
)
async def export(request: Request, body: Annotated[ExportBody, Body()]) -> Response:
    """Sketches as files; more than one as a zip. The header `X-Notes` lists what the format left out."""
    service, limits = service_of(request), service_of(request).limits
    if len(body.sketches) > limits.read_sketches:
        raise ApiError(413, f"at most {limits.read_sketches} sketches are exported at a time")
    for sketch in body.sketches:
        check_size(sketch, limits.primitives, limits)
    arguments = [sketch.record() for sketch in body.sketches], body.format, body.names, body.height
    try:
        name, content, notes = await service.heavy.run(tasks.export, *arguments, seconds=limits.export_seconds)
    except FormatError as error:
        raise SketchError(error.reason) from error
    headers = {
        "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}",
        "X-Notes": json.dumps(notes),
    }
    return Response(content, media_type="application/octet-stream", headers=headers)


router.include_router(computed)
