"""Requests that are encoded before the clock starts, and where numbers stand in them.

Places are found by encoding a message twice, once with a field of zeros and once of ones: no
layout is written down here, so any version will do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.headers import response_header
from ...protocol.records import build_batch
from ..cluster import LoadTopic
from ..errors import Unavailable
from .wire import CORRELATION_ID, Wire, frame_of

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

PRODUCE_TIMEOUT_MS = 30_000
VARINT_GROWTH_MAX = 4
"""How much longer a record may be for its offset delta and its length."""
FIRST_VERSION_OF_IDS = 13


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


def one_record(value_bytes: int) -> bytearray:
    """A batch of one record without a key."""
    return build_batch([(None, b"v" * value_bytes, _now_ms(), [])])


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
    """A Produce request for one batch, ready to be sent again and again.

    Args:
        wire: to the leader.
        topic: whose partition 0 gets it.
        batch: the records.
        acks: 1, or -1 for all.
        transactional_id: if it is part of a transaction.
        newest: no version above this.

    Attributes:
        frame: the request's bytes.
        error_at: where the error code stands in an answer, without the answer's length.
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
    ) -> None:
        self.version = wire.version(ApiKey.PRODUCE, newest)
        if self.version >= FIRST_VERSION_OF_IDS and topic.id == bytes(16):
            self.version = FIRST_VERSION_OF_IDS - 1
        request = messages.ProduceRequest
        data = request.TopicProduceData(
            name=topic.name,
            topic_id=topic.id,
            partition_data=[request.PartitionProduceData(index=0, records=batch)],
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
        self.error_at = place_of(lambda code: self._answer(topic, code))

    def _answer(self, topic: LoadTopic, error_code: int) -> bytes:
        response = messages.ProduceResponse
        partition = response.PartitionProduceResponse(index=0, error_code=error_code)
        of_topic = response.TopicProduceResponse(
            name=topic.name, topic_id=topic.id, partition_responses=[partition]
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
