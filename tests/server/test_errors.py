"""Bad requests: a status and one sentence each, whatever is sent."""

import json

import pytest
from support.server import OPEN_PLATE, RunningServer, error_of

PLATE = OPEN_PLATE.to_dict()
LINE = PLATE["primitives"][0]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/inspect", {}, 422),
        ("/inspect", {"sketch": {"primitives": [{"type": "ellipse"}]}}, 422),
        ("/inspect", {"sketch": {"primitives": [{**LINE, "end": [0, 1, 2]}]}}, 422),
        ("/inspect", {"sketch": {"primitives": [{**LINE, "end": LINE["start"]}]}}, 400),
        ("/inspect", {"sketch": {"primitives": [LINE], "units": "parsec"}}, 400),
        (
            "/inspect",
            {"sketch": {"primitives": [LINE], "constraints": [{"type": "other", "refs": [[0, "whole"]]}]}},
            400,
        ),
        ("/inspect", {"sketch": {"primitives": [LINE], "name": "\ud800"}}, 400),
        ("/inspect", {"sketch": {"primitives": [LINE] * 2001}}, 413),
        ("/inspect", {"sketch": {"primitives": [LINE] * 20_001}}, 422),
        ("/drag", {"sketch": {"primitives": [LINE] * 201}, "primitive": 0, "part": "end", "to": [0, 0]}, 413),
        ("/drag", {"sketch": PLATE, "primitive": -1, "part": "end", "to": [0, 0]}, 422),
        ("/drag", {"sketch": PLATE, "primitive": 0, "part": "middle", "to": [0, 0]}, 422),
        ("/drag", {"sketch": PLATE, "primitive": 0, "part": "center", "to": [0, 0]}, 400),
        ("/solve", {"sketch": PLATE, "changed": 99}, 400),
        ("/repair", {"sketch": PLATE, "tolerance": 0.9}, 400),
        ("/export", {"sketches": [], "format": "dxf"}, 422),
        ("/export", {"sketches": [PLATE], "format": "../../x"}, 400),
        ("/export", {"sketches": [PLATE], "format": "dxf", "height": 3}, 400),
        ("/generate", {"count": 65}, 400),
        ("/generate", {"seed": -1}, 422),
        ("/generate", {"seed": 2**64}, 422),
        ("/generate", {"steps": 99_999}, 400),
        ("/generate", {"sampler": "magic"}, 400),
        ("/generate", {"primitives": "90"}, 400),
        ("/generate", {"kinds": "square=4"}, 400),
        ("/generate", {"count": 1, "colour": "red"}, 422),
        ("/generate", {"best_of": 999}, 400),
        ("/generate", {"size": "4 elephants"}, 400),
        ("/generate", {"round": "x"}, 400),
        ("/variations", {"count": 1}, 422),
        ("/variations", {"init_sketch": {"primitives": []}}, 400),
        ("/variations", {"init_sketch": PLATE, "strength": 7}, 400),
        ("/complete", {"part": {"primitives": []}}, 400),
        ("/complete", {"part": PLATE, "goal": "improve"}, 422),
        ("/complete", {"part": PLATE, "like": PLATE}, 400),
        ("/complete", {"part": PLATE, "candidates": 400}, 400),
        ("/trajectory", {"frames": 5000}, 400),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(server: RunningServer, path: str, body: object, status: int) -> None:
    response = server.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert error_of(response)[0] == status


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{", "application/json"),
        (b"", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"sketch": ' + b"[" * 100_000, "application/json"),
        (b'{"sketch": {"primitives": [{"type": "point", "at": [NaN, 1e999]}]}}', "application/json"),
        (b'{"sketch": {"primitives": [], "x": ' + b'{"x":' * 5000 + b"1" + b"}" * 5001 + b"}", "application/json"),
        (b"sketch=1", "application/x-www-form-urlencoded"),
        (b'{"sketch": {"primitives": []}}', "text/plain"),
    ],
)
def test_bodies_that_are_not_json_are_refused(server: RunningServer, content: bytes, kind: str) -> None:
    response = server.post("/inspect", content=content, headers={"content-type": kind})
    assert error_of(response)[0] in (400, 415, 422)


def test_unknown_addresses_and_methods_are_refused(server: RunningServer) -> None:
    assert error_of(server.get("/none"))[0] == 404
    assert error_of(server.get("/generate"))[0] in (404, 405)
    assert error_of(server.client.put("/api/v1/health"))[0] == 405
    assert error_of(server.get("/jobs/0123456789abcdef"))[0] == 404
    assert error_of(server.client.delete("/api/v1/jobs/nobody"))[0] == 404


@pytest.mark.parametrize("content", [b"", b"not a drawing", b"\0" * 1000, b'{"primitives": [["L", 0, 0]]}'])
@pytest.mark.parametrize("name", ["dxf", "svg", "fcstd", "json", "npy", "h5"])
def test_uploads_that_are_no_drawings_are_refused(server: RunningServer, name: str, content: bytes) -> None:
    status, sentence = server.refused(f"/read?format={name}", content=content)
    assert status == 400, sentence
    assert "/tmp" not in sentence


def test_formats_that_are_not_read_are_refused(server: RunningServer) -> None:
    for name in ("step", "../../etc/passwd", "exe", "tar"):
        assert server.refused(f"/read?format={name}", content=b"x")[0] == 400
    assert server.refused("/read", content=b"x")[0] == 422
    assert server.refused("/read?format=dxf&units=parsec", content=b"x")[0] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py",
        "/%2e%2e/app.py",
        "/..%2fapp.py",
        "//etc/passwd",
        "/studio/../app.py",
        "/index.html/",
        "/%00",
        "/app.py",
    ],
)
def test_only_files_of_the_page_are_served(server: RunningServer, path: str) -> None:
    assert error_of(server.client.get(f"{server.url}{path}"))[0] == 404
