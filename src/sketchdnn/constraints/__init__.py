"""Constraints of a sketch: infer them, solve for the nearest sketch that satisfies them, and count what stays free."""

from .alternatives import ConstrainAlternative, alternatives
from .constrain import ConstrainOptions, ConstrainResult, constrain
from .drag import Drag, DragResult, drag
from .edit import EditResult, solve_edited
from .equation_set import Freedom
from .infer import TOLERANCE, infer
from .repair import REPAIR_TOLERANCE, Action, ActionKind, RepairedSketch, repair, repair_all
from .rounding import RoundOptions, RoundResult, round_dimensions
from .solve import Solution, solve

__all__ = [
    "REPAIR_TOLERANCE",
    "TOLERANCE",
    "Action",
    "ActionKind",
    "ConstrainAlternative",
    "ConstrainOptions",
    "ConstrainResult",
    "Drag",
    "DragResult",
    "EditResult",
    "Freedom",
    "RepairedSketch",
    "RoundOptions",
    "RoundResult",
    "Solution",
    "alternatives",
    "constrain",
    "drag",
    "infer",
    "repair",
    "repair_all",
    "round_dimensions",
    "solve",
    "solve_edited",
]
