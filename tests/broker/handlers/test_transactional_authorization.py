"""What a principal must be allowed for transactions' data, and what it is told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench

CLUSTER = "kafka-cluster"


@pytest.fixture
def deny(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Forbid everybody some operations, each with its resource's type and name."""

    def forbid(*denied: tuple[str, str, str]) -> None:
        bench.authorize_by(lambda request, *requested: tuple(requested) not in denied)

    return forbid


async def markers(bench: Bench, **fields: int) -> ErrorCode:
    request = messages.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        transaction_result=True,
        topics=[request.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        **{"producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 0} | fields,
    )
    answer = await bench.client.call(request(markers=[marker]), 1)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


async def test_markers_are_for_brokers_and_administrators(bench: Bench, deny: Any) -> None:
    await bench.create_topic("t")
    alter, act = ("ALTER", "CLUSTER", CLUSTER), ("CLUSTER_ACTION", "CLUSTER", CLUSTER)
    deny(act)
    assert await markers(bench) is ErrorCode.NONE
    assert await markers(bench, producer_epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await markers(bench, coordinator_epoch=1) is fenced
    deny(alter)
    assert await markers(bench, producer_epoch=1, coordinator_epoch=1) is ErrorCode.NONE
    deny(alter, act)
    assert await markers(bench) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert bench.log_end_offset("t") == 2


async def test_offsets_of_a_transaction_need_id_group_and_topic(bench: Bench, deny: Any) -> None:
    await bench.create_topic("t")
    await bench.create_topic("u")
    request = messages.TxnOffsetCommitRequest
    body = request(
        transactional_id="tx",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        topics=[
            request.TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    request.TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    )
                ],
            )
            for name in ("t", "u")
        ],
    )

    async def errors() -> dict[str, ErrorCode]:
        answer = await bench.client.call(body, 4)
        return {each.name: ErrorCode(each.partitions[0].error_code) for each in answer.topics}

    deny(("WRITE", "TRANSACTIONAL_ID", "tx"))
    assert set((await errors()).values()) == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    deny(("READ", "GROUP", "g"))
    assert set((await errors()).values()) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    deny(("READ", "TOPIC", "u"))
    assert await errors() == {
        "t": ErrorCode.NOT_COORDINATOR,
        "u": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


async def test_producers_are_described_to_readers(bench: Bench, deny: Any) -> None:
    await bench.create_topic("t")
    await bench.create_topic("u")
    deny(("READ", "TOPIC", "u"))
    request = messages.DescribeProducersRequest
    topics = [request.TopicRequest(name=name, partition_indexes=[0]) for name in ("t", "u")]
    answer = await bench.client.call(request(topics=topics), 0)
    found = {each.name: ErrorCode(each.partitions[0].error_code) for each in answer.topics}
    assert found == {"t": ErrorCode.NONE, "u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


async def test_writing_in_a_transaction_needs_its_id(bench: Bench, deny: Any) -> None:
    await bench.create_topic("t")
    deny(("WRITE", "TRANSACTIONAL_ID", "tx"))
    batch = build_batch(
        [(b"k", b"v", 1, ())], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    request = messages.ProduceRequest
    topic = request.TopicProduceData(
        name="t", partition_data=[request.PartitionProduceData(index=0, records=bytes(batch))]
    )
    body = request(transactional_id="tx", acks=-1, timeout_ms=1000, topic_data=[topic])
    answer = await bench.client.call(body, 12)
    error = answer.responses[0].partition_responses[0].error_code
    assert error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert bench.log_end_offset("t") == 0
