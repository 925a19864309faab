"""Requests that are encoded before the clock starts, and where numbers stand in them.

Places are found by encoding a message twice, once with a field of zeros and once of ones: no
layout is written down here, so any version will do.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.headers import response_header
from ...protocol.records import build_batch
from ...protocol.records.batch import SEQUENCE_MASK
from ...protocol.records.builder import write_crc
from ..cluster import LoadTopic
from ..errors import Unavailable
from .wire import CORRELATION_ID, Wire, frame_of

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

PRODUCE_TIMEOUT_MS = 30_000
BASE_SEQUENCE_AT = 53
"""Where in a batch it stands."""
VARINT_GROWTH_MAX = 4
"""How much longer a record may be for its offset delta and its length."""
FIRST_VERSION_OF_IDS = 13


_pack_sequence = struct.Struct(">i").pack_into


def place_of(encode: Callable[[int], bytes]) -> int:
    """Where a signed field of fixed width begins in what `encode` makes of its value."""
    zeros, ones = encode(0), encode(-1)
    return next(index for index, byte in enumerate(zeros) if byte != ones[index])


def answer_bytes(answer: Message, version: int) -> bytes:
    """An answer as a broker would send it, without its length."""
    api_key = type(answer).api_key
    assert api_key is not None
    header = response_header(api_key, version, CORRELATION_ID)
    return b"".join([header, *type(answer).encoder(version)(answer)])


def one_record(
    value_bytes: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> bytearray:
    """A batch of one record without a key; an idempotent producer's first, where that has an id."""
    return build_batch(
        [(None, b"v" * value_bytes, _now_ms(), [])],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE if producer_id == NO_PRODUCER_ID else 0,
    )


def full_batch(batch_bytes: int, value_bytes: int) -> tuple[bytearray, int]:
    """A batch of this size or a little less, and how many records are in it.

    Args:
        batch_bytes: the most it may have.
        value_bytes: of each record's value; there are no keys.
    """
    record = (None, b"v" * value_bytes, _now_ms(), ())
    one, two = (len(build_batch([record] * count)) for count in (1, 2))
    count = max(1, (batch_bytes - one) // (two - one) + 1)
    while True:  # later records have longer offset deltas
        batch = build_batch([record] * count)
        excess = len(batch) - batch_bytes
        if excess <= 0 or count == 1:
            return batch, count
        count = max(1, count - max(1, excess // (two - one + VARINT_GROWTH_MAX)))


class Produce:
    """A Produce request of the same batch for each partition, ready to be sent again and again.

    Args:
        wire: to the leader.
        topic: what is written to.
        batch: the records.
        acks: 1, or -1 for all.
        transactional_id: if it is part of a transaction.
        newest: no version above this.
        partitions: that get it.

    Attributes:
        frame: the request's bytes.
        errors_at: where the error codes stand in an answer, without the answer's length.
        version: of the request.

    Raises:
        Unavailable: the broker knows no batches of format v2.
    """

    def __init__(
        self,
        wire: Wire,
        topic: LoadTopic,
        batch: bytearray,
        acks: int = 1,
        transactional_id: str | None = None,
        newest: int | None = None,
        partitions: Sequence[int] = (0,),
    ) -> None:
        self.version = wire.version(ApiKey.PRODUCE, newest)
        if self.version >= FIRST_VERSION_OF_IDS and topic.id == bytes(16):
            self.version = FIRST_VERSION_OF_IDS - 1
        request = messages.ProduceRequest
        data = request.TopicProduceData(
            name=topic.name,
            topic_id=topic.id,
            partition_data=[
                request.PartitionProduceData(index=each, records=batch) for each in partitions
            ],
        )
        self.frame = frame_of(
            request(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                topic_data=[data],
            ),
            self.version,
        )
        self.errors_at = [
            place_of(partial(self._answer, topic, len(partitions), at))
            for at in range(len(partitions))
        ]

    def in_sequence(self, batch: bytearray) -> Iterator[bytes]:
        """The request with one record after another of an idempotent producer, without an end.

        Args:
            batch: its first, as it stands in the request.
        """
        frame = bytearray(self.frame)
        at = frame.index(batch)
        batch_in_place = memoryview(frame)[at : at + len(batch)]
        for sequence in count():
            _pack_sequence(batch_in_place, BASE_SEQUENCE_AT, sequence & SEQUENCE_MASK)
            write_crc(batch_in_place)
            yield bytes(frame)

    def _answer(self, topic: LoadTopic, partitions: int, at: int, error_code: int) -> bytes:
        """What is answered where one partition of a topic is refused."""
        response = messages.ProduceResponse
        answered = [
            response.PartitionProduceResponse(index=each, error_code=error_code * (each == at))
            for each in range(partitions)
        ]
        of_topic = response.TopicProduceResponse(
            name=topic.name, topic_id=topic.id, partition_responses=answered
        )
        return answer_bytes(response(responses=[of_topic]), self.version)


def require_version(wire: Wire, api_key: ApiKey, first: int, what: str) -> int:
    """The newest version of an API that both sides have, and at least `first`.

    Raises:
        Unavailable: the broker is older.
    """
    version = wire.version(api_key)
    if version < first:
        raise Unavailable(
            f"{wire.peer} serves {api_key.name} up to version {version}; {what} came with {first}"
        )
    return version


def _now_ms() -> int:
    return int(time.time() * 1000)
