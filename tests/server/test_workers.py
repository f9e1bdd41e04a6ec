"""Worker processes: limits of time and memory, errors, and that a lost process is replaced."""

import asyncio
import os
import signal
import time

import pytest
from support.threads import together

from sketchdnn.errors import SketchError
from sketchdnn.server.responses import ApiError
from sketchdnn.server.workers import WorkerError, WorkerPool


def double(number: int) -> int:
    return 2 * number


def refuse() -> None:
    raise SketchError("not like this")


def fail() -> None:
    raise ZeroDivisionError("unexpected")


def grow() -> int:
    return len(bytearray(2**30))


def recurse() -> None:
    recurse()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def pool() -> WorkerPool:
    return WorkerPool("test", 2, 20, 2**28, [__name__])


def test_calls_run_in_processes_and_errors_are_told_apart(pool: WorkerPool) -> None:
    assert asyncio.run(pool.run(double, 4)) == 8
    assert pool.call(os.getpid) != os.getpid()
    with pytest.raises(SketchError, match="not like this"):
        pool.call(refuse)
    with pytest.raises(SketchError, match="nested too deeply"):
        pool.call(recurse)
    with pytest.raises(WorkerError, match="ZeroDivisionError: unexpected"):
        pool.call(fail)
    assert pool.restarts == 0


def test_call_beyond_its_limits_ends_and_the_process_is_replaced(pool: WorkerPool) -> None:
    before = pool.restarts
    with pytest.raises(ApiError, match=r"more than 0\.2 seconds") as late:
        pool.call(time.sleep, 60, seconds=0.2)
    with pytest.raises(ApiError, match="more memory") as large:
        pool.call(grow)
    with pytest.raises(ApiError) as lost:
        pool.call(die)
    assert (late.value.status, large.value.status, lost.value.status) == (504, 413, 400)
    assert pool.restarts - before == 3
    assert together([lambda: pool.call(double, 1)] * 4) == [2] * 4


def test_calls_that_wait_too_long_are_refused_and_a_closed_pool_ends_its_calls() -> None:
    pool = WorkerPool("test", 1, 20, 2**28, [__name__])
    pool.call(double, 1)

    def busy() -> str:
        with pytest.raises((ApiError, SketchError)) as error:
            pool.call(time.sleep, 60)
        return str(error.value)

    def wait() -> str:
        while not pool._idle.empty():
            time.sleep(0.001)
        with pytest.raises(ApiError) as error:
            pool.call(double, 1, seconds=0.1)
        pool.close()
        return str(error.value)

    stopped, refused = together([busy, wait])
    assert "busy" in refused
    assert "stopping" in stopped
