"""The workbench: a toolbar and a menu."""

from __future__ import annotations

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


def set_up() -> None:
    """Register translations, commands, preferences and workbench, and end the server when FreeCAD quits."""
    Gui.addLanguagePath(str(TRANSLATIONS))
    Gui.addIconPath(str(ICONS))
    Gui.addPreferencePage(PreferencesPage, _TITLE)
    Gui.addWorkbench(SketchDNNWorkbench(register()))
    connect_exit()
