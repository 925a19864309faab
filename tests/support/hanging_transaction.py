"""A transactional record that no coordinator knows of: a transaction that hangs."""

from __future__ import annotations

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.records import build_batch

from .broker_cluster import ask

LONG_AGO_MS = 1_000_000_000_000
"""2001-09-09T01:46:40Z."""

LOST_PRODUCER_ID = 4_000_000
"""Of a producer that no coordinator has ever heard of."""


def leave_hanging(port: int, topic: str) -> None:
    """A transactional record in partition 0, in no transaction that a coordinator knows."""
    batch = build_batch(
        [(None, b"lost", LONG_AGO_MS, [])],
        producer_id=LOST_PRODUCER_ID,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    make = messages.ProduceRequest
    partition = make.PartitionProduceData(index=0, records=bytes(batch))
    request = make(
        transactional_id="lost",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[make.TopicProduceData(name=topic, partition_data=[partition])],
    )
    answer = ask(port, request, 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
