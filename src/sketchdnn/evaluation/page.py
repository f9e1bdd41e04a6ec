"""The report as one web page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sketchdnn.render import svg

from .document import Document, Gallery, Section, Table

_CSS = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1f2933; --soft: #66717b; --line: #e2e5e8;
        --mine: #d97a2b; --theirs: #8fb0c9; --warn: #fff6e5; --warn-line: #e8c27a; --first: #1f6fb4;
        --second: #2e8b57; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --card: #1f2329; --ink: #e6e8eb; --soft: #9aa4af;
        --line: #343a42; --mine: #e8995a; --theirs: #4a6f8c; --warn: #332a18; --warn-line: #7a6230;
        --first: #6db3ea; --second: #63b98a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 3rem 1.5rem 5rem; max-width: 58rem; background: var(--page); color: var(--ink);
       font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { margin: 0 0 0.4rem; font-size: 1.7rem; font-weight: 600; letter-spacing: -0.015em; }
h2 { margin: 2.8rem 0 0.5rem; font-size: 1.12rem; font-weight: 600; }
h3 { margin: 1.4rem 0 0.4rem; font-size: 0.95rem; font-weight: 600; }
p { margin: 0.35rem 0; max-width: 46rem; } header p, .caption { color: var(--soft); }
code { font: 0.9em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.warning { background: var(--warn); border-left: 3px solid var(--warn-line); padding: 0.5rem 0.9rem; margin: 0.8rem 0;
           max-width: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 0.9rem 0 0.3rem; font-size: 0.9rem; }
th, td { text-align: right; padding: 0.32rem 0 0.32rem 1.1rem; border-bottom: 1px solid var(--line); font-weight: 400;
         font-variant-numeric: tabular-nums; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); border-bottom-color: var(--soft); }
.caption { font-size: 0.82rem; margin-bottom: 1rem; max-width: none; }
svg.plot { display: block; width: 100%; height: auto; margin: 1.1rem 0 0.4rem; overflow: visible; font-size: 13px;
           font-variant-numeric: tabular-nums; }
svg.plot text { fill: var(--ink); } svg.plot .small { font-size: 11.5px; } svg.plot .tiny { font-size: 10px; }
svg.plot .soft { fill: var(--soft); } svg.plot .strong { font-weight: 600; font-size: 12.5px; }
.mine { fill: var(--mine); } .theirs { fill: var(--theirs); }
.axis { stroke: var(--soft); stroke-width: 1; } .grid { stroke: var(--line); stroke-width: 1; }
.curve { fill: none; stroke-width: 1.8; } .curve.c0 { stroke: var(--first); } .curve.c1 { stroke: var(--second); }
.dot.c0 { fill: var(--first); } .dot.c1 { fill: var(--second); }
svg.plot .t0 { fill: var(--first); } svg.plot .t1 { fill: var(--second); }
.level { stroke: var(--mine); stroke-width: 1.5; stroke-dasharray: 5 4; } svg.plot .level-name { fill: var(--mine); }
.gallery { display: grid; grid-template-columns: repeat(8, minmax(0, 1fr)); gap: 0.45rem; }
@media (max-width: 44rem) { .gallery { grid-template-columns: repeat(4, minmax(0, 1fr)); } }
figure { margin: 0; min-width: 0; } figcaption { color: var(--soft); font-size: 0.72rem; text-align: center; }
.gallery svg { display: block; width: 100%; height: auto; border: 1px solid var(--line); border-radius: 4px; }
@media print { body { padding: 0; } figure, table { break-inside: avoid; } }
"""


def page(document: Document) -> str:
    """The whole page: one column, every word escaped, pictures drawn in place."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(document.title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>",
            f"<header><h1>{escape(document.title)}</h1>",
            *_paragraphs(document.lead),
            f"<p><code>{escape(document.command)}</code></p>" if document.command else "",
            "</header>",
            *(f'<p class="warning">{escape(words)}</p>' for words in document.warnings),
            *(_section(section) for section in document.sections),
            "</body>\n</html>\n",
        ]
    )


def _section(section: Section) -> str:
    return "\n".join(
        [
            f"<section>\n<h2>{escape(section.title)}</h2>",
            *_paragraphs(section.words),
            *(_table(table) for table in section.tables),
            *section.plots,
            *(_gallery(gallery) for gallery in section.galleries),
            "</section>",
        ]
    )


def _paragraphs(words: Sequence[str]) -> list[str]:
    return [f"<p>{escape(sentence)}</p>" for sentence in words]


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in table.rows)
    caption = f'<p class="caption">{escape(table.caption)}</p>' if table.caption else ""
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n{caption}'


def _gallery(gallery: Gallery) -> str:
    figures = "".join(
        f"<figure>{svg(sketch, 130)}<figcaption>{escape(caption)}</figcaption></figure>"
        for sketch, caption in zip(gallery.sketches, gallery.captions, strict=True)
    )
    return f'<h3>{escape(gallery.title)}</h3>\n<div class="gallery">{figures}</div>'
