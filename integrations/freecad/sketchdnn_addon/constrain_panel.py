"""*Auto-constrain*: several sets of constraints as tiles, of which the user may leave out kinds.

Constraints are added only by OK: nothing is added while geometry is drawn or dragged.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import ICONS, edit, texts
from .drawing import Picture
from .edit import Edited, EditError, transaction
from .fields import LengthField, check, combo, show_length
from .panel import Panel, show_details
from .qt import QtWidgets
from .sketch_json import DIMENSIONS, Record, read_sketch, size_of
from .task import Task

tr = texts.tr
QT_TRANSLATE_NOOP = texts.QT_TRANSLATE_NOOP
_VISIBLE = 1e-6  # of the size: less is rounding
# What can be left out, each with the types of constraints that it stands for.
_GROUPS = (
    (QT_TRANSLATE_NOOP("SketchDNN", "Coincident"), {"coincident", "concentric", "fix"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Point on curve"), {"point_on_curve", "midpoint"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Horizontal, vertical"), {"horizontal", "vertical"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Parallel, collinear"), {"parallel", "collinear"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Perpendicular"), {"perpendicular"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Tangent"), {"tangent"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Equal"), {"equal"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Symmetric"), {"symmetric"}),
    (QT_TRANSLATE_NOOP("SketchDNN", "Dimensions"), set(DIMENSIONS)),
)


class ConstrainPanel(Panel):
    """Asks for several sets of constraints as it opens."""

    def __init__(self, sketch: Any) -> None:
        self.title = tr("Auto-constrain")
        self.icon = str(ICONS / "constrain.svg")
        super().__init__(sketch)
        self.given = read_sketch(sketch)
        self.results: list[dict[str, Any]] = []
        self.tolerance = LengthField(0.0, tr("Gaps and errors up to this length are drawing errors"))
        self.origin = combo((tr("Tie to the origin"), True), (tr("Leave free"), False))
        self.round = check(
            tr("Round dimensions"), on=False, tip=tr("Give free dimensions values such as 80 instead of 79.99")
        )
        self.options.addRow(tr("Tolerance"), self.tolerance)
        self.options.addRow(tr("Origin"), self.origin)
        self.options.addRow(self.round)
        self.kinds = self._add_kinds()
        self.add_button(tr("Constrain again"), tr("Ask again with these options"), self.ask)

    def _add_kinds(self) -> list[QtWidgets.QCheckBox]:
        box = QtWidgets.QGroupBox(tr("Add these kinds of constraints"))
        grid = QtWidgets.QGridLayout(box)
        grid.setContentsMargins(4, 4, 4, 4)
        grid.setHorizontalSpacing(4)
        boxes = [check(tr(text), on=True) for text, _ in _GROUPS]
        for index, widget in enumerate(boxes):
            widget.toggled.connect(lambda _: self._kinds_changed())
            grid.addWidget(widget, index // 2, index % 2)
        self.layout.insertWidget(1, box)
        return boxes

    def show(self) -> None:
        super().show()
        self.ask()

    def ask(self) -> None:
        """Ask for sets of constraints with the options of the panel."""
        size = size_of(self.given.record["primitives"])
        if not size:
            self.show_error(tr("The sketch has no lines, circles or arcs to constrain."))
            return
        options: dict[str, Any] = {"repair": False, "origin": self.origin.currentData()}
        if millimeters := self.tolerance.millimeters:
            options["tolerance"] = millimeters / size
        if self.round.isChecked():
            options["round"] = "auto"
        request = {"sketch": self.given.record, "options": options, "alternatives": True}

        def work(task: Task) -> list[dict[str, Any]]:
            answer = task.call("/constrain", request)
            return list(answer["alternatives"])

        self.run(work, self._show)

    def _show(self, results: list[dict[str, Any]]) -> None:
        num_primitives = len(self.given.record["primitives"])
        same = [r for r in results if len(r["sketch"]["primitives"]) == num_primitives]
        self.results = [r for r in same if edit.added_constraints(self.given.record, r["sketch"])]
        if not self.results:
            self.show_error(tr("Nothing can be added: the sketch has these constraints already."))
        self.show_tiles([self._tile(result) for result in self.results])

    def _new(self, result: dict[str, Any]) -> list[Record]:
        """The constraints that a result adds, of the kinds that are ticked."""
        allowed = set().union(*(types for (_, types), box in zip(_GROUPS, self.kinds, strict=True) if box.isChecked()))
        return [c for c in edit.added_constraints(self.given.record, result["sketch"]) if c["type"] in allowed]

    def _tile(self, result: dict[str, Any]) -> tuple[Picture, str, str]:
        new = self._new(result)
        num_dimensions = sum(c["type"] in DIMENSIONS for c in new)
        is_all = len(new) == len(edit.added_constraints(self.given.record, result["sketch"]))
        lines = [tr(str(result["name"]))]
        lines.append(tr("constraints: {0}").format(len(new) - num_dimensions))
        lines.append(tr("dimensions: {0}").format(num_dimensions))
        if is_all:
            lines.append(
                tr("fully constrained") if result["fully_constrained"] else tr("free: {0}").format(result["dof"])
            )
        else:
            lines.append(tr("without some kinds"))
        counts = Counter(texts.constraint_name(c["type"]) for c in new)
        tip = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
        return Picture(result["sketch"]["primitives"]), "\n".join(lines), tip

    def _kinds_changed(self) -> None:
        for number, result in enumerate(self.results):
            self.tiles.change(number, *self._tile(result))
        self.choice_changed()

    def choice_changed(self) -> None:
        chosen = self.tiles.chosen
        if not chosen or chosen[0] >= len(self.results):
            return
        result = self.results[chosen[0]]
        notes = [self._tile(result)[2]]
        if result.get("displacement", 0.0) > _VISIBLE * size_of(self.given.record["primitives"]):
            notes.append(tr("Geometry moves by up to {0}.").format(show_length(result["displacement"])))
        notes += [result.get("warning") or "", texts.unseen_sentence(self.given.unseen)]
        show_details(self, notes)

    def apply(self) -> Edited:
        if read_sketch(self.sketch).record != self.given.record:
            raise EditError(tr("The sketch has changed since; constrain again."))
        result = self.results[self.chosen()]
        with transaction(self.sketch.Document, "Auto-constrain"):
            return edit.constrain(self.sketch, self.given, result["sketch"], self._new(result), self.pump)
