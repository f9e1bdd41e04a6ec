"""How primitives relate: which constraints a sketch means, the nearest sketch that satisfies them, what stays free."""

from .infer import infer
from .solve import Solution, solve

__all__ = ["Solution", "infer", "solve"]
