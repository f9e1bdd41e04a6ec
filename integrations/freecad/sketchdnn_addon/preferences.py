"""The preferences page: the command and the port of the server, the number of sampling steps, and the toolbar."""

from __future__ import annotations

import FreeCADGui as Gui

from . import texts
from .client import Client
from .commands import NAMES
from .fields import check, number
from .qt import QtWidgets
from .settings import Settings
from .task import Task

tr = texts.tr


class PreferencesPage:
    """A page of Edit → Preferences, made by FreeCAD as the dialog opens."""

    def __init__(self, parent: QtWidgets.QWidget | None = None) -> None:
        self.form = QtWidgets.QWidget(parent)
        self.form.setWindowTitle(tr("Server"))
        layout = QtWidgets.QFormLayout(self.form)
        self.command = QtWidgets.QLineEdit()
        self.command.setToolTip(tr("The program “sketchdnn”, or the Python of the environment where it is installed"))
        browse = QtWidgets.QPushButton(tr("Browse…"))
        browse.clicked.connect(self._browse)
        row = QtWidgets.QHBoxLayout()
        row.addWidget(self.command, 1)
        row.addWidget(browse)
        self.port = number(Settings.port, 1024, 65535)
        self.start = check(tr("Start the server if none answers"), on=True)
        self.steps = number(0, 0, 2000, tr("Fewer steps are faster and less exact"))
        self.steps.setSpecialValueText(tr("default"))
        self.patience = number(Settings.patience, 5, 3600)
        self.patience.setSuffix(" s")
        layout.addRow(tr("Command or interpreter"), row)
        layout.addRow(tr("Port"), self.port)
        layout.addRow(self.start)
        layout.addRow(tr("Wait for its start"), self.patience)
        layout.addRow(tr("Sampling steps"), self.steps)
        self.toolbars = check(
            tr("Show the toolbar in Sketcher and Part Design too"),
            on=False,
            tip=tr("Takes effect as these workbenches are opened next"),
        )
        layout.addRow(self.toolbars)
        test = QtWidgets.QPushButton(tr("Test"))
        test.clicked.connect(self._test)
        self.answer = QtWidgets.QLabel()
        self.answer.setWordWrap(True)
        layout.addRow(test, self.answer)
        self._task: Task | None = None

    def loadSettings(self) -> None:  # noqa: N802
        """Show the settings; called by FreeCAD."""
        settings = Settings.load()
        self.command.setText(settings.command)
        self.port.setValue(settings.port)
        self.start.setChecked(settings.start)
        self.steps.setValue(settings.steps)
        self.patience.setValue(settings.patience)
        self.toolbars.setChecked(settings.has_toolbars())

    def saveSettings(self) -> None:  # noqa: N802
        """Keep the settings; called by FreeCAD."""
        self._settings().save()
        if self.toolbars.isChecked() != Settings.has_toolbars():
            Settings.set_toolbars(NAMES, on=self.toolbars.isChecked())

    def _settings(self) -> Settings:
        return Settings(
            command=self.command.text().strip() or Settings.command,
            port=self.port.value(),
            start=self.start.isChecked(),
            steps=self.steps.value(),
            patience=self.patience.value(),
        )

    def _browse(self) -> None:
        path, _ = QtWidgets.QFileDialog.getOpenFileName(Gui.getMainWindow(), tr("Command or interpreter"))
        if path:
            self.command.setText(path)

    def _test(self) -> None:
        """Start the server with the settings of the page, and show its answer."""

        def work(task: Task) -> str:
            health = Client(task.settings.port).health()
            return tr("SketchDNN {0} answers on port {1}, model {2}.").format(
                health.get("version"), task.settings.port, health["model"]["name"]
            )

        task = self._task = Task(work)
        task.settings = self._settings()
        task.status.connect(self.answer.setText)
        task.succeeded.connect(self.answer.setText)
        task.failed.connect(self.answer.setText)
        self.answer.setText(tr("Asking the server…"))
        task.begin()
