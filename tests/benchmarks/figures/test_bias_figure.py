from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.figures import measure_bias, write_bias
from benchmarks.figures.labels import SHARES
from benchmarks.oracles import entropy


def test_only_expected_logits_are_without_bias(tmp_path: Path) -> None:
    """On a coarse process and few samples: the figure in the docs has them all."""
    steps_seen: list[None] = []
    measured = measure_bias(num_steps=150, samples=250, draws=16, on_step=lambda: steps_seen.append(None))
    assert len(steps_seen) == 3 * 150
    by_form = {one.form: one for one in measured}
    nats = {form: one.nats.mean for form, one in by_form.items()}
    assert abs(nats["expected"] - entropy(SHARES)) < 0.08
    assert nats["expected"] + 0.3 < nats["log"] < nats["2log"]
    assert by_form["log"].shares[0] < SHARES[0] - 0.04
    assert by_form["2log"].shares[4] < SHARES[4] - 0.005

    paths = write_bias(tmp_path, measured)
    assert [path.suffix for path in paths] == [".png", ".svg", ".csv"]
    with paths[-1].open(encoding="utf-8") as lines:
        rows = {row["logits"]: row for row in csv.DictReader(lines)}
    assert set(rows) == {"target", "log", "2log", "expected"}
    assert abs(sum(float(rows["log"][f"share_{i}"]) for i in range(5)) - 1) < 1e-3
