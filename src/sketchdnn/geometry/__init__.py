"""Sketches as values: primitives, constraints, bounds, loops and overlaps. No files, tensors or pictures."""

from .approximation import Bezier, EllipticArc, ParametricCurve, approximate, quadratic_bezier, tessellate
from .bounds import Box, Placement, bounds, normalize
from .constraints import EXTERNAL, Constraint, ConstraintType, Part, Ref
from .intersections import Overlap, overlaps
from .primitives import (
    TAU,
    Arc,
    Circle,
    Kind,
    Line,
    Point,
    Primitive,
    Vec,
    arc_from_angles,
    arc_from_bulge,
    arc_from_sweep,
    bulge,
)
from .profiles import Chain, Loop, Profile, profile
from .sketch import MM_PER_UNIT, Sketch

__all__ = ["TAU", "Arc", "Circle", "Kind", "Line", "Point", "Primitive", "Vec"]
__all__ += ["arc_from_angles", "arc_from_bulge", "arc_from_sweep", "bulge"]
__all__ += ["EXTERNAL", "MM_PER_UNIT", "Constraint", "ConstraintType", "Part", "Ref", "Sketch"]
__all__ += ["Box", "Chain", "Loop", "Overlap", "Placement", "Profile", "bounds", "normalize", "overlaps", "profile"]
__all__ += ["Bezier", "EllipticArc", "ParametricCurve", "approximate", "quadratic_bezier", "tessellate"]
