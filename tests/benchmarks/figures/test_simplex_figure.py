from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.figures import label_clouds, write_simplex


def test_a_label_dissolves_and_sooner_when_augmented() -> None:
    for clouds in label_clouds(samples=2000):
        torch.testing.assert_close(clouds.samples.sum(-1), torch.ones(len(clouds.steps), 2000, dtype=torch.float64))
        kept = [(step.argmax(-1) == 0).double().mean() for step in clouds.samples]
        assert kept[0] == 1
        assert abs(kept[-1] - 1 / 3) < 0.05
    raw, augmented = ((c.samples.argmax(-1) == 0).double().mean(-1) for c in label_clouds(samples=2000))
    assert (augmented <= raw).all()


def test_it_is_drawn(tmp_path: Path) -> None:
    png, svg = write_simplex(tmp_path, label_clouds(num_steps=100, samples=50))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in svg.read_bytes()[:1000]
