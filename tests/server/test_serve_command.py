"""`sketchdnn studio` as a real process, and `serve`: the line that programs wait for, signals, and errors."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.commands import program, refused
from support.server import read_events

from sketchdnn.cli.serve import READY, read_token
from sketchdnn.errors import SketchError


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process and its URL."""
    command = [sys.executable, "-m", "sketchdnn", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, **environment}, **pipes) as process:  # type: ignore[call-overload]
        try:
            line = process.stdout.readline()
            assert line.startswith(READY), process.communicate()
            yield process, line.removeprefix(READY).strip()
        finally:
            process.kill()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for another process, at most half a minute."""
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_worker(pid: str) -> bool:
    """Whether a process with that number is a worker."""
    try:
        return b"spawn" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_studio_opens_the_page_and_ends_its_jobs_and_itself_in_time(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    body = {"count": 64, "steps": 500, "repair": False}
    with (
        started("studio", "--port", "0", BROWSER=str(browser), SKETCHDNN_TOKEN="0123456789") as (process, url),
        httpx.Client(base_url=f"{url}api/v1", headers={"authorization": "Bearer 0123456789"}, timeout=60) as client,
    ):
        wait_until(opened.exists)
        assert opened.read_text() == f"{url}#token=0123456789"
        assert httpx.get(url).status_code in (200, 404)
        assert httpx.get(f"{url}api/v1/health").status_code == 401
        assert client.get("/health").json()["status"] == "ok"
        headers = {"accept": "text/event-stream"}
        with client.stream("POST", "/generate", json=body, headers=headers) as response:
            events = read_events(response.iter_lines())
            while next(events)[0] != "progress":
                pass
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert any(map(is_worker, children))
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            last = [*events][-1]
        assert last == ("error", {"error": "The server is stopping; ask again in a moment.", "status": 503})
        output, errors = process.communicate(timeout=10)
        assert time.monotonic() - start < 5
    assert process.returncode == 128 + signal.SIGTERM
    assert (output, "Traceback" in errors) == ("", False)
    wait_until(lambda: not any(map(is_worker, children)))


def test_wrong_options_are_refused_in_one_sentence(tmp_path: Path) -> None:
    assert "needs a token" in refused("serve", "--host", "0.0.0.0")
    assert "there is no such file" in refused("serve", "--token-file", tmp_path / "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        sentence = refused("serve", "--port", taken.getsockname()[1])
    assert "choose another --port, or 0" in sentence
    (tmp_path / "token").write_text("0123456789\n")
    assert read_token(tmp_path / "token") == "0123456789"
    (tmp_path / "token").write_bytes(b"\xff")
    with pytest.raises(SketchError, match="cannot be read as a token"):
        read_token(tmp_path / "token")


def test_missing_packages_are_named_and_help_is_fast(tmp_path: Path) -> None:
    hide = "import sys\nfrom importlib import util\nfind = util.find_spec\n"
    hide += "util.find_spec = lambda name, *a: None if name == 'fastapi' else find(name, *a)\n"
    (tmp_path / "sitecustomize.py").write_text(hide)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    result = program("serve", PYTHONPATH=path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "sketchdnn: the server needs FastAPI and uvicorn: pip install 'sketchdnn[studio]'"
    ]
    code = "import sys; from sketchdnn.cli.app import app; app(['serve', '--help'], standalone_mode=False)"
    code += "; print([m for m in ('torch', 'fastapi', 'uvicorn') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
