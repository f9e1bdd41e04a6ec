"""How many times a second a drag in the studio is solved and drawn: the page, the server and the solver together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sketchdnn import SketchDNN
from sketchdnn.constraints import ConstrainOptions, constrain
from sketchdnn.geometry import Line, Sketch

from .results import OnStage, ignore_stage, markdown_table, processor_name, rich_table
from .studio_driver import Studio, browsing, serving

PRIMITIVES = 16
GOAL = 30
# Positions that a pointer reports a second.
_MOVES = 125
_KINDS = ("server", "browser")
# Pixels that the pointer goes to and fro.
_REACH = 60
_COLUMNS = ("sketch", "primitives", "constraints", "updates", "updates/s", "p50", "p95", "server", "browser")
_WATCH = """async () => {
    const { store } = await import("/store.js");
    window.times = [];
    store.on("sketch", () => window.times.push(performance.now()));
}"""


@dataclass(frozen=True, slots=True)
class Row:
    """The drag of one sketch.

    Attributes:
        name: Which sketch.
        primitives: Their number.
        constraints: Their number.
        times: When each update was shown, in milliseconds.
        server: Processor time of the server for an update, in milliseconds.
        browser: The same of all processes of the browser, which draws without a graphics card.
    """

    name: str
    primitives: int
    constraints: int
    times: tuple[float, ...]
    server: float
    browser: float

    @property
    def rate(self) -> float:
        """Updates a second."""
        return 1e3 * (len(self.times) - 1) / max(self.times[-1] - self.times[0], 1e-9)

    def cells(self) -> tuple[str, ...]:
        p50, p95 = np.percentile(np.diff(self.times), [50, 95])
        counts = (str(self.primitives), str(self.constraints), str(len(self.times)))
        return (
            self.name,
            *counts,
            f"{self.rate:.0f}",
            f"{p50:.0f} ms",
            f"{p95:.0f} ms",
            f"{self.server:.0f} ms",
            f"{self.browser:.0f} ms",
        )


@dataclass(frozen=True, slots=True)
class StudioDrag:
    """The drags of all sketches."""

    rows: tuple[Row, ...]
    load: float

    def table(self) -> Table:
        return rich_table("Drags in the studio", _COLUMNS, (row.cells() for row in self.rows))

    def sentences(self) -> Iterator[str]:
        """The goal, and whether it is met."""
        slowest = min(row.rate for row in self.rows)
        met = "met" if slowest >= GOAL else "missed"
        busy = f"at a load of {self.load:.0f} on {os.cpu_count()} cores"
        yield f"At least {GOAL} updates a second: {met} {busy} (slowest {slowest:.0f})."

    def markdown(self, command: str) -> str:
        table = markdown_table(_COLUMNS, (row.cells() for row in self.rows))
        return _PAGE.format(command=command, processor=processor_name(), table=table, goal="\n".join(self.sentences()))


_PAGE = """# Dragging in the studio

```
{command}
```

An end of a generated sketch is dragged to and fro in Chromium without a graphics card, on the
machine of the server ({processor}). An update is one answer of `/drag`, shown by the page; the next
position of the pointer is sent when the last one is answered.

The last two columns are the processor time of an update. The rate depends on what else the machine
does; the processor time hardly.

{table}

{goal}
"""


def measure(count: int, seconds: float, seed: int, on_stage: OnStage = ignore_stage) -> StudioDrag:
    """Drag an end of each of some generated sketches of 16 primitives, with the constraints that are found for them."""
    on_stage("generating sketches")
    model = SketchDNN.from_pretrained()
    sketches = model.generate(count, seed=seed, primitives=PRIMITIVES)
    sketches = [constrain(sketch, ConstrainOptions()).sketch for sketch in sketches]
    del model
    with serving() as url, browsing() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        studio = Studio(page, url).open()
        page.evaluate(_WATCH)
        _drag(studio, "warm-up", sketches[0], 1.0)
        rows = []
        for number, sketch in enumerate(sketches):
            on_stage(f"dragging sketch {number + 1} of {count}")
            rows.append(_drag(studio, f"{number}", sketch, seconds))
        return StudioDrag(tuple(rows), os.getloadavg()[0])


def _drag(studio: Studio, name: str, sketch: Sketch, seconds: float) -> Row:
    studio.open_sketch(sketch)
    studio.settle()
    index = next(i for i, primitive in enumerate(sketch) if isinstance(primitive, Line))
    x, y = studio.pixel(f"{index}:end")
    mouse = studio.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 10, y + 10)
    studio.page.evaluate("window.times.length = 0")
    end, step, before = time.monotonic() + seconds, 0, _processor_seconds()
    while time.monotonic() < end:
        step += 1
        offset = _REACH * abs((step / 40) % 2 - 1)
        mouse.move(x + offset, y + offset / 2)
        time.sleep(1 / _MOVES)
    times: list[Any] = studio.page.evaluate("window.times")
    server, browser = (1e3 * (now - then) / len(times) for now, then in zip(_processor_seconds(), before, strict=True))
    mouse.up()
    studio.wait_for_drag()
    if len(times) < 3 or studio.faults:
        raise RuntimeError(f"sketch {name} was not dragged: {studio.message()} {studio.faults}")
    return Row(name, len(sketch), len(sketch.constraints), tuple(times), server, browser)


def _processor_seconds() -> tuple[float, float]:
    """Processor time of the processes of the server and of the browser, which this process started."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    own = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in own and pid not in own}:
        own |= found
    kinds = {pid: _kind(pid) for pid in own if pid != os.getpid()}
    server, browser = (sum(seconds[pid] for pid, own_kind in kinds.items() if own_kind == kind) for kind in _KINDS)
    return server, browser


def _kind(pid: int) -> str:
    """What a process belongs to; the driver of the browser to neither."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
    return "browser" if "chromium" in command else "server" if "python" in command else ""
