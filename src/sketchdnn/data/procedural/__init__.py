"""A corpus that needs no download: parts drawn by dice, family by family. Knows shapes, no files."""

from .generate import FAMILIES, procedural

__all__ = ["FAMILIES", "procedural"]
