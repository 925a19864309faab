"""The simulator's tasks wait as trio's do: the same code does the same on both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import pytest
import trio.testing

from odradek.runtime import waiting
from odradek.tools.simulation.kernel import Kernel, Nursery, Process

Scenario = Callable[[list[str]], Awaitable[None]]


async def on_trio(scenario: Scenario, said: list[str]) -> None:
    await scenario(said)


def on_kernel(scenario: Scenario, said: list[str]) -> None:
    kernel = Kernel(Random(1))
    with waiting.driven_by(kernel):
        nursery = Nursery(kernel, Process("test"))
        nursery.start_soon(scenario, said)
        kernel.run_until(3_600_000_000)


async def times_out(said: list[str]) -> None:
    with waiting.move_on_after(1) as scope:
        try:
            await waiting.sleep_forever()
        finally:
            said.append("ended")
    said.append(f"caught {scope.cancelled_caught}")


async def is_in_time(said: list[str]) -> None:
    with waiting.move_on_after(2) as scope:
        await waiting.sleep(1)
    said.append(f"caught {scope.cancelled_caught}, called {scope.cancel_called}")


async def fails_late(said: list[str]) -> None:
    try:
        with waiting.fail_after(1):
            await waiting.sleep(2)
    except TimeoutError:
        said.append("late")


async def inner_scopes_let_outer_ones_through(said: list[str]) -> None:
    with waiting.move_on_after(1) as outer:
        with waiting.move_on_after(5) as inner:
            await waiting.sleep(10)
        said.append("never said")
    said.append(f"outer {outer.cancelled_caught}, inner {inner.cancelled_caught}")


async def shields_hold(said: list[str]) -> None:
    with waiting.move_on_after(1) as outer:
        with waiting.new_cancel_scope(shield=True):
            await waiting.sleep(2)
            said.append("behind the shield")
        await waiting.sleep(1)
        said.append("never said")
    said.append(f"outer {outer.cancelled_caught}")


async def deadlines_move(said: list[str]) -> None:
    with waiting.new_cancel_scope() as scope:
        scope.deadline = waiting.current_time() + 5
        scope.deadline = waiting.current_time() + 1
        began = waiting.current_time()
        await waiting.sleep(10)
    said.append(f"after {waiting.current_time() - began:.0f}")


async def deadlines_move_away(said: list[str]) -> None:
    with waiting.new_cancel_scope() as scope:
        scope.deadline = waiting.current_time() + 1
        scope.deadline = waiting.current_time() + 5
        began = waiting.current_time()
        await waiting.sleep(10)
    said.append(f"after {waiting.current_time() - began:.0f}")
    with waiting.move_on_after(1) as scope:
        scope.deadline = float("inf")
        await waiting.sleep(3)
    said.append(f"called {scope.cancel_called}")


async def nurseries_wait(said: list[str]) -> None:
    async def child(name: str, seconds: float) -> None:
        await waiting.sleep(seconds)
        said.append(name)

    async with waiting.open_nursery() as nursery:
        nursery.start_soon(child, "second", 2)
        nursery.start_soon(child, "first", 1)
    said.append("all")


async def a_failing_child_ends_the_others(said: list[str]) -> None:
    async def fail() -> None:
        await waiting.sleep(1)
        raise ValueError("a child failed")

    async def last() -> None:
        try:
            await waiting.sleep_forever()
        finally:
            said.append("ended")

    try:
        async with waiting.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(last)
            await waiting.sleep_forever()
    except* ValueError as failed:
        said.append(str(failed.exceptions[0]))


async def a_cancelled_nursery_ends(said: list[str]) -> None:
    async with waiting.open_nursery() as nursery:
        nursery.start_soon(waiting.sleep_forever)
        await waiting.sleep(1)
        nursery.cancel_scope.cancel()
        await waiting.sleep(1)
        said.append("never said")
    said.append("over")


async def locks_go_in_order(said: list[str]) -> None:
    lock = waiting.new_lock()

    async def take(name: str, after: float) -> None:
        await waiting.sleep(after)
        async with lock:
            said.append(name)
            await waiting.sleep(5)

    async with waiting.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(take, str(number), number + 1)


async def events_wake_all(said: list[str]) -> None:
    event = waiting.new_event()

    async def wait(after: float) -> None:
        await event.wait()
        await waiting.sleep(after)
        said.append(f"{after}")

    async with waiting.open_nursery() as nursery:
        nursery.start_soon(wait, 1)
        nursery.start_soon(wait, 2)
        await waiting.sleep(1)
        event.set()
    await event.wait()
    said.append(f"set {event.is_set()}")


@pytest.mark.parametrize(
    "scenario",
    [
        times_out,
        is_in_time,
        fails_late,
        inner_scopes_let_outer_ones_through,
        shields_hold,
        deadlines_move,
        deadlines_move_away,
        nurseries_wait,
        a_failing_child_ends_the_others,
        a_cancelled_nursery_ends,
        locks_go_in_order,
        events_wake_all,
    ],
)
def test_it_goes_as_on_trio(scenario: Scenario) -> None:
    there: list[str] = []
    here: list[str] = []
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(on_trio, scenario, there, clock=clock)
    on_kernel(scenario, here)
    assert here == there
    assert here


def test_a_deadline_ends_its_scope_however_its_seconds_are_rounded() -> None:
    """As seconds, one in a hundred of these is a little more than as whole microseconds."""
    ended = 0
    kernel = Kernel(Random(1))

    async def work() -> None:
        nonlocal ended
        await waiting.sleep(200)
        for milliseconds in range(1000):
            with waiting.move_on_after(milliseconds / 1000):
                await waiting.sleep_forever()
            ended += 1

    with waiting.driven_by(kernel):
        Nursery(kernel, Process("test")).start_soon(work)
        kernel.run_until(1_000_000_000)
    assert ended == 1000


def test_a_cancelled_alarm_does_not_come() -> None:
    said: list[str] = []
    kernel = Kernel(Random(1))
    kernel.after(1_000, lambda: said.append("never said")).cancel()
    kernel.after(2_000, lambda: said.append("second"))
    kernel.run_until(3_000)
    assert said == ["second"]


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_a_process_is_looked_at_unless_an_event_has_only_woken_its_tasks(
    is_waited_for: bool,
) -> None:
    """With nobody to wake none goes on at once, and the process is as it was."""
    looks: list[int] = []
    kernel = Kernel(Random(1))
    process = Process("test", lambda: looks.append(kernel.now_us))

    async def work(event: waiting.Event) -> None:
        await event.wait()

    with waiting.driven_by(kernel):
        event = kernel.event()
        if is_waited_for:
            Nursery(kernel, process).start_soon(work, event)
        kernel.run_until(1_000)
        looks.clear()
        kernel.after(1_000, lambda: kernel.bring(event.set), process)
        kernel.run_until(5_000)
    assert bool(looks) == is_waited_for


def test_a_dead_process_does_nothing_more() -> None:
    said: list[str] = []
    kernel = Kernel(Random(1))
    process = Process("test")

    async def work() -> None:
        await waiting.sleep(1)
        said.append("first")
        await waiting.sleep(1)
        said.append("never said")

    with waiting.driven_by(kernel):
        Nursery(kernel, process).start_soon(work)
        kernel.run_until(1_500_000)
        kernel.kill(process)
        kernel.run_until(5_000_000)
    assert said == ["first"]


def test_a_frozen_process_does_late_what_was_due() -> None:
    said: list[float] = []
    kernel = Kernel(Random(1))
    process = Process("test")

    async def work() -> None:
        await waiting.sleep(1)
        said.append(round(waiting.current_time()))

    with waiting.driven_by(kernel):
        Nursery(kernel, process).start_soon(work)
        kernel.run_until(500_000)
        process.is_frozen = True
        kernel.run_until(5_000_000)
        assert not said
        kernel.thaw(process)
        kernel.run_until(6_000_000)
    assert said == [5]
