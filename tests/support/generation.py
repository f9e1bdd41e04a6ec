"""Untrained systems, and generation without repair, which is slow on their sketches."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from sketchdnn.generation import GeneratedSketch, GenerateRequest, stream
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Point, Ref, Sketch
from sketchdnn.systems import System
from sketchdnn.systems.sketchdnn import SketchDNNSystem

AnySystem = TypeVar("AnySystem", bound=System)
# Every kind, and a line with its greater end first, which rows may not keep.
SIDES = (Line((110.3, 10), (10.1, 10)), Line((110.3, 10), (110.3, 60)))
OTHERS = (Circle((30, 30), 8.7), Arc((100.3, 60), 10, 0.1, 1.3), Point((60, 20)), Line((60, 0), (60, 40), True))
RADIUS = Constraint(ConstraintType.RADIUS, (Ref(2),), 8.7)
PART = Sketch((*SIDES, *OTHERS), (RADIUS,), units="in", extra={"source": "a drawing"})


def draw(
    system: System, count: int, *, on_progress: Callable[[float], None] = lambda done: None, **options: Any
) -> Iterator[GeneratedSketch]:
    """The sketches of a request with these options, by default not repaired."""
    return stream(system, GenerateRequest(count=count, **{"repair": False, **options}), on_progress)


def randomized(system: AnySystem, std: float = 0.1) -> AnySystem:
    """The system with random weights, so that its output depends on all inputs."""
    torch.manual_seed(0)
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=std)
    return system.eval()


def copy_as(kind: type[SketchDNNSystem], system: System) -> SketchDNNSystem:
    """A system of another class with the same weights."""
    other = kind(system.config).eval()
    other.load_state_dict(system.state_dict())
    return other
