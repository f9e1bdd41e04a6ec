"""Repair: from what was drawn to what was meant.

`repair` goes over a sketch in `passes`. A pass lays it down in one way, however it came (`canonical`, `turns`), and
makes one `attempt` after the other, from bold to cautious: `tidy` takes away what is there twice, `joins` says which
ends meet, `belief` infers and solves what else is meant, `closing` adds the line that is lacking. What came of it is
judged by its `worth` and told in `actions`. `many` repairs many sketches on several cores.
"""

from .actions import Action, ActionKind
from .many import repair_all
from .repair import REPAIR_TOLERANCE, Repaired, repair

__all__ = ["REPAIR_TOLERANCE", "Action", "ActionKind", "Repaired", "repair", "repair_all"]
