"""Design quality: defects of a sketch in words, and a score fitted on real and corrupted sketches."""

from .defect import Defect, DefectKind
from .score import DesignScore, score_design

__all__ = ["Defect", "DefectKind", "DesignScore", "score_design"]
