"""`gallery.html`: a self-contained page with a card for each sketch and links to its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sketchdnn.formats.manifest import MANIFEST
from sketchdnn.geometry import Sketch
from sketchdnn.render import Style, describe, svg
from sketchdnn.render.display import printable

_CSS = """
:root { color-scheme: light dark; --page: #f3f4f6; --card: #fff; --ink: #1f2933; --soft: #66717b; --line: #dfe2e6;
        --button: #eef1f4; --accent: #0072b2; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --card: #1f2329; --ink: #e6e8eb; --soft: #9aa4af;
        --line: #343a42; --button: #2b3038; --accent: #6db3ea; --warn: #e8b45a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 2rem 4rem; max-width: 92rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; font-weight: 600; letter-spacing: -0.015em; }
header p { margin: 0.2rem 0 0; color: var(--soft); max-width: 70rem; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: 1.1rem;
       margin-top: 1.75rem; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; min-width: 0;
          display: flex; flex-direction: column; transition: box-shadow 0.15s; }
article:hover { box-shadow: 0 4px 18px rgb(0 0 0 / 0.1); }
article:target { outline: 2px solid var(--accent); }
article svg { display: block; width: 100%; height: auto; background: #fff; }
.about { padding: 0.7rem 0.9rem 0.85rem; border-top: 1px solid var(--line); flex: 1; }
.about h2 { display: flex; justify-content: space-between; margin: 0; font-size: 0.95rem; font-weight: 600; }
.about h2 span { font-weight: 400; color: var(--soft); font-variant-numeric: tabular-nums; }
.about p { margin: 0.1rem 0 0; font-size: 0.82rem; color: var(--soft); }
.about p.short { color: var(--warn); }
nav { display: flex; flex-wrap: wrap; gap: 0.35rem; margin-top: 0.6rem; }
nav a { padding: 0.12rem 0.6rem; border-radius: 6px; background: var(--button); font-size: 0.76rem; font-weight: 500;
        letter-spacing: 0.02em; color: var(--ink); }
nav a:hover { background: var(--accent); color: var(--card); text-decoration: none; }
@media print { body { padding: 0; } article { break-inside: avoid; } nav { display: none; } }
"""


@dataclass(frozen=True, slots=True)
class GalleryCard:
    """A sketch on the page: its files, the conditions it fails, and how it was repaired."""

    index: int
    sketch: Sketch
    files: tuple[str, ...]
    shortfall: str | None = None
    repair: str | None = None


def gallery_page(
    cards: Sequence[GalleryCard], facts: Mapping[str, Any], num_written: int | None = None, style: Style | None = None
) -> str:
    """The page of some sketches.

    Args:
        cards: The sketches to show.
        facts: Those of the manifest: what was requested.
        num_written: Number of sketches that were written, if more than are shown.
        style: Of the pictures.
    """
    num_written = len(cards) if num_written is None else num_written
    count = int(facts.get("count", num_written))
    title = f"{num_written:,} sketch{'es' * (num_written != 1)}"
    lines = [_describe_request(facts)]
    if num_written < count:
        lines.append(f"Stopped early: {count:,} were asked for.")
    if len(cards) < num_written:
        lines.append(f"The first {len(cards):,} are shown; the others lie beside this page.")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{_CSS}</style>\n</head>\n<body>",
            f"<header><h1>{title}</h1>",
            *(f"<p>{escape(printable(line))}</p>" for line in lines if line),
            f'<p>Details of each are in <a href="{MANIFEST}">{MANIFEST}</a>.</p>\n</header>\n<main>',
            *(_render_card(card, facts.get("seed"), style) for card in cards),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _render_card(card: GalleryCard, seed: object, style: Style | None) -> str:
    links = "".join(f'<a href="{quote(name)}">{escape(_format_label(name))}</a>' for name in card.files)
    shortfall = f'<p class="short">{escape(printable(card.shortfall))}</p>' if card.shortfall else ""
    repair = f"<p>{escape(printable(card.repair))}</p>" if card.repair else ""
    seed_label = "" if seed is None else f"<span>seed {escape(str(seed))}</span>"
    return (
        f'<article id="{card.index}">\n{svg(card.sketch, 300, style=style)}'
        f'<div class="about"><h2>Sketch {card.index}{seed_label}</h2>'
        f"<p>{escape(describe(card.sketch))}</p>{shortfall}{repair}<nav>{links}</nav></div>\n</article>"
    )


def _describe_request(facts: Mapping[str, Any]) -> str:
    """The request in one line."""
    words = []
    if "init_sketch" in facts:
        words.append(f"variations of {Path(facts['init_sketch']).name}, strength {facts['strength']:g}")
    if "part" in facts:
        words.append(f"completions of {Path(facts['part']).name}")
    if "model" in facts:
        words.append(f"model {facts['model']['name']}")
    if "steps" in facts:
        no_steps = facts["steps"] is None  # an autoregressive system
        words.append("drawn token by token" if no_steps else f"{facts['sampler']}, {facts['steps']} steps")
    if "size" in facts:
        words.append(f"{facts['size']:g} {facts['units']} across")
    words += [
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
        for name, value in facts.get("conditions", {}).items()
    ]
    return " · ".join(words)


def _format_label(name: str) -> str:
    """The text of a link to a file.

    >>> _format_label("sketch-0001.dxf"), _format_label("sketch-0001.FCStd"), _format_label("sketch-0001.trajectory.svg")
    ('DXF', 'FCStd', 'trajectory SVG')
    """
    *more, suffix = (part.removeprefix(".") for part in Path(name).suffixes)
    return " ".join([*more, suffix if suffix == "FCStd" else suffix.upper()])
