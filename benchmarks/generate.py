"""Speed of sampling: the bundled model, the paper's network with all of its steps, and one reverse step.

Each is timed beside a plain eager float32 loop of the same network, at its own batch size. The time of a loop is
proportional to its steps, so long ones may be timed on a few steps.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from rich.table import Table

from sketchdnn.diffusion import JointProcess, SamplingOptions, our_process, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.generation.engine import compile_denoiser, fast_inference, max_batch_size
from sketchdnn.generation.quality import STEPS
from sketchdnn.networks import DiT, DiTConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems import System, from_pretrained, load_preset
from sketchdnn.systems.devices import find_device

from .results import (
    OnStage,
    best_seconds,
    check_device,
    device_name,
    ignore_stage,
    markdown_table,
    rich_table,
    synchronize,
)

AS_USED, EAGER = "as used", "eager float32"
BUNDLED, PAPER = "the bundled model", "the paper's network, untrained"
# The share of the network's forward time that a reverse step may take.
MAX_STEP_SHARE = 0.03
# The network's time on a CPU is proportional to the batch; 4096 sketches would take minutes.
CPU_NETWORK_BATCH = 32
# Three runs compile a GPU model, run it once, and record its CUDA graph.
_GPU_WARM_UPS = 3
_COLUMNS = ("what", "mode", "sampler", "sketches", "steps", "seconds", "sketches/s", "of eager")


@dataclass(frozen=True, slots=True)
class GenerateTiming:
    """Seconds for `count` sketches in `steps` steps. `timed` names what was measured if it was scaled."""

    what: str
    mode: str
    sampler: str
    count: int
    steps: int
    seconds: float
    timed: str = ""

    @property
    def sketches_per_second(self) -> float:
        return self.count / self.seconds


@dataclass(frozen=True, slots=True)
class GenerateBenchmark:
    """All timings of a run."""

    device: str
    timings: tuple[GenerateTiming, ...]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One row of cells per timing."""
        for timing in self.timings:
            eager = next((t for t in self.timings if (t.what, t.mode) == (timing.what, EAGER)), None)
            yield (
                timing.what,
                timing.mode + (f", {timing.timed}" if timing.timed else ""),
                timing.sampler,
                f"{timing.count:,}",
                f"{timing.steps:,}",
                f"{timing.seconds:.4g}",
                f"{timing.sketches_per_second:.4g}",
                f"{eager.seconds / timing.seconds:.1f}×" if eager else "",
            )

    def table(self) -> Table:
        return rich_table(f"Sampling, {self.device}", _COLUMNS, self.rows())

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        return _PAGE.format(command=command, device=self.device, table=markdown_table(_COLUMNS, self.rows()))


def time_generate(
    device: str = "cpu",
    count: int = 10_000,
    *,
    model: str = "ours",
    steps: int = STEPS,
    paper: bool = False,
    paper_steps: int = 100,
    batch: int | None = None,
    on_stage: OnStage = ignore_stage,
) -> GenerateBenchmark:
    """Time the generation of sketches.

    Args:
        device: Where to run.
        count: Sketches to generate.
        model: A pretrained model.
        steps: Denoising steps of the model.
        paper: Also time the paper's network with its 2000 steps.
        paper_steps: Steps of the paper's network that are timed.
        batch: Sketches that the eager loops and the paper's network are timed on. Default: the device's batch size.
        on_stage: Called with the name of each stage.
    """
    if count < 1 or paper_steps < 1 or (batch is not None and batch < 1):
        raise SketchError("the numbers of sketches and steps to time must be at least 1")
    device = find_device(device)
    on_stage("loading")
    system = from_pretrained(model, device)
    batch = min(batch or max_batch_size(torch.device(device)), count)
    timings = [
        _time_as_used(system, count, steps, device, on_stage),
        _time_loop(system, BUNDLED, EAGER, count, steps, steps, batch, device, on_stage),
    ]
    if paper:
        del system
        _free_memory(device)
        torch.manual_seed(0)
        system = load_preset("paper").make().eval().to_device(device)
        total = system.max_steps or paper_steps
        timed_steps = min(paper_steps, total)
        timings += [
            _time_loop(system, PAPER, mode, count, total, timed_steps, batch, device, on_stage)
            for mode in (AS_USED, EAGER)
        ]
    return GenerateBenchmark(device_name(device), tuple(timings))


def _time_as_used(system: System, count: int, steps: int, device: str, on_stage: OnStage) -> GenerateTiming:
    """Time `stream`, which `sketchdnn generate` uses; compiled on a GPU. The warm-up is not timed."""
    on_stage(f"{BUNDLED}, warming up")
    if device != "cpu":
        system = compile_denoiser(system)
        synchronize(device)
    for _ in range(_GPU_WARM_UPS if device != "cpu" else 1):
        warm_up = min(count, max_batch_size(torch.device(device)))
        _exhaust(stream(system, GenerateRequest(count=warm_up, steps=min(steps, 5), seed=1, repair=False)))
    on_stage(f"{BUNDLED}, {AS_USED}")
    start = time.perf_counter()
    _exhaust(stream(system, GenerateRequest(count=count, steps=steps, repair=False)))
    synchronize(device)
    return GenerateTiming(BUNDLED, AS_USED, system.default_sampler, count, steps, time.perf_counter() - start)


def _time_loop(
    system: System,
    what: str,
    mode: str,
    count: int,
    steps: int,
    timed_steps: int,
    batch: int,
    device: str,
    on_stage: OnStage,
) -> GenerateTiming:
    """Time one batch through the sampler alone and scale it to `count` sketches and `steps` steps."""
    on_stage(f"{what}, {mode}")
    numbers = torch.arange(batch, device=device)
    sampled = system
    precision: AbstractContextManager[object] = nullcontext()
    if mode == AS_USED:
        sampled = compile_denoiser(system) if device != "cpu" else system
        precision = torch.autocast("cuda", torch.bfloat16) if device != "cpu" else fast_inference(system)

    def run(num_steps: int) -> None:
        sampled.sample(seeded_noise(0, numbers), SamplingOptions(steps=num_steps))
        synchronize(device)

    with torch.no_grad(), precision:
        for _ in range(_GPU_WARM_UPS if device != "cpu" else 1):
            run(min(timed_steps, 5))
        start = time.perf_counter()
        run(timed_steps)
        seconds = time.perf_counter() - start
    _free_memory(device)
    scale = count / batch * steps / timed_steps
    parts = [f"{batch:,} sketches"] * (batch < count) + [f"{timed_steps:,} steps"] * (timed_steps < steps)
    timed = "timed on " + ", ".join(parts) if parts else ""
    return GenerateTiming(what, mode, system.default_sampler, count, steps, seconds * scale, timed)


def _exhaust(drawings: Iterator[object]) -> None:
    for _ in drawings:
        pass


def _free_memory(device: str) -> None:
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Seconds, each the shortest of several rounds. `network` is for `network_batch` sketches, others for `batch`."""

    device: str
    batch: int
    rows: int
    network_batch: int
    network: float
    step: float
    noise: float

    @property
    def network_scaled(self) -> float:
        """The network's time for `batch` sketches."""
        return self.network * self.batch / self.network_batch

    @property
    def ratio(self) -> float:
        """The reverse step as a share of the network's forward pass."""
        return self.step / self.network_scaled

    @property
    def is_allowed(self) -> bool:
        return self.ratio < MAX_STEP_SHARE

    def rows_of_cells(self) -> Iterator[tuple[str, str, str]]:
        """One row of cells per timing."""
        name = "network forward, 512 wide, 32 deep"
        if self.network_batch != self.batch:
            name += f", timed on {self.network_batch} sketches, times {self.batch / self.network_batch:g}"
        for what, seconds in ((name, self.network_scaled), ("joint step", self.step), ("noise", self.noise)):
            yield what, f"{seconds * 1e3:.2f}", f"{seconds / self.network_scaled:.2%}"

    def table(self) -> Table:
        title = f"One reverse step, {self.batch} × {self.rows} rows, {self.device}"
        return rich_table(title, _STEP_COLUMNS, self.rows_of_cells())

    def sentences(self) -> Iterator[str]:
        yield f"The step takes {self.ratio:.2%} of the network's time; {MAX_STEP_SHARE:.0%} is allowed."

    def markdown(self, command: str) -> str:
        head = (
            f"# One reverse step\n\n`{command}` on {self.device}: {self.batch} × {self.rows} rows, the best of several."
        )
        return "\n\n".join([head, markdown_table(_STEP_COLUMNS, self.rows_of_cells()), *self.sentences()]) + "\n"


_STEP_COLUMNS = ("", "milliseconds", "share of the network")


def time_step(
    device: str = "cpu",
    batch: int = 4096,
    rows: int = layout.MAX_PRIMITIVES,
    network_batch: int | None = None,
    repeats: int = 5,
    config: DiTConfig | None = None,
) -> StepTiming:
    """Time a joint reverse step, its noise, and a network of the paper's size on the same device.

    The network runs in bfloat16 on a GPU and in float32 on a CPU. The step is float32 on both.
    """
    if batch < 1 or rows < 1 or repeats < 1 or (network_batch is not None and network_batch < 1):
        raise SketchError("the numbers of sketches, rows and repeats to time must be at least 1")
    check_device(device)
    network_batch = network_batch or (min(batch, CPU_NETWORK_BATCH) if device == "cpu" else batch)
    process = our_process().to(device)
    source = seeded_noise(0, torch.arange(batch, device=device), rows)
    s, t = process.num_steps // 2 - 1, process.num_steps // 2
    noisy, noise = _diffuse_noise(process, source(0), t), source(1)
    prediction = Prediction(noise.construction, noise.kind, noise.params)
    with torch.device(device):
        network = DiT(config).eval()
    inputs, steps = noisy[:network_batch], torch.full((network_batch,), t, device=device)
    autocast = torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=device != "cpu")
    with torch.inference_mode(), autocast:
        forward = best_seconds(lambda: network(inputs, steps), device, repeats, inner=1)
    with torch.inference_mode():
        step = best_seconds(
            lambda: process.step_back(process.x0_logits(prediction), noisy, s, t, noise), device, repeats, inner=10
        )
        noise_seconds = best_seconds(lambda: source(1), device, repeats, inner=10)
    return StepTiming(device_name(device), batch, rows, network_batch, forward, step, noise_seconds)


def _diffuse_noise(process: JointProcess, noise: SketchBatch, t: int) -> SketchBatch:
    """A batch at step t whose clean rows are arbitrary points of the simplex."""
    clean = SketchBatch(noise.construction.softmax(dim=-1), noise.kind.softmax(dim=-1), noise.params)
    return process.diffuse(clean, t, noise)


_PAGE = """# Sampling speed

`{command}` on {device}. After a warm-up, without writing files. The bundled model as used is everything that
`sketchdnn generate --no-repair` does before it writes: sample, decode, place and check ([repair](repair.md) adds some
20 ms of a core per sketch). The other rows are the sampler alone. On a GPU the paper's network is timed in bfloat16,
where `generate` would keep float32. Rows that were timed on fewer steps or sketches say so and are scaled.

{table}
"""
