"""The batch that made a loss no number, saved for study."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file

from .checkpoint import write_folder
from .run import Run
from .step import draw


def save_batch(run: Run, step: int, out: Path) -> Path:
    """Write the sketches and random numbers of a step to `out/failed/STEP`: all of it follows from seed and step."""
    folder = out / "failed" / f"{step:08d}"
    if not run.ranks.first:
        return folder
    numbers, indices = run.order.numbers(step), run.indices(step)
    draws = draw(run.config.seed, numbers, run.corpus.kind.shape[1])
    tensors = {
        "numbers": numbers,
        "indices": indices,
        "noise": draws.noise,
        "choices": draws.choices,
        "kind": run.corpus.kind[indices],
        "construction": run.corpus.construction[indices],
        "params": run.corpus.params[indices],
    }
    facts = {"step": step, "seed": run.config.seed, "batch_size": run.config.batch_size, "rate": run.rate}

    def write(temporary: Path) -> None:
        save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, temporary / "batch.safetensors")
        (temporary / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")

    write_folder(folder, write)
    return folder
