"""When to notify the controller of changed ISRs, so that all brokers hear of them (article 001).

A leader writes its ISR itself; nobody else would know. A note for the controller is left when
no more changes have come for a while, or when the last note is long ago, so that many changes
at once are one note (Kafka's ZkAlterPartitionManager, before it record_isr_change and
maybePropagateIsrChanges of its ReplicaManager).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...common.topic_partition import TopicPartition

CHECK_INTERVAL_MS = 2_500
ISR_LINGER_MS = 5_000
"""So long after the last change no other is waited for."""
DELAY_MS_MAX = 60_000
"""So long after the last note nothing is waited for."""


class IsrPropagation:
    """The partitions whose ISR has changed since the controller was last notified.

    Args:
        now_ms: monotonic.
    """

    def __init__(self, now_ms: int) -> None:
        self._changed: dict[TopicPartition, None] = {}
        self._last_change_ms = now_ms
        self._last_propagation_ms = now_ms

    def __len__(self) -> int:
        """How many partitions the controller is to be notified of."""
        return len(self._changed)

    def record_isr_change(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """A partition's ISR was changed."""
        self._changed[topic_partition] = None
        self._last_change_ms = now_ms

    def take_due(self, now_ms: int) -> list[TopicPartition]:
        """What to write into a note now; nothing while it is better to wait."""
        if not self._changed or not (
            self._last_change_ms + ISR_LINGER_MS < now_ms
            or self._last_propagation_ms + DELAY_MS_MAX < now_ms
        ):
            return []
        taken, self._changed = list(self._changed), {}
        self._last_propagation_ms = now_ms
        return taken

    def put_back(self, partitions: Iterable[TopicPartition]) -> None:
        """What was taken could not be written: it is due at the next look."""
        self._changed = {**dict.fromkeys(partitions), **self._changed}
