"""Suggestions and markers drawn into the 3D view over a sketch, without any object of the document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import FreeCADGui as Gui

from .sketch_json import TAU, Record, Vec, read_sketch, size_of

try:
    from pivy import coin
except ImportError:  # FreeCAD without pivy: the panel's pictures are enough
    coin = None

_SEGMENTS = 64
_DASHES = 0xFF00
_BLUE = (0.1, 0.45, 0.85)
_RED = (0.85, 0.2, 0.1)


class Overlay:
    """Curves and rings in the plane of a sketch; nothing is shown where the document has no 3D view."""

    def __init__(self, sketch: Any) -> None:
        self._sketch = sketch
        self._size = size_of(read_sketch(sketch).record["primitives"]) or 1.0
        self._graph: Any = None
        self._node: Any = None

    def show(self, primitives: Sequence[Record] = (), marks: Sequence[Vec] = ()) -> None:
        """Draw primitives in blue and rings around marks in red, in place of what was drawn before."""
        self.clear()
        graph = self._scene()
        if coin is None or graph is None or not (primitives or marks):
            return
        node = coin.SoSeparator()
        node.addChild(self._placement())
        points = [p["at"] for p in primitives if p["type"] == "point"]
        curves = [p for p in primitives if p["type"] != "point"]
        _add_lines(node, [_outline(p) for p in curves if not p.get("construction")], _BLUE)
        _add_lines(node, [_outline(p) for p in curves if p.get("construction")], _BLUE, dashed=True)
        _add_lines(node, [_ring(p, self._size / 200) for p in points], _BLUE)
        _add_lines(node, [_ring(p, self._size / 50) for p in marks], _RED)
        graph.addChild(node)
        self._graph, self._node = graph, node

    def clear(self) -> None:
        """Take away what was drawn."""
        if self._node is not None:
            with suppress(RuntimeError):  # the view is closed
                self._graph.removeChild(self._node)
        self._graph = self._node = None

    def _scene(self) -> Any:
        document = Gui.getDocument(self._sketch.Document.Name)
        view = document.activeView() if document is not None else None
        return view.getSceneGraph() if hasattr(view, "getSceneGraph") else None

    def _placement(self) -> Any:
        placement = self._sketch.getGlobalPlacement()
        transform = coin.SoTransform()
        transform.translation.setValue(*placement.Base)
        transform.rotation.setValue(*placement.Rotation.Q)
        return transform


def _add_lines(
    node: Any, outlines: Sequence[Sequence[Vec]], rgb: tuple[float, float, float], *, dashed: bool = False
) -> None:
    if not outlines:
        return
    color, style, points, lines = coin.SoBaseColor(), coin.SoDrawStyle(), coin.SoCoordinate3(), coin.SoLineSet()
    color.rgb.setValue(*rgb)
    style.lineWidth.setValue(1.5 if dashed else 3)
    if dashed:
        style.linePattern.setValue(_DASHES)
    flat = [(x, y, 0.0) for outline in outlines for x, y in outline]
    points.point.setValues(0, len(flat), flat)
    lines.numVertices.setValues(0, len(outlines), [len(outline) for outline in outlines])
    for child in (color, style, points, lines):
        node.addChild(child)


def _ring(point: Sequence[float], radius: float) -> list[Vec]:
    return _outline({"type": "circle", "center": point, "radius": radius})


def _outline(primitive: Record) -> list[Vec]:
    if primitive["type"] == "line":
        return [tuple(primitive["start"]), tuple(primitive["end"])]
    (x, y), radius = primitive["center"], primitive["radius"]
    start, end = primitive.get("start_angle", 0.0), primitive.get("end_angle", TAU)
    sweep = end - start if end > start else end - start + TAU
    angles = (start + sweep * i / _SEGMENTS for i in range(_SEGMENTS + 1))
    return [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]
