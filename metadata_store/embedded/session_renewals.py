"""How long the sessions of others have gone without a renewal, as this process saw it.

A holder renews its session by counting up a number in the store; when the number has not changed
for the session's timeout, the holder is frozen, and the session may be ended. Every process
measures that by its own monotonic clock, so no clock is shared: none that is set or that drifts,
that a container's time namespace has shifted, or that began anew with the machine, can end a
session. Time in which the observer itself did not run hardly counts: where a whole machine was
suspended, or all brokers were, each renews its session before it is missed.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.named_tuple import NamedTuple


class SessionRow(NamedTuple):
    """What the store holds of a session.

    Attributes:
        timeout_ms: for how long it may go without a renewal.
        renewals: how often it was renewed.
    """

    timeout_ms: int
    renewals: int


class SessionRenewals:
    """Observes the sessions of others.

    Args:
        gap_ms_max: a time between two looks counts for no more than this. It is less than what a
            session has left when it is renewed in time, so that a process that wakes up first
            ends no session of one that is about to wake up.
    """

    def __init__(self, gap_ms_max: int) -> None:
        self._gap_ms_max = gap_ms_max
        self._awake_ms = 0
        self._looked_ms: int | None = None
        self._seen: dict[int, tuple[int, int]] = {}
        """By session: its renewals, and the time awake when they were first seen."""

    def overdue(self, sessions: Mapping[int, SessionRow], now_ms: int) -> list[int]:
        """Look at the sessions of others; returns those that were not renewed in time.

        Args:
            sessions: all there are.
            now_ms: monotonic milliseconds of this process.
        """
        if self._looked_ms is not None:
            self._awake_ms += min(max(now_ms - self._looked_ms, 0), self._gap_ms_max)
        self._looked_ms = now_ms
        seen: dict[int, tuple[int, int]] = {}
        overdue: list[int] = []
        for session_id, row in sessions.items():
            renewals, since_ms = self._seen.get(session_id, (-1, 0))
            if renewals != row.renewals:
                renewals, since_ms = row.renewals, self._awake_ms
            seen[session_id] = renewals, since_ms
            if self._awake_ms - since_ms >= row.timeout_ms:
                overdue.append(session_id)
        self._seen = seen
        return overdue
