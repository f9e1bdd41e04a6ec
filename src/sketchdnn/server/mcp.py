"""The Model Context Protocol server: generate, complete, constrain, repair and convert sketches as tools.

Results carry a line on each sketch, a picture, the file, and the sketch as structured content. No tool reads or writes
a path. The model is loaded at its first use. Calls are worked on one after the other, in a thread; a call that is
canceled stops at its next step.
"""

from __future__ import annotations

import base64
import io
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

import sketchdnn
from sketchdnn.constraints import alternatives, constrain, repair
from sketchdnn.errors import SketchError, quoted
from sketchdnn.formats import FORMATS, dumps
from sketchdnn.geometry import Sketch, bounds, profile
from sketchdnn.render import Style, describe, png

from .mcp_arguments import (
    Arguments,
    CompleteArguments,
    ConstrainArguments,
    ConvertArguments,
    GenerateArguments,
    RepairArguments,
)
from .tasks import open_ends

if TYPE_CHECKING:
    from sketchdnn.generation import GeneratedSketch, SketchDNN

# Pixels of a picture, and bytes of all files of a result.
PICTURE = 360
MAX_RESULT_BYTES = 24 * 2**20
SECONDS = 120.0
# Progress is reported at most so many times in a call.
_REPORTS = 100
_MAX_ERROR = 500
_MIME = {
    "json": "application/json",
    "onshape": "application/json",
    "dxf": "image/vnd.dxf",
    "svg": "image/svg+xml",
    "freecad": "application/x-extension-fcstd",
    "step": "model/step",
    "stl": "model/stl",
    "cadquery": "text/x-python",
    "build123d": "text/x-python",
}
_INSTRUCTIONS = """Parametric 2D CAD sketches: lines, circles, arcs and points with constraints, in real units.
A sketch is JSON: {"primitives": [...], "constraints": [...], "units": "mm"}. Files come as content, never as paths.
generate makes new sketches, complete finishes a part, constrain adds constraints and dimensions, repair closes gaps,
convert writes dxf, svg, freecad, step and more. Every result has a picture, the file and the sketch as JSON."""
_logger = logging.getLogger(__name__)

OnProgress = Callable[[float, float], None]


class _Stopped(Exception):  # noqa: N818  it is no error
    """The call was canceled."""


@dataclass(frozen=True, slots=True)
class Result:
    """One sketch of a result, a line on it, and values for programs."""

    name: str
    sketch: Sketch
    summary: str
    values: dict[str, Any] = field(default_factory=dict)
    style: Style | None = None


@dataclass
class Tools:
    """The tools, and the model they share."""

    model_name: str = "ours"
    device: str = "auto"
    _model: SketchDNN | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def model(self) -> SketchDNN:
        """The model, loaded at its first use."""
        # Imported here: torch takes seconds to load, and a client can connect before.
        from sketchdnn.generation import SketchDNN

        if self._model is None:
            self._model = SketchDNN.from_pretrained(self.model_name, device=self.device)
        return self._model

    def generate(self, arguments: GenerateArguments, on_progress: OnProgress) -> list[Result]:
        from sketchdnn.generation import GenerateRequest

        request = GenerateRequest.parse(**arguments.request_options())
        generated = self.model().stream(request, lambda done: on_progress(done, request.count))
        return [_generated(one) for one in generated]

    def complete(self, arguments: CompleteArguments, on_progress: OnProgress) -> list[Result]:
        from sketchdnn.generation import CompleteRequest, complete

        part, notes = arguments.read()
        request = CompleteRequest(part=part, **arguments.request_options())
        found = complete(self.model().system, request, lambda done: on_progress(done, request.count))
        results = [_generated(one, "completion", request.style) for one in found]
        if not results:
            raise SketchError("the model has no suggestion for this part; try another seed or goal")
        return _with_notes(results, notes)

    def constrain(self, arguments: ConstrainArguments, _: OnProgress) -> list[Result]:
        sketch, notes = arguments.read()
        options = arguments.options()
        if not arguments.alternatives:
            offered = [("constrained", constrain(sketch, options))]
        else:
            offered = [(each.name, each.result) for each in alternatives(sketch, options)]
        results = []
        for name, result in offered:
            dimensions = sum(c.value is not None for c in result.sketch.constraints)
            relations = len(result.sketch.constraints) - dimensions
            values = {
                "constraints": relations,
                "dimensions": dimensions,
                "dof": result.dof,
                "fully_constrained": result.fully_constrained,
                "displacement": result.displacement,
                "warning": result.warning,
            }
            line = f"{relations} constraints, {dimensions} dimensions, {_freedom(result.dof)}"
            line += f"; {result.warning}" if result.warning else ""
            results.append(Result(name, result.sketch, line, values))
        return _with_notes(results, notes)

    def repair(self, arguments: RepairArguments, _: OnProgress) -> list[Result]:
        sketch, notes = arguments.read()
        repaired = repair(sketch, arguments.tolerance, keep=arguments.keep, close=arguments.close)
        sentences = [str(action) for action in repaired.actions]
        values = {
            "actions": sentences,
            "open_ends_before": open_ends(profile(sketch)),
            "open_ends_after": open_ends(profile(repaired.sketch)),
            "is_extrudable": profile(repaired.sketch).is_extrudable,
            "dof": repaired.dof,
            "warning": repaired.warning,
        }
        line = " ".join(sentences) or "nothing to repair"
        line += f"; {repaired.warning}" if repaired.warning else ""
        return _with_notes([Result("repaired", repaired.sketch, line, values)], notes)

    def convert(self, arguments: ConvertArguments, _: OnProgress) -> list[Result]:
        sketch, notes = arguments.read()
        if arguments.to_units is not None:
            sketch = sketch.in_units(arguments.to_units)
        return _with_notes([Result("sketch", sketch, "converted")], notes)


def _generated(generated: GeneratedSketch, stem: str = "sketch", style: Style | None = None) -> Result:
    """A generated sketch or completion with its report."""
    report = generated.repair
    values: dict[str, Any] = {"index": generated.index, "shortfall": generated.shortfall}
    values |= {"num_given": generated.num_given} if stem == "completion" else {}
    values |= {"repair": report.summary, "dof": report.dof} if report else {}
    line = "; ".join(filter(None, (report.summary if report else "", generated.shortfall)))
    return Result(f"{stem} {generated.index}", generated.sketch, line, values, style)


def _with_notes(results: Sequence[Result], notes: Sequence[str]) -> list[Result]:
    """The results, the first with notes on the file that was read."""
    first, *others = results
    return [replace(first, summary="; ".join(filter(None, (first.summary, *notes)))), *others]


def _freedom(dof: int) -> str:
    return "fully constrained" if dof == 0 else f"{dof} degree{'s' * (dof != 1)} of freedom"


def _content(results: Sequence[Result], arguments: Arguments) -> types.CallToolResult:
    """The results for a client: a line, a picture and a file for each, and all of them as structured content."""
    content: list[types.ContentBlock] = []
    records = []
    size = 0
    for result in results:
        data = dumps(result.sketch, arguments.format, **arguments.write_options)
        size += len(data)
        if size > MAX_RESULT_BYTES:
            raise SketchError(
                f"the files are larger than {MAX_RESULT_BYTES >> 20} MiB; ask for fewer or another format"
            )
        line = f"{result.name}: {_describe(result.sketch)}"
        line += f"; {result.summary}" if result.summary else ""
        content.append(types.TextContent(text=line))
        content.append(types.ImageContent(data=_picture(result), mime_type="image/png"))
        content.append(types.EmbeddedResource(resource=_resource(result.name, data, arguments.format)))
        records.append({"name": result.name, **result.values, "sketch": result.sketch.to_dict()})
    return types.CallToolResult(content=content, structured_content={"results": records})


def _describe(sketch: Sketch) -> str:
    """The primitives, the size, and whether the sketch can be extruded."""
    if not len(sketch):
        return describe(sketch)
    low, high = bounds(sketch).low, bounds(sketch).high
    size = f"{high[0] - low[0]:.6g} × {high[1] - low[1]:.6g} {sketch.units or 'units'}"
    closed = "closed outlines" if profile(sketch).is_extrudable else "no closed outlines"
    return f"{describe(sketch)}; {size}; {closed}"


def _picture(result: Result) -> str:
    stream = io.BytesIO()
    png(result.sketch, PICTURE, style=result.style).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


def _resource(name: str, data: str | bytes, format_: str) -> types.TextResourceContents | types.BlobResourceContents:
    """A file in a result. Its URI is only a name."""
    suffix = next(f.suffixes[0] for f in FORMATS if f.name == format_)
    uri = f"sketchdnn:///{name.replace(' ', '-').lower()}{suffix}"
    if isinstance(data, str):
        return types.TextResourceContents(uri=uri, mime_type=_MIME[format_], text=data)
    return types.BlobResourceContents(uri=uri, mime_type=_MIME[format_], blob=base64.b64encode(data).decode())


_TOOLS: dict[str, type[Arguments]] = {
    "generate": GenerateArguments,
    "complete": CompleteArguments,
    "constrain": ConstrainArguments,
    "repair": RepairArguments,
    "convert": ConvertArguments,
}


def make_server(model: str = "ours", device: str = "auto", seconds: float = SECONDS) -> Server[Any]:
    """The server with its tools.

    Args:
        model: A folder, the name of a bundled model, or hub:OWNER/NAME.
        device: auto, cpu, cuda, …
        seconds: The time limit of a call.
    """
    tools = Tools(model, device)
    hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    listed = [
        types.Tool(name=name, description=kind.__doc__, input_schema=kind.model_json_schema(), annotations=hints)
        for name, kind in _TOOLS.items()
    ]

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if params.name not in _TOOLS:
                raise SketchError(f"there is no tool '{params.name[:40]}'; the tools are {', '.join(_TOOLS)}")
            arguments = _TOOLS[params.name].model_validate(params.arguments or {})
            run = partial(getattr(tools, params.name), arguments)
            with anyio.fail_after(seconds):
                results = await _run_in_thread(tools, run, context)
                return await anyio.to_thread.run_sync(_content, results, arguments)
        except ValidationError as error:
            return _failed(_sentence(error))
        except SketchError as error:
            return _failed(str(error))
        except TimeoutError:
            return _failed(f"it takes longer than {seconds:g} seconds; ask for less")
        except Exception:
            _logger.exception("the tool %s failed", params.name)
            return _failed("something went wrong inside the server; its log has the details")

    return Server(
        "sketchdnn",
        title="SketchDNN",
        version=sketchdnn.__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


Context = ServerRequestContext[Any, Any]


async def _run_in_thread(tools: Tools, run: Callable[[OnProgress], list[Result]], context: Context) -> list[Result]:
    """Run a tool in a thread, one at a time, with reports of progress. It stops soon after the call is canceled."""
    stopped = threading.Event()
    reported = 0.0

    def report(done: float, total: float) -> None:
        nonlocal reported
        if stopped.is_set():
            raise _Stopped
        if done - reported >= total / _REPORTS or done >= total > reported:
            reported = done
            anyio.from_thread.run(context.session.report_progress, done, total)

    def work() -> list[Result]:
        with tools.lock:
            if stopped.is_set():
                raise _Stopped
            return run(report)

    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    finally:
        stopped.set()


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=quoted(sentence, _MAX_ERROR))], is_error=True)


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong with some arguments."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the arguments"
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def serve_stdio(model: str = "ours", device: str = "auto") -> None:
    """Answer a client on standard input and output until it closes them."""

    async def serve() -> None:
        server = make_server(model, device)
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    anyio.run(serve)
