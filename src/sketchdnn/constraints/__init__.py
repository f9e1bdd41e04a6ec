"""How primitives relate: which constraints a sketch means, the nearest sketch that satisfies them, what stays free."""

from .freedom import Freedom
from .infer import TOLERANCE, infer
from .mending import REPAIR_TOLERANCE, Action, ActionKind, Repaired, repair, repair_all
from .solve import Solution, solve

__all__ = [
    "REPAIR_TOLERANCE",
    "TOLERANCE",
    "Action",
    "ActionKind",
    "Freedom",
    "Repaired",
    "Solution",
    "infer",
    "repair",
    "repair_all",
    "solve",
]
