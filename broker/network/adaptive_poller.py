"""Waiting for an epoll's next events in the way that costs least.

Falling asleep and being woken costs more than a small request does, in time and in processor
time. So for a client that sends its next request as soon as it has an answer the poller
spins; for all others it sleeps.
"""

from __future__ import annotations

import select

import trio

from ...runtime.clock import precise_seconds

Events = list[tuple[int, int]]

SPIN_SECONDS = 80e-6
"""How long to poll without sleeping: about what falling asleep and being woken takes, on both
sides of a socket."""
LIGHT_PASS_BYTES = 8 << 10
POLL_SECONDS = 2e-6
"""What one poll takes."""
NAP_SECONDS = 0.001
"""How long to sleep in the epoll: no other task runs meanwhile. To wait in trio costs more than a
nap that brings events, and less than one that brings none: after such a one there is no other,
until a wait was short."""


class AdaptivePoller:
    """Waits a moment for the events of one epoll: by spinning, then by a nap.

    Args:
        epoll: whose events.
    """

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._spin_seconds = 0.0
        self._was_nap_useless = False

    def next_events(self, pass_bytes: int) -> Events:
        """What came within about a millisecond; nothing at once where other tasks have work.

        Args:
            pass_bytes: received in the pass before. Who sends much at once is not waiting for
                each answer.
        """
        if pass_bytes > LIGHT_PASS_BYTES:
            self._spin_seconds = 0.0
        return self._spin() or self._nap()

    def _spin(self) -> Events:
        """Poll without sleeping; for half as long the next time, if nothing comes."""
        until = precise_seconds() + self._spin_seconds
        while precise_seconds() < until:
            events = self._epoll.poll(0)
            if events:
                return events
        self._spin_seconds /= 2
        if self._spin_seconds < POLL_SECONDS:
            self._spin_seconds = 0.0
        return []

    def _nap(self) -> Events:
        """Sleep; and spin the next time if events come so soon that spinning would have done."""
        others = trio.lowlevel.current_statistics()
        if self._was_nap_useless or others.tasks_runnable or others.run_sync_soon_queue_size:
            return []
        began = precise_seconds()
        events = self._epoll.poll(NAP_SECONDS)
        self._was_nap_useless = not events
        if events and precise_seconds() - began < SPIN_SECONDS:
            self._spin_seconds = SPIN_SECONDS
        return events

    def note_parked(self, seconds: float) -> None:
        """The loop has waited in trio for so long: after a short wait a nap is tried again."""
        self._was_nap_useless = seconds >= NAP_SECONDS
