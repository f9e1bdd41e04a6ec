"""Plots show their values; sheets are random and galleries are ordered by gap."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from PIL import Image
from support.evaluation_data import procedural_sketches
from support.sketch_sets import pulled_square, rows, square

from sketchdnn.evaluation import plots
from sketchdnn.evaluation.curves import largest_gaps
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.geometry import Circle, normalize
from sketchdnn.representation import encode


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("text")]


def test_plots_show_their_values() -> None:
    for count in (1, 2, 60):
        first = {f"n{i}": (i + 1) / count for i in range(count)}
        labels = texts(plots.plot_distributions(first, dict.fromkeys(first, 0.5), ("_ours", "$a$ <b>"), "size"))
        assert {"_ours", "$a$ <b>", "size", *first} <= set(labels)
        assert labels.count("50") >= count
    assert {"40", "10", "20", "0"} <= set(
        texts(plots.plot_distributions({"a": 0.1, "b": 0.4}, {"a": 0.2}, ("x", "y"), ""))
    )
    curves = [plots.Curve("jitter", ["1", "2", "3"], (-3.0, 0.0, 4.0)), plots.Curve("drop", ["x"], [1.0])]
    svg = plots.plot_panels(
        [
            plots.Panel("FID", curves, 2.0, "a name that is much longer than forty characters"),
            plots.Panel("KID", curves),
        ]
    )
    labels = texts(svg)
    assert labels.count("jitter") == labels.count("drop") == 2
    assert labels.count("x") == 2
    assert {"FID", "KID"} <= set(labels)
    assert [label for label in labels if label.endswith("…")] == ["a name that is much longer than forty c…"]
    assert len(re.findall(r"stroke-dasharray", svg)) == 2  # the level, and its key
    assert plots.plot_panels([plots.Panel("FID", curves)]) == plots.plot_panels([plots.Panel("FID", curves)])


def test_galleries_and_sheets(tmp_path: Path) -> None:
    gaps = np.random.default_rng(0).permutation(np.linspace(0, 0.2, 90))
    compact = rows(*(pulled_square(float(gap)) for gap in gaps))
    selection = plots.select_galleries(compact)
    best, typical, worst = (largest_gaps(compact[np.array(selection[name])]) for name in ("best", "typical", "worst"))
    assert len(best) == len(typical) == len(worst) == plots.GALLERY_SIZE == 16
    assert best.max() < typical.min()
    assert typical.max() < worst.min()
    assert typical.min() <= np.median(largest_gaps(compact)) <= typical.max()
    assert plots.make_galleries(compact, selection)[0].captions[0] == "gap 0"
    compact = jitter_ends(encode([normalize(sketch)[0] for sketch in procedural_sketches(7)]), 0.02, 0)
    indices = [index for gallery in plots.select_galleries(compact).values() for index in gallery]
    assert len(indices) == len(set(indices))
    compact = rows(*[square()] * 100, *[[Circle((0, 0), 1)]] * 100)
    for name, part in {"many": compact, "again": compact, "first": compact[:64], "few": compact[:3]}.items():
        plots.write_sheet(part, tmp_path / f"{name}.png")
    assert (tmp_path / "many.png").read_bytes() == (tmp_path / "again.png").read_bytes()
    many, first, few = (Image.open(tmp_path / f"{name}.png") for name in ("many", "first", "few"))
    with many, first, few:
        assert many.size == first.size
        assert many.tobytes() != first.tobytes()  # a file sorted by kind shows both
        assert few.height < many.height / 4
