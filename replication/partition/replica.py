"""What the leader knows of one follower: how far it has come, and when it last kept up.

The leader's own replica is its log; Kafka's Replica class likewise holds remote ones only.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1
LONG_AGO_MS = -(2**62)
"""Before any monotonic time, which may begin with the machine's start."""


class Replica:
    """A follower as the leader sees it, from the fetches it sends (article 001).

    Attributes:
        broker_epoch: of its broker's last registration that was heard of.
        log_end_offset: where its last fetch began: it has everything before.
        log_start_offset: the first offset that it still has.
        last_caught_up_ms: the last time it had all that the leader had.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end_offset = 0
        self.last_fetch_ms = LONG_AGO_MS
        self.last_caught_up_ms = LONG_AGO_MS

    def reset(
        self, now_ms: int, leader_end_offset: int, *, is_new_leader: bool, is_in_sync: bool
    ) -> None:
        """Another leader epoch begins (Kafka's resetReplicaState).

        One in sync counts as caught up now, so that it gets one lag time to show itself; any
        other as long behind, so that the high watermark does not wait for it.

        Args:
            now_ms: monotonic.
            leader_end_offset: of the leader's log.
            is_new_leader: this broker did not lead before, and has not heard of it yet.
            is_in_sync: it is in the ISR.
        """
        self.last_caught_up_ms = now_ms if is_in_sync else LONG_AGO_MS
        if is_new_leader:
            self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
            self.last_fetch_ms = LONG_AGO_MS
        else:
            self.last_fetch_leader_end_offset = leader_end_offset
            self.last_fetch_ms = now_ms if is_in_sync else LONG_AGO_MS

    def update_fetch_state(
        self, fetch_offset: int, log_start_offset: int, now_ms: int, leader_end_offset: int
    ) -> None:
        """Take note of a fetch (Kafka's updateFetchStateOrThrow).

        It is caught up now if it asks for the leader's end; it was caught up at its last
        fetch if it asks for what was the end then. So one that is always a little behind a
        busy leader stays in sync.

        Args:
            fetch_offset: it asks for this offset, so it has all before.
            log_start_offset: of its log.
            now_ms: monotonic, when the fetch came.
            leader_end_offset: of the leader's log before the fetch is answered.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = max(
            self.last_fetch_leader_end_offset, leader_end_offset
        )
        self.last_fetch_ms = now_ms

    def note_idle_fetches(self, offset: int, fetched_ms: int) -> None:
        """It went on asking for an offset that was the leader's end, until this moment.

        Args:
            offset: if it has fetched at another one since, somebody else fetches in its place.
            fetched_ms: monotonic, when the last of those fetches came.
        """
        if self.log_end_offset == offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, fetched_ms)
            self.last_fetch_ms = max(self.last_fetch_ms, fetched_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it has what the leader has, or had it `lag_ms_max` milliseconds ago."""
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= lag_ms_max
        )
