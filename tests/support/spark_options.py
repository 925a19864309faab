"""The options that Spark's documentation of its Kafka source lists (4.0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CHOICES = frozenset({"assign", "subscribe", "subscribePattern"})

OF_BOTH = CHOICES | {
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingOffsets",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "kafka.group.id",
    "includeHeaders",
}
OF_BATCHES = OF_BOTH | {"endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"}
OF_STREAMS = OF_BOTH | {"maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"}


def not_proved(documented: Iterable[str], cases: Iterable[Mapping[str, str]]) -> set[str]:
    """The documented options that are in none of the cases."""
    return set(documented) - {name for options in cases for name in options}
