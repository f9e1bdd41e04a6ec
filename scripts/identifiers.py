"""List outdated names in `src`: identifiers, keys, options and file names.

    python scripts/identifiers.py [FOLDER]

Prints `file:line: name` for every match; ordinary English uses (`form` of an HTML page) are left to the reader.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

OUTDATED = """
hears heard hearing remembering silence deaf neighbours nearness near_said aside knows_aside fewest vary rare given
givenflags told shown way noised walk walks moves corrected closing mending belief worth effort turns tidy many passes
laid shaky contrary demands sharing holding settled boost form times matching spread unlearned starts_from later known
known_of save_known ask keeper moment placing teller room rooms tries put_out judged said dice by_lot gs guess found
strips wording noted house verbs bundled --first --like --way
""".split()  # noqa: SIM905
ALIASES = "systems/aliases.py"


def names(source: str) -> Iterator[tuple[int, str]]:
    """The identifiers and the strings that look like keys or options, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string
        elif token.type == tokenize.STRING and (match := re.fullmatch(r"[\"'](-{0,2}[\w-]+)[\"']", token.string)):
            yield token.start[0], match[1]


def is_outdated(name: str) -> bool:
    """Whether the name, as it is or without leading signs, is in the list."""
    return name in OUTDATED or name.strip("-_").replace("-", "_").lower() in OUTDATED


def main(folder: Path) -> None:
    """Print all matches below a folder."""
    for path in sorted(folder.rglob("*")):
        if is_outdated(path.stem):
            print(f"{path}: file name")
        if path.suffix == ".py" and not path.as_posix().endswith(ALIASES):
            for line, name in names(path.read_text(encoding="utf-8")):
                if is_outdated(name):
                    print(f"{path}:{line}: {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src"))
