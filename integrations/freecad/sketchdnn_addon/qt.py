"""Qt of the version that FreeCAD itself uses: PySide6 or PySide2."""

from __future__ import annotations

from typing import Any

import PySide.QtCore

if PySide.QtCore.qVersion().startswith("6"):
    from PySide6 import QtCore, QtGui, QtWidgets
else:
    from PySide2 import QtCore, QtGui, QtWidgets

__all__ = ["QtCore", "QtGui", "QtWidgets", "as_int"]


def as_int(flags: Any) -> int:
    """Enumerations and flags of Qt as the number that FreeCAD's functions take."""
    return int(getattr(flags, "value", flags))
