"""Waiting until this broker's metadata shows what was done (Kafka's topic purgatory)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

from ..runtime import waiting
from .metadata_cache import MetadataCache, MetadataSnapshot

Shown = Callable[[MetadataSnapshot], bool]

ItemT = TypeVar("ItemT")


async def wait_for_metadata(cache: MetadataCache, is_shown: Shown, timeout_ms: int) -> bool:
    """Wait until a snapshot shows something; whether one did before the time-out."""
    if is_shown(cache.snapshot):
        return True
    shown = waiting.new_event()

    def look() -> None:
        if is_shown(cache.snapshot):
            shown.set()

    cache.listeners.append(look)
    try:
        with waiting.move_on_after(max(timeout_ms, 0) / 1000):
            await shown.wait()
    finally:
        cache.listeners.remove(look)
    return shown.is_set()


def partitions_are_led(partition_counts: Iterable[tuple[str, int]]) -> Shown:
    """Each topic has as many partitions, and every one of them a leader."""

    def is_led(snapshot: MetadataSnapshot, expected: tuple[str, int]) -> bool:
        topic, count = expected
        states = snapshot.partition_states.get(topic, {})
        leaders = [state.leader for state in states.values()]
        return len(leaders) >= count and (not leaders or min(leaders) >= 0)

    return _each(partition_counts, is_led)


def topics_are_gone(names: Iterable[str]) -> Shown:
    """None of the topics is known any more."""
    return _each(names, lambda snapshot, name: name not in snapshot.partition_states)


def _each(items: Iterable[ItemT], is_shown: Callable[[MetadataSnapshot, ItemT], bool]) -> Shown:
    """A snapshot shows every one of the items.

    What was missing last is looked for first: thousands of topics take hundreds of snapshots, and
    most of what one shows the next does, too.
    """
    expected = list(items)
    missing = 0

    def are_shown(snapshot: MetadataSnapshot) -> bool:
        nonlocal missing
        for index in chain(range(missing, len(expected)), range(missing)):
            if not is_shown(snapshot, expected[index]):
                missing = index
                return False
        return True

    return are_shown
