"""How fast sketches are drawn: the bundled model as it is used, and the paper's network with all of its steps.

Each is timed beside the plain eager float32 loop that one writes first, at a batch of its own. What a loop takes is
proportional to its steps, so the long ones may be timed on a few of them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from rich.table import Table

from sketchdnn.diffusion import JointProcess, SamplingOptions, our_process, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.generation.engine import compile_denoiser, fast_inference, max_batch_size
from sketchdnn.generation.generate import STEPS
from sketchdnn.networks import DiT, DiTConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems import System, from_pretrained, load_preset
from sketchdnn.systems.devices import find_device

AS_USED, EAGER = "as used", "eager float32"
BUNDLED, PAPER = "the bundled model", "the paper's network, untrained"
_NOTE = (
    "After a warm-up, without writing files. The bundled model as used is all that `sketchdnn generate --no-repair` "
    "does before it writes: every sketch is drawn, decoded, placed and checked ([repair](repair.md) takes some 20 ms "
    "of a core more for each). The other rows are the sampler alone. On a GPU the paper's network is timed in "
    "bfloat16, where `generate` would keep it in float32. What was timed on fewer steps or sketches says so, and is "
    "scaled in proportion."
)
# Compiled at first, run once more as it is, then recorded as a graph: the first step of a walk as well as the others.
_WARM_UPS = 3
_COLUMNS = ("what", "way", "sampler", "sketches", "steps", "seconds", "sketches/s", "of eager")


@dataclass(frozen=True, slots=True)
class GenerateTiming:
    """Seconds for `count` sketches in `steps` of a sampler; timed on fewer of both, if `timed` says so."""

    what: str
    way: str
    sampler: str
    count: int
    steps: int
    seconds: float
    timed: str = ""

    @property
    def sketches_per_second(self) -> float:
        return self.count / self.seconds


@dataclass(frozen=True, slots=True)
class GenerateBench:
    """All timings of a run."""

    device: str
    timings: tuple[GenerateTiming, ...]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """As words, one row a timing."""
        for timing in self.timings:
            plain = next((t for t in self.timings if (t.what, t.way) == (timing.what, EAGER)), None)
            yield (
                timing.what,
                timing.way + (f" ({timing.timed})" if timing.timed else ""),
                timing.sampler,
                f"{timing.count:,}",
                f"{timing.steps:,}",
                f"{timing.seconds:.4g}",
                f"{timing.sketches_per_second:.4g}",
                f"{plain.seconds / timing.seconds:.1f}×" if plain else "",
            )

    def table(self) -> Table:
        table = Table(*_COLUMNS, title=f"Drawing sketches, {self.device}")
        for row in self.rows():
            table.add_row(*row)
        return table

    def markdown(self, command: str) -> str:
        lines = [f"# Drawing speed\n\n`{command}` on {self.device}. {_NOTE}\n", f"| {' | '.join(_COLUMNS)} |"]
        lines += [f"|{'---|' * len(_COLUMNS)}", *(f"| {' | '.join(row)} |" for row in self.rows()), ""]
        return "\n".join(lines)


def time_generate(
    device: str = "cpu",
    count: int = 10_000,
    *,
    model: str = "ours",
    steps: int = STEPS,
    paper: bool = False,
    paper_steps: int = 100,
    batch: int | None = None,
    on_stage: Callable[[str], None] = lambda _: None,
) -> GenerateBench:
    """Draw `count` sketches with the bundled model and, if wanted, with the paper's network in its 2000 steps.

    The paper's network is timed on `paper_steps` of them and on one `batch`, which is the device's usual unless told;
    so are the eager loops, on as many sketches.
    """
    if count < 1 or paper_steps < 1 or (batch is not None and batch < 1):
        raise SketchError("the numbers of sketches and steps to time are at least 1")
    device = find_device(device)
    on_stage("loading")
    system = from_pretrained(model, device)
    batch = min(batch or max_batch_size(torch.device(device)), count)
    timings = [
        _as_used(system, count, steps, device, on_stage),
        _loop(system, BUNDLED, EAGER, count, steps, steps, batch, device, on_stage),
    ]
    if paper:
        del system
        _empty(device)
        torch.manual_seed(0)
        system = load_preset("paper").make().eval().to_device(device)
        total = system.max_steps or paper_steps
        few = min(paper_steps, total)
        timings += [_loop(system, PAPER, way, count, total, few, batch, device, on_stage) for way in (AS_USED, EAGER)]
    name = torch.cuda.get_device_name(device) if device != "cpu" else f"CPU, {torch.get_num_threads()} threads"
    return GenerateBench(name, tuple(timings))


def _as_used(system: System, count: int, steps: int, device: str, on_stage: Callable[[str], None]) -> GenerateTiming:
    """All sketches, drawn as `sketchdnn generate` does; compiled on a GPU, on whose account the warm-up goes."""
    on_stage(f"{BUNDLED}, warming up")
    if device != "cpu":
        system = compile_denoiser(system)
        _finish(device)
    for _ in range(_WARM_UPS if device != "cpu" else 1):
        warm_up = min(count, max_batch_size(torch.device(device)))
        _count(stream(system, GenerateRequest(count=warm_up, steps=min(steps, 5), seed=1, repair=False)))
    on_stage(f"{BUNDLED}, {AS_USED}")
    begun = time.perf_counter()
    _count(stream(system, GenerateRequest(count=count, steps=steps, repair=False)))
    _finish(device)
    return GenerateTiming(BUNDLED, AS_USED, system.default_sampler, count, steps, time.perf_counter() - begun)


def _loop(
    system: System,
    what: str,
    way: str,
    count: int,
    steps: int,
    timed_steps: int,
    batch: int,
    device: str,
    on_stage: Callable[[str], None],
) -> GenerateTiming:
    """One batch through the sampler alone, compiled and narrow or plain, and scaled to all."""
    on_stage(f"{what}, {way}")
    numbers = torch.arange(batch, device=device)
    chosen = system
    narrow: AbstractContextManager[object] = nullcontext()
    if way == AS_USED:
        chosen = compile_denoiser(system) if device != "cpu" else system
        narrow = torch.autocast("cuda", torch.bfloat16) if device != "cpu" else fast_inference(system)

    def run(number: int) -> None:
        chosen.sample(seeded_noise(0, numbers), SamplingOptions(steps=number))
        _finish(device)

    with torch.no_grad(), narrow:
        for _ in range(_WARM_UPS if device != "cpu" else 1):
            run(min(timed_steps, 5))
        begun = time.perf_counter()
        run(timed_steps)
        seconds = time.perf_counter() - begun
    _empty(device)
    scale = count / batch * steps / timed_steps
    parts = [f"{batch:,} sketches"] * (batch < count) + [f"{timed_steps:,} steps"] * (timed_steps < steps)
    timed = "timed on " + ", ".join(parts) if parts else ""
    return GenerateTiming(what, way, system.default_sampler, count, steps, seconds * scale, timed)


def _count(drawings: Iterator[object]) -> int:
    """Draw them all, and forget each."""
    return sum(1 for _ in drawings)


def _finish(device: str) -> None:
    """Work on a GPU is only queued: wait for it."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def _empty(device: str) -> None:
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


# The share of the network's forward time that a joint step may take.
ALLOWED = 0.03
# A CPU would take minutes for 4096 sketches; the network's time is proportional to their number there.
CPU_NETWORK_BATCH = 32


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Seconds, each the best of several runs. `network` is for `network_batch` sketches, the rest for `batch`."""

    device: str
    batch: int
    rows: int
    network_batch: int
    network: float
    step: float
    noise: float

    @property
    def network_scaled(self) -> float:
        """The network's time for `batch` sketches, in proportion if it was timed on fewer."""
        return self.network * self.batch / self.network_batch

    @property
    def ratio(self) -> float:
        """The joint step as a share of the network's forward."""
        return self.step / self.network_scaled

    def table(self) -> Table:
        """As a person reads it."""
        title = f"One reverse step, {self.batch} × {self.rows} rows, {self.device}"
        table = Table("", "milliseconds", "share of the network", title=title)
        name = "network forward, 512 wide, 32 deep"
        if self.network_batch != self.batch:
            name += f"\n(timed on {self.network_batch} sketches, times {self.batch / self.network_batch:g})"
        for what, seconds in ((name, self.network_scaled), ("joint step", self.step), ("noise", self.noise)):
            table.add_row(what, f"{seconds * 1e3:.2f}", f"{seconds / self.network_scaled:.2%}")
        return table


def time_step(
    device: str = "cpu",
    batch: int = 4096,
    rows: int = layout.MAX_PRIMITIVES,
    network_batch: int | None = None,
    repeats: int = 5,
    config: DiTConfig | None = None,
) -> StepTiming:
    """Time a full joint reverse step, its noise, and the paper-size network on the same device; best of `repeats`.

    The network runs as it is used: bfloat16 on a GPU, float32 on a CPU. The step is float32 on both.
    """
    if batch < 1 or rows < 1 or repeats < 1 or (network_batch is not None and network_batch < 1):
        raise SketchError("the numbers of sketches, rows and repeats to time are at least 1")
    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise SketchError(f"the device to time on is cpu or cuda, not {device}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SketchError("no CUDA device is available here; time the step with --device cpu")
    network_batch = network_batch or (min(batch, CPU_NETWORK_BATCH) if device == "cpu" else batch)
    process = our_process().to(device)
    source = seeded_noise(0, torch.arange(batch, device=device), rows)
    s, t = process.num_steps // 2 - 1, process.num_steps // 2
    noisy, noise = _noisy(process, source(0), t), source(1)
    prediction = Prediction(noise.construction, noise.kind, noise.params)
    network = _network(device, config)
    shown, steps = noisy[:network_batch], torch.full((network_batch,), t, device=device)
    autocast = torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=device != "cpu")
    with torch.inference_mode(), autocast:
        forward = best(lambda: network(shown, steps), device, repeats, inner=1)
    with torch.inference_mode():
        step = best(lambda: process.step_back(process.clean(prediction), noisy, s, t, noise), device, repeats, inner=10)
        drawn = best(lambda: source(1), device, repeats, inner=10)
    return StepTiming(_describe(device), batch, rows, network_batch, forward, step, drawn)


def best(run: Callable[[], object], device: str, repeats: int, inner: int) -> float:
    """The least seconds that one run took, over `repeats` rounds of `inner` runs; one round before them warms up."""
    shortest = float("inf")
    for number in range(repeats + 1):
        _finish_step(device)
        start = time.perf_counter()
        for _ in range(inner):
            run()
        _finish_step(device)
        if number:
            shortest = min(shortest, (time.perf_counter() - start) / inner)
    return shortest


def _finish_step(device: str) -> None:
    """Work on a GPU is only queued: wait for it."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _noisy(process: JointProcess, noise: SketchBatch, t: int) -> SketchBatch:
    """Rows as a sampler would hold them: any point of the simplex will do."""
    clean = SketchBatch(noise.construction.softmax(dim=-1), noise.kind.softmax(dim=-1), noise.params)
    return process.diffuse(clean, t, noise)


def _network(device: str, config: DiTConfig | None) -> DiT:
    with torch.device(device):
        return DiT(config).eval()


def _describe(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return f"CPU, {torch.get_num_threads()} threads"
