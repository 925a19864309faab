"""Fetches with isolation level read_committed, over every version that has it."""

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.records import build_batch, iter_batches
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

if TYPE_CHECKING:
    from conftest import Bench

NOW_MS = 1_700_000_000_000
FIRST_VERSION_WITH_TOPIC_IDS = 13
ABORT_KEY, COMMIT_KEY = bytes(4), b"\0\0\0\x01"


def append(bench: "Bench", producer_id: int, ends_with: bytes | None = None) -> None:
    """A batch of a transaction, or the marker that ends it."""
    key, value = (b"k", b"v") if ends_with is None else (ends_with, bytes(6))
    data = build_batch(
        [(key, value, NOW_MS, [])],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0 if ends_with is None else -1,
        transactional=True,
        control=ends_with is not None,
    )
    answers: list[Any] = []
    bench.broker.replica_manager.append_records(
        timeout_ms=1000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.COORDINATOR,
        entries={TopicPartition("t", 0): memoryview(data)},
        on_complete=answers.append,
        guards={TopicPartition("t", 0): NOT_REQUIRED},
    )
    bench.broker.replica_manager.flush()
    assert [each.error for each in answers[0].values()] == [ErrorCode.NONE]


async def fetch(bench: "Bench", topic_id: bytes, version: int, isolation: int) -> Any:
    request = messages.FetchRequest
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    topic = request.FetchTopic(
        **({"topic_id": topic_id} if by_id else {"topic": "t"}),
        partitions=[
            request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        ],
    )
    answer = await bench.client.call(
        request(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[topic],
        ),
        version,
    )
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.NONE
    return partition


@pytest.mark.parametrize("version", range(4, 19))
async def test_aborted_transactions_are_told_to_readers_of_committed_records(
    bench: "Bench", version: int
) -> None:
    topic_id = await bench.create_topic("t")
    for producer_id in (5, 6, 7):
        append(bench, producer_id)  # 0, 1, 2
    append(bench, 6, ABORT_KEY)  # 3
    append(bench, 5, COMMIT_KEY)  # 4
    committed = await fetch(bench, topic_id, version, isolation=1)
    batches = [batch.base_offset for batch in iter_batches(committed.records)]
    assert (committed.high_watermark, committed.last_stable_offset, batches) == (5, 2, [0, 1])
    reported = [(each.producer_id, each.first_offset) for each in committed.aborted_transactions]
    assert reported == [(6, 1)]
    everything = await fetch(bench, topic_id, version, isolation=0)
    assert len(list(iter_batches(everything.records))) == 5
    assert everything.aborted_transactions is None


async def test_without_aborts_the_list_is_empty_not_absent(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    append(bench, 5)
    append(bench, 5, COMMIT_KEY)
    assert (await fetch(bench, topic_id, 17, isolation=1)).aborted_transactions == []
