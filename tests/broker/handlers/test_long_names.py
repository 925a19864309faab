"""Names of 32 KB are not multiplied by what is said of them."""

from __future__ import annotations

import pytest

from odradek.protocol import messages

from .conftest import Bench

LONG_NAME = "n" * 32_000


@pytest.mark.parametrize("api", ["elect", "reassign"])
async def test_a_long_name_is_not_repeated_whole_for_each_of_its_partitions(
    bench: Bench, api: str
) -> None:
    if api == "elect":
        elect = messages.ElectLeadersRequest
        of_topic = elect.TopicPartitions(topic=LONG_NAME, partitions=list(range(100)))
        answer = await bench.client.call(elect(topic_partitions=[of_topic]), 2)
        found = answer.replica_election_results[0].partition_result
    else:
        alter = messages.AlterPartitionReassignmentsRequest
        partitions = [
            alter.ReassignablePartition(partition_index=n, replicas=[1]) for n in range(100)
        ]
        topic = alter.ReassignableTopic(name=LONG_NAME, partitions=partitions)
        answer = await bench.client.call(alter(topics=[topic]), 0)
        found = answer.responses[0].partitions
    assert len(found) == 100
    assert sum(len(each.error_message) for each in found) < len(LONG_NAME)
    assert all(each.error_code for each in found)
