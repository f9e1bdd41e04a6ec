"""The paper's tables on another corpus: every system under one budget and one protocol, beside the paper's numbers."""

from .plan import PAPER_SYSTEMS, Budget, Plan, ReproductionRequest, SystemVariant, parse_systems
from .runner import Reproduction, StoppedError, plan_reproduction, reproduce
from .tables import Result

__all__ = [
    "PAPER_SYSTEMS",
    "Budget",
    "Plan",
    "Reproduction",
    "ReproductionRequest",
    "Result",
    "StoppedError",
    "SystemVariant",
    "parse_systems",
    "plan_reproduction",
    "reproduce",
]
