"""The quick calls: their answers, and that these have the form described in OpenAPI."""

import io
import json
import time
import zipfile
from collections import Counter

import pytest
from pydantic import BaseModel
from support.server import OPEN_PLATE, RunningServer, error_of

import sketchdnn
from sketchdnn.formats import dumps, loads
from sketchdnn.geometry import Circle, Sketch
from sketchdnn.server import schema

PLATE = OPEN_PLATE.to_dict()
# Closed, as a solid needs it.
RING = Sketch((Circle((0, 0), 5), Circle((0, 0), 3)), units="mm").to_dict()


def checked(model: type[BaseModel], content: object) -> object:
    """The content, which the model accepts and describes wholly."""
    parsed = model.model_validate(content)
    assert parsed.model_dump(mode="json", exclude_unset=True) == json.loads(json.dumps(content))
    return content


def test_health_and_info_describe_the_server(server: RunningServer) -> None:
    health = server.get("/health").json()
    checked(schema.HealthAnswer, health)
    assert (health["status"], health["version"]) == ("ok", sketchdnn.__version__)
    assert (health["model"]["name"], health["model"]["parameters"]) == ("ours", 41_366_037)
    info = server.get("/info").json()
    checked(schema.InfoAnswer, info)
    assert info["limits"]["count"] == 64
    assert {"dxf", "svg", "freecad", "json"} <= {each["name"] for each in info["read_formats"]}
    assert {"step", "stl"} <= {each["name"] for each in info["write_formats"]}
    assert info["goals"] == ["close", "inside", "extend"]


def test_metrics_are_text_that_prometheus_reads(server: RunningServer) -> None:
    server.ok("/inspect", {"sketch": PLATE})
    response = server.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = response.text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['sketchdnn_requests_total{method="POST",route="/inspect",status="200"}']) >= 1
    for name in {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}:
        family = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
        assert any(line.startswith(f"# TYPE {family} ") for line in lines), name


def test_inspection_says_what_is_open_and_free(server: RunningServer) -> None:
    answer = server.ok("/inspect", {"sketch": PLATE})
    checked(schema.InspectAnswer, answer)
    assert answer["dof"] == 16 - 3
    assert not answer["profile"]["is_extrudable"]
    assert sorted(answer["profile"]["open_ends"]) == [[60.0, 39.8], [60.0, 40.0]]
    assert "gap" in {each["kind"] for each in answer["defects"]}
    twice = {**PLATE, "constraints": [*PLATE["constraints"], PLATE["constraints"][0]]}
    assert server.ok("/inspect", {"sketch": twice})["redundant"] == [2]
    other = {**PLATE, "constraints": [*PLATE["constraints"], {**PLATE["constraints"][1], "value": 70}]}
    assert server.ok("/inspect", {"sketch": other})["conflicting"] == [2]


def test_drag_keeps_constraints_and_nothing_of_the_request_is_lost(server: RunningServer) -> None:
    sketch = {**PLATE, "source": "a drawing"}
    answer = server.ok("/drag", {"sketch": sketch, "primitive": 1, "part": "start", "to": [62, 1]})
    checked(schema.DragAnswer, answer)
    first, second = answer["sketch"]["primitives"][:2]
    assert (answer["moved"], first["end"]) == (True, second["start"])
    assert (answer["sketch"]["constraints"], answer["sketch"]["source"]) == (PLATE["constraints"], "a drawing")
    body = {"sketch": sketch, "primitive": 3, "part": "whole", "to": [5, 5], "from": [0, 5]}
    moved = server.ok("/drag", body)["sketch"]["primitives"][3]
    assert moved["start"] == pytest.approx([5, 40])
    assert server.refused("/drag", {**body, "primitive": 9})[0] == 400
    assert server.refused("/drag", {**body, "from": None})[0] == 400


def test_edited_dimension_is_solved_or_refused_with_a_message(server: RunningServer) -> None:
    edited = json.loads(json.dumps(PLATE))
    edited["constraints"][1]["value"] = 80.0
    answer = server.ok("/solve", {"sketch": edited, "changed": 1})
    checked(schema.SolveAnswer, answer)
    line = answer["sketch"]["primitives"][0]
    assert line["end"][0] - line["start"][0] == pytest.approx(80)
    conflict = {**edited, "constraints": [*edited["constraints"], {**edited["constraints"][1], "value": 20}]}
    refused = server.ok("/solve", {"sketch": conflict, "changed": 2})
    assert refused["message"]
    assert refused["sketch"] == conflict


def test_constrain_keeps_constraints_and_can_offer_several_results(server: RunningServer) -> None:
    answer = server.ok("/constrain", {"sketch": PLATE, "options": {"dimensions": True, "round": "auto"}})
    checked(schema.ConstrainAnswer, answer)
    result = answer["result"]
    assert result["sketch"]["constraints"][:2] == PLATE["constraints"]
    assert (result["dof"], result["fully_constrained"], result["warning"]) == (0, True, None)
    assert result["constraints"] + result["dimensions"] == len(result["sketch"]["constraints"])
    several = server.ok("/constrain", {"sketch": PLATE, "alternatives": True})
    checked(schema.ConstrainAnswer, several)
    assert len({each["name"] for each in several["alternatives"]}) == len(several["alternatives"]) > 1
    assert server.refused("/constrain", {"sketch": PLATE, "options": {"round": "thin"}})[0] == 400


def test_repair_says_where_the_outline_was_open(server: RunningServer) -> None:
    answer = server.ok("/repair", {"sketch": PLATE, "keep": [2]})
    checked(schema.RepairAnswer, answer)
    assert (len(answer["open_ends_before"]), answer["open_ends_after"]) == (2, [])
    assert answer["is_extrudable"]
    assert answer["sketch"]["primitives"][2] == PLATE["primitives"][2]
    assert len(answer["actions"]) == 1
    far = {**PLATE, "constraints": [], "primitives": PLATE["primitives"][:2]}
    assert server.ok("/repair", {"sketch": far})["summary"]
    assert server.refused("/repair", {"sketch": PLATE, "keep": [77]})[0] == 400


@pytest.mark.parametrize("name", ["dxf", "svg", "fcstd", "json", "jsonl"])
def test_files_are_exported_and_read_again(server: RunningServer, name: str) -> None:
    response = server.post("/export", {"sketches": [PLATE], "format": name, "names": ["plate"]})
    assert response.status_code == 200, response.text
    assert f'filename="plate.{name}"' in response.headers["content-disposition"].lower()
    notes = json.loads(response.headers["x-notes"])
    assert any("constraint" in note for note in notes) == (name in ("dxf", "svg"))
    (expected,) = loads(dumps(OPEN_PLATE, name), name).sketches
    answer = server.ok(f"/read?format={name}&units=mm", content=response.content)
    checked(schema.ReadAnswer, answer)
    assert answer["sketches"] == [expected.to_dict()]


def test_several_sketches_are_exported_as_a_zip_with_safe_names(server: RunningServer) -> None:
    names = ["../../etc/passwd", "a", "A", ""]
    response = server.post("/export", {"sketches": [RING] * 4, "format": "svg", "names": names})
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.namelist() == ["etc-passwd.svg", "a.svg", "A-2.svg", "sketch-4.svg"]
        assert b"<svg" in archive.read("a.svg")


def test_solid_is_exported_in_real_size(server: RunningServer, freecadcmd: str) -> None:
    assert freecadcmd
    response = server.post("/export", {"sketches": [RING], "format": "step", "height": 4})
    assert response.content.startswith(b"ISO-10303-21;")
    status, sentence = server.refused("/export", {"sketches": [PLATE], "format": "step"})
    assert (status, "cannot be extruded" in sentence) == (400, True)
    assert "/tmp" not in sentence


def test_client_with_too_many_quick_calls_is_refused(server: RunningServer) -> None:
    assert server.service is not None
    calls, most = server.service.quick_calls, server.service.limits.quick_per_client
    until_none_is_counted(calls)
    calls["127.0.0.1"] = most
    refused = server.post("/inspect", {"sketch": OPEN_PLATE.to_dict()})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert refused.json()["error"].startswith(f"You have {most} requests of this kind in work")
    assert server.get("/health").status_code == 200
    del calls["127.0.0.1"]
    for _ in range(most + 1):
        assert server.post("/inspect", {"sketch": OPEN_PLATE.to_dict()}).status_code == 200
    until_none_is_counted(calls)


def until_none_is_counted(calls: Counter[str]) -> None:
    """Wait: a call counts until shortly after its answer has arrived."""
    until = time.monotonic() + 10
    while calls:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_answers_are_sent_with_headers_that_protect_the_page(server: RunningServer) -> None:
    for path in ("/api/v1/health", "/", "/api/v1/none"):
        headers = server.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
        assert "server" not in headers


def test_openapi_describes_every_route_with_its_errors(server: RunningServer) -> None:
    openapi = server.get("/openapi.json").json()
    routes = {"drag", "solve", "inspect", "constrain", "repair", "read", "trace", "export", "health", "info", "metrics"}
    routes |= {"generate", "variations", "complete", "trajectory", "jobs/{job_id}"}
    assert set(openapi["paths"]) == {f"/api/v1/{name}" for name in routes}
    for path in openapi["paths"].values():
        for operation in path.values():
            assert {"400", "401", "403", "413", "503"} <= operation["responses"].keys()
    assert error_of(server.client.get("/docs"))[0] == 404
