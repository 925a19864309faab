"""What a follower's fetchers obey."""

from __future__ import annotations

from ...common.named_tuple import NamedTuple
from .truncation import Truncation

FIRST_BACKOFF_MS = 50
"""The pause after what passes by itself, news of a new leader still on its way: Kafka waits the
whole `replica.fetch.backoff.ms`, and acks=all with it. It doubles up to that."""

NEW_PARTITION_WAIT_MS = 10
"""A leader may hold a fetch for `replica.fetch.wait.max.ms` while it has no news. Partitions that
are added meanwhile would have to wait for it, as in Kafka, and acks=all with them; they do so for
that long at most."""


class FetcherSettings(NamedTuple):
    """The settings of all fetchers of a broker, with Kafka's defaults."""

    broker_id: int
    fetch_wait_ms_max: int = 500
    """`replica.fetch.wait.max.ms`: how long a leader may wait for `fetch_min_bytes`."""
    fetch_min_bytes: int = 1
    """`replica.fetch.min.bytes`."""
    fetch_max_bytes: int = 1024 * 1024
    """`replica.fetch.max.bytes`, of one partition; a first batch that is larger comes whole."""
    fetch_response_max_bytes: int = 10 * 1024 * 1024
    """`replica.fetch.response.max.bytes`, of one answer."""
    fetch_backoff_ms: int = 1_000
    """`replica.fetch.backoff.ms`: the pause after an error."""
    socket_timeout_ms: int = 30_000
    """`replica.socket.timeout.ms`: an answer that takes longer counts as none."""
    truncation: Truncation = Truncation.FETCH
    """Newer inter-broker protocols have better ways; another one is for old clusters."""

    def backoff_after(self, attempts: int) -> int:
        """How many ms to pause after that many failures one after the other, from 0 on."""
        return min(self.fetch_backoff_ms, FIRST_BACKOFF_MS << min(attempts, 20))
