"""The base of all task panels: a form with tiles, progress and cancel; work in a thread; return to edit mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import FreeCAD
import FreeCADGui as Gui

from . import texts
from .drawing import Picture
from .edit import Edited, EditError
from .overlay import Overlay
from .qt import QtCore, QtGui, QtWidgets, as_int
from .task import Task
from .tiles import Tiles

tr = texts.tr
_MOST_LINES = 6


class Panel:
    """A task panel. Subclasses add options, send a request to the server, and apply the answer."""

    title = ""
    icon = ""
    several = False
    shown: Panel | None = None

    def __init__(self, sketch: Any = None) -> None:
        self.sketch = sketch
        self.was_edited = False
        self.task: Task | None = None
        self.overlay = Overlay(sketch) if sketch is not None else None
        self.form = QtWidgets.QWidget()
        self.form.setObjectName(f"SketchDNN_{type(self).__name__}")
        self.form.setWindowTitle(self.title)
        if self.icon:
            self.form.setWindowIcon(QtGui.QIcon(self.icon))
        self.layout = QtWidgets.QVBoxLayout(self.form)
        self.layout.setContentsMargins(6, 6, 6, 6)
        self.tiles = Tiles(self.choice_changed, self._accept_by_click, several=self.several)
        self.options = QtWidgets.QFormLayout()
        self.options.setFieldGrowthPolicy(QtWidgets.QFormLayout.AllNonFixedFieldsGrow)
        self.layout.addLayout(self.options)
        self.buttons = QtWidgets.QGridLayout()
        self.layout.addLayout(self.buttons)
        self._add_progress()
        self.message = _wrapped()
        self.message.setObjectName("message")
        self.layout.addWidget(self.message)
        self.tiles.setObjectName("tiles")
        self.layout.addWidget(self.tiles, 1)
        self.details = _wrapped()
        self.details.setObjectName("details")
        self.layout.addWidget(self.details)

    def _add_progress(self) -> None:
        self.progress = QtWidgets.QProgressBar()
        self.progress.setRange(0, 100)
        self.progress.setAccessibleName(tr("Progress"))
        self.cancel_button = QtWidgets.QPushButton(tr("Cancel"))
        self.cancel_button.setToolTip(tr("Stop what runs; the panel stays open"))
        self.cancel_button.clicked.connect(self.cancel_task)
        row = QtWidgets.QHBoxLayout()
        row.addWidget(self.progress, 1)
        row.addWidget(self.cancel_button)
        self.progress_row = QtWidgets.QWidget()
        row.setContentsMargins(0, 0, 0, 0)
        self.progress_row.setLayout(row)
        self.progress_row.hide()
        self.layout.addWidget(self.progress_row)

    def add_button(self, text: str, tip: str, on_click: Callable[[], None]) -> QtWidgets.QPushButton:
        """A button above the tiles: the first in a row of its own, then two in a row."""
        button = QtWidgets.QPushButton(text)
        button.setToolTip(tip)
        button.clicked.connect(lambda: on_click())
        number = self.buttons.count()
        self.buttons.addWidget(button, (number + 1) // 2, max(0, number - 1) % 2, 1, 1 if number else 2)
        return button

    # What FreeCAD calls.

    def getStandardButtons(self) -> int:  # noqa: N802
        """OK and Cancel."""
        return as_int(QtWidgets.QDialogButtonBox.Ok) | as_int(QtWidgets.QDialogButtonBox.Cancel)

    def accept(self) -> bool:
        """Apply what is selected and close; stay open with an error message where that is not possible."""
        if self.task is not None:
            self.show_message(tr("Wait until the server has answered, or cancel."))
            return False
        try:
            edited = self.apply()
        except EditError as error:
            self.show_error(str(error))
            return False
        except ReferenceError:  # FreeCAD's name for an object that was deleted
            self.show_error(tr("What the panel was opened for is no longer in the document; close the panel."))
            return False
        if edited is not None:
            FreeCAD.Console.PrintMessage(f"{self.title}: {edited.summary}\n")
            Gui.getMainWindow().statusBar().showMessage(edited.summary, 10000)
        self._close()
        return True

    def reject(self) -> bool:
        """Close and change nothing."""
        self.cancel_task()
        self._close()
        return True

    # What subclasses do.

    def apply(self) -> Edited | None:
        """Apply the selected tile to the document; `EditError` if that is not possible."""
        raise NotImplementedError

    def choice_changed(self) -> None:
        """Another tile was selected."""

    # What subclasses use.

    def show(self) -> None:
        """Show the panel. A sketch in edit mode is left, and opened again as the panel closes."""
        document = Gui.ActiveDocument
        in_edit = document.getInEdit() if document is not None else None
        if in_edit is not None:
            self.was_edited = self.sketch is not None and in_edit.Object is self.sketch
            document.resetEdit()
        if Panel.shown is not None:
            Panel.shown.reject()
            Gui.Control.closeDialog()
        Panel.shown = self
        Gui.Selection.clearSelection()  # what is selected hides the colors of the suggestions
        Gui.Control.showDialog(self)

    def run(self, work: Callable[[Task], Any], on_result: Callable[[Any], None]) -> None:
        """Do some work with the server in a thread; `on_result` gets the result in the thread of the GUI."""
        self.cancel_task()
        task = Task(work)
        self.task = task
        task.progressed.connect(lambda done: self._if_current(task, lambda: self._set_progress(done)))
        task.status.connect(lambda text: self._if_current(task, lambda: self.show_message(text)))
        task.succeeded.connect(lambda result: self._ended(task, lambda: on_result(result)))
        task.failed.connect(lambda text: self._ended(task, lambda: self.show_error(text)))
        task.canceled.connect(lambda: self._ended(task, lambda: self.show_message(tr("Canceled."))))
        self.progress.setRange(0, 0)
        self.progress_row.show()
        self.show_message(tr("Asking the server…"))
        task.begin()

    def _set_progress(self, done: float) -> None:
        self.progress.setRange(0, 100)
        self.progress.setValue(round(100 * done))
        self.show_message("")

    def cancel_task(self) -> None:
        """End what runs, if anything does."""
        if self.task is not None:
            self.task.cancel()

    def _if_current(self, task: Task, action: Callable[[], None]) -> None:
        if self.task is task:
            action()

    def _ended(self, task: Task, action: Callable[[], None]) -> None:
        if self.task is task:
            self.task = None
            self.progress_row.hide()
            self.show_message("")
            action()

    def show_message(self, text: str) -> None:
        """Show a sentence above the tiles."""
        self.message.setStyleSheet("")
        self.message.setText(text)
        self.message.setVisible(bool(text))

    def show_error(self, text: str) -> None:
        """Show an error message, and write it to the report view."""
        self.show_message(text)
        self.message.setStyleSheet("color: #b3261e" if self._is_light() else "color: #ff8a80")
        FreeCAD.Console.PrintWarning(f"{self.title}: {text}\n")

    def _is_light(self) -> bool:
        return bool(self.form.palette().color(QtGui.QPalette.Window).lightness() > 127)

    def show_tiles(self, tiles: Sequence[tuple[Picture, str, str]]) -> None:
        """Replace all tiles and select the first."""
        self.tiles.clear()
        for picture, caption, tip in tiles:
            self.tiles.add(picture, caption, tip)
        if tiles:
            self.tiles.choose(0)

    def chosen(self) -> int:
        """The number of the selected tile."""
        chosen = self.tiles.chosen
        if not chosen:
            raise EditError(tr("Select one of the tiles first."))
        return chosen[0]

    def pump(self) -> None:
        """Let the window repaint between two steps of a long change; clicks wait."""
        QtWidgets.QApplication.processEvents(QtCore.QEventLoop.ExcludeUserInputEvents)

    def _accept_by_click(self) -> None:
        if self.accept():
            Gui.Control.closeDialog()

    def _close(self) -> None:
        self.task = None  # what still comes from it has no widgets to go to
        if self.overlay is not None:
            self.overlay.clear()
        if Panel.shown is self:
            Panel.shown = None
        if self.sketch is not None:
            with suppress(ReferenceError, RuntimeError):  # the document is closed
                Gui.Selection.clearSelection()
                Gui.Selection.addSelection(self.sketch)
        if self.was_edited:
            QtCore.QTimer.singleShot(0, self._edit_again)

    def _edit_again(self) -> None:
        with suppress(ReferenceError, RuntimeError):  # the document is closed
            Gui.getDocument(self.sketch.Document.Name).setEdit(self.sketch.Name)


def _wrapped() -> QtWidgets.QLabel:
    label = QtWidgets.QLabel()
    label.setWordWrap(True)
    label.setTextInteractionFlags(QtCore.Qt.TextSelectableByMouse)
    label.hide()
    return label


def show_details(panel: Panel, sentences: Sequence[str]) -> None:
    """Show sentences below the tiles, one a line; many are cut, and all of them are in the tool tip."""
    lines = [sentence for sentence in sentences if sentence]
    more = len(lines) - _MOST_LINES
    shown = lines if more <= 0 else [*lines[:_MOST_LINES], tr("… and {0} more (keep the pointer here).").format(more)]
    panel.details.setText("\n".join(shown))
    panel.details.setToolTip("\n".join(lines) if more > 0 else "")
    panel.details.setVisible(bool(lines))


def fit_view() -> None:
    """Show all of the document."""
    Gui.SendMsgToActiveView("ViewFit")
