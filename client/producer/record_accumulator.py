"""The records that were accepted and are not done: batches by partition, within bounded memory.

Kafka's `RecordAccumulator`, without locks and without a pool of buffers: memory is counted, in
units of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...protocol.records.builder import Headers
from .errors import RecordTooLargeError
from .partition_queue import PartitionQueue
from .producer_batch import ProducerBatch, bytes_upper_bound
from .settings import IN_FLIGHT_MAX_WITH_IDEMPOTENCE, ProducerSettings


class RecordAccumulator:
    """Batches that are filled, waiting or in flight.

    Args:
        settings: of the producer.

    Attributes:
        queues: of the partitions that got records.
        used_bytes: what the batches take of `buffer_memory`.
        incomplete: all batches that are not done, the oldest first.
        on_release: called when memory was freed.
    """

    def __init__(self, settings: ProducerSettings) -> None:
        self.queues: dict[tuple[str, int], PartitionQueue] = {}
        self.used_bytes = 0
        self.incomplete: dict[ProducerBatch, None] = {}
        self.on_release: Callable[[], None] = _do_nothing
        self._settings = settings
        self._bytes_max = min(settings.batch_size, settings.max_request_size)

    def queue(self, topic: str, partition: int) -> PartitionQueue:
        """The queue of a partition, a new one if need be."""
        queue = self.queues.get((topic, partition))
        if queue is None:
            is_idempotent = self._settings.is_idempotent
            queue = self.queues[topic, partition] = PartitionQueue(
                topic,
                partition,
                in_flight_max=IN_FLIGHT_MAX_WITH_IDEMPOTENCE if is_idempotent else 1,
                is_idempotent=is_idempotent,
            )
        return queue

    def open_batch(self, topic: str, partition: int) -> ProducerBatch | None:
        """The batch of a partition that is being filled, if there is one."""
        queue = self.queues.get((topic, partition))
        if queue is None or not queue.waiting or queue.waiting[-1].is_full:
            return None
        return queue.waiting[-1]

    def new_batch(
        self,
        topic: str,
        partition: int,
        now_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> ProducerBatch | None:
        """A batch to write this record into as its first; None while memory does not allow it.

        Args:
            topic: of the partition.
            partition: its index.
            now_ms: in monotonic milliseconds.
            key: of the record.
            value: of the record.
            headers: of the record.

        Raises:
            RecordTooLargeError: the record is larger than any batch may be.
        """
        size = bytes_upper_bound(key, value, headers)
        self._require_possible(size)
        reserved = max(self._bytes_max, size)
        if self.used_bytes and self.used_bytes + reserved > self._settings.buffer_memory:
            return None
        batch = ProducerBatch(
            topic,
            partition,
            self._bytes_max,
            now_ms,
            compression=self._settings.compression_type,
            reserved_bytes=reserved,
            is_transactional=self._settings.transactional_id is not None,
        )
        self.used_bytes += reserved
        return batch

    def add(self, batch: ProducerBatch) -> None:
        """Let a new batch, with its first record, wait to be sent."""
        self.incomplete[batch] = None
        self.queue(batch.topic, batch.partition).waiting.append(batch)

    def discard(self, batch: ProducerBatch) -> None:
        """Give the memory of a new batch back: its first record was none."""
        self._release(batch)

    def done(self, batch: ProducerBatch) -> None:
        """A batch was delivered, has failed or was split."""
        if batch in self.incomplete:
            del self.incomplete[batch]
            self._release(batch)

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Put smaller batches with its records in the place of a batch."""
        parts = batch.split()
        for part in parts:
            self.incomplete[part] = None
            self.used_bytes += part.reserved_bytes
        self.queue(batch.topic, batch.partition).replace(batch, parts)
        self.done(batch)
        batch.was_split()
        return parts

    def waiting_batches(self) -> Iterator[ProducerBatch]:
        """All batches that are not in flight."""
        for queue in self.queues.values():
            yield from list(queue.waiting)

    def _require_possible(self, size: int) -> None:
        for name in ("max_request_size", "buffer_memory"):
            most = getattr(self._settings, name)
            if size > most:
                raise RecordTooLargeError(
                    f"the record takes {size} bytes, more than {name}={most} allows"
                )

    def _release(self, batch: ProducerBatch) -> None:
        self.used_bytes -= batch.reserved_bytes
        batch.reserved_bytes = 0
        self.on_release()


def _do_nothing() -> None:
    """Nobody waits for memory."""
