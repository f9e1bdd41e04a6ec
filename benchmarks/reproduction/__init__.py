"""The paper's tables again: every system under one budget, judged by one protocol, beside the paper's numbers."""

from .names import SIX, NamedSystem, named_systems
from .part import Result, StoppedError
from .plan import Budget, Plan, Request
from .run import Reproduction, prepared, reproduce

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
