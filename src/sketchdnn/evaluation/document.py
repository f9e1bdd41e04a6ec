"""A report as sections of words, tables, plots and galleries, and as Markdown. `page` makes a web page of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sketchdnn.geometry import Sketch


@dataclass(frozen=True, slots=True)
class Table:
    """Words in rows; the first column names the row. The caption says what the numbers rest on."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Gallery:
    """Sketches to look at, each with a line below it."""

    title: str
    sketches: Sequence[Sketch]
    captions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Section:
    """One subject. Plots are SVG, and only a page shows them and the galleries; Markdown shows `pictures`, by their
    file names."""

    title: str
    words: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[str] = ()
    galleries: Sequence[Gallery] = ()
    pictures: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """What is said of one system; `command` says it again, and is shown so that it can be copied."""

    title: str
    lead: Sequence[str]
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=tuple)
    command: str = ""


def markdown(document: Document) -> str:
    """The document for a repository or a terminal."""
    lines = [f"# {_plain(document.title)}", ""]
    for words in document.lead:
        lines += [_plain(words), ""]
    if document.command:
        lines += [f"    {' '.join(document.command.split())}", ""]
    for words in document.warnings:
        lines += [f"> **Note.** {_plain(words)}", ""]
    for section in document.sections:
        lines += [f"## {_plain(section.title)}", ""]
        for words in section.words:
            lines += [_plain(words), ""]
        for table in section.tables:
            lines += _table(table)
        for name in section.pictures:
            lines += [f"![{name}]({name})", ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(table: Table) -> list[str]:
    ruler = ["---"] + ["---:"] * (len(table.head) - 1)
    lines = [_row(table.head), "|" + "|".join(ruler) + "|", *(_row(row) for row in table.rows), ""]
    return [*lines, f"*{_plain(table.caption)}*", ""] if table.caption else lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(words: str) -> str:
    """Words from a file or a command must not become markup, end a cell or start a line."""
    words = " ".join(words.split())
    for mark in "\\`*_[]<>|#":
        words = words.replace(mark, "\\" + mark)
    return words
