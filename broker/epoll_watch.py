"""Waiting for an epoll's next events in the way that costs least.

Falling asleep and being woken costs more than a small request does, in time and in processor
time. A client that sends its next request as soon as it has an answer is waited for awake,
therefore; all others asleep.
"""

from __future__ import annotations

import select

import trio

from ..runtime.clock import precise_seconds

Events = list[tuple[int, int]]

WATCH_SECONDS = 80e-6
"""How long to look for events without sleeping: about what falling asleep and being woken takes,
on both sides of a socket."""
LOOK_SECONDS = 2e-6
"""What a look takes."""
DOZE_SECONDS = 0.001
"""How long to sleep in the epoll: no other task runs meanwhile."""


class EpollWatch:
    """Waits a moment for one epoll.

    Args:
        epoll: whose events.
    """

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._watch_seconds = 0.0

    def next_events(self) -> Events:
        """What came within about a millisecond; nothing at once where other tasks have work."""
        return self._watch() or self._doze()

    def _watch(self) -> Events:
        """Look without sleeping; for half as long the next time, if nothing comes."""
        until = precise_seconds() + self._watch_seconds
        while precise_seconds() < until:
            events = self._epoll.poll(0)
            if events:
                return events
        self._watch_seconds /= 2
        if self._watch_seconds < LOOK_SECONDS:
            self._watch_seconds = 0.0
        return []

    def _doze(self) -> Events:
        """Sleep; and watch the next time if events come so soon that watching would have done."""
        if _others_are_runnable():
            return []
        began = precise_seconds()
        events = self._epoll.poll(DOZE_SECONDS)
        if events and precise_seconds() - began < WATCH_SECONDS:
            self._watch_seconds = WATCH_SECONDS
        return events


def _others_are_runnable() -> bool:
    statistics = trio.lowlevel.current_statistics()
    return statistics.tasks_runnable > 0 or statistics.run_sync_soon_queue_size > 0
