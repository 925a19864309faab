"""Waiting until this broker's metadata shows what was done (Kafka's topic purgatory)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from .metadata_cache import MetadataCache, MetadataSnapshot

Shown = Callable[[MetadataSnapshot], bool]


async def wait_for_metadata(cache: MetadataCache, is_shown: Shown, timeout_ms: int) -> bool:
    """Wait until a snapshot shows something; whether one did before the time-out."""
    if is_shown(cache.snapshot):
        return True
    shown = trio.Event()

    def look() -> None:
        if is_shown(cache.snapshot):
            shown.set()

    cache.listeners.append(look)
    try:
        with trio.move_on_after(max(timeout_ms, 0) / 1000):
            await shown.wait()
    finally:
        cache.listeners.remove(look)
    return shown.is_set()


def partitions_are_led(partition_counts: Iterable[tuple[str, int]]) -> Shown:
    """Each topic has as many partitions, and every one of them a leader."""
    expected = list(partition_counts)

    def is_shown(snapshot: MetadataSnapshot) -> bool:
        for topic, count in expected:
            states = snapshot.partition_states.get(topic, {})
            if len(states) < count or any(state.leader < 0 for state in states.values()):
                return False
        return True

    return is_shown


def topics_are_gone(names: Iterable[str]) -> Shown:
    """None of the topics is known any more."""
    expected = list(names)
    return lambda snapshot: not any(name in snapshot.partition_states for name in expected)
