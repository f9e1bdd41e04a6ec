"""Repair of drawn sketches: gaps closed, duplicates dropped, constraints that hold exactly.

`pipeline` makes passes over a sketch. Each brings it into a canonical orientation (`symmetry`), computes once what its
attempts have in common (`states`), and makes attempts from bold to cautious: `dedupe` drops and merges duplicates,
`joins` finds ends that nearly meet and closes outlines, `infer_solve` infers constraints and solves them within a
budget, `quality` compares the profile before and after. `batch` repairs many sketches on several cores.
"""

from .batch import repair_all
from .pipeline import REPAIR_TOLERANCE, RepairedSketch, repair
from .quality import Action, ActionKind

__all__ = ["REPAIR_TOLERANCE", "Action", "ActionKind", "RepairedSketch", "repair", "repair_all"]
