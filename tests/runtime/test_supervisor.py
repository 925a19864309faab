"""What fails in the background is begun again, counted and logged; nothing else ends with it."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from odradek.runtime.clock import ManualClock
from odradek.runtime.supervisor import (
    BACKOFF_SECONDS_MAX,
    BACKOFF_SECONDS_MIN,
    HEALTHY_SECONDS,
    Supervisor,
)
from odradek.runtime.timers import Timers, repeat


class Task:
    """Fails so many times, and then returns."""

    def __init__(self, failures: int, lasts: float = 0.0) -> None:
        self.failures = failures
        self.lasts = lasts
        self.began: list[float] = []

    async def work(self, *arguments: object) -> None:
        self.began.append(trio.current_time())
        with trio.move_on_after(self.lasts):
            await trio.sleep_forever()
        if len(self.began) <= self.failures:
            raise OSError(24, "Too many open files")


NAME = Task.work.__qualname__


async def test_a_task_that_is_to_last_is_begun_again_after_growing_pauses(
    autojump_clock: MockClock,
) -> None:
    supervisor, task = Supervisor(), Task(failures=12)
    async with trio.open_nursery() as supervisor.nursery:
        supervisor.keep_running(task.work)
    pauses = [later - earlier for earlier, later in zip(task.began, task.began[1:], strict=False)]
    assert len(pauses) == 12
    assert pauses[0] == pytest.approx(BACKOFF_SECONDS_MIN)
    assert pauses[1] == pytest.approx(2 * BACKOFF_SECONDS_MIN)
    assert pauses[-1] == pytest.approx(BACKOFF_SECONDS_MAX)
    assert supervisor.failures == {NAME: 12}


async def test_what_ran_long_is_begun_again_soon(autojump_clock: MockClock) -> None:
    lasts = HEALTHY_SECONDS + 1
    supervisor, task = Supervisor(), Task(failures=5, lasts=lasts)
    await supervisor.run(task.work)
    for earlier, later in zip(task.began, task.began[1:], strict=False):
        assert later - earlier == pytest.approx(lasts + BACKOFF_SECONDS_MIN)


async def test_the_first_failure_of_a_kind_is_logged_whole(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, task = Supervisor(), Task(failures=3)
    with caplog.at_level(logging.ERROR):
        await supervisor.run(partial(task.work, "an argument"))
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, False]
    assert NAME in caplog.records[2].getMessage()
    assert "3 times" in caplog.records[2].getMessage()
    assert "Too many open files" in caplog.records[2].getMessage()


async def test_a_task_of_one_run_fails_alone_and_what_it_left_goes_out() -> None:
    ended: list[int] = []
    supervisor, task, other = Supervisor(lambda: ended.append(1)), Task(failures=9), Task(0)
    async with trio.open_nursery() as supervisor.nursery:
        supervisor.start_task(task.work)
        supervisor.start_task(other.work)
    assert len(task.began) == len(other.began) == 1
    assert supervisor.failures == {NAME: 1}
    assert ended == [1, 1]


async def test_what_fails_after_a_task_is_counted_and_ends_nothing() -> None:
    def fail() -> None:
        raise RuntimeError("the flush fails")

    supervisor, task = Supervisor(fail), Task(failures=0)
    async with trio.open_nursery() as supervisor.nursery:
        supervisor.start_task(task.work)
        supervisor.keep_running(task.work)
    assert supervisor.failures == {NAME: 2}


async def test_a_cancelled_task_is_not_begun_again() -> None:
    supervisor, task = Supervisor(), Task(failures=0, lasts=1000)
    with trio.move_on_after(0.01):
        await supervisor.run(task.work)
    assert len(task.began) == 1
    assert not supervisor.failures


def test_what_is_repeated_goes_on_after_a_failure() -> None:
    timers, clock, calls = Timers(), ManualClock(), []

    def look() -> None:
        calls.append(clock.monotonic_ms())
        if len(calls) == 1:
            raise OSError(24, "Too many open files")

    repeat(timers, clock, lambda: 50, look)
    clock.advance(50)
    with pytest.raises(ExceptionGroup):
        timers.run_due(clock.monotonic_ms())
    for _ in range(2):
        clock.advance(50)
        timers.run_due(clock.monotonic_ms())
    assert calls == [50, 100, 150]
    assert timers.failures == {look.__qualname__: 1}
