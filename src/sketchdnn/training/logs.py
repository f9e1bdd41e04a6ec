"""Logs of a run: `log.csv` and `validation.csv`, and TensorBoard or Weights & Biases on request."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from sketchdnn.io import atomic_write

from .config import RunError
from .run import Report

_LOG, _VALIDATION = "log.csv", "validation.csv"
# Writes named values of a step.
LogScalars = Callable[[Mapping[str, float], int], None]


class RunLog:
    """Writes reports and validation losses; without `loggers`, as CSV only."""

    def __init__(self, out: Path, loggers: Sequence[LogScalars]) -> None:
        self.out, self.loggers = out, loggers

    @staticmethod
    @contextmanager
    def open(out: Path, step: int, names: Sequence[str] = ()) -> Iterator[RunLog]:
        """Open the logs of a run that is at `step`. Later rows belong to a lost part of the run and are removed.

        Args:
            out: The folder of the run.
            step: The step at which the run starts or resumes.
            names: Loggers besides CSV, out of `LOGGERS`.
        """
        out.mkdir(parents=True, exist_ok=True)
        for name in (_LOG, _VALIDATION):
            _truncate(out / name, step)
        with ExitStack() as stack:
            yield RunLog(out, [stack.enter_context(LOGGERS[name](out, step)) for name in names])

    def report(self, report: Report) -> None:
        """Log the progress of training."""
        self._append(_LOG, [field.name for field in fields(report)], astuple(report))
        self._log("train", {field.name: getattr(report, field.name) for field in fields(report)[1:]}, report.step)

    def validation(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log the numbers of a validation: the loss at each noise level t."""
        self._append(_VALIDATION, ["step", *numbers], (step, *numbers.values()))
        self._log("validation", numbers, step)

    def _append(self, name: str, header: Sequence[str], row: Sequence[object]) -> None:
        path = self.out / name
        is_new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(header)
            writer.writerow(row)

    def _log(self, group: str, values: Mapping[str, float], step: int) -> None:
        for log_scalars in self.loggers:
            log_scalars({f"{group}/{name}": value for name, value in values.items()}, step)


@contextmanager
def _tensorboard(out: Path, step: int) -> Iterator[LogScalars]:
    """Events in `out/tensorboard`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise RunError("--logger tensorboard needs the package tensorboard: pip install tensorboard") from None
    with SummaryWriter(str(out / "tensorboard"), purge_step=step + 1) as writer:

        def log_scalars(values: Mapping[str, float], step: int) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)

        yield log_scalars


@contextmanager
def _wandb(out: Path, step: int) -> Iterator[LogScalars]:
    """A run of the project `sketchdnn`, named as the folder; `WANDB_*` variables apply."""
    try:
        import wandb
    except ImportError:
        raise RunError("--logger wandb needs the package wandb: pip install wandb") from None
    with wandb.init(project="sketchdnn", name=out.name, dir=str(out), config={"start_step": step}) as run:
        yield lambda values, step: run.log(dict(values), step=step)


LOGGERS: Mapping[str, Any] = {"tensorboard": _tensorboard, "wandb": _wandb}


def _truncate(path: Path, step: int) -> None:
    """Remove the rows after `step`, and an incomplete last row."""
    if not path.exists():
        return
    header, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    kept = [row for row in rows if row.endswith("\n") and row.partition(",")[0].isdigit()]
    kept = [row for row in kept if int(row.partition(",")[0]) <= step]
    with atomic_write(path) as temporary:
        temporary.write_text("".join([header, *kept]), encoding="utf-8", newline="")
