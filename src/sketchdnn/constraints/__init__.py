"""How primitives relate: which constraints a sketch means, the nearest sketch that satisfies them, what stays free."""

from .actions import Action, ActionKind
from .freedom import Freedom
from .infer import TOLERANCE, infer
from .many import repair_all
from .repair import REPAIR_TOLERANCE, Repaired, repair
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
