"""Evaluation of a set of sketches or of a system: likeness, validity, novelty and likelihood, under a protocol."""

from .comparison import compare_systems
from .estimates import Estimate
from .evaluate import Evaluation, EvaluationRequest, Evaluator
from .protocol import FAST, Protocol, Settings
from .report import load_report

__all__ = [
    "FAST",
    "Estimate",
    "Evaluation",
    "EvaluationRequest",
    "Evaluator",
    "Protocol",
    "Settings",
    "compare_systems",
    "load_report",
]
