"""Pictures of sketches: given geometry in the color of text, additions in blue, construction dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .qt import QtCore, QtGui, QtWidgets
from .sketch_json import TAU, Record, Vec, bounds

ADDED = "#1a6fd4"
ADDED_ON_DARK = "#6cb2ff"
OPEN_END = "#d43a1a"
_MARGIN = 0.08
_WIDTH = 1.6
_DOT = 2.2
_RING = 4.5


@dataclass(frozen=True)
class Picture:
    """What a tile shows.

    Attributes:
        given: Primitives that the user has drawn.
        added: Primitives that a suggestion adds.
        marks: Points to ring, such as open ends.
    """

    given: Sequence[Record] = ()
    added: Sequence[Record] = ()
    marks: Sequence[Vec] = ()

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of all of it."""
        found = bounds([*self.given, *self.added])
        return found or (-1.0, -1.0, 1.0, 1.0)


def pixmap(picture: Picture, width: int, height: int, palette: QtGui.QPalette) -> QtGui.QPixmap:
    """The picture, fitted into a size in the coordinates of a widget."""
    app = QtWidgets.QApplication.instance()
    ratio = app.devicePixelRatio() if app is not None else 1.0
    result = QtGui.QPixmap(round(width * ratio), round(height * ratio))
    result.setDevicePixelRatio(ratio)
    paper = palette.color(QtGui.QPalette.Base)
    result.fill(paper)
    painter = QtGui.QPainter(result)
    try:
        painter.setRenderHint(QtGui.QPainter.Antialiasing)
        blue = ADDED if paper.lightness() > 127 else ADDED_ON_DARK
        view = _View(picture.box, width, height)
        for primitives, color in (
            (picture.given, palette.color(QtGui.QPalette.Text)),
            (picture.added, QtGui.QColor(blue)),
        ):
            for primitive in primitives:
                _draw(painter, primitive, color, view)
        painter.setPen(QtGui.QPen(QtGui.QColor(OPEN_END), _WIDTH))
        painter.setBrush(QtCore.Qt.NoBrush)
        for mark in picture.marks:
            painter.drawEllipse(view.point(mark), _RING, _RING)
    finally:
        painter.end()
    return result


class _View:
    """From the coordinates of a sketch to those of a picture, whose y points down."""

    def __init__(self, box: tuple[float, float, float, float], width: int, height: int) -> None:
        left, bottom, right, top = box
        margin = _MARGIN * min(width, height) + _RING
        spans = ((width - 2 * margin) / (right - left or 1e-9), (height - 2 * margin) / (top - bottom or 1e-9))
        self.scale = min(spans)
        if not math.isfinite(self.scale) or self.scale > 1e9:
            self.scale = 1.0
        self._x = width / 2 - self.scale * (left + right) / 2
        self._y = height / 2 + self.scale * (bottom + top) / 2

    def point(self, p: Sequence[float]) -> QtCore.QPointF:
        return QtCore.QPointF(self._x + self.scale * p[0], self._y - self.scale * p[1])


def _draw(painter: QtGui.QPainter, primitive: Record, color: QtGui.QColor, view: _View) -> None:
    pen = QtGui.QPen(color, _WIDTH)
    pen.setCapStyle(QtCore.Qt.RoundCap)
    if primitive.get("construction"):
        pen.setWidthF(_WIDTH * 0.7)
        pen.setDashPattern([4.0, 3.0])
    painter.setPen(pen)
    painter.setBrush(QtCore.Qt.NoBrush)
    kind = primitive["type"]
    if kind == "line":
        painter.drawLine(view.point(primitive["start"]), view.point(primitive["end"]))
    elif kind == "point":
        painter.setBrush(color)
        painter.drawEllipse(view.point(primitive["at"]), _DOT, _DOT)
    else:
        center, radius = view.point(primitive["center"]), view.scale * primitive["radius"]
        if kind == "circle":
            painter.drawEllipse(center, radius, radius)
            return
        start, end = primitive["start_angle"], primitive["end_angle"]
        sweep = end - start if end > start else end - start + TAU
        box = QtCore.QRectF(center.x() - radius, center.y() - radius, 2 * radius, 2 * radius)
        path = QtGui.QPainterPath()
        path.arcMoveTo(box, math.degrees(start))
        path.arcTo(box, math.degrees(start), math.degrees(sweep))
        painter.drawPath(path)
