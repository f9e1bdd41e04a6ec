"""The server under load: many clients at once, against the library in the same run.

Each client has an address of its own on the loopback interface, so that the limit for each client applies. It asks for
one to four sketches of a random seed until the time is over. Afterwards the answers are compared with what the library
generates alone for the same seeds.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from rich.table import Table

from sketchdnn.cli.serve import READY
from sketchdnn.errors import SketchError
from sketchdnn.generation import SketchDNN
from sketchdnn.generation.engine import CPU_BATCH
from sketchdnn.geometry import Circle, Line, Sketch

from .results import OnStage, ignore_stage, markdown_table, processor_name, rich_table

# The answers that a server under load may give.
_EXPECTED = (200, 429, 503)
# Numbers of two sketches differ by at most this.
_TOLERANCE = 1e-3
_THROUGHPUT_GOAL, _EQUAL_GOAL, _STOP_GOAL = 0.9, 0.99, 5.0
# Most memory that the server may gain between the second quarter of the load and the last, as a share.
_GROWTH_GOAL = 0.05
_MAX_COUNT = 4
# Most seconds that a client waits after a refusal, whatever the server proposes.
_MAX_WAIT = 3.0
_CORNERS = ((0.0, 0.0), (60.0, 0.0), (60.0, 40.0), (0.0, 40.0))
PART = Sketch((*(Line(a, b) for a, b in pairwise(_CORNERS)), Circle((30, 20), 6)), units="mm")
_PAGE = """# The server under load

    {command}

{clients} clients ask for 1 to {most} sketches of random seeds for {seconds:g} s, in {steps} steps{mixed}.
{processor}, {cores} cores; the clients run on them too.

{table}

{sentences}

- **offline**: `model.generate({batch})` in this process, before and after the load; the mean of both.
- **processor time**: of all processes, whatever else the machine does meanwhile.
- **equal**: kinds are equal, and all numbers within {tolerance:g}, to what the library generates alone for the seed.
- **memory**: resident memory of the server's processes; median of the second quarter of the load and of the last.
- **stop**: from SIGTERM, with {clients} requests in work, until the process has ended.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A request and the sketches that it was answered with."""

    body: dict[str, Any]
    sketches: list[dict[str, Any]]

    @property
    def completes(self) -> bool:
        return "part" in self.body


@dataclass(slots=True)
class LoadLog:
    """The answers that the clients received."""

    statuses: Counter[int] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ServeLoad:
    """The result.

    Attributes:
        clients: Number of clients.
        load_seconds: How long they sent requests.
        steps: Denoising steps.
        complete_share: Share of completions.
        log: The answers that the clients received.
        rows_per_second: Samples that the server's model drew a second.
        batch_rows: Mean number of rows of a batch.
        offline: Sketches a second of the library.
        cpu_seconds: Processor time for a sketch, of the server and of the library.
        compared: Number of sketches that were compared.
        equal: Number of those that are equal to the library's.
        memory: Memory in bytes, in the second quarter and the last.
        stop_seconds: Time from SIGTERM until the end.
        exit_code: The exit code of the server.
    """

    clients: int
    load_seconds: float
    steps: int
    complete_share: float
    log: LoadLog
    rows_per_second: float
    batch_rows: float
    offline: float
    cpu_seconds: tuple[float, float]
    compared: int
    equal: int
    memory: tuple[float, float]
    stop_seconds: float
    exit_code: int

    @property
    def ratio(self) -> float:
        """Throughput of the server over that of the library."""
        return self.rows_per_second / self.offline

    @property
    def growth(self) -> float:
        """Memory gained, as a share."""
        return self.memory[1] / self.memory[0] - 1

    def rows(self) -> list[tuple[str, str]]:
        """The rows of the table."""
        log = self.log
        statuses = ", ".join(f"{status}: {number:,}" for status, number in sorted(log.statuses.items()))
        latency = sorted(log.seconds) or [math.nan]
        return [
            ("answers by status", statuses),
            ("other failures", f"{len(log.failures):,}"),
            ("sketches answered", f"{sum(len(each.sketches) for each in log.answers):,}"),
            (
                "time of an answer, median and 95 %",
                f"{median(latency):.1f} s, {latency[int(0.95 * len(latency))]:.1f} s",
            ),
            ("sketches drawn a second", f"{self.rows_per_second:.2f}"),
            ("rows of a batch, mean", f"{self.batch_rows:.1f}"),
            (f"offline, batches of {CPU_BATCH}", f"{self.offline:.2f}"),
            ("server over offline", f"{self.ratio:.1%}"),
            (
                "processor time of a sketch, server and offline",
                f"{self.cpu_seconds[0]:.2f} s, {self.cpu_seconds[1]:.2f} s",
            ),
            ("equal to the library", f"{self.equal:,} of {self.compared:,}"),
            ("memory", f"{self.memory[0] / 2**20:,.0f} MiB, {self.memory[1] / 2**20:,.0f} MiB"),
            ("stop", f"{self.stop_seconds:.1f} s"),
        ]

    def table(self) -> Table:
        return rich_table("The server under load", ("", ""), self.rows(), show_header=False)

    def sentences(self) -> Iterator[str]:
        """The goals, and whether they are met."""
        share = self.equal / self.compared if self.compared else 0.0
        goals = (
            (f"only 429 and 503 beside 200: {len(self.log.failures)} others", not self.log.failures),
            (
                f"throughput of at least {_THROUGHPUT_GOAL:.0%} of offline: {self.ratio:.1%}",
                self.ratio >= _THROUGHPUT_GOAL,
            ),
            (f"at least {_EQUAL_GOAL:.0%} of sketches equal: {share:.2%}", share >= _EQUAL_GOAL),
            (f"memory grows by at most {_GROWTH_GOAL:.0%}: {self.growth:+.1%}", self.growth <= _GROWTH_GOAL),
            (f"stopped within {_STOP_GOAL:g} s: {self.stop_seconds:.1f} s", self.stop_seconds <= _STOP_GOAL),
        )
        for sentence, met in goals:
            yield f"- {sentence} ({'met' if met else 'not met'})."
        yield from (f"- A failure: {each}." for each in self.log.failures[:3])

    def markdown(self, command: str) -> str:
        mixed = f"; {self.complete_share:.0%} of them complete a part instead" if self.complete_share else ""
        return _PAGE.format(
            command=command,
            clients=self.clients,
            most=_MAX_COUNT,
            seconds=self.load_seconds,
            steps=self.steps,
            mixed=mixed,
            processor=processor_name(),
            cores=os.cpu_count(),
            table=markdown_table(("", ""), self.rows()),
            sentences="\n".join(self.sentences()),
            batch=CPU_BATCH,
            tolerance=_TOLERANCE,
        )


def run_load(
    model: str = "ours",
    *,
    clients: int = 50,
    seconds: float = 60.0,
    steps: int = 50,
    complete_share: float = 0.0,
    compare: int = 1000,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> ServeLoad:
    """Start a server, load it, and compare its answers.

    Args:
        model: The model.
        clients: Number of clients.
        seconds: How long they send requests.
        steps: Denoising steps of each sketch.
        complete_share: Share of requests that complete a part.
        compare: Most sketches to compare.
        seed: Selects the requests.
        on_stage: Called with what is done now.
    """
    if not 0 <= complete_share <= 1:
        raise SketchError(f"the share of completions lies between 0 and 1, not {complete_share}")
    library = SketchDNN.from_pretrained(model, device="cpu")
    on_stage("offline, before")
    rates = [offline_rate(library, steps, seconds / 4)]
    with started_server(model) as (process, url):
        on_stage("loading the server")
        load = asyncio.run(_load(url, process.pid, clients, seconds, steps, complete_share, seed))
        on_stage("stopping the server")
        stop_seconds, exit_code = asyncio.run(_stop(url, process, clients))
    on_stage("offline, after")
    rates.append(offline_rate(library, steps, seconds / 4))
    on_stage("comparing answers")
    compared, equal = compare_answers(library, load.log.answers, compare, seed)
    offline, cpu_seconds = (sum(each) / len(rates) for each in zip(*rates, strict=True))
    return ServeLoad(
        clients, seconds, steps, complete_share, load.log, load.rows_per_second, load.batch_rows, offline,
        (load.cpu_seconds, cpu_seconds), compared, equal, load.memory, stop_seconds, exit_code,
    )  # fmt: skip


def offline_rate(library: SketchDNN, steps: int, seconds: float) -> tuple[float, float]:
    """Sketches a second of the library in full batches, repair included, and processor time for each."""
    library.generate(CPU_BATCH, seed=1, steps=2)
    start, cpu, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - start < seconds:
        library.generate(CPU_BATCH, seed=count, steps=steps)
        count += 1
    sketches = CPU_BATCH * count
    return sketches / (time.perf_counter() - start), (time.process_time() - cpu) / sketches


@contextmanager
def started_server(model: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process and its URL."""
    command = [sys.executable, "-m", "sketchdnn", "serve", "--port", "0", "--device", "cpu", "--model", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(READY):
                raise SketchError("the server did not start")
            yield process, line.removeprefix(READY).strip()
        finally:
            process.kill()


def compare_answers(library: SketchDNN, answers: Sequence[Answer], most: int, seed: int) -> tuple[int, int]:
    """The number of sketches that were compared with the library's, and of those that are equal."""
    compared = equal = 0
    order = random.Random(seed).sample(list(answers), len(answers))
    for answer in order:
        if compared >= most:
            break
        body = answer.body
        if answer.completes:
            expected = library.complete(PART, body["count"], seed=body["seed"], steps=body["steps"])
        else:
            expected = library.generate(body["count"], seed=body["seed"], steps=body["steps"])
        compared += len(expected)
        pairs = zip(answer.sketches, expected, strict=len(answer.sketches) == len(expected))
        equal += sum(is_same(sketch, own.to_dict()) for sketch, own in pairs)
    return compared, equal


def is_same(one: Any, other: Any) -> bool:
    """Whether two pieces of JSON agree, numbers to within the tolerance.

    >>> is_same({"a": [1.0, "x"]}, {"a": [1.0001, "x"]}), is_same([1.0], [1.1]), is_same([1], [1, 2])
    (True, False, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return abs(one - other) <= _TOLERANCE
    return bool(one == other)


@dataclass(frozen=True, slots=True)
class _Load:
    log: LoadLog
    rows_per_second: float
    batch_rows: float
    cpu_seconds: float
    memory: tuple[float, float]


async def _load(
    url: str, pid: int, clients: int, seconds: float, steps: int, complete_share: float, seed: int
) -> _Load:
    log, memory = LoadLog(), list[float]()
    async with httpx.AsyncClient(base_url=url) as observer:
        await observer.post("/api/v1/generate", json={"count": 1, "steps": 2}, timeout=120)
        before, start, cpu = await _model_counts(observer), time.monotonic(), _cpu_seconds_of(pid)
        until = start + seconds
        tasks = [
            asyncio.create_task(_client(url, number, until, steps, complete_share, seed, log))
            for number in range(clients)
        ]
        while time.monotonic() < until:
            memory.append(_memory_of(pid))
            await asyncio.sleep(min(1.0, seconds / 20))
        # While all clients still had work: afterwards, batches are not full.
        after, end, cpu = await _model_counts(observer), time.monotonic(), _cpu_seconds_of(pid) - cpu
        await asyncio.gather(*tasks)
    rows, batches = after[0] - before[0], after[1] - before[1]
    quarter = max(1, len(memory) // 4)
    levels = median(memory[quarter : 2 * quarter] or memory), median(memory[-quarter:])
    return _Load(log, rows / (end - start), rows / max(1, batches), cpu / max(1, rows), levels)


async def _client(
    url: str, number: int, until: float, steps: int, complete_share: float, seed: int, log: LoadLog
) -> None:
    rng = random.Random(f"{seed} {number}")
    address = f"127.0.{1 + number // 250}.{1 + number % 250}"
    transport = httpx.AsyncHTTPTransport(local_address=address)
    async with httpx.AsyncClient(base_url=url, transport=transport, timeout=300) as client:
        while time.monotonic() < until:
            body: dict[str, Any] = {"seed": rng.randrange(2**63), "steps": steps, "count": rng.randint(1, _MAX_COUNT)}
            completes = rng.random() < complete_share
            body |= {"part": PART.to_dict()} if completes else {}
            start = time.monotonic()
            try:
                response = await client.post(f"/api/v1/{'complete' if completes else 'generate'}", json=body)
            except httpx.HTTPError as error:
                log.failures.append(f"{type(error).__name__} {error}")
                continue
            log.statuses[response.status_code] += 1
            if response.status_code == 200:
                log.seconds.append(time.monotonic() - start)
                log.answers.append(Answer(body, [each["sketch"] for each in response.json()["results"]]))
            elif response.status_code in _EXPECTED:
                await asyncio.sleep(min(_MAX_WAIT, float(response.headers["retry-after"])))
            else:
                log.failures.append(response.text[:200])


async def _model_counts(client: httpx.AsyncClient) -> tuple[float, float]:
    """Rows and batches that the model has drawn."""
    text = (await client.get("/api/v1/metrics")).text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return float(values["sketchdnn_rows_total"]), float(values["sketchdnn_batches_total"])


async def _stop(url: str, process: subprocess.Popen[str], clients: int) -> tuple[float, int]:
    """Send SIGTERM while requests are in work; the seconds until the end, and the exit code."""

    async def ask(number: int) -> None:
        transport = httpx.AsyncHTTPTransport(local_address=f"127.0.9.{1 + number % 250}")
        async with httpx.AsyncClient(base_url=url, transport=transport, timeout=60) as client:
            await client.post("/api/v1/generate", json={"count": 4, "steps": 200, "seed": number})

    tasks = [asyncio.create_task(ask(number)) for number in range(min(clients, 32))]
    await asyncio.sleep(2)
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    exit_code = await asyncio.to_thread(process.wait)
    seconds = time.monotonic() - start
    await asyncio.gather(*tasks, return_exceptions=True)
    return seconds, exit_code


def _memory_of(pid: int) -> float:
    """Resident memory of a process and its children, in bytes."""
    total = 0.0
    for each in (pid, *_children(pid)):
        try:
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return total


def _cpu_seconds_of(pid: int) -> float:
    """Processor time that a process and its children have taken."""
    total = 0.0
    for each in (pid, *_children(pid)):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
