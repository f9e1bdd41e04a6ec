"""docs/equations.md names functions and tests; all of them exist."""

import pkgutil
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")


def test_equations_tests_functions_and_files_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.py)::(test_\w+)`", TEXT))
    assert len(named) > 40
    assert not [pair for pair in named if f"def {pair[1]}(" not in (ROOT / "tests" / pair[0]).read_text("utf-8")]
    named = set(re.findall(r"`((?:benchmarks|diffusion|representation|systems)\.[\w.]+)`", TEXT))
    assert len(named) > 25
    for name in named:
        pkgutil.resolve_name(name if name.startswith("benchmarks") else f"sketchdnn.{name}")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / "docs" / link).is_file()]
    labels = {
        "fig:variance-aug",
        "cumulative_forward",
        "gauss-soft-density",
        "reverse-derivation",
        "variance-augmentation",
    }
    labels |= {f"eqn:continous {name} transition" for name in ("cumulative", "reverse")} | {"eqn:variance modification"}
    labels |= {f"eqn:discrete_{name}_transition" for name in ("forward", "cumulative", "reverse")}
    assert not [label for label in labels if f"`{label}`" not in TEXT]
