"""AlterPartition: each version's names, ISRs and errors; and who is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

NO_ID = bytes(16)
OTHER_ID = bytes(range(16))
RECOVERING = 1
Request = messages.AlterPartitionRequest


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """One whose client is another broker."""
    bench.client.connection.is_broker = True
    return bench


async def alter(
    bench: Bench, version: int, topic_id: bytes, isr: tuple[int, ...], recovery: int = 0
) -> Any:
    """The one partition of an answer."""
    part = Request.PartitionData(
        leader_epoch=0,
        new_isr=list(isr) if version < 3 else [],
        new_isr_with_epochs=[Request.BrokerState(broker_id=each) for each in isr if version >= 3],
        leader_recovery_state=recovery,
    )
    topic = Request.TopicData(topic_name="t", topic_id=topic_id, partitions=[part])
    broker = bench.broker.controller
    request = Request(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, topics=[topic])
    answer = await bench.client.call(request, version)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = answer.topics
    assert (topic.topic_name, topic.topic_id) == (("t", NO_ID) if version < 2 else ("", topic_id))
    (part,) = topic.partitions
    return part


@pytest.mark.parametrize("version", range(4))
async def test_each_version_is_answered(bench: Bench, version: int) -> None:
    topic_id = await bench.create_topic("t")
    own = bench.broker.controller.broker_id
    part = await alter(bench, version, topic_id, (own,))
    assert (part.error_code, part.leader_id, part.isr) == (ErrorCode.NONE, own, [own])
    assert (await alter(bench, version, topic_id, ())).error_code == ErrorCode.INVALID_REQUEST
    if version >= 1:
        refused = await alter(bench, version, topic_id, (own,), RECOVERING)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
    if version >= 2:
        refused = await alter(bench, version, OTHER_ID, (own,))
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_another_life_of_the_broker_is_refused(bench: Bench) -> None:
    answer = await bench.client.call(Request(broker_id=1, broker_epoch=2**40), 3)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_it_is_advertised_only_where_kafkas_brokers_may_be(bench: Bench) -> None:
    answer = await bench.client.call(messages.ApiVersionsRequest(), 0)
    assert Request.api_key not in {each.api_key for each in answer.api_keys}
