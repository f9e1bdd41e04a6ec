"""The commands of the workbench: each opens its panel for the selected sketch, or the one in edit mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import FreeCADGui as Gui

from . import ICONS, texts
from .panel import Panel
from .qt import QtCore, QtWidgets
from .texts import QT_TRANSLATE_NOOP

_SKETCH = "Sketcher::SketchObject"


def current_sketch() -> Any:
    """The sketch in edit mode, or else the first selected one; None if there is neither."""
    in_edit = _in_edit()
    if in_edit is not None and in_edit.Object.isDerivedFrom(_SKETCH):
        return in_edit.Object
    selected = [one for one in Gui.Selection.getSelection() if one.isDerivedFrom(_SKETCH)]
    return selected[0] if selected else None


def is_dragging() -> bool:
    """Whether the left mouse button is down in edit mode: the sketch must not be changed then."""
    return _in_edit() is not None and bool(QtWidgets.QApplication.mouseButtons() & QtCore.Qt.LeftButton)


def may_open() -> bool:
    """Whether a panel can be opened: nothing is dragged, and no task is open but that of a sketch in edit mode."""
    in_edit = _in_edit()
    edits_sketch = in_edit is not None and in_edit.Object.isDerivedFrom(_SKETCH)
    return not is_dragging() and (edits_sketch or not Gui.Control.activeDialog())


def _in_edit() -> Any:
    """The view provider in edit mode; None if there is none."""
    document = Gui.ActiveDocument
    return document.getInEdit() if document is not None else None


class Command:
    """A button of the toolbar."""

    name = ""
    text = ""
    tip = ""
    icon = ""

    def GetResources(self) -> dict[str, str]:  # noqa: N802
        """What FreeCAD shows."""
        return {
            "MenuText": texts.tr(self.text),
            "ToolTip": texts.tr(self.tip),
            "StatusTip": texts.tr(self.tip),
            "Pixmap": str(ICONS / f"{self.icon}.svg"),
            "CmdType": "ForEdit",  # works while a sketch is edited
        }

    def IsActive(self) -> bool:  # noqa: N802
        """Whether the command has something to work on."""
        return current_sketch() is not None and may_open()

    def Activated(self) -> None:  # noqa: N802
        """Open the panel."""
        panel = self.panel()
        if panel is not None:
            panel.show()

    def panel(self) -> Panel | None:
        """The panel to open, if any."""
        raise NotImplementedError


class CompleteCommand(Command):
    """*Complete sketch*."""

    name = "SketchDNN_Complete"
    text = QT_TRANSLATE_NOOP("SketchDNN", "Complete sketch")
    tip = QT_TRANSLATE_NOOP("SketchDNN", "Suggest what the selected sketch may still need")
    icon = "complete"

    def panel(self) -> Panel | None:
        from .complete_panel import CompletePanel

        return CompletePanel(current_sketch())


class ConstrainCommand(Command):
    """*Auto-constrain*."""

    name = "SketchDNN_Constrain"
    text = QT_TRANSLATE_NOOP("SketchDNN", "Auto-constrain")
    tip = QT_TRANSLATE_NOOP("SketchDNN", "Add constraints to the selected sketch, of the kinds you choose")
    icon = "constrain"

    def panel(self) -> Panel | None:
        from .constrain_panel import ConstrainPanel

        return ConstrainPanel(current_sketch())


class RepairCommand(Command):
    """*Close and repair*."""

    name = "SketchDNN_Repair"
    text = QT_TRANSLATE_NOOP("SketchDNN", "Close and repair")
    tip = QT_TRANSLATE_NOOP("SketchDNN", "Show where the selected sketch is open, and repair it")
    icon = "repair"

    def panel(self) -> Panel | None:
        from .repair_panel import RepairPanel

        return RepairPanel(current_sketch())


class GenerateCommand(Command):
    """*Generate sketch*."""

    name = "SketchDNN_Generate"
    text = QT_TRANSLATE_NOOP("SketchDNN", "Generate sketch")
    tip = QT_TRANSLATE_NOOP("SketchDNN", "Generate a new sketch on the selected face or plane")
    icon = "generate"

    def IsActive(self) -> bool:  # noqa: N802
        return may_open()

    def panel(self) -> Panel | None:
        from .generate_panel import GeneratePanel

        return GeneratePanel()


class ImportCommand(Command):
    """*Import DXF as constrained sketch*."""

    name = "SketchDNN_Import"
    text = QT_TRANSLATE_NOOP("SketchDNN", "Import DXF as constrained sketch…")
    tip = QT_TRANSLATE_NOOP("SketchDNN", "Read a DXF or SVG drawing, repair it and add constraints")
    icon = "import"

    def IsActive(self) -> bool:  # noqa: N802
        return may_open()

    def panel(self) -> Panel | None:
        from .import_panel import ImportPanel

        title = texts.tr("Import a drawing")
        kinds = f"{texts.tr('Drawings')} (*.dxf *.DXF *.svg *.SVG)"
        path, _ = QtWidgets.QFileDialog.getOpenFileName(Gui.getMainWindow(), title, "", kinds)
        return ImportPanel(Path(path)) if path else None


COMMANDS = (CompleteCommand, ConstrainCommand, RepairCommand, GenerateCommand, ImportCommand)
NAMES = [command.name for command in COMMANDS]


def register() -> list[str]:
    """Register the commands with FreeCAD, and return their names."""
    for command in COMMANDS:
        Gui.addCommand(command.name, command())
    return NAMES
