"""Pages of Markdown whose commands and code are run.

A fenced block of `sh` or `python` is run, in the order of the page, in one folder and one process. A block of another
language is shown only. An HTML comment on the line above a block changes what happens to it:

- `<!-- not run: REASON -->`: the block is not run.
- `<!-- run with: OLD -> NEW -->`: OLD is replaced first, for example by a smaller number. May be repeated.
- `<!-- background -->`: the command goes on while the rest of the page runs. It is ready when it prints a line.

`<!-- first: COMMAND -->` runs a command that the page does not show. `$REPO` is the folder of the repository. The port
8765 becomes one that is free.

    python tests/support/documents.py PAGE        # runs a page in the current folder
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUN = ("sh", "python")
SHOWN = ("text", "json", "toml", "ini", "dockerfile", "console", "{toctree}", "{eval-rst}")
_COMMENT = re.compile(r"<!-- (.*?) -->")
_FENCE = re.compile(r"(`{3,})(\S*)")


@dataclass(frozen=True)
class Block:
    """A fenced block, or a hidden command."""

    line: int
    language: str
    text: str
    comments: tuple[str, ...] = ()

    @property
    def not_run(self) -> str | None:
        """The reason why the block is not run; None if it is."""
        return next((c.removeprefix("not run: ") for c in self.comments if c.startswith("not run: ")), None)

    @property
    def in_background(self) -> bool:
        return "background" in self.comments

    def source(self, port: int) -> str:
        """What is run: with the replacements, and a free port."""
        text = self.text
        for comment in self.comments:
            if comment.startswith("run with: "):
                old, arrow, new = comment.removeprefix("run with: ").partition(" -> ")
                if not arrow or old not in text:
                    raise ValueError(f"line {self.line}: the block does not hold {old!r}")
                text = text.replace(old, new)
        return text.replace("8765", str(port))


def blocks(page: str) -> list[Block]:
    """All blocks of a page and its hidden commands, in order."""
    found: list[Block] = []
    comments: list[str] = []
    lines = page.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        if fence := _FENCE.match(line.strip()):
            end = next(n for n in range(number + 1, len(lines)) if lines[n].strip() == fence[1])
            indent = len(line) - len(line.lstrip())
            text = "\n".join(each[indent:] for each in lines[number + 1 : end])
            found.append(Block(number + 1, fence[2], text, tuple(comments)))
            comments, number = [], end
        elif comment := _COMMENT.fullmatch(line.strip()):
            if comment[1].startswith("first: "):
                found.append(Block(number + 1, "sh", comment[1].removeprefix("first: ")))
            else:
                comments.append(comment[1])
        elif line.strip():
            comments = []
        number += 1
    return found


def run(page: Path) -> None:
    """Run all blocks of a page in the current folder; the first that fails ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": scripts, "REPO": str(ROOT)}
    names: dict[str, Any] = {"__name__": "__main__"}
    background: list[subprocess.Popen[str]] = []
    try:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language not in RUN or block.not_run is not None:
                continue
            print(f"--- {page.name}:{block.line}", flush=True)
            source = block.source(port)
            if block.language == "python":
                # With the numbers of the page's lines, for tracebacks.
                exec(compile("\n" * block.line + source, str(page), "exec"), names)
            elif block.in_background:
                command = ["bash", "-euo", "pipefail", "-c", f"exec {source.partition('#')[0].strip()}"]
                process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
                background.append(process)
                assert process.stdout is not None
                if not process.stdout.readline():
                    raise SystemExit(f"{page}:{block.line}: the command ended")
            else:
                subprocess.run(["bash", "-euo", "pipefail", "-c", source], env=environment, check=True)
    finally:
        for process in background:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    run(Path(sys.argv[1]).resolve())
