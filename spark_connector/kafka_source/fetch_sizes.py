"""How much a consumer may fetch at once, so that what it is decompressed to stays small.

librdkafka bounds a fetch by compressed bytes and decompresses the whole of it at once. A broker
gives at least one batch of records, whatever the bound is; so a reader begins with the smallest
bound, learns from librdkafka's statistics what the fetches are decompressed to, and goes on with
the bound that this allows. A topic that is compressed well stays at a batch for each fetch, which
is enough: its batches are large once they are decompressed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .kafka_settings import Settings

OPTION = "max.partition.fetch.bytes"

FETCH_BYTES_MIN = 1
"""Which is one batch of records."""

FETCH_BYTES_MAX = 1 << 20
"""Java's default. A larger one reads no faster, and would be decompressed to more where records
suddenly are compressed better."""

DECOMPRESSED_BYTES_MAX = 16 << 20
"""A fetch of several batches is to become no more than that."""

SAMPLE_BYTES = 32 << 10
SAMPLE_RESPONSES = 8
"""A smaller sample says nothing: there are answers of other kinds in it, and the last fetch may be
counted while it is not decompressed yet."""

FACTOR = 4
"""A bound that is only somewhat too small is kept: another one takes a new consumer."""

STATISTICS_MS = 200
FIRST_STATISTICS_MS = 20
"""While nothing is known yet."""


class FetchSize:
    """The bound on fetches of one consumer.

    Args:
        fetch_bytes: the bound.
    """

    def __init__(self, fetch_bytes: int = FETCH_BYTES_MIN) -> None:
        self.fetch_bytes = fetch_bytes
        self._received = 0
        self._responses = 0
        self._decompressed = 0
        self._ratio: float | None = None

    def settings(self) -> dict[str, Any]:
        """Settings of the consumer that has this bound."""
        is_first = self.fetch_bytes == FETCH_BYTES_MIN
        return {
            OPTION: str(self.fetch_bytes),
            "statistics.interval.ms": str(FIRST_STATISTICS_MS if is_first else STATISTICS_MS),
            "stats_cb": self.note,
        }

    def note(self, statistics: str) -> None:
        """Take librdkafka's statistics in.

        Args:
            statistics: JSON, in which all counters only grow.
        """
        found = json.loads(statistics)
        brokers = found["brokers"].values()
        received = sum(broker["rxbytes"] for broker in brokers)
        responses = sum(broker["rx"] for broker in brokers)
        decompressed = sum(
            partition["rxbytes"]
            for topic in found["topics"].values()
            for partition in topic["partitions"].values()
        )
        sample = received - self._received
        if sample >= SAMPLE_BYTES and responses - self._responses >= SAMPLE_RESPONSES:
            self._ratio = (decompressed - self._decompressed) / sample
            self._received, self._responses = received, responses
            self._decompressed = decompressed

    def better(self) -> FetchSize | None:
        """The bound to go on with, where that is another one."""
        if self._ratio is None:
            return None
        allowed = int(DECOMPRESSED_BYTES_MAX / max(self._ratio, 1.0))
        if allowed < SAMPLE_BYTES:
            allowed = FETCH_BYTES_MIN
        allowed = min(allowed, FETCH_BYTES_MAX)
        if self.fetch_bytes / FACTOR < allowed < self.fetch_bytes * FACTOR:
            return None
        return FetchSize(allowed)


Connect = Callable[[dict[str, Any]], Any]


class FetchConsumer:
    """A consumer of confluent-kafka whose fetches are bounded.

    Args:
        settings: of the consumer; where they bound its fetches, that is what holds.
        connect: makes one.
    """

    def __init__(self, settings: Settings, connect: Connect) -> None:
        self._settings = settings
        self._connect = connect
        self._size: FetchSize | None = None
        if OPTION not in settings:
            self._size = FetchSize()
        self.consumer = self._connected()

    def _connected(self) -> Any:
        return self._connect({**self._settings, **(self._size.settings() if self._size else {})})

    def resize(self) -> bool:
        """Bound fetches anew if need be; then the consumer is another, without a position."""
        better = None if self._size is None else self._size.better()
        if better is None:
            return False
        self._size = better
        self.consumer.close()
        self.consumer = self._connected()
        return True
