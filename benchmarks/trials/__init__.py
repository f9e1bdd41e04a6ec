"""Trainings under one budget, as data: the paper's presets for long, the ladder from it to ours, and several seeds.

They are trained and sampled in one place (`train_trials`) and scored in another (`score_trials`): the first needs no
FID weights, the second no GPU.
"""

from .experiments import EXPERIMENTS, Draw, Experiment, Trial
from .run import TrialRequest, train_trials
from .score import ScoreRequest, score_trials

__all__ = [
    "EXPERIMENTS",
    "Draw",
    "Experiment",
    "ScoreRequest",
    "Trial",
    "TrialRequest",
    "score_trials",
    "train_trials",
]
