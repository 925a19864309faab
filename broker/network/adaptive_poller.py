"""Waiting for an epoll's next events in the way that costs least.

Falling asleep and being woken costs more than a small request does, in time and in processor
time. A client that sends its next request as soon as it has an answer is waited for awake,
therefore; all others asleep.
"""

from __future__ import annotations

import select

import trio

from ...runtime.clock import precise_seconds

Events = list[tuple[int, int]]

WATCH_SECONDS = 80e-6
"""How long to look for events without sleeping: about what falling asleep and being woken takes,
on both sides of a socket."""
LIGHT_PASS_BYTES = 8 << 10
LOOK_SECONDS = 2e-6
"""What a look takes."""
DOZE_SECONDS = 0.001
"""How long to sleep in the epoll: no other task runs meanwhile. To wait in trio costs more than a
doze, and less than a doze in vain: after one there is none, until a wait was short."""


class EpollWatch:
    """Waits a moment for one epoll.

    Args:
        epoll: whose events.
    """

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._watch_seconds = 0.0
        self._is_in_vain = False

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
        if self._is_in_vain or others.tasks_runnable or others.run_sync_soon_queue_size:
            return []
        began = precise_seconds()
        events = self._epoll.poll(DOZE_SECONDS)
        self._is_in_vain = not events
        if events and precise_seconds() - began < WATCH_SECONDS:
            self._watch_seconds = WATCH_SECONDS
        return events

    def note_parked(self, seconds: float) -> None:
        """The loop has waited in trio for so long: was it worth it, or had a doze been enough?"""
        self._is_in_vain = seconds >= DOZE_SECONDS
