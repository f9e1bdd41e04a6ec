"""What a sketch is: primitives and constraints as values, and their geometry. Knows no file, tensor or picture."""

from .arcs import (
    arc_from_angles,
    arc_from_bulge,
    arc_from_points,
    arc_from_signed_radius,
    arc_from_sweep,
    bulge,
    signed_radius,
)
from .bounds import Box, bounds
from .constraints import EXTERNAL, Constraint, ConstraintType, Part, Ref
from .curves import approximate
from .loops import Chain, Loop, Profile, profile
from .normalize import Placement, normalize
from .overlaps import Overlap, overlaps
from .parametric import Bezier, EllipticArc, ParametricCurve, quadratic_bezier
from .primitives import TAU, Arc, Circle, Kind, Line, Point, Primitive, Vec
from .sketch import MM_PER_UNIT, Sketch
from .tessellate import tessellate

__all__ = [
    "EXTERNAL",
    "MM_PER_UNIT",
    "TAU",
    "Arc",
    "Bezier",
    "Box",
    "Chain",
    "Circle",
    "Constraint",
    "ConstraintType",
    "EllipticArc",
    "Kind",
    "Line",
    "Loop",
    "Overlap",
    "ParametricCurve",
    "Part",
    "Placement",
    "Point",
    "Primitive",
    "Profile",
    "Ref",
    "Sketch",
    "Vec",
    "approximate",
    "arc_from_angles",
    "arc_from_bulge",
    "arc_from_points",
    "arc_from_signed_radius",
    "arc_from_sweep",
    "bounds",
    "bulge",
    "normalize",
    "overlaps",
    "profile",
    "quadratic_bezier",
    "signed_radius",
    "tessellate",
]
