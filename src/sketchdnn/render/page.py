"""Many sketches as one self-contained web page: a card each, as wide as the window likes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sketchdnn.geometry import Sketch

from .display import Style, describe, printable
from .gallery import cards, notes_or_none
from .notes import Notes
from .vector import FONT, legend_svg, svg

_KEY_WIDTH = 900

_CSS = """
:root { color-scheme: light dark; --page: #f3f4f6; --ink: #1f2933; --soft: #5b6770; --line: #dfe2e6; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --ink: #e6e8eb; --soft: #9aa4af; --line: #16181c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 2rem; max-width: 90rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 FONT; }
h1 { margin: 0; font-size: 1.5rem; font-weight: 600; letter-spacing: -0.01em; }
header p { margin: 0.25rem 0 0; color: var(--soft); }
main { display: grid; grid-template-columns: repeat(COLUMNS, minmax(0, 1fr)); gap: 1rem; margin-top: 1.75rem; }
figure { margin: 0; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
figcaption { padding: 0.35rem 0.25rem 0; font-size: 0.8rem; color: var(--soft); text-align: center;
             overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.key { margin-top: 1.5rem; }
.key svg { display: block; max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
@media print { body { padding: 0; } figure { break-inside: avoid; } }
"""


def gallery_html(
    sketches: Sequence[Sketch],
    *,
    title: str = "Sketches",
    subtitle: str = "",
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    cell: int = 200,
    style: Style | None = None,
    notes: Sequence[Notes] | None = None,
) -> str:
    """A page that needs nothing but itself. Cards stay white in the dark too: the colors are chosen for white.

    With notes, one for each sketch, constraints are drawn, each named where the pointer rests on it.
    """
    sketches, captions = cards(sketches, [describe(sketch) for sketch in sketches] if captions is None else captions)
    tracks = str(columns) if columns else "auto-fill"
    css = _CSS.replace("FONT", FONT).replace("COLUMNS", tracks)
    if not columns:
        css = css.replace("minmax(0, 1fr)", f"minmax(min({cell}px, 100%), 1fr)")
    figures = [
        f'<figure title="{escape(describe(sketch))}">\n{svg(sketch, cell, style=style, notes=note, explained=False)}'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
        for sketch, caption, note in zip(sketches, captions, notes_or_none(sketches, notes), strict=True)
    ]
    larger = (style or Style()).times(1.25)
    key = [f'<div class="key">\n{legend_svg(sketches, notes, _KEY_WIDTH, larger)}</div>'] if notes else []
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(printable(title))}</title>\n<style>{css}</style>\n</head>\n<body>",
            f"<header><h1>{escape(printable(title))}</h1>",
            *([f"<p>{escape(printable(subtitle))}</p>"] if subtitle else []),
            "</header>",
            *key,
            "<main>",
            *figures,
            "</main>\n</body>\n</html>\n",
        ]
    )
