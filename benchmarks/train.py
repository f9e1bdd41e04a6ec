"""Speed of training, beside an eager float32 loop of the same network and the device's fastest matrix product.

The arithmetic of a step is 6 × the weights of each linear layer × its tokens: 2 forward, 4 backward.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from rich.table import Table
from torch import Tensor, nn

from sketchdnn.representation import layout
from sketchdnn.systems import Preset, System, load_preset
from sketchdnn.training.config import parse_train_config
from sketchdnn.training.corpus import Corpus
from sketchdnn.training.run import Run
from sketchdnn.training.step import Objective, random_numbers

from .results import (
    OnStage,
    best_seconds,
    check_device,
    device_name,
    ignore_stage,
    markdown_table,
    rich_table,
)

_SKETCHES = 65_536
_FLOPS_PER_WEIGHT = 6


@dataclass(frozen=True, slots=True)
class TrainTiming:
    """One mode at one batch size. `seconds` is None if the step did not fit in memory."""

    preset: str
    mode: str
    batch: int
    seconds: float | None
    flops: float
    data_seconds: float = 0.0  # of random numbers and batches alone
    synchronizes: bool | None = None  # whether a step makes the host wait for the device; None on a CPU

    @property
    def sketches_per_second(self) -> float:
        return self.batch / self.seconds if self.seconds else 0.0

    @property
    def tflops(self) -> float:
        return self.flops / self.seconds / 1e12 if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class TrainBenchmark:
    """All timings of a run."""

    device: str
    ceiling: float  # TFLOP/s of a large matrix product in the precision of training
    timings: tuple[TrainTiming, ...]

    def fastest(self, preset: str, mode: str) -> TrainTiming:
        """The timing at the best batch size."""
        timings = (timing for timing in self.timings if (timing.preset, timing.mode) == (preset, mode))
        return max(timings, key=lambda timing: timing.sketches_per_second)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One row of cells per timing."""
        for timing in self.timings:
            start = (timing.preset, timing.mode, f"{timing.batch:,}")
            if timing.seconds is None:
                yield (*start, "does not fit", "", "", "", "")
                continue
            yield (
                *start,
                f"{timing.sketches_per_second:,.0f}",
                f"{timing.tflops:.3g}",
                f"{timing.tflops / self.ceiling:.1%}",
                f"{timing.data_seconds / timing.seconds:.1%}" if timing.data_seconds else "",
                "" if timing.synchronizes is None else "yes" if timing.synchronizes else "no",
            )

    def sentences(self) -> Iterator[str]:
        """The speed of each preset at its best batch size."""
        for preset in dict.fromkeys(timing.preset for timing in self.timings):
            ours, eager = self.fastest(preset, OURS), self.fastest(preset, EAGER)
            if ours.seconds and eager.seconds:
                ratio = ours.sketches_per_second / eager.sketches_per_second
                yield (
                    f"{preset}: {ours.sketches_per_second:,.0f} sketches/s, {ratio:.1f}× the eager loop, each at its "
                    f"best batch; {ours.tflops / self.ceiling:.1%} of the ceiling of {self.ceiling:.3g} TFLOP/s."
                )

    def table(self) -> Table:
        return rich_table(f"Training, {self.device}", _COLUMNS, self.rows())

    def markdown(self, command: str) -> str:
        head = f"# Training speed\n\n`{command}` on {self.device}; each the best of several rounds."
        return "\n\n".join([head, markdown_table(_COLUMNS, self.rows()), "\n".join(self.sentences())]) + "\n"


OURS, EAGER = "sketchdnn train", "eager float32"
_COLUMNS = ("preset", "mode", "batch", "sketches/s", "TFLOP/s", "of the ceiling", "data, of the step", "host waits")


def time_train(
    presets: Iterable[str],
    batches: Iterable[int],
    eager_batches: Iterable[int],
    device: str = "cpu",
    repeats: int = 3,
    inner: int = 5,
    on_stage: OnStage = ignore_stage,
) -> TrainBenchmark:
    """Time every preset in both modes at every batch size: `repeats` rounds of `inner` steps, the fastest counts."""
    check_device(device)
    on_stage("matrix product")
    ceiling = matmul_ceiling(device, repeats)
    corpus = random_corpus(_SKETCHES if device != "cpu" else 64, device)
    timings = []
    for preset in map(load_preset, presets):
        for mode, sizes in ((OURS, batches), (EAGER, eager_batches)):
            for batch in sizes:
                on_stage(f"{preset.name}, {mode}, batch {batch:,}")
                timings.append(_time_mode(preset, mode, batch, corpus, device, repeats, inner))
    return TrainBenchmark(device_name(device), ceiling, tuple(timings))


def matmul_ceiling(device: str, repeats: int) -> float:
    """TFLOP/s of the fastest large matrix product, bfloat16 on a GPU and float32 on a CPU."""
    sizes, dtype = ((4096, 8192, 16384), torch.bfloat16) if device != "cpu" else ((512,), torch.float32)
    highest = 0.0
    for size in sizes:
        a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        seconds = best_seconds(lambda a=a, b=b: a @ b, device, repeats, inner=10)  # type: ignore[misc]
        highest = max(highest, 2 * size**3 / seconds / 1e12)
    return highest


def step_flops(system: System, corpus: Corpus, batch: int) -> float:
    """The arithmetic of a step: 6 × weights × tokens, summed over the calls of linear layers."""
    count = 0

    def count_layer(layer: nn.Module, inputs: tuple[Tensor, ...], _: Tensor) -> None:
        nonlocal count
        assert isinstance(layer, nn.Linear)  # noqa: S101 - for the type checker
        count += layer.weight.numel() * (inputs[0].numel() // layer.in_features)

    hooks = [layer.register_forward_hook(count_layer) for layer in system.modules() if isinstance(layer, nn.Linear)]
    config = parse_train_config({}, steps=1, batch_size=2)
    index = torch.zeros(2, dtype=torch.int64, device=corpus.params.device)
    draws = random_numbers(0, index, corpus.kind.shape[1])
    with torch.no_grad():
        Objective(system, corpus, config)(index, index, *draws)
    for hook in hooks:
        hook.remove()
    return _FLOPS_PER_WEIGHT * count / 2 * batch


def _time_mode(
    preset: Preset, mode: str, batch: int, corpus: Corpus, device: str, repeats: int, inner: int
) -> TrainTiming:
    torch.manual_seed(0)
    torch.compiler.reset()  # otherwise the second batch size would compile with dynamic shapes
    system = preset.make().to_device(device)
    flops = step_flops(system, corpus, batch)
    try:
        config = parse_train_config(preset.training, steps=10**9, batch_size=batch)
        if mode == EAGER:
            with _float32():
                step = _eager_step(system, corpus, Objective(system, corpus, config), batch)
                seconds = best_seconds(step, device, repeats, inner)
            return TrainTiming(preset.name, mode, batch, seconds, flops)
        run = Run(system, corpus, config)
        seconds = best_seconds(run.advance, device, repeats, inner)
        data = best_seconds(lambda: _load_batch(run), device, repeats, inner)
        return TrainTiming(preset.name, mode, batch, seconds, flops, data, _synchronizes(run, device))
    except torch.OutOfMemoryError:
        return TrainTiming(preset.name, mode, batch, None, flops)
    finally:
        gc.collect()
        if device != "cpu":
            torch.cuda.empty_cache()


def _eager_step(system: System, corpus: Corpus, objective: Objective, batch: int) -> Callable[[], None]:
    """A step like the authors': float32, eager, Adam, with its data prepared beforehand."""
    optimizer = torch.optim.Adam(system.parameters(), lr=1e-4)
    numbers = torch.arange(batch, device=corpus.params.device)
    draws = random_numbers(0, numbers, corpus.kind.shape[1])

    def step() -> None:
        optimizer.zero_grad()
        loss = objective(numbers % len(corpus), numbers, *draws).sum(dim=0).mean()
        loss.backward()
        optimizer.step()

    return step


def _load_batch(run: Run) -> None:
    """The data of a step alone. Training compiles most of it, so this is an upper bound."""
    index = run.indices(run.step)
    draws = random_numbers(run.config.seed, run.order.numbers(run.step), layout.MAX_PRIMITIVES)
    run.corpus.batch(index, (draws.choices[:, 0] * 8).long(), run.system.rows)


def _synchronizes(run: Run, device: str) -> bool | None:
    if device == "cpu":
        return None
    torch.cuda.set_sync_debug_mode("error")
    try:
        run.advance()
    except RuntimeError:
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


@contextmanager
def _float32() -> Iterator[None]:
    """Full float32 matrix products, torch's default."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def random_corpus(count: int, device: str) -> Corpus:
    """Rows of every kind with random parameters; values do not affect the time of a step."""
    generator = torch.Generator().manual_seed(0)
    shape = (count, layout.MAX_PRIMITIVES)
    kind = torch.randint(0, layout.NUM_KINDS, shape, generator=generator, dtype=torch.uint8)
    params = torch.rand(*shape, layout.MAX_KIND_PARAMS, generator=generator) * 0.9 + 0.1
    construction = torch.rand(shape, generator=generator) < 0.1
    return Corpus(kind.to(device), construction.to(device), params.to(device))
