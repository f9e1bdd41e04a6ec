"""Figures of labels: survival under a schedule, the simplex, the bias of reverse logits."""

import csv
from pathlib import Path

import pytest
import torch

from benchmarks.figures import label_survival, measure_bias, sample_labels, write_bias, write_schedule, write_simplex
from benchmarks.figures.labels import SHARES
from benchmarks.oracles import entropy
from sketchdnn.diffusion.gaussian import Schedule, augment, cosine
from sketchdnn.diffusion.gaussian_softmax import GaussianSoftmax


def read(path: Path) -> dict[str, torch.Tensor]:
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: torch.tensor([float(row[name]) for row in rows], dtype=torch.float64) for name in rows[0]}


def exact_survival(schedule: Schedule, num_categories: int, t: int) -> float:
    """P(argmax y_t is the label), by quadrature."""
    logits = (0.99 * torch.eye(num_categories, dtype=torch.float64)[0] + 0.01 / num_categories).log()
    level = schedule.at(t)
    return float(GaussianSoftmax(level.alpha_bar.sqrt() * logits, level.var.sqrt()).argmax_probs()[0])


@pytest.mark.parametrize(("num_categories", "tolerance"), [(5, 0.16), (2, 0.06)])  # a Gaussian is not a Gumbel
def test_augmented_labels_survive_about_as_long_as_the_target(tmp_path, num_categories: int, tolerance: float) -> None:
    write_schedule(tmp_path, label_survival(num_categories=num_categories))
    table = read(tmp_path / "schedule.csv")
    assert table["t"].tolist() == list(range(2001))
    target = table["alpha_bar"] + (1 - table["alpha_bar"]) / num_categories
    assert (table["kept_augmented"] - target).abs().max() < tolerance
    assert (table["kept_raw"] - target).abs().max() > 0.3
    for name in ("kept_raw", "kept_augmented"):
        assert table[name][[0, -1]].tolist() == pytest.approx([1.0, 1 / num_categories], abs=0.01)


def test_raw_schedule_changes_labels_late_and_at_once() -> None:
    survival = label_survival()
    assert survival.kept_raw[1000] > 0.999
    assert survival.kept_augmented[1000] < 0.8
    steepest_raw, steepest = (kept.diff().abs().max() for kept in (survival.kept_raw, survival.kept_augmented))
    assert steepest_raw > 1.5 * steepest
    assert (survival.kept_augmented.diff() <= 0).all()
    schedule = augment(cosine(2000), 5, 0.99)
    for t in (1, 300, 900, 1500, 1999):  # Monte Carlo agrees with quadrature to four standard errors
        assert float(survival.kept_augmented[t]) == pytest.approx(exact_survival(schedule, 5, t), abs=0.007)


@pytest.mark.parametrize(
    ("num_categories", "augmented", "raw"), [(2, 0.041, 0.370), (3, 0.079, 0.494), (5, 0.139, 0.594)]
)
def test_excess_survival_is_as_documented(num_categories: int, augmented: float, raw: float) -> None:
    plain = cosine(2000)

    def largest_excess(schedule: Schedule) -> float:
        target = plain.alpha_bar + plain.var / num_categories
        return max(exact_survival(schedule, num_categories, t) - float(target[t]) for t in range(5, 2000, 5))

    assert largest_excess(augment(plain, num_categories, 0.99)) == pytest.approx(augmented, abs=6e-4)
    assert largest_excess(plain) == pytest.approx(raw, abs=6e-4)


def test_schedule_figure_is_deterministic_and_labels_dissolve_earlier_when_augmented(tmp_path: Path) -> None:
    survival = label_survival(num_steps=50, samples=1000)
    first, second = (write_schedule(tmp_path / name, survival) for name in "ab")
    assert [path.name for path in first] == ["schedule.png", "schedule.svg", "schedule.csv"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    kept = []
    for label in sample_labels(samples=2000):
        torch.testing.assert_close(label.samples.sum(-1), torch.ones(len(label.steps), 2000, dtype=torch.float64))
        kept.append((label.samples.argmax(-1) == 0).double().mean(-1))
        assert kept[-1][0] == 1
        assert abs(kept[-1][-1] - 1 / 3) < 0.05
    assert (kept[1] <= kept[0]).all()
    png, svg = write_simplex(tmp_path, sample_labels(num_steps=100, samples=50))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in svg.read_bytes()[:1000]


def test_only_expected_logits_are_unbiased(tmp_path: Path) -> None:
    """On a coarse process and few samples; the figure in the docs has all."""
    steps: list[None] = []
    biases = measure_bias(num_steps=150, samples=250, draws=16, on_step=lambda: steps.append(None))
    assert len(steps) == 3 * 150
    by_logits = {bias.logits: bias for bias in biases}
    nats = {logits: bias.nats.mean for logits, bias in by_logits.items()}
    assert abs(nats["expected"] - entropy(SHARES)) < 0.08
    assert nats["expected"] + 0.3 < nats["log"] < nats["2log"]
    assert by_logits["log"].shares[0] < SHARES[0] - 0.04
    assert by_logits["2log"].shares[4] < SHARES[4] - 0.005
    paths = write_bias(tmp_path, biases)
    assert [path.suffix for path in paths] == [".png", ".svg", ".csv"]
    with paths[-1].open(encoding="utf-8") as lines:
        rows = {row["logits"]: row for row in csv.DictReader(lines)}
    assert set(rows) == {"target", "log", "2log", "expected"}
    assert abs(sum(float(rows["log"][f"share_{i}"]) for i in range(5)) - 1) < 1e-3
