"""What is to be done on all logs from time to time: retention, old producers, late flushes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ..errors import StorageError
from ..log.log import Log

logger = logging.getLogger(__name__)

HighWatermarkOf = Callable[[TopicPartition], int]


def delete_old_segments(
    logs: Mapping[TopicPartition, Log],
    high_watermark_of: HighWatermarkOf,
    clock: Clock,
    logs_per_step: int,
) -> Iterator[int]:
    """Drop what retention lets go in every log, some logs at a time.

    A log whose disk fails is passed over and tried again the next time. Between two steps
    logs may come and go.

    Args:
        logs: by partition.
        high_watermark_of: gives a partition's; what is not yet replicated stays.
        clock: the time.
        logs_per_step: how many to look at between two results.

    Returns:
        How many segments went in each step.
    """
    waiting = list(logs)
    for start in range(0, len(waiting), logs_per_step):
        now_ms = clock.now_ms()
        deleted = 0
        for topic_partition in waiting[start : start + logs_per_step]:
            log = logs.get(topic_partition)
            if log is None:
                continue
            try:
                deleted += log.delete_old_segments(now_ms, high_watermark_of(topic_partition))
            except StorageError as error:
                logger.warning("%s", error.message)
        yield deleted


def remove_expired_producers(logs: Mapping[TopicPartition, Log], now_ms: int) -> None:
    """Forget producers that have been silent for `producer.id.expiration.ms`."""
    for log in logs.values():
        log.producers.remove_expired(now_ms, log.config.producer_id_expiration_ms)


def logs_to_flush(logs: Mapping[TopicPartition, Log], now_ms: int) -> list[Log]:
    """The logs that hold unflushed batches for longer than their `flush.ms`."""
    return [
        log
        for log in logs.values()
        if log.recovery_point < log.log_end_offset
        and now_ms - log.last_flush_ms >= log.config.flush_ms
    ]
