"""The paper's tables again: every system under one budget, judged by one protocol, beside the paper's numbers."""

from .plan import SIX, Budget, NamedSystem, Plan, Request, named_systems
from .runner import Reproduction, StoppedError, prepared, reproduce
from .tables import Result

__all__ = [
    "SIX",
    "Budget",
    "NamedSystem",
    "Plan",
    "Reproduction",
    "Request",
    "Result",
    "StoppedError",
    "named_systems",
    "prepared",
    "reproduce",
]
