"""docs/equations.md names functions and tests; all of them exist."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")


def test_every_test_it_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)::(test_\w+)`", TEXT))
    assert len(named) > 40
    missing = [
        f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / "tests" / file).read_text("utf-8")
    ]
    assert not missing


def test_every_function_it_names_exists() -> None:
    named = set(re.findall(r"`((?:benchmarks|diffusion|representation|systems)\.[\w.]+)`", TEXT))
    assert len(named) > 25
    for name in named:
        pkgutil.resolve_name(name if name.startswith("benchmarks") else f"sketchdnn.{name}")


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / "docs" / link).is_file()]


def test_every_labeled_equation_of_the_paper_is_there() -> None:
    for label in (
        "eqn:continous cumulative transition",
        "eqn:continous reverse transition",
        "eqn:discrete_forward_transition",
        "eqn:discrete_cumulative_transition",
        "eqn:discrete_reverse_transition",
        "eqn:variance modification",
        "fig:variance-aug",
        "cumulative_forward",
        "gauss-soft-density",
        "reverse-derivation",
        "variance-augmentation",
    ):
        assert f"`{label}`" in TEXT
