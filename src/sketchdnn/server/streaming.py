"""The answer of a model call: server-sent events while the job runs, or one JSON answer at its end.

A client that closes its connection cancels the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .jobs import Event, Job, JobQueue
from .responses import ApiError, AsciiJSONResponse, to_json

# After so many seconds without an event a comment is sent, so that no proxy closes the connection.
KEEP_ALIVE_SECONDS = 10.0
_EVENT_STREAM = "text/event-stream"

# Makes the JSON answer from the results and the seconds that they took.
ToAnswer = Callable[[list[dict[str, Any]], float], dict[str, Any]]


def results_answer(results: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The answer of all calls that return a list of sketches."""
    return {"results": results, "seconds": seconds}


def trajectory_answer(results: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The answer of a trajectory."""
    return {**results[0], "seconds": seconds}


async def answer(request: Request, jobs: JobQueue, job: Job, to_answer: ToAnswer) -> Response:
    """The answer in the form that the request accepts; the job has been submitted."""
    if _EVENT_STREAM in request.headers.get("accept", ""):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_stream(request, jobs, job), media_type=_EVENT_STREAM, headers=headers)
    results: list[dict[str, Any]] = []
    async for event in _events(request, jobs, job):
        if event is None:
            continue
        if event.name == "sketch":
            results.append(event.data)
        elif event.name == "done":
            return AsciiJSONResponse(to_answer(results, event.data["seconds"]))
        elif event.name == "error":
            status = event.data["status"]
            raise ApiError(status, event.data["error"], 5 if status == 503 else None)
    return Response(status_code=499)  # the client has closed the connection


async def _stream(request: Request, jobs: JobQueue, job: Job) -> AsyncIterator[str]:
    async for event in _events(request, jobs, job):
        yield ": keep-alive\n\n" if event is None else f"event: {event.name}\ndata: {to_json(event.data)}\n\n"


async def _events(request: Request, jobs: JobQueue, job: Job) -> AsyncIterator[Event | None]:
    """The events of a job until its last, None after each time without one; ends when the client has disconnected."""
    gone = asyncio.ensure_future(_until_disconnected(request))
    pending: asyncio.Future[Event] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(job.next_event())
            waiting: set[asyncio.Future[Any]] = {pending, gone}
            await asyncio.wait(waiting, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if pending.done():
                event, pending = pending.result(), None
                yield event
                if event.name in ("done", "error"):
                    return
            elif gone.done():
                return
            else:
                yield None
    finally:
        for task in (gone, pending):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        jobs.cancel(job)
        job.discard_events()


async def _until_disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
