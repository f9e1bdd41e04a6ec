"""The Dockerfile without Docker: its command serves as a user without rights, and its health check tells.

That an image can be built from it is not tested here.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.documents import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
TOKEN = "a-token-for-tests"


# Of the health check and of the container.
HEALTH, COMMAND = (json.loads(command) for command in re.findall(r"CMD (\[.*\])", TEXT))


def test_files_that_are_copied_exist_and_reach_the_build() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for line in re.findall(r"^COPY (?!--from)(.*)$", TEXT, re.MULTILINE) for name in line.split()[:-1]}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
    assert re.search(r"^USER 65534:65534$", TEXT, re.MULTILINE)


@pytest.mark.package
def test_the_command_serves_on_a_read_only_system_and_the_health_check_tells(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program, *command = [*COMMAND, "--port", port]
    python, *health = (word.replace("8765", port) for word in HEALTH)
    assert (program, python) == ("sketchdnn", "python")
    variables = dict(re.findall(r"(\w+)=(\S+)", next(re.finditer(r"^ENV (.*)$", TEXT, re.MULTILINE))[1]))
    assert variables["HOME"] == "/tmp"
    clean = {name: value for name, value in variables.items() if name != "PATH"} | {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "MPLCONFIGDIR": str(tmp_path / "matplotlib"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
    }
    run: dict[str, Any] = {"cwd": tmp_path, "env": clean | {"SKETCHDNN_TOKEN": TOKEN}}
    before = set(Path.home().glob(".*"))
    arguments = [sys.executable, "-m", program, *command]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, **run) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("sketchdnn: serving at ")
            subprocess.run([sys.executable, *health], check=True, **run)
            other = {**run, "env": clean | {"SKETCHDNN_TOKEN": "another-token"}}
            refused = subprocess.run([sys.executable, *health], check=False, stderr=subprocess.DEVNULL, **other)
            assert refused.returncode != 0
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=20)
    assert subprocess.run([sys.executable, *health], check=False, stderr=subprocess.DEVNULL, **run).returncode
    assert set(Path.home().glob(".*")) == before
