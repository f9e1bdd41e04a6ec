"""Fields of the panels. Lengths are shown and read in the user's units, with a decimal point or comma."""

from __future__ import annotations

from typing import Any

import FreeCAD

from . import texts
from .qt import QtWidgets


def combo(*choices: tuple[str, Any]) -> QtWidgets.QComboBox:
    """A choice of texts, each with its value."""
    box = QtWidgets.QComboBox()
    for text, value in choices:
        box.addItem(text, value)
    return box


def number(value: int, low: int, high: int, tip: str = "") -> QtWidgets.QSpinBox:
    """A whole number."""
    box = QtWidgets.QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    box.setToolTip(tip)
    return box


def check(text: str, *, on: bool, tip: str = "") -> QtWidgets.QCheckBox:
    """A box to tick."""
    box = QtWidgets.QCheckBox(text)
    box.setChecked(on)
    box.setToolTip(tip)
    return box


class LengthField(QtWidgets.QLineEdit):
    """A length in the user's units; empty means that the server decides."""

    def __init__(self, millimeters: float, tip: str = "") -> None:
        super().__init__()
        self._millimeters = millimeters
        self._show()
        self.setPlaceholderText(texts.tr("automatic"))
        self.setToolTip(tip)
        self.editingFinished.connect(self._normalize)

    @property
    def millimeters(self) -> float:
        """The length, 0 where the text is none; it is not rounded as the text is."""
        return self._millimeters if self.text() == self._shown else parse_length(self.text())

    def _normalize(self) -> None:
        self._millimeters = self.millimeters
        self._show()

    def _show(self) -> None:
        self._shown = show_length(self._millimeters) if self._millimeters else ""
        self.setText(self._shown)


def show_length(millimeters: float) -> str:
    """A length in the user's units, with the user's decimal separator."""
    return str(FreeCAD.Units.Quantity(millimeters, FreeCAD.Units.Length).UserString)


def parse_length(text: str) -> float:
    """A length in millimeters: `25.4`, `25,4 mm` or `1 in`; 0 where the text is none."""
    text = text.strip()
    if not text:
        return 0.0
    try:
        quantity = FreeCAD.Units.parseQuantity(text)
    except (OSError, ValueError, RuntimeError):
        return 0.0
    return float(quantity.Value) if quantity.Unit == FreeCAD.Units.Length else _in_user_units(quantity)


def _in_user_units(quantity: Any) -> float:
    """A number without a unit is meant in the unit that an inch is shown in: inches, or millimeters."""
    if quantity.Unit != FreeCAD.Units.Unit():
        return 0.0
    inch = FreeCAD.Units.Quantity(25.4, FreeCAD.Units.Length)
    _, millimeters, _ = FreeCAD.Units.schemaTranslate(inch, FreeCAD.Units.getSchema())
    return float(quantity.Value) * float(millimeters)
