"""*Import DXF as constrained sketch*: a drawing is repaired and constrained, then put into the document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import FreeCAD

from . import ICONS, edit, texts
from .drawing import Picture
from .edit import Edited, EditError, transaction
from .fields import LengthField, check, combo
from .panel import Panel, fit_view, show_details
from .placing import Place
from .sketch_json import Record, in_mm, size_of
from .task import Task

tr = texts.tr
_MOST = 16


class ImportPanel(Panel):
    """Reads a drawing as it opens; each of its sketches is a tile, and the selected ones are imported."""

    several = True

    def __init__(self, path: Path) -> None:
        self.title = tr("Import DXF as constrained sketch")
        self.icon = str(ICONS / "import.svg")
        super().__init__()
        self.path = path
        self.place = Place.from_selection()
        self.results: list[dict[str, Any]] = []
        self.notes: list[str] = []
        units = (
            (tr("As the file says"), None),
            ("mm", "mm"),
            ("cm", "cm"),
            ("m", "m"),
            (tr("inches"), "in"),
            (tr("feet"), "ft"),
        )
        self.units = combo(*units)
        self.tolerance = LengthField(0.0, tr("Gaps and errors up to this length are drawing errors"))
        self.repair = check(tr("Repair"), on=True, tip=tr("Join ends, remove duplicates, mend near relations"))
        self.dimensions = check(tr("Dimensions"), on=False, tip=tr("Add dimensions until nothing is free"))
        self.round = check(tr("Round dimensions"), on=False, tip=tr("Dimensions such as 80 instead of 79.99"))
        self.options.addRow(tr("Units"), self.units)
        self.options.addRow(tr("Tolerance"), self.tolerance)
        for box in (self.repair, self.dimensions, self.round):
            self.options.addRow(box)
        self.add_button(tr("Read again"), tr("Read the file with these options"), self.ask)

    def show(self) -> None:
        super().show()
        self.ask()

    def ask(self) -> None:
        """Read the file, and constrain each of its sketches."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            self.show_error(tr("{0} cannot be read: {1}.").format(self.path.name, error.strerror))
            return
        options = {"repair": self.repair.isChecked(), "dimensions": self.dimensions.isChecked()}
        if self.round.isChecked():
            options["round"] = "auto"
        units, millimeters, suffix = self.units.currentData(), self.tolerance.millimeters, self.path.suffix[1:].lower()

        def work(task: Task) -> dict[str, Any]:
            answer = task.read(content, suffix, units)
            results = []
            for number, sketch in enumerate(answer["sketches"][:_MOST]):
                task.progressed.emit(number / min(_MOST, len(answer["sketches"])))
                sketch = in_mm(sketch)
                size = size_of(sketch["primitives"])
                tolerance = {"tolerance": millimeters / size} if millimeters and size else {}
                request = {"sketch": sketch, "options": options | tolerance}
                results.append(task.call("/constrain", request)["result"])
            return answer | {"results": results}

        self.run(work, self._show)

    def _show(self, answer: dict[str, Any]) -> None:
        self.results = answer["results"]
        skipped = [f"{s['count']} × {s['reason']}" for s in answer.get("skipped", [])]
        self.notes = [*answer.get("notes", []), *skipped]
        if len(answer["sketches"]) > _MOST:
            self.notes.append(
                tr("Only the first {0} of {1} sketches are shown.").format(_MOST, len(answer["sketches"]))
            )
        if not self.results:
            self.show_error(tr("The file has no lines, circles, arcs or points to import."))
        self.show_tiles([self._tile(result) for result in self.results])

    def _tile(self, result: dict[str, Any]) -> tuple[Picture, str, str]:
        sketch: Record = result["sketch"]
        state = tr("fully constrained") if result["fully_constrained"] else tr("free: {0}").format(result["dof"])
        curves = tr("curves: {0}").format(len(sketch["primitives"]))
        constraints = tr("constraints: {0}").format(result["constraints"] + result["dimensions"])
        return Picture(sketch["primitives"]), f"{curves}\n{constraints}\n{state}", ""

    def choice_changed(self) -> None:
        chosen = self.tiles.chosen
        if chosen and chosen[0] < len(self.results):
            result = self.results[chosen[0]]
            show_details(self, [*self.notes, *result.get("actions", []), result.get("warning") or ""])

    def apply(self) -> Edited:
        chosen = self.tiles.chosen
        if not chosen:
            raise EditError(tr("Select one of the tiles first."))
        document = FreeCAD.ActiveDocument or FreeCAD.newDocument()
        total = Edited()
        with transaction(document, "Import constrained sketch"):
            for number in chosen:
                self.sketch = self.place.new_sketch(document, self.path.stem)
                one = edit.fill(self.sketch, self.results[number]["sketch"], self.pump)
                total.geometry += one.geometry
                total.constraints += one.constraints
                total.refused += one.refused
        fit_view()
        return total
