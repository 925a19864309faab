"""Producer ids and sequence numbers, by which brokers know a batch that comes twice (KIP-98).

Partitions share an id, and each has a sequence of its own. When nobody knows whether a batch
is in the log, its partition gets another id: a sequence begins at 0 again then, and no gap or
repetition in the old one can stop the partition. (Kafka's producer raises its epoch instead,
KIP-360, for which all its batches must be accounted for first.)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from ...common.errors import KafkaError
from ...protocol import messages
from ...protocol.records.batch import SEQUENCE_MASK
from ..client import KafkaClient
from ..error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ..errors import DisconnectedError


class Sequence(NamedTuple):
    """What the next batch of a partition is stamped with."""

    producer_id: int
    producer_epoch: int
    next_sequence: int


class ProducerIds:
    """The sequences of one producer's partitions.

    Args:
        client: asks brokers for ids.
    """

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._sequences: dict[tuple[str, int], Sequence] = {}
        self._turns: dict[tuple[str, int], trio.Lock] = {}
        self._shared: Sequence | None = None
        self._unsure: set[tuple[str, int]] = set()
        """Partitions whose sequence under the shared id was lost."""

    @asynccontextmanager
    async def sequence(self, topic: str, partition: int, records: int) -> AsyncIterator[Sequence]:
        """The sequence for a batch of so many records, which is sent within the `async with`.

        What is raised there means that nobody knows what became of the batch.

        Raises:
            KafkaError: the brokers give no producer id.
            ClientError: the broker cannot be reached.
        """
        key = topic, partition
        async with self._turns.setdefault(key, trio.Lock()):
            sequence = self._sequences.pop(key, None) or await self._first(key)
            try:
                yield sequence
            except BaseException:
                self._unsure.add(key)
                raise
            following = (sequence.next_sequence + records) & SEQUENCE_MASK
            self._sequences[key] = sequence._replace(next_sequence=following)

    async def _first(self, key: tuple[str, int]) -> Sequence:
        if key in self._unsure:
            return await self._new_id()
        if self._shared is None:
            self._shared = await self._new_id()
        return self._shared

    async def _new_id(self) -> Sequence:
        attempts = self._client.attempts(self._client.settings.max_block_ms)
        while True:
            request = messages.InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=0x7FFFFFFF
            )
            try:
                response: messages.InitProducerIdResponse = await self._client.send_to_any(request)
            except DisconnectedError as failure:
                await attempts.pause(failure)
                continue
            if not response.error_code:
                return Sequence(response.producer_id, response.producer_epoch, 0)
            error = KafkaError(error_of(response.error_code), error_name(response.error_code))
            if error.code not in RETRIABLE_ERRORS:
                raise error
            await attempts.pause(error)
