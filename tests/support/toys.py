"""Noise, processes and steps for toy problems."""

import torch

from sketchdnn.diffusion.gaussian import Schedule, augment
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import JointProcess, Process
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems.baselines.tokens.tokens import KIND_PLACE, STOP, Syntax, Tokens, slots_to_rows

WIDTHS = (layout.NUM_CONSTRUCTION, layout.NUM_KINDS, layout.NUM_PARAMS)
ONLY_ARCS = (0.0, 0.0, 1.0, 0.0, 0.0)
ARC_COLUMNS = [i for i, kind in enumerate(layout.KIND_OF_PARAM) if kind == 2]


def random_noise(
    seed: int, batch: int, rows: int = layout.MAX_PRIMITIVES, dtype: torch.dtype = torch.float32
) -> NoiseSource:
    """Quicker than the noise that belongs to a sample; every call draws anew."""
    generator = torch.Generator().manual_seed(seed)
    return lambda number: SketchBatch(
        *(torch.randn(batch, rows, width, generator=generator, dtype=dtype) for width in WIDTHS)
    )


def impulses(draws: int) -> NoiseSource:
    """Draw d is 1 for one parameter of an arc, number d of all, and 0 elsewhere.

    A sampler of a Gaussian target is linear in its noise, so the squares of what comes out add up to the variance of
    its samples: exact, where random numbers would only estimate it.
    """
    batch = -(-draws // len(ARC_COLUMNS))

    def draw(number: int) -> SketchBatch:
        params = torch.zeros(batch, 1, layout.NUM_PARAMS, dtype=torch.float64)
        params[number // len(ARC_COLUMNS), 0, ARC_COLUMNS[number % len(ARC_COLUMNS)]] = 1.0
        return SketchBatch(*(params.new_zeros(batch, 1, width) for width in WIDTHS[:2]), params)

    return draw


def process_of(schedule: Schedule, label_smoothing: float = 0.99, **options: object) -> JointProcess:
    """Coordinates on a schedule, and labels on its augmentations."""
    widths = {"kind": layout.NUM_KINDS, "construction": layout.NUM_CONSTRUCTION}
    labels = {name: augment(schedule, width, label_smoothing) for name, width in widths.items()}
    return JointProcess(params=schedule, label_smoothing=label_smoothing, **labels, **options)  # type: ignore[arg-type]


def every_step(process: Process, batch: int, *, read_at: int = 1) -> StepDraws:
    """All steps for every sample: a bound without an estimate in t."""
    t = torch.arange(read_at + 1, process.num_steps + 1)[:, None].expand(-1, batch)
    return StepDraws(t, torch.full(t.shape, float(len(t)), dtype=torch.float64), read_at)


def centered(logits: torch.Tensor) -> torch.Tensor:
    """Logits with mean zero: the softmax is invariant to the rest."""
    return logits - logits.mean(dim=-1, keepdim=True)


def untokenize(tokens: Tokens, syntax: Syntax, rows: int) -> SketchBatch:
    """The rows of token sequences, each number in the middle of its cell."""
    places = syntax.end + 1
    slots = tokens.value.new_zeros(len(tokens.value), (rows + 1) * places)
    slots = slots.scatter(1, tokens.row * places + tokens.place, tokens.value)
    finished = (tokens.real & (tokens.place == KIND_PLACE) & (tokens.value != STOP)).sum(dim=1)
    return slots_to_rows(slots.reshape(-1, rows + 1, places)[:, :rows], finished, syntax)
