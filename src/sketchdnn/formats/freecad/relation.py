"""A constraint as FreeCAD writes it: a code, up to three places of the sketch, and a value.

A place is a geometry's number and which point of it is meant. Numbers below zero lie outside: −1 is the x axis (its
start is the origin), −2 the y axis, from −3 on external geometry. How a constraint is drawn (label position, virtual
space) is not kept.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from xml.etree.ElementTree import Element


class Code(IntEnum):
    """FreeCAD's constraint types."""

    COINCIDENT = 1
    HORIZONTAL = 2
    VERTICAL = 3
    PARALLEL = 4
    TANGENT = 5
    DISTANCE = 6
    DISTANCE_X = 7
    DISTANCE_Y = 8
    ANGLE = 9
    PERPENDICULAR = 10
    RADIUS = 11
    EQUAL = 12
    POINT_ON_OBJECT = 13
    SYMMETRIC = 14
    INTERNAL_ALIGNMENT = 15
    SNELLS_LAW = 16
    BLOCK = 17
    DIAMETER = 18
    WEIGHT = 19
    GROUP = 20
    TEXT = 21


DIMENSIONS = frozenset(
    {
        Code.DISTANCE,
        Code.DISTANCE_X,
        Code.DISTANCE_Y,
        Code.ANGLE,
        Code.RADIUS,
        Code.DIAMETER,
        Code.SNELLS_LAW,
        Code.WEIGHT,
    }
)


class Pos(IntEnum):
    """Which point of a geometry; a point's only one is its start, a circle's is its center."""

    WHOLE = 0
    START = 1
    END = 2
    CENTER = 3


class At(NamedTuple):
    """A place of the sketch."""

    geo: int
    pos: Pos = Pos.WHOLE


X_AXIS, Y_AXIS, ORIGIN = At(-1), At(-2), At(-1, Pos.START)
_UNDEFINED = -2000
_SLOTS = ("First", "Second", "Third")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """Text with whatever XML cannot hold replaced."""
    return _NOT_IN_XML.sub("?", text)


@dataclass(frozen=True, slots=True)
class Relation:
    """What FreeCAD's solver is asked to keep. A reference dimension is not driving; an inactive one is set aside."""

    code: Code
    at: tuple[At, ...]
    value: float = 0.0
    label: str = ""
    driving: bool = True
    active: bool = True

    def element(self) -> Element:
        """The XML of it."""
        attributes = {"Name": self.label, "Type": str(int(self.code)), "Value": repr(float(self.value))}
        for slot, place in zip(_SLOTS, (*self.at, At(_UNDEFINED), At(_UNDEFINED)), strict=False):
            attributes |= {slot: str(place.geo), f"{slot}Pos": str(int(place.pos))}
        flags = {"IsDriving": self.driving, "IsInVirtualSpace": False, "IsActive": self.active}
        attributes |= {"LabelDistance": "10", "LabelPosition": "0"} | {k: str(int(v)) for k, v in flags.items()}
        return Element("Constrain", attributes)


def from_element(element: Element) -> Relation:
    """The relation that XML means; raises `ValueError` for what FreeCAD would not write."""
    value = float(element.get("Value", "0"))
    if not math.isfinite(value):
        raise ValueError("a value that is not a number")
    if len(element.get("ElementIds", "").split()) > len(_SLOTS):
        raise ValueError("more places than three")
    at: list[At] = []
    for slot in _SLOTS:
        geo = int(element.get(slot, _UNDEFINED))
        if geo == _UNDEFINED:
            break
        at.append(At(geo, Pos(int(element.get(f"{slot}Pos", 0)))))
    if not at:
        raise ValueError("no place")
    return Relation(
        Code(int(element.get("Type", "0"))),
        tuple(at),
        value,
        element.get("Name", ""),
        driving=element.get("IsDriving", "1") != "0",
        active=element.get("IsActive", "1") != "0",
    )
