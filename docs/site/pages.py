"""Pages of the site that are made from files of the repository, from the command line and from the code.

On GitHub such a page is a short text with a link; on the site its content takes the place of the text or follows it.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.main import get_command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages that show another file, which links to pages as docs/NAME.md.
SHOWN = {
    "changes": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "license_of_the_weights": "src/sketchdnn/weights/ours/NOTICE.md",
}
PACKAGES = (
    "sketchdnn",
    "sketchdnn.geometry",
    "sketchdnn.constraints",
    "sketchdnn.formats",
    "sketchdnn.render",
    "sketchdnn.tracing",
    "sketchdnn.representation",
    "sketchdnn.data",
    "sketchdnn.diffusion",
    "sketchdnn.drawing",
    "sketchdnn.systems",
    "sketchdnn.generation",
    "sketchdnn.evaluation",
    "sketchdnn.errors",
)
# Pages with a list whose line `*` stands for the pages of their folder that they do not name, such as new ones.
SECTIONS = ("index", "tutorials/index")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def setup(app: Any) -> None:
    """Connect to Sphinx."""
    app.connect("builder-inited", lambda _: write_api_pages(DOCS / "reference" / "api"))
    # These depend on more than their own file.
    app.connect("env-get-outdated", lambda *_: [*SECTIONS, *SHOWN, *MADE])
    app.connect("source-read", fill_page)


def fill_page(_: Any, name: str, source: list[str]) -> None:
    """Replace or extend the text of a page before it is parsed."""
    if name in SECTIONS:
        source[0] = _list_further_pages(name, source[0])
    if name in SHOWN:
        source[0] = (ROOT / SHOWN[name]).read_text(encoding="utf-8").replace("](docs/", "](")
    elif name in MADE:
        source[0] += "\n" + MADE[name]()
    source[0] = _LINK.sub(lambda link: _within_site(name, link), source[0])


def _list_further_pages(name: str, text: str) -> str:
    named = {line.strip() for line in text.splitlines()}
    rest = {path.stem for path in (DOCS / name).parent.glob("*.md")} - named - {"index"}
    return re.sub(r"^\*\n", "".join(f"{page}\n" for page in sorted(rest)), text, flags=re.MULTILINE)


def _within_site(name: str, link: re.Match[str]) -> str:
    """A link of a page as the site can resolve it: folders outside docs have no page, so their name is shown."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    folder = ROOT if name in SHOWN and not (DOCS / target).exists() else (DOCS / name).parent
    path = (folder / target).resolve()
    for page, file in SHOWN.items():
        if path == ROOT / file:
            up = "../" * name.count("/")
            return f"[{text}]({up}{page}.md{anchor})"
    if path == ROOT / "README.md":
        return f"[{text}]({'../' * name.count('/')}index.md)"
    if path.is_dir():
        if (path / "index.md").is_file():
            return f"[{text}]({target.rstrip('/')}/index.md{anchor})"
        shown = path.relative_to(ROOT).as_posix()
        return f"`{shown}`" if text.strip("`/ ") in shown else f"{text} (`{shown}`)"
    if name in SHOWN and folder == ROOT:
        return f"{text} (`{target}`)"
    return link[0]


def write_api_pages(folder: Path) -> None:
    """One page for each public package, with the docstrings of all names that it exports."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        # The names of the top package are those of the others, where links lead.
        names = _names() if package == "sketchdnn" else ""
        members = "" if names else "   :members:\n"
        text = f"# `{package}`\n\n```{{eval-rst}}\n.. automodule:: {package}\n{members}```\n{names}"
        _write(folder / f"{package}.md", text)


def packages() -> str:
    """A table of the public packages, and their pages for the navigation."""
    table = "\n".join(f"| [`{package}`]({package}.md) | {_summary(package)} |" for package in PACKAGES)
    toctree = "```{toctree}\n:hidden:\n\n" + "\n".join(PACKAGES) + "\n```\n"
    return f"| package | content |\n|---|---|\n{table}\n\n{toctree}"


def _write(path: Path, text: str) -> None:
    """Write a page only if it changed, so that a second build reads only what is new."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _names() -> str:
    """The names of the top package, with links to the packages that they come from."""
    top = importlib.import_module("sketchdnn")
    rows = []
    for name in top.__all__:
        value = getattr(top, name)
        home = next(p for p in PACKAGES[1:] if getattr(importlib.import_module(p), name, None) is value)
        summary = (value.__doc__ or "").strip().splitlines()[0]
        rows.append(f"| {{py:obj}}`~{home}.{name}` | {summary} |")
    return "\n| name | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _summary(package: str) -> str:
    return (importlib.import_module(package).__doc__ or "").strip().splitlines()[0]


def command_line() -> str:
    """Every command with its arguments and options, from the code that parses them."""
    root = get_command(_app())
    return "\n".join(_commands(root, "sketchdnn"))


def _app() -> Any:
    from sketchdnn.cli.app import app

    return app


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        full = f"{path} {name}"
        yield f"## `{full}`\n\n{_plain(command.help)}\n"
        if command.epilog:
            yield f"```\n{command.epilog.strip().removeprefix('Example: ')}\n```\n"
        parameters = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
        if parameters:
            yield "| option | meaning | default |\n|---|---|---|"
            yield from map(_row, parameters)
            yield ""
        if hasattr(command, "commands"):
            yield from _commands(command, full)


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name, words = f"`{(parameter.metavar or parameter.name).upper()}`", getattr(parameter, "help", "") or ""
    else:
        name = ", ".join(f"`{option}`" for option in [*parameter.opts, *parameter.secondary_opts])
        words = parameter.help or ""
    default = parameter.default
    shown = (
        "" if default is None or callable(default) or "Sentinel" in repr(default) or default in ((), []) else default
    )
    shown = {True: "on", False: "off"}.get(shown, shown) if isinstance(shown, bool) else shown
    return f"| {name} | {_plain(words).replace('|', chr(92) + '|')} | {f'`{shown}`' if shown != '' else ''} |"


def _plain(text: str | None) -> str:
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", (text or "").strip()).replace("<", "\\<")
    return re.sub(r"(?<![\w`-])(--?[a-z][a-z-]*)", r"`\1`", text)


def settings() -> str:
    """All settings of the tables of a preset, with their defaults and ranges."""
    from sketchdnn.networks.set_denoiser import SetDenoiserConfig
    from sketchdnn.systems.sketchdnn import SketchDNNConfig
    from sketchdnn.training.config import TrainConfig

    tables = {
        "[training]": TrainConfig,
        "[system], of sketchdnn": SketchDNNConfig,
        "[system.network]": SetDenoiserConfig,
    }
    lines = []
    for title, config in tables.items():
        lines += [f"## `{title}`", "", "| setting | default | range | meaning |", "|---|---|---|---|"]
        meanings = _attributes(config.__doc__ or "")
        kinds = get_type_hints(config)
        for field in dataclasses.fields(config):
            allowed, meaning = _range(field, kinds[field.name]), meanings.get(field.name, "")
            lines.append(f"| `{field.name}` | {_default(field)} | {allowed} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _attributes(docstring: str) -> dict[str, str]:
    """The `Attributes:` of a docstring by name."""
    found: dict[str, str] = {}
    name = ""
    for line in docstring.partition("Attributes:")[2].splitlines():
        if match := re.match(r" {8}(\w+): (.*)", line):
            name, found[match[1]] = match[1], match[2]
        elif name and line.startswith(" " * 12):
            found[name] += f" {line.strip()}"
    return found


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default}`"
    return "" if field.default_factory is dataclasses.MISSING else "see its table"


def _range(field: dataclasses.Field[Any], kind: Any) -> str:
    """The range of a number, or the words that a text may be."""
    from sketchdnn.representation.settings import RANGE

    if RANGE in field.metadata:
        # Powers of ten that are no real limits are short.
        return re.sub(r"\b1(0{6,})(?:\.0)?\b", lambda match: f"1e{len(match[1])}", str(field.metadata[RANGE]))
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    return ""


# Pages whose content follows their text.
MADE = {"reference/cli": command_line, "reference/config": settings, "reference/api/index": packages}
