"""Extruded profiles: solids as STEP and STL files, and scripts that rebuild them. Written, not read."""

from .extrusion import STEP, STL
from .scripts import BUILD123D, CADQUERY

__all__ = ["BUILD123D", "CADQUERY", "STEP", "STL"]
