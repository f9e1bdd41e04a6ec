"""*Complete sketch*: suggestions for what a sketch may still need, drawn over it."""

from __future__ import annotations

from typing import Any

from . import ICONS, edit, texts
from .drawing import Picture
from .edit import Edited, EditError, transaction
from .fields import combo, number
from .panel import Panel, show_details
from .sketch_json import Record, read_sketch
from .task import Task

tr = texts.tr
_COUNT = 8
_MOST_UNLIKE = 64  # the server takes no more


class CompletePanel(Panel):
    """Asks for suggestions as it opens; each further request shows other ones."""

    def __init__(self, sketch: Any) -> None:
        self.title = tr("Complete sketch")
        self.icon = str(ICONS / "complete.svg")
        super().__init__(sketch)
        self.given = read_sketch(sketch)
        self.results: list[dict[str, Any]] = []
        self.seen: list[Record] = []
        self.goal = combo(
            (tr("Automatic"), ""),
            (tr("Close the open ends"), "close"),
            (tr("Features inside"), "inside"),
            (tr("Continue outside"), "extend"),
        )
        self.seed = number(0, 0, 2**31 - 1, tr("The same seed gives the same suggestions"))
        self.options.addRow(tr("Goal"), self.goal)
        self.options.addRow(tr("Seed"), self.seed)
        self.add_button(tr("Suggest"), tr("Ask again with this goal and seed"), self.suggest)
        self.add_button(tr("Something else"), tr("Suggestions unlike those shown so far"), self.something_else)
        self.add_button(tr("More like this"), tr("Variations of the selected suggestion"), self.more_like_this)
        show_details(self, self._notes())

    def show(self) -> None:
        super().show()
        self.suggest()

    def suggest(self) -> None:
        """Ask for suggestions from the seed."""
        self.seen.clear()
        self._ask({})

    def something_else(self) -> None:
        """Ask for suggestions that repeat none of those shown."""
        self.seed.setValue(self.seed.value() + 1)
        self._ask({"unlike": self.seen[-_MOST_UNLIKE:]})

    def more_like_this(self) -> None:
        """Ask for variations of the selected suggestion."""
        try:
            like = self.results[self.chosen()]["sketch"]
        except EditError as error:
            self.show_error(str(error))
            return
        self.seed.setValue(self.seed.value() + 1)
        self._ask({"like": like})

    def _ask(self, more: dict[str, Any]) -> None:
        if not self.given.record["primitives"]:
            self.show_error(tr("The sketch has no lines, circles, arcs or points; use “Generate sketch” to begin one."))
            return
        request: dict[str, Any] = {"part": self.given.record, "count": _COUNT, "seed": self.seed.value()} | more
        if goal := self.goal.currentData():
            request["goal"] = goal

        def work(task: Task) -> list[dict[str, Any]]:
            return task.sample("/complete", request)

        self.run(work, self._show)

    def _show(self, results: list[dict[str, Any]]) -> None:
        self.results = results
        self.seen += [result["sketch"] for result in results]
        tiles = [(self._picture(result), self._caption(result), result.get("shortfall") or "") for result in results]
        self.show_tiles(tiles)
        if not results:
            self.show_error(tr("The model has no suggestion for this; try another goal or seed."))
        show_details(self, self._notes())

    def _num_given(self, result: dict[str, Any]) -> int:
        return int(result.get("num_given", len(self.given.record["primitives"])))

    def _picture(self, result: dict[str, Any]) -> Picture:
        primitives, num_given = result["sketch"]["primitives"], self._num_given(result)
        return Picture(primitives[:num_given], primitives[num_given:])

    def _caption(self, result: dict[str, Any]) -> str:
        added = len(result["sketch"]["primitives"]) - self._num_given(result)
        closed = (result.get("profile") or {}).get("is_extrudable")
        state = tr("closed") if closed else tr("not closed")
        return tr("added: {0}").format(added) + "\n" + state

    def _notes(self) -> list[str]:
        note = tr("Given geometry stays as it is; additions are blue.")
        chosen = self.tiles.chosen
        shortfall = self.results[chosen[0]].get("shortfall") if chosen and chosen[0] < len(self.results) else None
        return [
            note,
            tr("Compared with what was asked: {0}").format(shortfall) if shortfall else "",
            texts.unseen_sentence(self.given.unseen),
        ]

    def choice_changed(self) -> None:
        chosen = self.tiles.chosen
        if self.overlay is not None and chosen and chosen[0] < len(self.results):
            self.overlay.show(self._picture(self.results[chosen[0]]).added)
            show_details(self, self._notes())

    def apply(self) -> Edited:
        if read_sketch(self.sketch).record != self.given.record:
            raise EditError(tr("The sketch has changed since; ask for suggestions again."))
        result = self.results[self.chosen()]
        with transaction(self.sketch.Document, "Complete sketch"):
            return edit.complete(self.sketch, self.given, result["sketch"], self._num_given(result), self.pump)
