from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import torch

from benchmarks.figures import label_survival, write_schedule
from sketchdnn.diffusion.gaussian import Schedule, augment, cosine
from sketchdnn.diffusion.gaussian_softmax import GaussianSoftmax


def read(folder: Path) -> dict[str, torch.Tensor]:
    with (folder / "schedule.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: torch.tensor([float(row[name]) for row in rows], dtype=torch.float64) for name in rows[0]}


@pytest.mark.parametrize(("num_categories", "looseness"), [(5, 0.16), (2, 0.06)])
def test_augmented_labels_survive_about_as_long_as_asked(tmp_path: Path, num_categories: int, looseness: float) -> None:
    """A Gaussian is not a Gumbel: hence the looseness."""
    write_schedule(tmp_path, label_survival(num_categories=num_categories))
    table = read(tmp_path)
    assert table["t"].tolist() == list(range(2001))
    asked = table["alpha_bar"] + (1 - table["alpha_bar"]) / num_categories
    assert (table["kept_augmented"] - asked).abs().max() < looseness
    assert (table["kept_raw"] - asked).abs().max() > 0.3  # and without the augmentation they do not
    for end, value in ((0, 1.0), (-1, 1 / num_categories)):
        assert table["kept_raw"][end] == pytest.approx(value, abs=0.01)
        assert table["kept_augmented"][end] == pytest.approx(value, abs=0.01)


def test_the_figure_shows_the_claim_of_the_paper() -> None:
    """Raw: nothing happens for half of the time, then everything at once. Augmented: gradual."""
    survival = label_survival()
    assert survival.kept_raw[1000] > 0.999
    assert survival.kept_augmented[1000] < 0.8
    steepest_raw, steepest = (kept.diff().abs().max() for kept in (survival.kept_raw, survival.kept_augmented))
    assert steepest_raw > 1.5 * steepest
    assert (survival.kept_augmented.diff() <= 0).all()


def test_monte_carlo_agrees_with_quadrature() -> None:
    survival = label_survival(num_categories=5, num_steps=2000)
    schedule = augment(cosine(2000), 5, 0.99)
    logits = (0.99 * torch.eye(5, dtype=torch.float64)[0] + 0.002).log()
    for t in (1, 300, 900, 1500, 1999):
        level = schedule.at(t)
        exact = GaussianSoftmax(level.alpha_bar.sqrt() * logits, level.var.sqrt()).argmax_probs()[0]
        assert float(survival.kept_augmented[t]) == pytest.approx(float(exact), abs=0.007)  # over four standard errors


@pytest.mark.parametrize(
    ("num_categories", "augmented", "raw"), [(2, 0.041, 0.370), (3, 0.079, 0.494), (5, 0.139, 0.594)]
)
def test_labels_outlive_what_is_asked_by_as_much_as_the_docs_say(
    num_categories: int, augmented: float, raw: float
) -> None:
    """By quadrature, over every fifth step."""
    plain = cosine(2000)
    label = torch.eye(num_categories, dtype=torch.float64)[0]
    logits = (0.99 * label + 0.01 / num_categories).log()

    def most(schedule: Schedule) -> float:
        excess = []
        for t in range(5, 2000, 5):
            level, asked = schedule.at(t), plain.alpha_bar[t] + plain.var[t] / num_categories
            exact = GaussianSoftmax(level.alpha_bar.sqrt() * logits, level.var.sqrt()).argmax_probs()[0]
            excess.append(float(exact - asked))
        return max(excess)

    assert most(augment(plain, num_categories, 0.99)) == pytest.approx(augmented, abs=6e-4)
    assert most(plain) == pytest.approx(raw, abs=6e-4)


def test_it_is_drawn_the_same_every_time(tmp_path: Path) -> None:
    survival = label_survival(num_steps=50, samples=1000)
    first, second = (write_schedule(tmp_path / name, survival) for name in "ab")
    assert [path.name for path in first] == ["schedule.png", "schedule.svg", "schedule.csv"]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(first[1]).getroot().tag.endswith("svg")
