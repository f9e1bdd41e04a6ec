"""Runs inside FreeCAD's window: a command starts the server, then FreeCAD is closed as a person closes it."""

import json
import os
import time
import traceback
from pathlib import Path

import FreeCAD
import FreeCADGui as Gui
import Part
from PySide import QtCore, QtGui

JOB = json.loads(Path(os.environ["SKETCHDNN_JOB"]).read_text())


def report(name, **found):
    with Path(JOB["findings"]).open("a") as file:
        file.write(json.dumps({"name": name} | found) + "\n")


def main():
    from sketchdnn_addon.panel import Panel
    from sketchdnn_addon.server import SERVER

    group = FreeCAD.ParamGet("User parameter:BaseApp/Preferences/Mod/SketchDNN")
    group.SetString("Command", JOB["command"])
    group.SetInt("Port", JOB["port"])
    document = FreeCAD.newDocument()
    sketch = document.addObject("Sketcher::SketchObject", "Sketch")
    sketch.addGeometry(Part.LineSegment(FreeCAD.Vector(0, 0, 0), FreeCAD.Vector(9, 0, 0)), False)
    document.recompute()
    Gui.Selection.addSelection(sketch)
    Gui.runCommand("SketchDNN_Constrain")
    panel = Panel.shown
    end = time.monotonic() + 120
    while panel.task is not None and time.monotonic() < end:
        QtGui.QApplication.processEvents(QtCore.QEventLoop.AllEvents, 10)
    report("server", pid=SERVER.pid, tiles=panel.tiles.count(), message=panel.message.text())
    panel.reject()
    Gui.Control.closeDialog()
    FreeCAD.closeDocument(document.Name)
    report("end")


try:
    main()
except BaseException:  # noqa: BLE001  the window must close
    report("failed", trace=traceback.format_exc())
QtCore.QTimer.singleShot(0, Gui.getMainWindow().close)
