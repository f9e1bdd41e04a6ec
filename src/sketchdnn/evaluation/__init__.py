"""Evaluation of a set of sketches or of a system: likeness, validity, novelty and likelihood, under a protocol."""

from .evaluate import EvaluationRequest, Evaluator
from .report import load_report

__all__ = ["EvaluationRequest", "Evaluator", "load_report"]
