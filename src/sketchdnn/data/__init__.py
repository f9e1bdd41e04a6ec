"""Training corpora: prepared from files into a folder, and loaded from it."""

from .config import PRESETS, SPLITS, PrepareConfig
from .loader import Dataset, Split
from .prepare import prepare
from .sources import Procedural

__all__ = ["PRESETS", "SPLITS", "Dataset", "PrepareConfig", "Procedural", "Split", "prepare"]
