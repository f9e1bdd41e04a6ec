"""Write the template of translations, `resources/translations/SketchDNN.ts`, from the texts of the sources.

    python integrations/freecad/update_translations.py

Qt Linguist translates a copy such as `SketchDNN_de.ts`; `lrelease` makes the `SketchDNN_de.qm` that FreeCAD loads.
"""

import ast
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

FOLDER = Path(__file__).parent
TEMPLATE = FOLDER / "resources" / "translations" / "SketchDNN.ts"
CONTEXT = "SketchDNN"


def main() -> None:
    """Write the template."""
    root = Element("TS", version="2.1", sourcelanguage="en")
    context = SubElement(root, "context")
    SubElement(context, "name").text = CONTEXT
    for text in texts():
        message = SubElement(context, "message")
        SubElement(message, "source").text = text
        SubElement(message, "translation", type="unfinished")
    indent(root)
    TEMPLATE.parent.mkdir(parents=True, exist_ok=True)
    ElementTree(root).write(TEMPLATE, encoding="utf-8", xml_declaration=True)


def texts() -> list[str]:
    """Every text that is translated, in the order of the files, once."""
    found: dict[str, None] = {}
    for path in sorted((FOLDER / "sketchdnn_addon").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in ("tr", "QT_TRANSLATE_NOOP") and node.args:
                text = node.args[-1]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[text.value] = None
    return list(found)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


if __name__ == "__main__":
    main()
