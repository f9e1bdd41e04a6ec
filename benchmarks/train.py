"""How fast training is: beside a plain eager float32 loop of the same network, and beside what the device can multiply.

A step's arithmetic is counted as 6 × the weights of each linear layer × the tokens it sees: 2 forward, 4 backward.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from rich.table import Table
from torch import Tensor, nn

from sketchdnn.errors import SketchError
from sketchdnn.representation import layout
from sketchdnn.systems import Preset, System, load_preset
from sketchdnn.training.config import config_from
from sketchdnn.training.corpus import Corpus
from sketchdnn.training.run import Run
from sketchdnn.training.step import Objective, draw

from .generate import best

_SKETCHES = 65_536
_FLOPS_PER_WEIGHT = 6


@dataclass(frozen=True, slots=True)
class TrainTiming:
    """One way to train at one batch size; no seconds if it did not fit in memory."""

    preset: str
    way: str
    batch: int
    seconds: float | None
    flops: float
    data_seconds: float = 0.0  # drawing numbers and building the batch, on their own
    waits: bool | None = None  # whether a step made the host wait for the device; unknown on a CPU

    @property
    def sketches_per_second(self) -> float:
        return self.batch / self.seconds if self.seconds else 0.0

    @property
    def tflops(self) -> float:
        return self.flops / self.seconds / 1e12 if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class TrainBench:
    """All ways of a run, and the ceiling that was measured in it."""

    device: str
    ceiling: float  # TFLOP/s of a large matrix product in the precision that training uses
    timings: tuple[TrainTiming, ...]

    def fastest(self, preset: str, way: str) -> TrainTiming:
        """A way at its best batch size."""
        mine = (timing for timing in self.timings if (timing.preset, timing.way) == (preset, way))
        return max(mine, key=lambda timing: timing.sketches_per_second)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """As words, one row a timing."""
        for timing in self.timings:
            start = (timing.preset, timing.way, f"{timing.batch:,}")
            if timing.seconds is None:
                yield (*start, "does not fit", "", "", "", "")
                continue
            yield (
                *start,
                f"{timing.sketches_per_second:,.0f}",
                f"{timing.tflops:.3g}",
                f"{timing.tflops / self.ceiling:.1%}",
                f"{timing.data_seconds / timing.seconds:.1%}" if timing.data_seconds else "",
                "" if timing.waits is None else "yes" if timing.waits else "no",
            )

    def summary(self) -> list[str]:
        """What it comes to, a sentence a preset."""
        sentences = []
        for preset in dict.fromkeys(timing.preset for timing in self.timings):
            ours, plain = self.fastest(preset, OURS), self.fastest(preset, EAGER)
            if ours.seconds and plain.seconds:
                ratio = ours.sketches_per_second / plain.sketches_per_second
                sentences.append(
                    f"{preset}: {ours.sketches_per_second:,.0f} sketches/s, {ratio:.1f}× the eager loop, each at its "
                    f"best batch; {ours.tflops / self.ceiling:.1%} of the ceiling of {self.ceiling:.3g} TFLOP/s."
                )
        return sentences

    def table(self) -> Table:
        table = Table(*_COLUMNS, title=f"Training, {self.device}")
        for row in self.rows():
            table.add_row(*row)
        return table

    def markdown(self, command: str) -> str:
        lines = [f"# Training speed\n\n`{command}` on {self.device}; each the best of several rounds.\n"]
        lines += [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows()]
        return "\n".join([*lines, "", *self.summary(), ""])


OURS, EAGER = "sketchdnn train", "eager float32"
_COLUMNS = ("preset", "way", "batch", "sketches/s", "TFLOP/s", "of the ceiling", "data, of the step", "host waits")


def time_train(
    presets: Iterable[str],
    batches: Iterable[int],
    eager_batches: Iterable[int],
    device: str = "cpu",
    repeats: int = 3,
    inner: int = 5,
    on_stage: Callable[[str], None] = lambda _: None,
) -> TrainBench:
    """Time every preset both ways at every batch size; `inner` steps a round, the best of `repeats` rounds."""
    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise SketchError(f"the device to time on is cpu or cuda, not {device}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SketchError("no CUDA device is available here; time with --device cpu")
    on_stage("matrix product")
    ceiling = matmul_ceiling(device, repeats)
    corpus = _corpus(_SKETCHES if device != "cpu" else 64, device)
    timings = []
    for preset in map(load_preset, presets):
        for way, sizes in ((OURS, batches), (EAGER, eager_batches)):
            for batch in sizes:
                on_stage(f"{preset.name}, {way}, batch {batch:,}")
                timings.append(_timing(preset, way, batch, corpus, device, repeats, inner))
    name = torch.cuda.get_device_name(device) if device != "cpu" else f"CPU, {torch.get_num_threads()} threads"
    return TrainBench(name, ceiling, tuple(timings))


def matmul_ceiling(device: str, repeats: int) -> float:
    """TFLOP/s of the best large product, bfloat16 on a GPU and float32 on a CPU."""
    sizes, dtype = ((4096, 8192, 16384), torch.bfloat16) if device != "cpu" else ((512,), torch.float32)
    highest = 0.0
    for size in sizes:
        a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        seconds = best(lambda a=a, b=b: a @ b, device, repeats, inner=10)  # type: ignore[misc]
        highest = max(highest, 2 * size**3 / seconds / 1e12)
    return highest


def step_flops(system: System, corpus: Corpus, batch: int) -> float:
    """The arithmetic of a step: 6 × weights × tokens, summed over the linear layers as they are really called."""
    count = 0

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], _: Tensor) -> None:
        nonlocal count
        assert isinstance(layer, nn.Linear)  # noqa: S101 - for the type checker
        count += layer.weight.numel() * (inputs[0].numel() // layer.in_features)

    hooks = [layer.register_forward_hook(note) for layer in system.modules() if isinstance(layer, nn.Linear)]
    config = config_from({}, steps=1, batch_size=2)
    one = torch.zeros(2, dtype=torch.int64, device=corpus.params.device)
    draws = draw(0, one, corpus.kind.shape[1])
    with torch.no_grad():
        Objective(system, corpus, config)(one, one, draws.noise, draws.choices)
    for hook in hooks:
        hook.remove()
    return _FLOPS_PER_WEIGHT * count / 2 * batch


def _timing(preset: Preset, way: str, batch: int, corpus: Corpus, device: str, repeats: int, inner: int) -> TrainTiming:
    torch.manual_seed(0)
    torch.compiler.reset()  # a step compiled for another batch size must not make this one's sizes flexible
    system = preset.make().to_device(device)
    flops = step_flops(system, corpus, batch)
    try:
        config = config_from(preset.training, steps=10**9, batch_size=batch)
        if way == EAGER:
            with _float32():
                seconds = best(_plain(system, corpus, Objective(system, corpus, config), batch), device, repeats, inner)
            return TrainTiming(preset.name, way, batch, seconds, flops)
        run = Run(system, corpus, config)
        seconds = best(run.advance, device, repeats, inner)
        data = best(lambda: _data(run), device, repeats, inner)
        return TrainTiming(preset.name, way, batch, seconds, flops, data, _waits(run, device))
    except torch.OutOfMemoryError:
        return TrainTiming(preset.name, way, batch, None, flops)
    finally:
        gc.collect()
        if device != "cpu":
            torch.cuda.empty_cache()


def _plain(system: System, corpus: Corpus, objective: Objective, batch: int) -> Callable[[], None]:
    """What one writes first, and what the authors run: float32, eager, Adam. Its data is ready beforehand."""
    optimizer = torch.optim.Adam(system.parameters(), lr=1e-4)
    numbers = torch.arange(batch, device=corpus.params.device)
    draws = draw(0, numbers, corpus.kind.shape[1])

    def step() -> None:
        optimizer.zero_grad()
        loss = objective(numbers % len(corpus), numbers, draws.noise, draws.choices).sum(dim=0).mean()
        loss.backward()
        optimizer.step()

    return step


def _data(run: Run) -> None:
    """A step's data on its own. In the real step most of it is compiled, so this is more than it costs there."""
    index = run.indices(run.step)
    draws = draw(run.config.seed, run.order.numbers(run.step), layout.MAX_PRIMITIVES)
    run.corpus.batch(index, (draws.choices[:, 0] * 8).long(), run.system.rows)


def _waits(run: Run, device: str) -> bool | None:
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
    """Full float32 products, torch's default, whatever was chosen before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _corpus(count: int, device: str) -> Corpus:
    """Rows of every kind with random numbers: what they show does not change how long a step takes."""
    generator = torch.Generator().manual_seed(0)
    shape = (count, layout.MAX_PRIMITIVES)
    kind = torch.randint(0, layout.NUM_KINDS, shape, generator=generator, dtype=torch.uint8)
    params = torch.rand(*shape, layout.MAX_KIND_PARAMS, generator=generator) * 0.9 + 0.1
    construction = torch.rand(shape, generator=generator) < 0.1
    return Corpus(kind.to(device), construction.to(device), params.to(device))
