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
LIGHT_PASS_BYTES = 8 << 10
LOOK_SECONDS = 2e-6
"""What a look takes."""
DOZE_SECONDS = 0.001
"""How long to sleep in the epoll: no other task runs meanwhile. To wait in trio costs more."""
DOZE_ALONE_SECONDS = 0.005
"""The same where no other task waits for a socket: only what threads bring is kept waiting."""
TRIOS_OWN_TASKS = 1
"""One of trio's own always waits for threads."""


class EpollWatch:
    """Waits a moment for one epoll.

    Args:
        epoll: whose events.
    """

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._watch_seconds = 0.0

    def next_events(self, pass_bytes: int) -> Events:
        """What came within about a millisecond; nothing at once where other tasks have work.

        Args:
            pass_bytes: received in the pass before. Who sends much at once is not waiting for
                each answer.
        """
        if pass_bytes > LIGHT_PASS_BYTES:
            self._watch_seconds = 0.0
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
        others = trio.lowlevel.current_statistics()
        if others.tasks_runnable or others.run_sync_soon_queue_size:
            return []
        waiting: int = getattr(others.io_statistics, "tasks_waiting_read", TRIOS_OWN_TASKS + 1)
        seconds = DOZE_SECONDS if waiting > TRIOS_OWN_TASKS else DOZE_ALONE_SECONDS
        began = precise_seconds()
        events = self._epoll.poll(max(min(seconds, others.seconds_to_next_deadline), 0))
        if events and precise_seconds() - began < WATCH_SECONDS:
            self._watch_seconds = WATCH_SECONDS
        return events
