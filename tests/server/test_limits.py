"""Limits of the queue, of time and of clients: 429, 503 and 504, each with a sentence."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sketchdnn.errors import SketchError
from sketchdnn.server.jobs import Job, JobQueue, State
from sketchdnn.server.limits import Limits
from sketchdnn.server.responses import ApiError


class Work:
    """Work that begins, and ends when it is allowed to."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, job: Job) -> Iterator[dict[str, Any]]:
        self.begun.set()
        while not self.may_end.wait(0.01):
            job.check()
        yield {"index": 0}


async def events_until_end(job: Job) -> list[str]:
    names = []
    while not names or names[-1] not in ("done", "error"):
        names.append((await job.next_event()).name)
    return names


def queue_of(**limits: Any) -> JobQueue:
    return JobQueue(Limits(**{"running": 1, "waiting": 2, "per_client": 2, **limits}))


def test_queue_refuses_more_than_it_holds_and_says_when_to_try_again() -> None:
    async def scenario() -> None:
        jobs, work = queue_of(), Work()
        first = jobs.submit(Job("a", "test", work, 60))
        await asyncio.to_thread(work.begun.wait)
        second = jobs.submit(Job("a", "test", work, 60))
        with pytest.raises(ApiError, match="you have 2 requests in work") as too_many:
            jobs.submit(Job("a", "test", work, 60))
        assert (too_many.value.status, too_many.value.retry_after) == (429, 1)
        third = jobs.submit(Job("b", "test", work, 60))
        assert (jobs.position(first), jobs.position(second), jobs.position(third)) == (0, 1, 2)
        with pytest.raises(ApiError, match="2 requests wait already") as full:
            jobs.submit(Job("c", "test", work, 60))
        assert full.value.status == 503
        assert full.value.headers["Retry-After"]
        jobs.cancel(third)
        assert (third.state, jobs.numbers) == (State.CANCELED, (1, 1))
        work.may_end.set()
        assert await events_until_end(second) == ["job", "sketch", "done"]
        assert first.state is State.DONE
        assert jobs.ended == {State.DONE: 2, State.CANCELED: 1}

    asyncio.run(scenario())


def test_job_ends_after_its_time() -> None:
    async def scenario() -> None:
        job = queue_of().submit(Job("a", "test", Work(), 0.05))
        assert await events_until_end(job) == ["job", "error"]
        assert job.error == (504, "This took more than 0.05 seconds; ask for fewer sketches or steps.")

    asyncio.run(scenario())


def test_stopping_queue_ends_what_waits_and_refuses_new_jobs() -> None:
    async def scenario() -> None:
        jobs, work = queue_of(), Work()
        running = jobs.submit(Job("a", "test", work, 60))
        await asyncio.to_thread(work.begun.wait)
        waiting = jobs.submit(Job("a", "test", work, 60))
        jobs.refuse_new()
        assert (waiting.state, waiting.error and waiting.error[0]) == (State.FAILED, 503)
        with pytest.raises(ApiError, match="the server is stopping"):
            jobs.submit(Job("b", "test", work, 60))
        assert running.state is State.RUNNING
        jobs.stop_running()
        assert (await events_until_end(running))[-1] == "error"
        assert running.error == (503, "The server is stopping; ask again in a moment.")

    asyncio.run(scenario())


def test_unexpected_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def fail(job: Job) -> Iterator[dict[str, Any]]:
        yield from ()
        raise RuntimeError("secret")

    async def scenario() -> None:
        job = queue_of().submit(Job("a", "test", fail, 60))
        await events_until_end(job)
        assert job.error == (500, "Something went wrong in the server; its log says what.")

    asyncio.run(scenario())
    assert "secret" in caplog.text


def test_limits_are_above_zero() -> None:
    with pytest.raises(SketchError, match="the limit per client is above 0, not 0"):
        Limits(per_client=0)
