"""Repair of drawn sketches: gaps closed, duplicates dropped, constraints that hold exactly.

`pipeline` makes passes over a sketch. Each brings it into a canonical orientation (`symmetry`) and makes attempts from
bold to cautious: `dedupe` drops and merges duplicates, `joins` finds ends that nearly meet, `infer_solve` infers
constraints and solves them, `closing` closes outlines, `quality` compares the profile before and after. A `budget`
bounds the work. `batch` repairs many sketches on several cores.
"""

from .batch import repair_all
from .pipeline import REPAIR_TOLERANCE, RepairedSketch, repair
from .quality import Action, ActionKind

__all__ = ["REPAIR_TOLERANCE", "Action", "ActionKind", "RepairedSketch", "repair", "repair_all"]
