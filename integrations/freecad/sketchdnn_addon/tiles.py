"""A grid of pictures to choose from, by mouse or keyboard."""

from __future__ import annotations

from collections.abc import Callable

from .drawing import Picture, pixmap
from .qt import QtCore, QtGui, QtWidgets

_WIDTH, _HEIGHT = 112, 84
_PADDING = 8
_MOST_ROWS = 4


class Tiles(QtWidgets.QListWidget):
    """Tiles with a picture and a caption: `on_choice` follows a click, `on_accept` a double click or Enter."""

    def __init__(self, on_choice: Callable[[], None], on_accept: Callable[[], None], *, several: bool = False) -> None:
        super().__init__()
        self.setViewMode(QtWidgets.QListView.IconMode)
        self.setResizeMode(QtWidgets.QListView.Adjust)
        self.setMovement(QtWidgets.QListView.Static)
        self.setTextElideMode(QtCore.Qt.ElideNone)
        self.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarAlwaysOff)
        self.setSpacing(2)
        self._set_height()
        self.setIconSize(QtCore.QSize(_WIDTH, _HEIGHT))
        if several:
            self.setSelectionMode(QtWidgets.QAbstractItemView.ExtendedSelection)
        self.setStyleSheet(
            "QListWidget { activate-on-singleclick: 0 }"
            "QListWidget::item { border: 1px solid palette(mid); border-radius: 4px; padding: 3px;"
            " color: palette(text) }"
            "QListWidget::item:selected { border: 2px solid palette(highlight); padding: 2px;"
            " background: palette(base); color: palette(text) }"
        )
        self.itemSelectionChanged.connect(on_choice)
        self.itemActivated.connect(lambda _: on_accept())

    def add(self, picture: Picture, caption: str, tip: str = "") -> None:
        """Add a tile at the end."""
        item = QtWidgets.QListWidgetItem()
        item.setData(QtCore.Qt.UserRole, picture)
        self.addItem(item)
        self._fill(item, picture, caption, tip)
        self._set_height()

    def clear(self) -> None:
        """Take all tiles away."""
        super().clear()
        self._set_height()

    def change(self, number: int, picture: Picture, caption: str, tip: str = "") -> None:
        """Give a tile other content; the selection stays."""
        self._fill(self.item(number), picture, caption, tip)
        self.doItemsLayout()

    def _fill(self, item: QtWidgets.QListWidgetItem, picture: Picture, caption: str, tip: str) -> None:
        caption = self._wrapped(caption)
        lines = caption.count("\n") + 1
        height = _HEIGHT + 2 * _PADDING + lines * self.fontMetrics().lineSpacing()
        image = pixmap(picture, _WIDTH, _HEIGHT, self.palette())
        icon = QtGui.QIcon(image)
        icon.addPixmap(image, QtGui.QIcon.Selected)  # the style must not tint the picture of the chosen tile
        item.setIcon(icon)
        item.setText(caption)
        item.setToolTip(tip or caption)
        item.setData(QtCore.Qt.AccessibleTextRole, caption.replace("\n", ", "))
        item.setSizeHint(QtCore.QSize(_WIDTH + _PADDING, height))

    def _wrapped(self, caption: str) -> str:
        """The caption with lines that are as wide as a tile at most."""
        lines: list[str] = []
        for line in caption.split("\n"):
            words = line.split(" ")
            lines.append(words[0])
            for word in words[1:]:
                longer = f"{lines[-1]} {word}"
                if self.fontMetrics().boundingRect(longer).width() > _WIDTH:
                    lines.append(word)
                else:
                    lines[-1] = longer
        return "\n".join(lines)

    def _set_height(self) -> None:
        """Room for two tiles in a row, up to a number of rows."""
        rows = min(_MOST_ROWS, max(1, (self.count() + 1) // 2))
        heights = [self.item(i).sizeHint().height() for i in range(self.count())]
        self.setMinimumHeight(rows * (max(heights, default=_HEIGHT) + 2 * self.spacing()) + _PADDING)

    @property
    def chosen(self) -> list[int]:
        """The numbers of the selected tiles."""
        return sorted(index.row() for index in self.selectedIndexes())

    def choose(self, number: int) -> None:
        """Select one tile."""
        self.setCurrentRow(number)
