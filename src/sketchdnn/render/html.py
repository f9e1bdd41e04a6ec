"""Web pages from templates: galleries of cards and reports of sections, one stylesheet, no outside resources.

`gallery.html` takes `Card`s, `report.html` takes `Section`s; both extend `base.html`. Text is escaped by the templates;
only pictures and plots, which are SVG that this package made, are inserted as markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class Table:
    """Text in rows; the first column names the row. Numbers are aligned at the right unless `is_text`."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """Small pictures of sketches, each with an optional caption."""

    sketches: Sequence[Sketch]
    captions: Sequence[str] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One subject of a report. `plots` are SVG, shown on a page; Markdown shows the files named in `pictures`."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[str] = ()
    galleries: Sequence[Thumbnails] = ()
    pictures: Sequence[str] = ()


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


def report_page(
    title: str,
    sections: Sequence[Section],
    *,
    lead: Sequence[str] = (),
    tiles: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
    command: str = "",
) -> str:
    """A page of sections in one column.

    Args:
        title: The heading.
        sections: The subjects, in order.
        lead: Paragraphs below the heading.
        tiles: Headline numbers by name, shown in a row.
        warnings: Highlighted paragraphs before the sections.
        command: The command that made the report, to be copied.
    """
    context = {"lead": lead, "tiles": tiles, "warnings": warnings, "command": command}
    return render_page("report.html", title=title, sections=sections, **context)


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
