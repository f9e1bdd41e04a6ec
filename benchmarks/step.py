"""How much of a sampling step is diffusion, and how much the network: the maths around it must not be felt."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.table import Table

from sketchdnn.diffusion import JointProcess, our_process, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.networks import DiT, DiTConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

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
        _finish(device)
        start = time.perf_counter()
        for _ in range(inner):
            run()
        _finish(device)
        if number:
            shortest = min(shortest, (time.perf_counter() - start) / inner)
    return shortest


def _finish(device: str) -> None:
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
