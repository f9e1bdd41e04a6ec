"""*Close and repair*: where a wire is open, what a repair changes, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import FreeCAD
import FreeCADGui as Gui

from . import ICONS, edit, texts
from .drawing import Picture
from .edit import Edited, EditError, transaction
from .fields import LengthField, check, show_length
from .panel import Panel, show_details
from .qt import QtWidgets
from .sketch_json import Vec, read_sketch, size_of
from .task import Task

tr = texts.tr
_MOST_ROWS = 6


class RepairPanel(Panel):
    """Lists the open ends as it opens, and shows the sketch before and after a repair."""

    def __init__(self, sketch: Any) -> None:
        self.title = tr("Close and repair")
        self.icon = str(ICONS / "repair.svg")
        super().__init__(sketch)
        self.given = read_sketch(sketch)
        self.result: dict[str, Any] | None = None
        self.open_ends: list[Vec] = []
        self.ends = QtWidgets.QListWidget()
        self.ends.setObjectName("open_ends")
        self.ends.setAccessibleName(tr("Open ends"))
        self.ends.currentRowChanged.connect(self._select_end)
        self.ends_title = QtWidgets.QLabel(tr("Open ends"))
        self.layout.insertWidget(self.layout.indexOf(self.tiles), self.ends_title)
        self.layout.insertWidget(self.layout.indexOf(self.tiles), self.ends)
        self.tolerance = LengthField(0.0, tr("Gaps and errors up to this length are mended"))
        self.close_outline = check(tr("Close open outlines with a line"), on=True)
        self.options.addRow(tr("Tolerance"), self.tolerance)
        self.options.addRow(self.close_outline)
        self.add_button(tr("Repair again"), tr("Repair with these options"), self.ask)

    def show(self) -> None:
        super().show()
        self.ask()

    def ask(self) -> None:
        """Ask for a repair with the options of the panel."""
        size = size_of(self.given.record["primitives"])
        if not size:
            self.show_error(tr("The sketch has no lines, circles or arcs to repair."))
            return
        request: dict[str, Any] = {"sketch": self.given.record, "close": self.close_outline.isChecked()}
        if millimeters := self.tolerance.millimeters:
            request["tolerance"] = millimeters / size

        def work(task: Task) -> dict[str, Any]:
            return task.call("/repair", request)

        self.run(work, self._show)

    def _show(self, result: dict[str, Any]) -> None:
        self.result = result
        self.open_ends = [(float(x), float(y)) for x, y in result["open_ends_before"]]
        after = [(float(x), float(y)) for x, y in result["open_ends_after"]]
        self._list_ends()
        before, repaired = self.given.record["primitives"], result["sketch"]["primitives"]
        partners = edit.match(before, repaired)
        kept = [p for p, partner in zip(repaired, partners, strict=True) if partner is not None]
        added = [p for p, partner in zip(repaired, partners, strict=True) if partner is None]
        closed = tr("can be padded") if result["is_extrudable"] else tr("cannot be padded")
        ends = tr("open ends: {0}")
        self.show_tiles(
            [
                (
                    Picture(before, marks=self.open_ends),
                    tr("Before") + "\n" + ends.format(len(self.open_ends)) + "\n",
                    "",
                ),
                (Picture(kept, added, after), f"{tr('After')}\n{ends.format(len(after))}\n{closed}", ""),
            ]
        )
        self.tiles.choose(1)
        if self.overlay is not None:
            self.overlay.show(marks=self.open_ends)
        show_details(self, self._notes(result))

    def _notes(self, result: dict[str, Any]) -> Sequence[str]:
        actions = [texts.with_element_numbers(action, self.given.geo_ids) for action in result.get("actions") or []]
        return [
            *(actions or [tr("There is nothing to repair.")]),
            result.get("warning") or "",
            texts.unseen_sentence(self.given.unseen),
        ]

    def _list_ends(self) -> None:
        self.ends.blockSignals(True)
        self.ends.clear()
        for x, y in self.open_ends:
            self.ends.addItem(tr("X {0}, Y {1}").format(show_length(x), show_length(y)))
        self.ends.blockSignals(False)
        count = len(self.open_ends)
        self.ends_title.setText(tr("The wire is open at {0} ends:").format(count) if count else tr("No wire is open."))
        self.ends.setVisible(bool(count))
        self.ends.setFixedHeight(min(count, _MOST_ROWS) * (self.ends.fontMetrics().lineSpacing() + 4) + 6)

    def _select_end(self, row: int) -> None:
        """Select the vertex of an open end in the 3D view, and turn the view's center to it."""
        if not 0 <= row < len(self.open_ends):
            return
        x, y = self.open_ends[row]
        place = self.sketch.getGlobalPlacement().multVec(FreeCAD.Vector(x, y, 0))
        local = self.sketch.Placement.multVec(FreeCAD.Vector(x, y, 0))
        vertices = self.sketch.Shape.Vertexes
        Gui.Selection.clearSelection()
        if vertices:
            nearest = min(range(len(vertices)), key=lambda i: vertices[i].Point.distanceToPoint(local))
            Gui.Selection.addSelection(self.sketch, f"Vertex{nearest + 1}", place.x, place.y, place.z)

    def apply(self) -> Edited | None:
        if self.result is None:
            raise EditError(tr("There is no repaired sketch yet; use “Repair again”."))
        if self.chosen() == 0 or not self.result.get("actions"):
            return None
        if read_sketch(self.sketch).record != self.given.record:
            raise EditError(tr("The sketch has changed since; repair again."))
        with transaction(self.sketch.Document, "Close and repair"):
            return edit.repair(self.sketch, self.given, self.result["sketch"], self.pump)

    def choice_changed(self) -> None:
        """The rings of the open ends stay, whichever tile is selected."""
