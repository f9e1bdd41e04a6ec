"""What a run leaves to look at: `log.csv`, `validation.csv`, and TensorBoard's events where that is installed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sketchdnn.io import atomic_write

from .run import Report

_LOG, _VALIDATION = "log.csv", "validation.csv"


class Logbook:
    """Where reports are written; one that does not `write` is that of a process which is not the first."""

    def __init__(self, out: Path, write: bool, events: Any) -> None:
        self.out, self.write, self.events = out, write, events

    @staticmethod
    @contextmanager
    def opened(out: Path, step: int, *, write: bool = True) -> Iterator[Logbook]:
        """Open the logs of a run that is at `step`; rows after it are of a part that was lost, and go."""
        events = None
        if write:
            out.mkdir(parents=True, exist_ok=True)
            for name in (_LOG, _VALIDATION):
                _cut(out / name, step)
            events = _tensorboard(out, step)
        try:
            yield Logbook(out, write, events)
        finally:
            if events is not None:
                events.close()

    def report(self, report: Report) -> None:
        self._write(_LOG, [field.name for field in fields(Report)], astuple(report))
        self._show("train", {field.name: getattr(report, field.name) for field in fields(Report)[1:]}, report.step)

    def validation(self, step: int, losses: Mapping[int, float]) -> None:
        """Loss at each noise level t."""
        self._write(_VALIDATION, ["step", *(f"t{t}" for t in losses)], (step, *losses.values()))
        self._show("validation", {f"t{t}": loss for t, loss in losses.items()}, step)

    def _write(self, name: str, header: Sequence[str], row: Sequence[object]) -> None:
        if not self.write:
            return
        path = self.out / name
        fresh = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(header)
            writer.writerow(row)

    def _show(self, group: str, values: Mapping[str, float], step: int) -> None:
        if self.events is not None:
            for name, value in values.items():
                self.events.add_scalar(f"{group}/{name}", value, step)


def _cut(path: Path, step: int) -> None:
    """Drop the rows after `step`, and a last one that was not finished."""
    if not path.exists():
        return
    header, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    kept = [row for row in rows if row.endswith("\n") and row.partition(",")[0].isdigit()]
    kept = [row for row in kept if int(row.partition(",")[0]) <= step]
    with atomic_write(path) as temporary:
        temporary.write_text("".join([header, *kept]), encoding="utf-8", newline="")


def _tensorboard(out: Path, step: int) -> Any:
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(out / "tensorboard"), purge_step=step + 1)
