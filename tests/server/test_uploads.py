"""Hostile uploads: each is read or refused in time, and calls of others are answered meanwhile."""

import time
from pathlib import Path

import pytest
from support.server import OPEN_PLATE, RunningServer, error_of
from support.threads import together

# The suffix that a client would send; files that are not uploads of one format are left out.
SUFFIXES = (".npy", ".json", ".dxf", ".FCStd", ".h5", ".jsonl.gz", ".svg", ".jsonl.xz")


def test_hostile_files_are_read_or_refused_within_limits(server: RunningServer, hostile: Path) -> None:
    files = [(path, suffix) for path in sorted(hostile.iterdir()) for suffix in SUFFIXES if path.name.endswith(suffix)]
    assert len(files) >= 10
    for path, suffix in files:
        start = time.monotonic()
        response = server.post(f"/read?format={suffix[1:]}", content=path.read_bytes())
        assert time.monotonic() - start < 25, path
        if response.status_code != 200:
            status, sentence = error_of(response)
            assert 400 <= status < 500 or status == 504, (path, sentence)
    assert server.get("/health").json()["status"] == "ok"


@pytest.mark.parametrize("name", ["tar", "tar.xz"])
def test_archives_are_not_read(server: RunningServer, name: str) -> None:
    assert server.refused(f"/read?format={name}", content=b"x")[0] == 400


def test_drags_are_answered_while_uploads_are_parsed(server: RunningServer) -> None:
    # Thousands of curves that cross each other: slow to inspect as a whole.
    lines = "".join(f'<line x1="{i}" y1="0" x2="{4000 - i}" y2="999"/>' for i in range(3000))
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg">{lines}</svg>'.encode()
    done: list[float] = []

    def upload() -> None:
        server.post("/read?format=svg", content=drawing)
        done.append(time.monotonic())

    def drag() -> list[float]:
        body = {"sketch": OPEN_PLATE.to_dict(), "primitive": 1, "part": "start", "to": [61, 0]}
        times = []
        for _ in range(20):
            start = time.monotonic()
            server.ok("/drag", body)
            times.append(time.monotonic() - start)
        return times

    *_, times = together([upload, upload, upload, drag])
    assert len(done) == 3
    assert sorted(times)[10] < 0.5
