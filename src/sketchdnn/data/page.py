"""The report as one web page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sketchdnn.geometry import Sketch

from .plots import bars, columns

MOST_REASONS = 12

_CSS = """
:root { color-scheme: light dark; --page: #f6f7f8; --card: #fff; --ink: #1f2933; --soft: #5b6770; --line: #dfe2e6;
        --bar: #8fb8d8; --part: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --card: #1f2329; --ink: #e6e8eb; --soft: #9aa4af;
        --line: #343a42; --bar: #3b6d92; --part: #7cc0ee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 76rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; font-weight: 600; letter-spacing: -0.01em; }
h2 { margin: 0 0 0.9rem; font-size: 1.02rem; font-weight: 600; }
.soft { color: var(--soft); fill: var(--soft); } header p { margin: 0.3rem 0 0; color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: 0.8rem; margin: 1.6rem 0; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { flex: 1 1 9rem; padding: 0.8rem 1rem; }
.tile b { display: block; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; line-height: 1.25; }
.tile span { color: var(--soft); font-size: 0.85rem; }
main { columns: 28rem 2; column-gap: 1rem; margin-bottom: 1rem; }
section { padding: 1.1rem 1.2rem; margin-bottom: 1rem; break-inside: avoid; }
svg.plot { display: block; width: 100%; height: auto; overflow: visible; font-size: 13px;
           font-variant-numeric: tabular-nums; }
svg.plot text { fill: var(--ink); } svg.plot .small { font-size: 11px; } svg.plot .soft { fill: var(--soft); }
.bar { fill: var(--bar); } .part { fill: var(--part); }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
td, th { text-align: left; padding: 0.25rem 0.6rem 0.25rem 0; border-bottom: 1px solid var(--line); font-weight: 400; }
th { color: var(--soft); } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; padding-right: 0; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)); gap: 0.5rem; }
.gallery svg { display: block; width: 100%; height: auto; border: 1px solid var(--line); border-radius: 4px; }
"""


def report_page(report: Mapping[str, Any], sketches: Sequence[Sketch]) -> str:
    """The page for what `Report.to_json` gives, with a gallery of these sketches."""
    config, found, kept = report["config"], report["found"], report["kept"]
    size = f"{config['min_primitives']} to {config['max_primitives']} primitives"
    tiles = {
        "sketches found": found,
        "refused": sum(report["refused"].values()),
        "duplicates": report["duplicates"],
        "in an earlier split": sum(report["repeats_of_an_earlier_split"].values()),
        "kept": kept,
        **{f"in {split}": count for split, count in report["splits"].items()},
    }
    sections = [
        _section("From found to kept", bars(_funnel(report), of=found)),
        _section("Why sketches were refused", bars(_most(report["refused"]), of=found)),
        _section("Duplicates", _duplicates(report["duplicate_group_sizes"])),
        _section("Sources and licences", _licences(report["licences"])),
        _section("Primitives a sketch", columns(report["primitives_per_sketch"], "primitives")),
        _section(
            "Kinds of primitive (dark: construction)",
            bars(report["kinds"], of=sum(report["kinds"].values()), parts=report["construction"]),
        ),
        _section("True size", _sizes(report)),
    ]
    if report["passed_over"]:
        sections.append(_section("Passed over while reading", bars(_most(report["passed_over"]))))
    if report["files_not_read"]:
        sections.append(_section("Files that could not be read", _table(("file", "reason"), report["files_not_read"])))
    files = f" · {report['files']:,} file{'s' * (report['files'] > 1)} read" if report["files"] else ""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{kept:,} prepared sketches</title>\n<style>{_CSS}</style>\n</head>\n<body>",
            f"<header><h1>{kept:,} prepared sketches</h1>",
            f"<p>preset <b>{escape(config['preset'])}</b> · {size}{files}</p></header>",
            '<div class="tiles">',
            *(f'<div class="tile"><b>{value:,}</b><span>{escape(name)}</span></div>' for name, value in tiles.items()),
            "</div>\n<main>",
            *sections,
            "</main>",
            _section(
                f"The first {len(sketches)}, in the order of the corpus, which is as good as random", _gallery(sketches)
            ),
            "</body>\n</html>\n",
        ]
    )


def _funnel(report: Mapping[str, Any]) -> dict[str, int]:
    fitting = report["found"] - sum(report["refused"].values())
    unique = fitting - report["duplicates"]
    return {
        "found": report["found"],
        "fit": fitting,
        "not a duplicate": unique,
        "kept": report["kept"],
        **report["splits"],
    }


def _sizes(report: Mapping[str, Any]) -> str:
    unknown = report["units"].get("not stated", 0)
    lowest = {_thousands(name.split("–")[0]): count for name, count in report["sizes_mm"].items()}
    plot = columns(lowest, "larger side, from so many mm to the next") if lowest else ""
    note = f"<p class=soft>{unknown:,} sketches come from files that name no unit.</p>" if unknown else ""
    return plot + note


def _thousands(number: str) -> str:
    return f"{float(number) / 1000:g}k" if float(number) >= 1000 else number


def _most(counts: Mapping[str, int]) -> dict[str, int]:
    """The commonest, and the others together."""
    shown = dict(list(counts.items())[:MOST_REASONS])
    others = sum(counts.values()) - sum(shown.values())
    return {**shown, f"{len(counts) - len(shown)} other reasons": others} if others else shown


def _duplicates(sizes: Mapping[str, int]) -> str:
    """Group sizes, the larger ones together."""
    steps = [(1, 1), (2, 2), (3, 5), (6, 10), (11, 100), (101, 10**12)]
    names = ["no twin", "2 alike", "3 to 5 alike", "6 to 10 alike", "11 to 100 alike", "more than 100 alike"]
    counted = {
        name: sum(count for size, count in sizes.items() if low <= int(size) <= high)
        for name, (low, high) in zip(names, steps, strict=True)
    }
    largest = max(map(int, sizes))
    remark = f"The largest group had {largest:,} members." if largest > 1 else "No sketch occurs twice."
    return bars({n: c for n, c in counted.items() if c}) + f"<p class=soft>{remark}</p>"


def _licences(licences: Mapping[str, Mapping[str, int]]) -> str:
    rows = "".join(
        f"<tr><td>{escape(source)}</td><td>{escape(licence)}</td><td class=n>{count:,}</td></tr>"
        for source, counts in licences.items()
        for licence, count in counts.items()
    )
    return f"<table><tr><th>source</th><th>licence</th><th class=n>sketches</th></tr>{rows}</table>"


def _table(head: tuple[str, str], rows: Mapping[str, str]) -> str:
    body = "".join(f"<tr><td>{escape(key)}</td><td>{escape(value)}</td></tr>" for key, value in rows.items())
    return f"<table><tr><th>{head[0]}</th><th>{head[1]}</th></tr>{body}</table>"


def _gallery(sketches: Sequence[Sketch]) -> str:
    from sketchdnn.render import svg

    return f'<div class="gallery">{"".join(svg(sketch, 130) for sketch in sketches)}</div>'


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"
