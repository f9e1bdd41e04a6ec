"""*Generate sketch*: new sketches with conditions, of which the selected one is put into the document."""

from __future__ import annotations

from typing import Any

import FreeCAD

from . import ICONS, edit, texts
from .drawing import Picture
from .edit import Edited, transaction
from .fields import LengthField, check, number
from .panel import Panel, fit_view, show_details
from .placing import Place
from .qt import QtWidgets
from .sketch_json import in_mm
from .task import Task

tr = texts.tr
_COUNT = 8
_KINDS = ("line", "circle", "arc")


class GeneratePanel(Panel):
    """Conditions, tiles, and a new sketch on the selected plane or face."""

    def __init__(self) -> None:
        self.title = tr("Generate sketch")
        self.icon = str(ICONS / "generate.svg")
        super().__init__()
        self.results: list[dict[str, Any]] = []
        self.place = Place.from_selection()
        self.size = LengthField(100.0, tr("The larger side of the sketch"))
        self.least = number(8, 1, 64)
        self.most = number(16, 1, 64)
        row = QtWidgets.QHBoxLayout()
        row.addWidget(self.least, 1)
        row.addWidget(QtWidgets.QLabel("–"))
        row.addWidget(self.most, 1)
        self.closed = check(tr("Can be padded"), on=True, tip=tr("Outlines are closed and do not cross"))
        self.round = check(tr("Round dimensions"), on=False, tip=tr("Dimensions such as 80 instead of 79.99"))
        self.seed = number(0, 0, 2**31 - 1, tr("The same seed gives the same sketches"))
        self.counts = {kind: self._count_field() for kind in _KINDS}
        kinds = QtWidgets.QGridLayout()
        for column, (kind, text) in enumerate(zip(_KINDS, (tr("lines"), tr("circles"), tr("arcs")), strict=True)):
            kinds.addWidget(QtWidgets.QLabel(text), 0, column)
            kinds.addWidget(self.counts[kind], 1, column)
        self.options.addRow(tr("Size"), self.size)
        self.options.addRow(tr("Curves"), row)
        self.options.addRow(tr("Exactly"), kinds)
        self.options.addRow(self.closed)
        self.options.addRow(self.round)
        self.options.addRow(tr("Seed"), self.seed)
        self.add_button(tr("Generate"), tr("Generate with these conditions"), self.ask)
        self.add_button(tr("Something else"), tr("The same conditions with the next seed"), self.something_else)
        self.add_button(tr("More like this"), tr("Variations of the selected sketch"), self.more_like_this)

    def _count_field(self) -> QtWidgets.QSpinBox:
        field = number(-1, -1, 64, tr("Exactly so many; “any” leaves the number to the model"))
        field.setSpecialValueText(tr("any"))
        return field

    def show(self) -> None:
        super().show()
        self.ask()

    def something_else(self) -> None:
        """Ask again with the next seed."""
        self.seed.setValue(self.seed.value() + 1)
        self.ask()

    def more_like_this(self) -> None:
        """Ask for variations of the selected sketch."""
        try:
            like = self.results[self.chosen()]["sketch"]
        except edit.EditError as error:
            self.show_error(str(error))
            return
        self.seed.setValue(self.seed.value() + 1)
        self._ask("/variations", {"init_sketch": like, "strength": 0.45, "count": _COUNT, "seed": self.seed.value()})

    def ask(self) -> None:
        """Ask for sketches with the conditions of the panel."""
        low, high = sorted((self.least.value(), self.most.value()))
        request: dict[str, Any] = {"count": _COUNT, "seed": self.seed.value(), "primitives": [low, high]}
        if self.closed.isChecked():
            request["closed"] = True
        if kinds := {kind: field.value() for kind, field in self.counts.items() if field.value() >= 0}:
            request["kinds"] = kinds
        if millimeters := self.size.millimeters:
            request |= {"size": millimeters, "units": "mm"}
        if self.round.isChecked():
            request["round"] = "auto"
        self._ask("/generate", request)

    def _ask(self, path: str, request: dict[str, Any]) -> None:
        self.results = []
        self.tiles.clear()

        def work(task: Task) -> list[dict[str, Any]]:
            return task.sample(path, request)

        self.run(work, self._show)
        if self.task is not None:
            task = self.task
            task.received.connect(lambda result: self._if_current(task, lambda: self._add(result)))

    def _add(self, result: dict[str, Any]) -> None:
        """Show a sketch as soon as it is there."""
        result["sketch"] = in_mm(result["sketch"])
        self.results.append(result)
        sketch = result["sketch"]
        dof = (result.get("repair") or {}).get("dof")
        state = tr("closed") if (result.get("profile") or {}).get("is_extrudable") else tr("not closed")
        free = "" if dof is None else "\n" + tr("free: {0}").format(dof)
        caption = tr("curves: {0}").format(len(sketch["primitives"])) + "\n" + state + free
        self.tiles.add(Picture(sketch["primitives"]), caption, result.get("shortfall") or "")

    def _show(self, results: list[dict[str, Any]]) -> None:
        if results and not self.tiles.chosen:
            self.tiles.choose(0)
        if not results:
            self.show_error(tr("The server has generated nothing; change the conditions."))

    def choice_changed(self) -> None:
        chosen = self.tiles.chosen
        if chosen and chosen[0] < len(self.results):
            shortfall = self.results[chosen[0]].get("shortfall")
            show_details(self, [tr("Compared with what was asked: {0}").format(shortfall)] if shortfall else [])

    def apply(self) -> Edited:
        result = self.results[self.chosen()]
        document = FreeCAD.ActiveDocument or FreeCAD.newDocument()
        with transaction(document, "Generate sketch"):
            self.sketch = self.place.new_sketch(document, tr("Generated sketch"))
            edited = edit.fill(self.sketch, result["sketch"], self.pump)
        fit_view()
        return edited
