"""Web pages from templates: galleries of cards and reports, one stylesheet, no outside resources.

`gallery.html` takes `Card`s, `report.html` takes a `Document`; both extend `base.html`. Text is escaped by the
templates; only pictures and plots, which are SVG that this package made, are inserted as markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sketchdnn.geometry import Sketch

from .style import printable
from .vector import svg

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Card:
    """One picture of a gallery page: its SVG, its title with a label at the right, and details below."""

    picture: str
    title: str
    label: str = ""
    tooltip: str = ""
    lines: Sequence[str] = ()
    warning: str = ""
    links: Mapping[str, str] = field(default_factory=dict)  # text to address
    anchor: str = ""


class Table(NamedTuple):
    """Text in rows; the first column names the row. Numbers are aligned at the right unless `is_text`."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    is_text: bool = False


class Thumbnails(NamedTuple):
    """Small pictures of sketches, each with an optional caption."""

    sketches: Sequence[Sketch]
    captions: Sequence[str] = ()
    title: str = ""


class Section(NamedTuple):
    """One subject of a report. `plots` are SVG, shown on a page; Markdown shows the files named in `pictures`."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[str] = ()
    galleries: Sequence[Thumbnails] = ()
    pictures: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    """A report: a heading, introductory paragraphs, highlighted warnings, and sections in one column.

    `command` is the command that made the report, to be copied. `tiles` are headline numbers by name, on a page only.
    """

    title: str
    lead: Sequence[str]
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = ()
    command: str = ""
    tiles: Mapping[str, str] = field(default_factory=dict)

    def to_html(self) -> str:
        """A self-contained web page."""
        return render_page("report.html", **vars(self))

    def to_markdown(self) -> str:
        """Markdown, without plots and galleries."""
        blocks = [f"# {_escape(self.title)}", *map(_escape, self.lead)]
        if self.command:
            blocks.append(f"    {' '.join(self.command.split())}")
        blocks += [f"> **Note.** {_escape(warning)}" for warning in self.warnings]
        for section in self.sections:
            blocks += [f"## {_escape(section.title)}", *map(_escape, section.paragraphs)]
            for table in section.tables:
                rows = ["| " + " | ".join(map(_escape, cells)) + " |" for cells in (table.head, *table.rows)]
                rows.insert(1, "|" + "|".join(["---"] + ["---:"] * (len(table.head) - 1)) + "|")
                blocks += ["\n".join(rows), *([f"*{_escape(table.caption)}*"] if table.caption else [])]
            blocks += [f"![{name}]({name})" for name in section.pictures]
        return "\n\n".join(blocks).rstrip() + "\n"


def gallery_page(
    title: str, cards: Sequence[Card], *, lead: Sequence[str] = (), legend: str = "", tracks: str = ""
) -> str:
    """A page of cards.

    Args:
        title: The heading.
        cards: The pictures, in order.
        lead: Paragraphs below the heading; `markupsafe.Markup` is inserted unescaped.
        legend: An SVG above the cards.
        tracks: A CSS value of `grid-template-columns`; by default as many columns as the window fits.
    """
    return render_page("gallery.html", title=title, lead=lead, cards=cards, legend=legend, tracks=tracks)


def render_page(template: str, **context: Any) -> str:
    """Fill a template of `render/templates`; every value is escaped unless it is `markupsafe.Markup`."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("sketchdnn.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Text from files may hold control characters.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters["svg"] = lambda sketch, size: Markup(svg(sketch, size))  # noqa: S704 - our own markup
    return environment


def _escape(text: str) -> str:
    """Text from a file or a command must not become markup, end a cell or start a line."""
    text = " ".join(text.split())
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return text
