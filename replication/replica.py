"""What the leader knows of one follower: how far it has come, and when it last kept up.

The leader's own replica is its log; Kafka's Replica class likewise holds remote ones only.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1


class Replica:
    """A follower as the leader sees it, from the fetches it sends (article 001)."""

    __slots__ = ("broker_id", "last_caught_up_ms", "log_end_offset", "log_start_offset")

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.reset(0)

    def reset(self, now_ms: int) -> None:
        """Forget what was known: a new leader has not heard of it yet.

        It counts as caught up now, so that it gets one lag time to show itself.
        """
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = now_ms
