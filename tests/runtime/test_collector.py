from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from odradek.runtime import collector, long_work
from odradek.runtime.collector import (
    BUSY_LOOKS_MAX,
    LOOK_SECONDS,
    OLDEST,
    collect_when_idle,
    pause_collection,
    resume_collection,
    set_aside,
)
from odradek.runtime.long_work import run_in_steps
from odradek.runtime.steps import Steps

MADE = 300_000
LOOKED_AT_MAX = 30_000
"""Objects, in one collection: some milliseconds."""


class Node:
    """What is in a cycle with itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threshold, callbacks = gc.get_threshold(), list(gc.callbacks)
    monkeypatch.setattr(collector, "_keeper", None)
    yield
    gc.callbacks[:] = callbacks
    gc.enable()
    gc.set_threshold(*threshold)


@pytest.fixture
def looked_at(collecting: None) -> list[int]:
    """How many objects each collection has before it."""
    counts: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            counts.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    gc.callbacks.append(note)
    return counts


def is_looked_at(something: object) -> bool:
    """Whether the next collection of the oldest generation has it before it."""
    return any(each is something for each in gc.get_objects())


def look(*, is_idle: bool) -> None:
    assert collector._keeper is not None
    collector._keeper.look(is_idle=is_idle)


def test_however_much_is_made_little_of_it_is_looked_at_at_a_time(looked_at: list[int]) -> None:
    pause_collection()
    resume_collection()
    looked_at.clear()
    made = [[number] for number in range(MADE)]
    assert len(made) == MADE
    assert looked_at
    assert max(looked_at) < LOOKED_AT_MAX


def test_what_was_there_before_does_not_put_a_collection_off(looked_at: list[int]) -> None:
    there = [[number] for number in range(MADE)]
    gc.collect()
    resume_collection()
    looked_at.clear()
    made = [[number] for number in range(MADE)]
    assert len(there) == len(made)
    assert max(looked_at) < LOOKED_AT_MAX


async def test_what_long_work_makes_is_not_looked_at(
    looked_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(long_work, "ITEMS_AT_LEAST", 20_000)
    resume_collection()

    def work() -> Steps[list[list[int]]]:
        made = []
        for number in range(MADE):
            made.append([number])
            yield
        return made

    assert len(await run_in_steps(work())) == MADE
    assert max(looked_at, default=0) < 20_000


async def test_another_programs_long_work_is_looked_at() -> None:
    made: list[Node] = []

    def work() -> Steps[None]:
        for _ in range(long_work.ITEMS_AT_LEAST + 1):
            made.append(Node())
            yield

    await run_in_steps(work())
    assert is_looked_at(made[0])


def test_nothing_is_collected_while_it_is_paused() -> None:
    pause_collection()
    assert not gc.isenabled()
    resume_collection()
    assert gc.isenabled()


def test_what_a_start_made_is_not_looked_at_again() -> None:
    pause_collection()
    made = [Node()]
    assert is_looked_at(made)
    resume_collection()
    assert not is_looked_at(made)
    gc.collect(OLDEST)
    assert not is_looked_at(made)


def test_what_survives_the_oldest_generation_is_not_looked_at_by_the_next() -> None:
    resume_collection()
    made = [Node()]
    gc.collect(OLDEST - 1)
    assert is_looked_at(made), "only the oldest generation is set aside"
    gc.collect(OLDEST)
    assert not is_looked_at(made)


def aside_and_gone() -> weakref.ref[Node]:
    """A cycle that nobody holds any more, among what was set aside."""
    node = Node()
    gone = weakref.ref(node)
    set_aside()
    del node
    gc.collect(OLDEST)
    assert gone() is not None
    return gone


def test_cycles_among_what_was_set_aside_are_found_when_as_much_again_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resume_collection()
    gone = aside_and_gone()
    look(is_idle=True)
    assert gone() is not None, "there is not twice as much yet"
    monkeypatch.setattr(collector, "GROWTH", 0)
    look(is_idle=False)
    assert gone() is not None, "there is something else to do"
    look(is_idle=True)
    assert gone() is None
    assert gc.get_freeze_count() > 0, "what is left is set aside again"


def test_a_broker_that_is_never_idle_finds_them_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resume_collection()
    gone = aside_and_gone()
    monkeypatch.setattr(collector, "GROWTH", 0)
    for _ in range(2 * BUSY_LOOKS_MAX):
        look(is_idle=False)
    assert gone() is not None, "there is not four times as much yet"
    monkeypatch.setattr(collector, "BUSY_GROWTH", 0)
    for _ in range(BUSY_LOOKS_MAX - 1):
        look(is_idle=False)
    assert gone() is not None
    look(is_idle=False)
    assert gone() is None


async def test_an_idle_broker_finds_them(
    autojump_clock: MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume_collection()
    gone = aside_and_gone()
    monkeypatch.setattr(collector, "GROWTH", 0)
    nursery.start_soon(collect_when_idle)
    await trio.sleep(LOOK_SECONDS + 1)
    assert gone() is None
