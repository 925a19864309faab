"""Long work is done in steps, by turns."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import pytest
import trio

from odradek.runtime import long_work
from odradek.runtime.long_work import Pace, run_in_steps, take_step
from odradek.runtime.steps import (
    ITEMS_AT_LEAST,
    SORTED_AT_ONCE,
    Steps,
    count_in_steps,
    map_in_steps,
    run_at_once,
    sorted_in_steps,
)


def counting(done: list[str], name: str, items: int) -> Steps[str]:
    for _ in range(items):
        done.append(name)
        yield
    return name


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is as short as it can be."""
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)


@pytest.mark.usefixtures("no_time")
def test_what_is_small_is_one_step_whatever_the_clock_says() -> None:
    assert take_step(counting([], "a", ITEMS_AT_LEAST - 1)) == ("a",)


@pytest.mark.usefixtures("no_time")
def test_a_step_ends_with_its_time() -> None:
    done: list[str] = []
    work = counting(done, "a", 3 * ITEMS_AT_LEAST)
    assert take_step(work) is None
    assert len(done) == ITEMS_AT_LEAST
    assert take_step(work) is None
    assert take_step(work) is None
    assert take_step(work) == ("a",)


def test_a_step_that_has_time_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 3_600.0)
    assert take_step(counting([], "a", 10_000)) == ("a",)


@pytest.mark.usefixtures("no_time")
async def test_of_all_long_work_one_step_is_done_before_others_have_a_turn() -> None:
    done: list[str] = []
    turns = 0

    async def look_on() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        async with trio.open_nursery() as workers:
            for name in "abc":
                workers.start_soon(run_in_steps, counting(done, name, 5 * ITEMS_AT_LEAST))
        nursery.cancel_scope.cancel()
    steps = [done[at] for at in range(0, len(done), ITEMS_AT_LEAST)]
    assert len(steps) == 15
    assert all(len(set(steps[at : at + 3])) == 3 for at in range(0, 15, 3)), "they take turns"
    assert turns >= 15


@pytest.mark.usefixtures("no_time")
async def test_of_all_paced_work_one_step_is_done_before_others_have_a_turn() -> None:
    done = in_a_turn = most_in_a_turn = 0

    async def look_on() -> None:
        nonlocal in_a_turn, most_in_a_turn
        while True:
            most_in_a_turn, in_a_turn = max(most_in_a_turn, in_a_turn), 0
            await trio.lowlevel.checkpoint()

    async def work() -> None:
        nonlocal done, in_a_turn
        pace = Pace()
        for _ in range(20):
            await pace.keep()
            done += 1
            in_a_turn += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        async with trio.open_nursery() as workers:
            for _ in range(30):
                workers.start_soon(work)
        nursery.cancel_scope.cancel()
    assert done == 600
    assert most_in_a_turn == 1, "as many as there are workers would hold the loop together"


async def test_what_the_work_raises_is_raised() -> None:
    def failing() -> Iterator[None]:
        yield
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        await run_in_steps(failing())  # type: ignore[arg-type]  # it returns nothing
    assert gc.isenabled()


def test_items_are_mapped_in_their_order_with_a_pause_after_each() -> None:
    work = map_in_steps(str, [3, 1, 2])
    pauses = [next(work) for _ in range(3)]
    assert pauses == [None] * 3
    assert run_at_once(map_in_steps(str, [3, 1, 2])) == ["3", "1", "2"]


def test_items_are_counted_with_a_pause_after_each() -> None:
    work = count_in_steps("aba")
    pauses = [next(work) for _ in range(3)]
    assert pauses == [None] * 3
    assert run_at_once(count_in_steps("aba")) == {"a": 2, "b": 1}


@pytest.mark.parametrize("count", [0, 1, SORTED_AT_ONCE, SORTED_AT_ONCE + 1, 5 * SORTED_AT_ONCE])
def test_items_are_put_in_order_with_as_many_pauses(count: int) -> None:
    items = random.Random(count).choices(range(count), k=count)
    work = sorted_in_steps(items)
    pauses = [next(work) for _ in range(count)]
    assert len(pauses) == count
    assert run_at_once(sorted_in_steps(items)) == sorted(items)
