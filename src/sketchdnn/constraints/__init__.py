"""Constraints of a sketch: infer them, solve for the nearest sketch that satisfies them, and count what stays free."""

from .equation_set import Freedom
from .infer import TOLERANCE, infer
from .repair import REPAIR_TOLERANCE, Action, ActionKind, RepairedSketch, repair, repair_all
from .solve import Solution, solve

__all__ = [
    "REPAIR_TOLERANCE",
    "TOLERANCE",
    "Action",
    "ActionKind",
    "Freedom",
    "RepairedSketch",
    "Solution",
    "infer",
    "repair",
    "repair_all",
    "solve",
]
