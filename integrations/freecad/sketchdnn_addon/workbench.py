"""The workbench: a toolbar and a menu, here and beside the Sketcher's and Part Design's own tools."""

from __future__ import annotations

from typing import Any

import FreeCADGui as Gui

from . import ICONS, TRANSLATIONS
from .commands import register
from .preferences import PreferencesPage
from .task import connect_exit
from .texts import QT_TRANSLATE_NOOP

_TITLE = "SketchDNN"


class SketchDNNWorkbench(Gui.Workbench):
    """What FreeCAD shows in its list of workbenches."""

    MenuText = _TITLE
    ToolTip = QT_TRANSLATE_NOOP("SketchDNN", "Complete, constrain, repair, generate and import sketches")
    Icon = str(ICONS / "workbench.svg")

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def Initialize(self) -> None:  # noqa: N802
        """Make the toolbar and the menu; called as the workbench is first opened."""
        self.appendToolbar(_TITLE, self.names)
        self.appendMenu(_TITLE, self.names)

    def GetClassName(self) -> str:  # noqa: N802
        """The kind of workbench that FreeCAD makes of this."""
        return "Gui::PythonWorkbench"


class _Manipulator:
    """Adds the commands to the toolbars and menus of other workbenches, in versions of FreeCAD that can."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def modifyToolBars(self) -> list[dict[str, Any]]:  # noqa: N802
        return [{"append": name, "toolBar": "Sketcher tools"} for name in self.names]

    def modifyMenuBar(self) -> list[dict[str, Any]]:  # noqa: N802
        return [{"insert": name, "menuItem": "Sketcher_ValidateSketch", "after": ""} for name in self.names]


def set_up() -> None:
    """Tell FreeCAD of the translations, commands, preferences and workbench, and end the server as it quits."""
    Gui.addLanguagePath(str(TRANSLATIONS))
    Gui.addIconPath(str(ICONS))
    Gui.addPreferencePage(PreferencesPage, _TITLE)
    names = register()
    Gui.addWorkbench(SketchDNNWorkbench(names))
    if hasattr(Gui, "addWorkbenchManipulator"):
        Gui.addWorkbenchManipulator(_Manipulator(names))
    connect_exit()
