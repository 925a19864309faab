from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from odradek.runtime import collector
from odradek.runtime.collector import OLDEST, pause_collection, resume_collection


class Node:
    """What is in a cycle with itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    threshold, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.enable()
    gc.set_threshold(*threshold)


def is_looked_at(something: object) -> bool:
    """Whether the next collection of the oldest generation has it before it."""
    return any(each is something for each in gc.get_objects())


def test_what_a_long_request_makes_does_not_have_everything_looked_at() -> None:
    pause_collection()
    resume_collection()
    before = gc.get_stats()[2]["collections"]
    made = [[number] for number in range(100_000)]
    assert len(made) == 100_000
    assert gc.get_stats()[2]["collections"] == before


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


def test_what_survives_a_whole_collection_is_not_looked_at_by_the_next() -> None:
    resume_collection()
    made = [Node()]
    gc.collect(OLDEST - 1)
    assert is_looked_at(made), "only the oldest generation is set aside"
    gc.collect(OLDEST)
    assert not is_looked_at(made)


def test_cycles_among_what_was_set_aside_are_found_when_as_much_again_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resume_collection()
    node = Node()
    gone = weakref.ref(node)
    gc.collect(OLDEST)
    del node
    gc.collect(OLDEST)
    assert gone() is not None, "it was set aside, and there is not twice as much yet"
    monkeypatch.setattr(collector, "GROWTH", 0)
    gc.collect(OLDEST)
    assert gone() is None
    assert gc.get_freeze_count() > 0, "what is left is set aside again"
