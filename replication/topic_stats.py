"""What goes in and out of each topic, counted (Kafka's BrokerTopicStats).

Plain numbers that only grow. A partition holds its topic's counters, so that the hot path adds
to them without looking anything up; the metrics reporter reads them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

from ..common.errors import ErrorCode

PRODUCE_FAILURES_EXPECTED = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Refusals that Kafka does not count as failed requests: any client meets them at times."""

FETCH_FAILURES_EXPECTED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The same of fetches."""


@dataclass(slots=True, eq=False)
class TopicStats:
    """The counters of one topic on one broker.

    Attributes:
        messages_in, bytes_in: appended here as the leader, by producers and coordinators.
        bytes_out: sent to consumers.
        total_produce_requests, failed_produce_requests: each partition of a request counts.
        total_fetch_requests, failed_fetch_requests: the same, of consumers and followers.
        replication_bytes_in: appended as a follower.
        replication_bytes_out: sent to followers.
        reassignment_bytes_in, reassignment_bytes_out: of those, by partitions on the move.
        bytes_rejected: of batches larger than `max.message.bytes`.
        isr_shrinks, isr_expands: changes of the ISR that were written, of partitions led here.
        failed_isr_updates: those that were not.
    """

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_rejected: int = 0
    total_produce_requests: int = 0
    failed_produce_requests: int = 0
    total_fetch_requests: int = 0
    failed_fetch_requests: int = 0
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    reassignment_bytes_in: int = 0
    reassignment_bytes_out: int = 0
    isr_shrinks: int = 0
    isr_expands: int = 0
    failed_isr_updates: int = 0

    def count_refused_append(self, error: ErrorCode, size: int) -> None:
        """One partition of a Produce was refused."""
        self.total_produce_requests += 1
        if error is ErrorCode.MESSAGE_TOO_LARGE:
            self.bytes_rejected += size
        if error not in PRODUCE_FAILURES_EXPECTED:
            self.failed_produce_requests += 1

    def count_fetch(self, error: ErrorCode, size: int, *, follower: bool, moving: bool) -> None:
        """One partition of a Fetch was answered with so many bytes of records.

        Args:
            error: what it was answered.
            size: bytes of records.
            follower: whether a replica fetched, not a consumer.
            moving: whether that replica is being added by a reassignment.
        """
        self.total_fetch_requests += 1
        if error and error not in FETCH_FAILURES_EXPECTED:
            self.failed_fetch_requests += 1
        if not follower:
            self.bytes_out += size
            return
        self.replication_bytes_out += size
        if moving:
            self.reassignment_bytes_out += size

    def count_replication(self, size: int, *, moving: bool) -> None:
        """So many bytes came from the leader and were appended here.

        Args:
            size: bytes of records.
            moving: whether this replica is being added by a reassignment.
        """
        self.replication_bytes_in += size
        if moving:
            self.reassignment_bytes_in += size

    def count_isr_change(self, size_before: int, size: int) -> None:
        """An ISR of so many brokers was written in place of one of another size."""
        if size < size_before:
            self.isr_shrinks += 1
        elif size > size_before:
            self.isr_expands += 1

    def add(self, other: TopicStats) -> None:
        """Add another's counters to these."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class TopicStatsTable:
    """The counters of all topics that this broker has partitions of."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicStats] = {}
        self._hosted: Counter[str] = Counter()
        self._gone = TopicStats()

    def join(self, topic: str) -> TopicStats:
        """A partition of the topic came to be hosted here: the counters it shall hold."""
        self._hosted[topic] += 1
        stats = self._topics.get(topic)
        if stats is None:
            stats = self._topics[topic] = TopicStats()
        return stats

    def leave(self, topic: str) -> None:
        """A partition of the topic is hosted here no more.

        With its last one the topic's counters go; the total keeps what they counted.
        """
        self._hosted[topic] -= 1
        if self._hosted[topic] <= 0:
            del self._hosted[topic]
            self._gone.add(self._topics.pop(topic))

    def find(self, topic: str) -> TopicStats | None:
        """A topic's counters, if it has partitions here."""
        return self._topics.get(topic)

    def by_topic(self) -> list[tuple[str, TopicStats]]:
        """Every topic with its counters, by name."""
        return sorted(self._topics.items())

    def total(self) -> TopicStats:
        """All topics together, those that are gone included: it never goes back."""
        total = TopicStats()
        total.add(self._gone)
        for stats in self._topics.values():
            total.add(stats)
        return total
