"""The limits of a server. Five are options of `sketchdnn serve`; the others have the defaults below."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sketchdnn.errors import SketchError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, one client and all clients together may use.

    Attributes:
        count: Sketches of one request.
        candidates: Candidates for each sketch: `best_of`, and `candidates` of a completion.
        frames: Frames of a trajectory.
        primitives: Primitives of a sketch in a quick call.
        drag_primitives: Primitives of a sketch that is dragged or solved.
        constraints: Constraints of a sketch.
        read_sketches: Sketches that are returned of a file.
        read_primitives: Primitives that are returned of a file, in all its sketches.
        body_bytes: Bytes of a request's body.
        body_seconds: Time until a body has arrived.
        call_seconds: Time of a quick call.
        drag_seconds: Time of a step of dragging.
        export_seconds: Time of an export, which may start a CAD program.
        job_seconds: Time of a model call, from when it starts.
        running: Model calls that are worked on at a time.
        waiting: Model calls that wait.
        per_client: Model calls of one client, running and waiting.
        quick_per_client: Quick calls of one client at a time.
        requests: Requests of all kinds at a time.
        worker_bytes: Memory of a worker process beyond that of its start.
        stop_seconds: Time for running jobs to finish after SIGTERM.
    """

    count: int = 64
    candidates: int = 16
    frames: int = 100
    primitives: int = 2000
    drag_primitives: int = 200
    constraints: int = 10_000
    read_sketches: int = 256
    read_primitives: int = 50_000
    body_bytes: int = 16 * 2**20
    body_seconds: float = 20.0
    call_seconds: float = 20.0
    drag_seconds: float = 5.0
    export_seconds: float = 90.0
    job_seconds: float = 120.0
    running: int = 32
    waiting: int = 64
    per_client: int = 8
    quick_per_client: int = 16
    requests: int = 512
    worker_bytes: int = 2**30
    stop_seconds: float = 1.5

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) <= 0:
                raise SketchError(f"the limit {each.name.replace('_', ' ')} is above 0, not {getattr(self, each.name)}")
