"""The headers of a partition's batches as its leader has them, control batches included.

No client shows those, yet only they tell a transaction's marker from an offset that got lost. So
this speaks the protocol itself, over PLAINTEXT only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....common.errors import KafkaError
from ....protocol.errors import ProtocolError
from ....protocol.records import iter_batches
from ...errors import SparkConnectorError
from ...plain_connection import (
    FETCH_VERSION,
    PlainConnection,
    PlainFetch,
    PlainPeer,
    fetched_partition,
    leader_address,
)

HEADERS_FETCH_BYTES = 8 << 20
HEADERS_FETCH_WAIT_MS = 100
AUDITOR = PlainPeer("odradek-audit", 60.0)


class BatchHeader(NamedTuple):
    """What an audit needs of a batch."""

    base_offset: int
    last_offset: int
    is_control: bool
    is_transactional: bool


def batch_headers(
    bootstrap_servers: str, topic: str, partition: int, begin: int, until: int
) -> Iterator[BatchHeader]:
    """The batches with offsets from `begin` up to before `until`, in order.

    Raises:
        SparkConnectorError: the partition cannot be read; the sentence says why.
    """
    try:
        address = leader_address(bootstrap_servers, topic, partition, AUDITOR)
        fetch = PlainFetch(topic, partition, HEADERS_FETCH_BYTES, HEADERS_FETCH_WAIT_MS)
        with PlainConnection(address, AUDITOR) as leader:
            position = begin
            while position < until:
                leader.send(fetch.at(position), FETCH_VERSION)
                records = fetched_partition(leader).records or b""
                reached = position
                for batch in iter_batches(records):
                    reached = batch.next_offset
                    if batch.last_offset >= begin and batch.base_offset < until:
                        yield BatchHeader(
                            batch.base_offset,
                            batch.last_offset,
                            batch.is_control,
                            batch.is_transactional,
                        )
                if reached <= position:
                    return  # there is no more
                position = reached
    except (OSError, KafkaError, ProtocolError) as error:
        raise SparkConnectorError(
            f"the batches of partition {partition} of {topic!r} cannot be looked at: {error}"
        ) from None
