from typing import TYPE_CHECKING

from odradek.broker.interbroker.forwarding import ensure_topics
from odradek.common.errors import ErrorCode
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench


async def test_what_was_committed_for_a_topic_goes_with_it(bench: "Bench") -> None:
    await ensure_topics(bench.broker.context, ["__consumer_offsets"])
    topic_id = await bench.create_topic("t", 2)
    commit = messages.OffsetCommitRequest
    requested = [commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    topics = [commit.OffsetCommitRequestTopic(name="t", partitions=requested)]
    answer = await bench.client.call(
        commit(group_id="g", generation_id_or_member_epoch=-1, topics=topics), 8
    )
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    fetch = messages.OffsetFetchRequest(group_id="g", topics=None)
    before = await bench.client.call(fetch, 7)
    assert [topic.name for topic in before.topics] == ["t"]
    await bench.broker.controller.delete_topics([topic_id])
    after = await bench.client.call(fetch, 7)
    assert after.topics == []
