"""The deadlines of a member: its session, and its time to give partitions up or to join again."""

from __future__ import annotations

from ....runtime.timers import Timer


class MemberTimers:
    """The timers of one member.

    Attributes:
        session_deadline_ms: when the member is given up, in monotonic milliseconds. A
            heartbeat only moves this; `session` looks at it when it fires.
        session: the timer that looks.
        rebalance: fires when the time to give partitions up is over.
        join: of a member on the classic protocol, when its time to join again is over.
        sync: likewise, when its time to send SyncGroup is over.
    """

    __slots__ = ("join", "rebalance", "session", "session_deadline_ms", "sync")

    def __init__(self) -> None:
        self.session_deadline_ms = 0
        self.session: Timer | None = None
        self.rebalance: Timer | None = None
        self.join: Timer | None = None
        self.sync: Timer | None = None

    def cancel(self) -> None:
        """Stop all."""
        if self.session is not None:
            self.session.cancel()
            self.session = None
        self.cancel_rebalance()
        self.cancel_classic()

    def cancel_rebalance(self) -> None:
        """The member gave up what it had to, or has nothing to give up any more."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def cancel_classic(self) -> None:
        """The member joined, or is on the consumer protocol now."""
        for timer in (self.join, self.sync):
            if timer is not None:
                timer.cancel()
        self.join = self.sync = None
