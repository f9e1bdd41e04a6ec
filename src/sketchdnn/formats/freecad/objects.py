"""A sketch object of a FreeCAD document: its geometry, its constraints, its label, and the notes that we keep there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement

from sketchdnn.errors import GeometryError
from sketchdnn.formats.format import ReadItem, Skipped
from sketchdnn.geometry import Constraint, Primitive, Sketch

from . import geometry, relation
from .meaning import OnMissingGeometryError, constraint_of
from .notes import PROPERTY, recall, to_notes
from .relation import Relation, printable
from .selection import REPORTED, say

_DOC = "What FreeCAD has no place for; says which constraints are redundant or could not be said"
_DYNAMIC = str(1 << 21)  # the status of a property that is not FreeCAD's own


def read_object(of: Element) -> Iterator[ReadItem]:
    """The sketch of one object, and what was left out of it."""
    skipped: Counter[str] = Counter()
    primitives, numbering = _read_geometry(of, skipped)
    relations = _read_relations(of, skipped)
    notes = [text.get("value", "") for text in of.iterfind(_path(PROPERTY, "StringList/String"))]
    recalled = recall(notes, primitives, relations)
    constraints = [*recalled.constraints, *_meant(recalled.relations, numbering, primitives, skipped)]
    if primitives:
        label = of.find(_path("Label", "String"))
        name = (label.get("value") if label is not None else None) or of.get("name", "")
        dropped = {"dropped_entities": lost} if (lost := numbering.count(None)) else {}
        yield Sketch(tuple(primitives), tuple(constraints), "mm", {**recalled.extra, "name": name, **dropped})
    else:
        yield Skipped("a sketch without a line, circle, arc or point", is_sketch=True)
    yield from (Skipped(reason, count=count) for reason, count in skipped.items())


def to_object(sketch: Sketch, name: str) -> tuple[Element, Counter[str]]:
    """The object of a sketch measured in millimeters, and why some of its constraints are not active in it."""
    said = say(sketch)
    of = Element("Object", name=name)
    properties = SubElement(of, "Properties", Count="4")
    label = SubElement(properties, "Property", name="Label", type="App::PropertyString")
    SubElement(label, "String", value=printable(str(sketch.extra.get("name") or sketch.extra.get("id") or name)))
    shapes = [geometry.to_element(primitive) for primitive in sketch]
    _add_list(properties, "Geometry", "Part::PropertyGeometryList", "GeometryList", shapes)
    relations = [r.element() for s in said for r in s.relations]
    _add_list(properties, "Constraints", "Sketcher::PropertyConstraintList", "ConstraintList", relations)
    notes = [Element("String", value=note) for note in to_notes(sketch, said)]
    ours = _add_list(properties, PROPERTY, "App::PropertyStringList", "StringList", notes)
    ours.attrib |= {"group": PROPERTY, "doc": _DOC, "attr": "0", "ro": "0", "hide": "0", "status": _DYNAMIC}
    return of, Counter(REPORTED[s.note] for s in said if s.note)


def _read_geometry(of: Element, skipped: Counter[str]) -> tuple[list[Primitive], list[int | None]]:
    """The primitives, and the one that each geometry became, if it did."""
    primitives: list[Primitive] = []
    numbering: list[int | None] = []
    for element in of.iterfind(_path("Geometry", "GeometryList/Geometry")):
        primitive = geometry.from_element(element)
        if isinstance(primitive, str):
            skipped[primitive] += 1
            numbering.append(None)
        else:
            numbering.append(len(primitives))
            primitives.append(primitive)
    return primitives, numbering


def _read_relations(of: Element, skipped: Counter[str]) -> list[Relation]:
    relations: list[Relation] = []
    for element in of.iterfind(_path("Constraints", "ConstraintList/Constrain")):
        try:
            relations.append(relation.from_element(element))
        except ValueError:
            skipped["a constraint of a kind or with numbers that we do not know"] += 1
    return relations


def _meant(
    relations: Sequence[Relation],
    numbering: Sequence[int | None],
    primitives: Sequence[Primitive],
    skipped: Counter[str],
) -> Iterator[Constraint]:
    """The constraints that FreeCAD's own relations mean."""
    known = tuple(primitives)
    for relation_ in relations:
        try:
            constraint = constraint_of(relation_, numbering, primitives)
            Sketch(known, (constraint,))  # refuses a part that its primitive does not have
            yield constraint
        except OnMissingGeometryError:
            skipped["a constraint on geometry that was left out"] += 1
        except GeometryError:
            skipped["a constraint on a part that its geometry does not have"] += 1


def _path(title: str, path: str) -> str:
    return f"Properties/Property[@name='{title}']/{path}"


def _add_list(properties: Element, title: str, type_: str, tag: str, items: Sequence[Element]) -> Element:
    of = SubElement(properties, "Property", name=title, type=type_)
    of_items = SubElement(of, tag, count=str(len(items)))
    of_items.text = "\n"  # an empty list must not be closed where it opens
    of_items.extend(items)
    return of
