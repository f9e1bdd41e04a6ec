"""Translated texts: sentences and the names of kinds, constraints and units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import FreeCAD

CONTEXT = "SketchDNN"


def noop(context: str, text: str) -> str:
    """Mark a text for translation; it is translated where it is shown."""
    return text


try:
    from FreeCAD.Qt import QT_TRANSLATE_NOOP
except ImportError:
    QT_TRANSLATE_NOOP = noop


def tr(text: str) -> str:
    """The text in the user's language."""
    return str(FreeCAD.Qt.translate(CONTEXT, text))


_CONSTRAINTS = {
    "coincident": QT_TRANSLATE_NOOP("SketchDNN", "coincident"),
    "point_on_curve": QT_TRANSLATE_NOOP("SketchDNN", "point on curve"),
    "horizontal": QT_TRANSLATE_NOOP("SketchDNN", "horizontal"),
    "vertical": QT_TRANSLATE_NOOP("SketchDNN", "vertical"),
    "parallel": QT_TRANSLATE_NOOP("SketchDNN", "parallel"),
    "perpendicular": QT_TRANSLATE_NOOP("SketchDNN", "perpendicular"),
    "collinear": QT_TRANSLATE_NOOP("SketchDNN", "collinear"),
    "tangent": QT_TRANSLATE_NOOP("SketchDNN", "tangent"),
    "equal": QT_TRANSLATE_NOOP("SketchDNN", "equal"),
    "concentric": QT_TRANSLATE_NOOP("SketchDNN", "concentric"),
    "midpoint": QT_TRANSLATE_NOOP("SketchDNN", "midpoint"),
    "symmetric": QT_TRANSLATE_NOOP("SketchDNN", "symmetric"),
    "fix": QT_TRANSLATE_NOOP("SketchDNN", "fixed"),
    "distance": QT_TRANSLATE_NOOP("SketchDNN", "distance"),
    "horizontal_distance": QT_TRANSLATE_NOOP("SketchDNN", "horizontal distance"),
    "vertical_distance": QT_TRANSLATE_NOOP("SketchDNN", "vertical distance"),
    "length": QT_TRANSLATE_NOOP("SketchDNN", "length"),
    "radius": QT_TRANSLATE_NOOP("SketchDNN", "radius"),
    "diameter": QT_TRANSLATE_NOOP("SketchDNN", "diameter"),
    "angle": QT_TRANSLATE_NOOP("SketchDNN", "angle"),
}
# The server's names for sets of constraints; a translation is looked up by the name.
_SETS = (
    QT_TRANSLATE_NOOP("SketchDNN", "Coincidences"),
    QT_TRANSLATE_NOOP("SketchDNN", "Geometric relations"),
    QT_TRANSLATE_NOOP("SketchDNN", "Equal and symmetric"),
    QT_TRANSLATE_NOOP("SketchDNN", "Lengths"),
    QT_TRANSLATE_NOOP("SketchDNN", "Lengths without equalities"),
    QT_TRANSLATE_NOOP("SketchDNN", "Ordinate dimensions"),
    QT_TRANSLATE_NOOP("SketchDNN", "Rounded dimensions"),
)
_UNSEEN = {
    "ExternalGeometry": QT_TRANSLATE_NOOP("SketchDNN", "external geometry"),
    "Ellipse": QT_TRANSLATE_NOOP("SketchDNN", "ellipses"),
    "ArcOfEllipse": QT_TRANSLATE_NOOP("SketchDNN", "arcs of ellipses"),
    "ArcOfHyperbola": QT_TRANSLATE_NOOP("SketchDNN", "hyperbolas"),
    "ArcOfParabola": QT_TRANSLATE_NOOP("SketchDNN", "parabolas"),
    "BSplineCurve": QT_TRANSLATE_NOOP("SketchDNN", "B-splines"),
}


def constraint_name(type_: str) -> str:
    """The name of a type of constraint."""
    return tr(_CONSTRAINTS.get(type_, type_))


def unseen_sentence(unseen: Mapping[str, int]) -> str:
    """A sentence on the geometry that is not sent to the model; empty if there is none."""
    if not unseen:
        return ""
    names = ", ".join(f"{tr(_UNSEEN.get(kind, kind))} ({count})" for kind, count in sorted(unseen.items()))
    return tr("The model does not see this geometry, which stays as it is; check that nothing crosses it: {0}.").format(
        names
    )


def with_element_numbers(sentence: str, geo_ids: Sequence[int]) -> str:
    """A sentence of the server with the numbers that FreeCAD's list of elements has, which begins at 1."""

    def curves(found: re.Match[str]) -> str:
        numbers = re.sub(r"\d+", lambda n: str(geo_ids[int(n[0])] + 1 if int(n[0]) < len(geo_ids) else n[0]), found[2])
        return f"curve{found[1]} {numbers}"

    return re.sub(r"primitive(s?) (\d+(?:(?:, | and )\d+)*)", curves, sentence)
