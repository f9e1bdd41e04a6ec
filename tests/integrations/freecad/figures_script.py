"""Runs inside FreeCAD's window: pictures of the workbench and of each task panel. Its job is a JSON file."""

import json
import os
import sys
import time
import traceback
from pathlib import Path

import FreeCAD
import FreeCADGui as Gui
from PySide import QtCore, QtGui

JOB = json.loads(Path(os.environ["SKETCHDNN_JOB"]).read_text())


def report(name, **found):
    with Path(JOB["findings"]).open("a") as file:
        file.write(json.dumps({"name": name} | found) + "\n")


def wait(condition, timeout=200.0):
    """Run the event loop until a condition holds."""
    end = time.monotonic() + timeout
    while not condition():
        QtGui.QApplication.processEvents(QtCore.QEventLoop.AllEvents, 10)
        if time.monotonic() > end:
            raise TimeoutError("the condition never held")


def settle(seconds=0.5):
    end = time.monotonic() + seconds
    wait(lambda: time.monotonic() > end)


def picture(name):
    """The screen, once the view is drawn."""
    settle(2.0)
    QtGui.QApplication.primaryScreen().grabWindow(0).save(str(Path(JOB["out"]) / f"{name}.png"))
    report(name)


def run(command):
    from sketchdnn_addon.panel import Panel

    Gui.runCommand(command)
    wait(lambda: Panel.shown.task is None)
    return Panel.shown


def accept(panel):
    panel.accept()
    Gui.Control.closeDialog()
    settle()


def sketch_of(document, name, record, *, constrained=True):
    """A new sketch, alone in the view."""
    from sketchdnn_addon import edit

    for other in document.Objects:
        other.ViewObject.Visibility = False
    sketch = document.addObject("Sketcher::SketchObject", name)
    edit.fill(sketch, record if constrained else record | {"constraints": []})
    document.recompute()
    top()
    Gui.Selection.clearSelection()
    Gui.Selection.addSelection(sketch)
    return sketch


def top():
    Gui.activeDocument().activeView().viewTop()
    Gui.SendMsgToActiveView("ViewFit")


def prepare():
    group = FreeCAD.ParamGet("User parameter:BaseApp/Preferences/Mod/SketchDNN")
    group.SetString("Command", JOB["command"])
    group.SetInt("Port", JOB["port"])
    view = FreeCAD.ParamGet("User parameter:BaseApp/Preferences/View")
    view.SetBool("Gradient", False)
    view.SetBool("Simple", True)
    view.SetUnsigned("BackgroundColor", 0xF4F6F8FF)
    view.SetUnsigned("SketchEdgeColor", 0x101418FF)
    view.SetUnsigned("DefaultShapeLineColor", 0x101418FF)
    view.SetBool("CornerCoordSystem", False)
    view.SetBool("ShowNaviCube", False)
    view.SetUnsigned("EditedEdgeColor", 0x1A6FD4FF)
    Gui.activateWorkbench("SketchDNNWorkbench")
    window = Gui.getMainWindow()
    window.setGeometry(0, 0, 1180, 900)
    for bar in window.findChildren(QtGui.QToolBar):
        if bar.objectName() not in ("File", "Workbench", "SketchDNN"):
            bar.hide()
    for dock in window.findChildren(QtGui.QDockWidget):
        dock.setVisible(dock.objectName() == "Combo View")
        if dock.objectName() == "Combo View":
            window.resizeDocks([dock], [350], QtCore.Qt.Horizontal)
    settle()


def main():
    prepare()
    document = FreeCAD.newDocument("Bracket")
    sketch = sketch_of(document, "Sketch", JOB["part"])
    panel = run("SketchDNN_Complete")
    top()
    panel.tiles.choose(JOB["choice"])
    top()
    picture("complete")
    accept(panel)

    sketch = sketch_of(document, "Drawn", JOB["drawn"], constrained=False)
    panel = run("SketchDNN_Constrain")
    panel.tiles.choose(next(i for i, r in enumerate(panel.results) if r["fully_constrained"]))
    picture("constrain")
    accept(panel)
    for other in document.Objects:
        other.ViewObject.Visibility = other is sketch

    sketch_of(document, "Open", JOB["open"], constrained=False)
    panel = run("SketchDNN_Repair")
    panel.ends.setCurrentRow(0)
    picture("repair")
    accept(panel)

    for other in document.Objects:
        other.ViewObject.Visibility = False
    Gui.Selection.clearSelection()
    panel = run("SketchDNN_Generate")
    panel.tiles.choose(4)
    picture("generate")
    accept(panel)

    from sketchdnn_addon.import_panel import ImportPanel

    for other in document.Objects:
        other.ViewObject.Visibility = False
    panel = ImportPanel(Path(JOB["drawing"]))
    panel.show()
    wait(lambda: panel.task is None)
    picture("import_panel")
    accept(panel)
    sketch = panel.sketch
    top()
    Gui.activeDocument().setEdit(sketch.Name)
    settle()
    top()
    picture("imported")
    Gui.activeDocument().resetEdit()

    from sketchdnn_addon.preferences import PreferencesPage

    page = PreferencesPage()
    page.loadSettings()
    page.command.setText("~/sketchdnn/.venv/bin/python")
    page.port.setValue(8765)
    page.form.resize(560, 220)
    page.form.show()
    settle()
    page.form.grab().save(str(Path(JOB["out"]) / "preferences.png"))
    FreeCAD.ParamGet("User parameter:BaseApp/Preferences/Mod/SketchDNN").SetBool("StartServer", False)
    from sketchdnn_addon.task import end_all

    end_all()
    page.form.hide()
    sketch_of(document, "Again", JOB["part"])
    picture_panel = run("SketchDNN_Complete")
    picture("missing")
    picture_panel.reject()


try:
    main()
    report("end")
except BaseException:  # noqa: BLE001  the window must close
    report("failed", trace=traceback.format_exc())
sys.stdout.flush()
os._exit(0)
