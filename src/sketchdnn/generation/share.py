"""A job shared by several processes: `torchrun` starts them, and each draws its own range of numbers.

They need not talk while they draw, only wait for one another at the end, when the first gathers what they wrote.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

# Processes may finish hours apart.
_PATIENCE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Share:
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1
    local: int = 0  # which device of this machine

    @property
    def alone(self) -> bool:
        return self.world == 1

    @property
    def leads(self) -> bool:
        """Whether it gathers and speaks for all."""
        return self.rank == 0

    def of(self, numbers: range) -> range:
        """The part of a range that is this process's.

        >>> [Share(rank, 3).of(range(10, 20)) for rank in range(3)]
        [range(10, 13), range(13, 16), range(16, 20)]
        """
        count = len(numbers)
        return numbers[count * self.rank // self.world : count * (self.rank + 1) // self.world]

    def wait(self) -> None:
        """Until all processes are here."""
        if not self.alone:
            from torch import distributed

            distributed.barrier()


ALONE = Share()


@contextmanager
def joined() -> Iterator[Share]:
    """Join the processes that torchrun started, if it did, and leave them at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield ALONE
        return
    from torch import distributed

    share = Share(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("gloo", timeout=_PATIENCE)
    try:
        yield share
    finally:
        distributed.destroy_process_group()
