"""How a sketch becomes numbers: the only room that knows columns. Compact rows are numpy and what datasets store;
composite rows are torch and what models see.

Names that need torch are fetched on first use, so that preparing a corpus in many processes never loads it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .compact import Compact, encode, encode_table
from .decoding import Decoded, Issue, decode_compact

if TYPE_CHECKING:
    from .batch import SketchBatch, from_flat, relevant
    from .codec import decode, expand

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

_NEEDS_TORCH = {"SketchBatch": "batch", "from_flat": "batch", "relevant": "batch", "decode": "codec", "expand": "codec"}


def __getattr__(name: str) -> Any:
    if name in _NEEDS_TORCH:
        return getattr(import_module(f".{_NEEDS_TORCH[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
