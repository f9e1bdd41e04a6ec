"""Sketches as numbers: compact rows (numpy) for datasets, composite rows (torch) for models.

Only this package contains column numbers. Names that need torch are imported at first use, so that the worker processes
of `prepare` never load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .compact import Compact, encode, encode_table
from .decoding import Decoded, Issue, decode_compact

if TYPE_CHECKING:
    from .batch import SketchBatch, decode, expand, from_flat, relevant

__all__ = [
    "Compact",
    "Decoded",
    "Issue",
    "SketchBatch",
    "decode",
    "decode_compact",
    "encode",
    "encode_table",
    "expand",
    "from_flat",
    "relevant",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import batch

        return getattr(batch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
