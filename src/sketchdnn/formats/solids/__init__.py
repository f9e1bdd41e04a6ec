"""A profile extruded: as a solid in a STEP or STL file, or as a script that rebuilds it. Written, not read."""

from .files import STEP, STL
from .scripts import BUILD123D, CADQUERY

__all__ = ["BUILD123D", "CADQUERY", "STEP", "STL"]
