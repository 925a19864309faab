"""What a snapshot of a cluster counts."""

from __future__ import annotations

from odradek.client.metadata.cluster import Node
from odradek.console.cluster.cluster_reader import ClusterSnapshot, Trouble, count, search
from odradek.console.paging import page_of
from odradek.protocol import messages

NODES = {1: Node(1, "a", 9092), 2: Node(2, "b", 9092)}
PARTITIONS = 100


def partition(index: int, leader: int, replicas: list[int], isr: list[int]) -> object:
    return messages.MetadataResponse.MetadataResponsePartition(
        partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=isr
    )


def snapshot_of(
    *topics: tuple[str, list[object]], internal: tuple[str, ...] = ()
) -> ClusterSnapshot:
    make = messages.MetadataResponse.MetadataResponseTopic
    answer = messages.MetadataResponse(
        cluster_id="c",
        controller_id=2,
        topics=[
            make(name=name, partitions=partitions, is_internal=name in internal)
            for name, partitions in topics
        ],
    )
    return count(answer, NODES)


def test_partitions_in_trouble_come_with_those_without_leader_first() -> None:
    snapshot = snapshot_of(
        ("b", [partition(0, 1, [1, 2], [1, 2]), partition(1, 1, [1, 2], [1])]),
        ("a", [partition(0, 2, [2], [2]), partition(1, -1, [3], [3])]),
        ("c", [partition(0, -1, [2, 3], [2])]),
    )
    assert snapshot.troubled == (
        Trouble("a", 1, None, (3,), (3,)),
        Trouble("c", 0, None, (2, 3), (2,)),
        Trouble("b", 1, 1, (1, 2), (1,)),
    )
    assert [each.missing for each in snapshot.troubled] == [(), (3,), (2,)]
    assert (snapshot.partitions, snapshot.offline) == (5, 2)
    assert [
        (each.name, each.offline, each.under_replicated) for each in snapshot.topics.values()
    ] == [
        ("a", 1, 0),
        ("b", 0, 1),
        ("c", 1, 1),
    ]


def test_brokers_that_are_not_alive_are_those_that_only_replicas_name() -> None:
    snapshot = snapshot_of(("a", [partition(0, 1, [1, 3], [1]), partition(1, 1, [1], [1])]))
    assert [
        (each.broker_id, each.node is not None, each.is_controller, each.leaders, each.replicas)
        for each in snapshot.brokers
    ] == [(1, True, False, 2, 2), (2, True, True, 0, 0), (3, False, False, 0, 1)]
    assert [each.behind for each in snapshot.brokers] == [0, 0, 1]


def test_page_of_a_large_cluster_has_no_more_topics_than_of_a_small_one() -> None:
    partitions = [partition(index, 1, [1], [1]) for index in range(PARTITIONS)]
    names = [f"topic-{number:03}" for number in range(100)]
    snapshot = snapshot_of(
        *((name, partitions) for name in reversed(names)), internal=("topic-099",)
    )
    assert snapshot.partitions == 10_000
    found = search(snapshot.topics.values(), "", internal=False)
    page = page_of(found, 2)
    assert [topic.name for topic in page.items] == names[50:99]
    assert [t.name for t in search(snapshot.topics.values(), "C-09", internal=True)] == names[90:]
