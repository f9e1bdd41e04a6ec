"""The Model Context Protocol server, with the SDK's own client: in memory, and over standard input and output."""

from __future__ import annotations

import base64
import io
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from PIL import Image

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters
from mcp_types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent
from support import commands
from support.noisy_sketches import PLATE, add_noise
from support.small_systems import small_system

from sketchdnn.formats import dumps, loads
from sketchdnn.generation import GeneratedSketch, SketchDNN
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.server import mcp as server

T = TypeVar("T")
CORNERS = [(0.0, 0.0), (40.0, 0.1), (40.1, 30.0), (0.0, 30.0)]
GAPS = [(40.0, 0.0), (40.0, 30.1), (0.1, 30.0), (0.0, 0.1)]
OPEN = Sketch(tuple(Line(a, b) for a, b in zip(CORNERS, GAPS, strict=True)), units="mm")


def with_client(act: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """What an action returns with a client in memory."""

    async def run() -> T:
        async with Client(server.make_server(**options)) as client:
            return await act(client)

    return anyio.run(run)


def call(name: str, **arguments: Any) -> CallToolResult:
    """The result of a tool that must succeed."""
    result = with_client(lambda client: client.call_tool(name, arguments))
    assert not result.is_error, result.content
    return result


def refused(name: str, **arguments: Any) -> str:
    """The sentence of a tool that must fail."""
    result = with_client(lambda client: client.call_tool(name, arguments))
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert "\n" not in content.text
    return content.text


def sketches(result: CallToolResult) -> list[Sketch]:
    """The sketches of a result, whose blocks are a line, a picture and a file for each."""
    found = [Sketch.from_dict(record["sketch"]) for record in result.structured_content["results"]]
    assert len(result.content) == 3 * len(found)
    for line, picture, file in zip(*[iter(result.content)] * 3, strict=True):
        assert isinstance(line, TextContent)
        assert isinstance(picture, ImageContent)
        assert isinstance(file, EmbeddedResource)
        image = Image.open(io.BytesIO(base64.b64decode(picture.data)))
        assert (image.format, image.size) == ("PNG", (server.PICTURE, server.PICTURE))
    return found


@pytest.fixture
def small_model(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A small system in place of the model; the names under which it was loaded."""
    loaded: list[str] = []

    def load(name: str, *, device: str) -> SketchDNN:
        loaded.append(name)
        return SketchDNN(small_system())

    monkeypatch.setattr(SketchDNN, "from_pretrained", load)
    return loaded


def test_tools_have_typed_arguments_and_name_no_paths() -> None:
    tools = with_client(lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == ["generate", "complete", "constrain", "repair", "convert"]
    for tool in tools:
        properties = tool.input_schema["properties"]
        assert tool.input_schema["additionalProperties"] is False
        assert not {"path", "out", "model", "folder"} & properties.keys()
        assert {"format", "height"} <= properties.keys()
        assert tool.description
    count = tools[0].input_schema["properties"]["count"]
    assert (count["minimum"], count["maximum"], count["default"]) == (1, 16, 4)


def test_generate_gives_the_sketches_of_the_seed_and_loads_the_model_once(small_model: list[str]) -> None:
    async def twice(client: Client) -> tuple[list[CallToolResult], list[float]]:
        progress: list[float] = []

        async def note(done: float, total: float | None, message: str | None) -> None:
            progress.append(done / (total or 1))

        arguments = {"count": 2, "seed": 3, "steps": 4, "size": "80mm"}
        return [await client.call_tool("generate", arguments, progress_callback=note) for _ in range(2)], progress

    (first, second), progress = with_client(twice, model="small")
    expected = SketchDNN(small_system()).generate(2, seed=3, steps=4, size="80mm")
    assert [s.to_dict() for s in sketches(first)] == [Sketch.from_dict(s.to_dict()).to_dict() for s in expected]
    assert first.structured_content == second.structured_content
    assert small_model == ["small"]
    assert progress
    assert progress[-1] == pytest.approx(1)
    assert progress[: len(progress) // 2] == sorted(progress[: len(progress) // 2])


@pytest.mark.usefixtures("small_model")
def test_complete_keeps_the_part() -> None:
    part = Sketch((Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 30))), units="mm")
    result = call("complete", sketch=part.to_dict(), count=2, steps=4, closed=False, format="svg")
    assert all(sketch.primitives[:3] == part.primitives for sketch in sketches(result))
    assert {record["num_given"] for record in result.structured_content["results"]} == {3}


def test_constrain_offers_alternatives() -> None:
    rough = add_noise(PLATE, 0.1)
    (plain,) = call("constrain", sketch=rough.to_dict()).structured_content["results"]
    assert plain["constraints"] > 10
    assert not plain["fully_constrained"]
    result = call("constrain", sketch=rough.to_dict(), alternatives=True)
    names = [record["name"] for record in result.structured_content["results"]]
    assert names[0] == "Coincidences"
    assert "Rounded dimensions" in names
    assert sketches(result)[0].units == "mm"


def test_repair_says_where_the_outline_was_open() -> None:
    (result,) = call("repair", sketch=OPEN.to_dict()).structured_content["results"]
    assert len(result["open_ends_before"]) == 8
    assert result["open_ends_after"] == []
    assert result["is_extrudable"]
    assert result["actions"][0].startswith("Joined ends")


def test_a_file_goes_in_and_a_file_comes_out() -> None:
    circle = Sketch((Circle((5, 5), 2), Circle((5, 5), 4)), units="in")
    text = dumps(circle, "dxf")
    result = call("convert", file={"format": "dxf", "text": text}, to_units="mm", format="freecad")
    (file,) = [block for block in result.content if isinstance(block, EmbeddedResource)]
    assert isinstance(file.resource, BlobResourceContents)
    assert str(file.resource.uri).endswith(".FCStd")
    back = loads(base64.b64decode(file.resource.blob), "freecad").sketches[0]
    assert [p.radius for p in back] == pytest.approx([2 * 25.4, 4 * 25.4])
    again = call("convert", file={"format": "freecad", "base64": file.resource.blob}, format="json")
    assert sketches(again)[0].units == "mm"


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("generate", {"count": 17}, "count: input should be less than or equal to 16"),
        ("generate", {"seed": "a"}, "seed: input should be a valid integer"),
        ("generate", {"path": "/etc/passwd"}, "path: extra inputs are not permitted"),
        ("convert", {}, "give the sketch either as sketch or as file"),
        ("convert", {"sketch": {"primitives": 3}}, "primitives"),
        ("convert", {"file": {"format": "dxf"}}, "either as text or as base64"),
        ("convert", {"file": {"format": "freecad", "base64": "***"}}, "base64 of the file is damaged"),
        ("convert", {"file": {"format": "dxf", "text": "nonsense"}}, "dxf data"),
        ("convert", {"file": {"format": "svg", "text": "x" * (4 * 2**20 + 1)}}, "at most 4194304 characters"),
        ("convert", {"sketch": PLATE.to_dict(), "format": "pdf"}, "format: input should be"),
        ("repair", {"sketch": OPEN.to_dict(), "keep": [9]}, "there is no primitive 9 to keep"),
        ("explode", {}, "there is no tool 'explode'; the tools are generate"),
    ],
)
def test_errors_are_one_sentence(name: str, arguments: dict[str, Any], sentence: str) -> None:
    assert sentence in refused(name, **arguments)


def test_too_many_primitives_are_refused() -> None:
    circles = Sketch(tuple(Circle((i, 0), 0.4) for i in range(2001)))
    assert "at most 2,000 primitives" in refused("convert", sketch=circles.to_dict())


def test_a_failure_inside_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(server, "repair", fail)
    assert refused("repair", sketch=OPEN.to_dict()) == "something went wrong inside the server; its log has the details"
    assert "a secret" in caplog.text


@pytest.mark.usefixtures("small_model")
def test_a_call_stops_at_its_time_limit() -> None:
    result = with_client(lambda client: client.call_tool("generate", {"count": 16, "steps": 50}), seconds=0.05)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert "it takes longer than 0.05 seconds" in content.text


def test_a_canceled_call_stops_and_the_next_one_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[str] = []

    class Recording(SketchDNN):
        def stream(self, *arguments: Any, **options: Any) -> Iterator[GeneratedSketch]:
            try:
                yield from super().stream(*arguments, **options)
            except BaseException as error:
                ends.append(type(error).__name__)
                raise
            ends.append("finished")

    monkeypatch.setattr(SketchDNN, "from_pretrained", lambda name, *, device: Recording(small_system()))

    async def cancel_one(client: Client) -> CallToolResult:
        with anyio.CancelScope() as scope:

            async def cancel(done: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("generate", {"count": 16, "steps": 50}, progress_callback=cancel)
        return await client.call_tool("generate", {"count": 1, "steps": 4})

    assert len(sketches(with_client(cancel_one))) == 1
    assert ends[0] != "finished"
    assert ends[1:] == ["finished"]


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "sketchdnn.server.mcp")
    assert "pip install 'sketchdnn[mcp]'" in commands.refused("mcp")


def test_the_command_serves_over_standard_input_and_output(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    SketchDNN(small_system()).save_pretrained(folder)
    command = ["-m", "sketchdnn", "mcp", "--model", str(folder), "--device", "cpu"]

    async def talk() -> tuple[str, CallToolResult, CallToolResult]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=environment)) as client:
            constrained = await client.call_tool("constrain", {"sketch": OPEN.to_dict(), "format": "svg"})
            generated = await client.call_tool("generate", {"count": 1, "seed": 5, "steps": 4})
            return client.server_info.name, constrained, generated

    name, constrained, generated = anyio.run(talk)
    assert name == "sketchdnn"
    assert len(sketches(constrained)) == 1
    (expected,) = SketchDNN.from_pretrained(folder, device="cpu").generate(1, seed=5, steps=4)
    assert sketches(generated)[0].to_dict() == Sketch.from_dict(expected.to_dict()).to_dict()
