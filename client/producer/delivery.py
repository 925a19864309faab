"""What a caller gets for a record that was accepted: something to wait for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import trio

from ...common.sentinels import NO_OFFSET, NO_TIMESTAMP
from .producer_batch import ProducerBatch


class RecordMetadata(NamedTuple):
    """Where a record is in the log.

    Attributes:
        topic: of the partition.
        partition: its index.
        offset: of the record; -1 with acks=0, or for one that was there already.
        timestamp: of the record, in milliseconds; the broker's, if the topic stamps that.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class Delivery:
    """One record on its way: `metadata = await delivery`.

    Raises, when it is awaited:
        KafkaError: the broker refused it.
        DeliveryTimeoutError: it was not delivered in time; if it was sent, nobody knows whether it
            is in the log.
        ProducerError: the producer was closed, or its transaction aborted, before it was sent.
        ClientError: the brokers cannot be spoken with.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: ProducerBatch, index: int, timestamp: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp

    @property
    def is_done(self) -> bool:
        """Whether awaiting it returns or raises at once."""
        return self._batch.part_of(self._index)[0].is_done

    async def wait(self) -> RecordMetadata:
        """Wait until the record is in the log; the same as awaiting it."""
        batch, index = self._batch.part_of(self._index)
        while not batch.is_done:
            await wait_done(batch)
            batch, index = batch.part_of(index)
        if batch.failure is not None:
            batch.failure_was_seen = True
            raise type(batch.failure)(*batch.failure.args) from batch.failure
        offset = batch.base_offset + index if batch.base_offset >= 0 else NO_OFFSET
        stamped = batch.log_append_time_ms
        timestamp = self._timestamp if stamped == NO_TIMESTAMP else stamped
        return RecordMetadata(batch.topic, batch.partition, offset, timestamp)

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        return self.wait().__await__()


async def wait_done(batch: ProducerBatch) -> None:
    """Wait until a batch is delivered, has failed or was split."""
    if not batch.is_done:
        done = trio.Event()
        batch.when_done(done.set)
        await done.wait()
