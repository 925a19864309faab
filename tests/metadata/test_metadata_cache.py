"""The operations of article 000 on the metadata cache."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pytest

from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.partition_state import LEADER_DURING_DELETE, PartitionState
from odradek.common.sentinels import ZERO_UUID
from odradek.common.topic_partition import TopicPartition
from odradek.metadata.metadata_cache import (
    BrokerNode,
    MetadataCache,
    MetadataSnapshot,
    MetadataUpdate,
)

ORDERS_ID = bytes(range(16))
CLICKS_ID = bytes(range(16, 32))


def broker(broker_id: int, *listeners: str, rack: str | None = None) -> LiveBroker:
    names = listeners or ("PLAINTEXT",)
    return LiveBroker(
        broker_id,
        tuple(EndPoint(name, f"{name.lower()}{broker_id}", 9000 + broker_id) for name in names),
        rack,
    )


def state(
    topic: str,
    partition: int,
    *,
    topic_id: bytes = ORDERS_ID,
    leader: int = 1,
    replicas: tuple[int, ...] = (1, 2),
    config: Mapping[str, str] | None = None,
) -> PartitionState:
    return PartitionState(
        topic, topic_id, partition, 1, leader, 0, replicas, 0, replicas, False, config or {}
    )


def leaving(topic: str, partition: int, topic_id: bytes = ORDERS_ID) -> PartitionState:
    return state(topic, partition, topic_id=topic_id, leader=LEADER_DURING_DELETE)


BROKERS = (broker(1), broker(2))


def update(
    cache: MetadataCache,
    *states: PartitionState,
    brokers: Sequence[LiveBroker] = BROKERS,
    controller_id: int = 1,
    is_full: bool | None = False,
) -> list[TopicPartition]:
    return cache.update_metadata(MetadataUpdate(controller_id, 1, brokers, states, is_full))


@pytest.fixture
def cache() -> MetadataCache:
    return MetadataCache(1)


def test_a_new_cache_knows_nothing(cache: MetadataCache) -> None:
    assert cache.get_all_topics() == set()
    assert cache.get_all_partitions() == set()
    assert cache.get_alive_brokers("PLAINTEXT") == []
    assert cache.controller_id is None
    assert not cache.contains("orders")
    assert cache.topic_id("orders") is None
    assert cache.partition_count("orders") == 0
    assert cache.topic_config("orders") == {}


def test_what_an_update_says_is_known(cache: MetadataCache) -> None:
    first = state("orders", 0, config={"retention.ms": "5"})
    update(cache, first, state("orders", 1), state("clicks", 0, topic_id=CLICKS_ID))
    assert cache.contains("orders")
    assert cache.contains_partition("orders", 1)
    assert not cache.contains_partition("orders", 2)
    assert not cache.contains_partition("absent", 0)
    assert cache.get_partition_info("orders", 0) is first
    assert cache.get_partition_info("orders", 2) is None
    assert cache.get_all_topics() == {"orders", "clicks"}
    assert cache.get_all_partitions() == {
        TopicPartition("orders", 0),
        TopicPartition("orders", 1),
        TopicPartition("clicks", 0),
    }
    assert cache.partition_count("orders") == 2
    assert cache.topic_id("clicks") == CLICKS_ID
    assert cache.topic_name(CLICKS_ID) == "clicks"
    assert cache.controller_id == 1


def test_partitions_come_in_the_order_of_their_indexes(cache: MetadataCache) -> None:
    update(cache, *(state("orders", partition) for partition in (10, 2, 0)))
    update(cache, state("orders", 1))
    assert list(cache.snapshot.partition_states["orders"]) == [0, 1, 2, 10]


def test_an_update_replaces_the_snapshot_and_leaves_the_old_one_as_it_was(
    cache: MetadataCache,
) -> None:
    update(cache, state("orders", 0, leader=1), state("clicks", 0, topic_id=CLICKS_ID))
    before = cache.snapshot
    cache.derived["worked out"] = "from before"
    update(cache, state("orders", 0, leader=2), leaving("clicks", 0, CLICKS_ID))
    assert cache.snapshot is not before
    assert before.partition_states["orders"][0].leader == 1
    assert "clicks" in before.partition_states
    assert before.topic_names[CLICKS_ID] == "clicks"
    assert cache.snapshot.partition_states["orders"][0].leader == 2
    assert cache.derived == {}


def test_an_update_without_partitions_keeps_them_and_replaces_the_brokers(
    cache: MetadataCache,
) -> None:
    update(cache, state("orders", 0))
    update(cache, brokers=[broker(2)], controller_id=2)
    assert cache.contains("orders")
    assert [node.broker_id for node in cache.get_alive_brokers("PLAINTEXT")] == [2]
    assert cache.controller_id == 2


def test_partitions_being_deleted_leave_and_are_returned(cache: MetadataCache) -> None:
    update(cache, state("orders", 0), state("orders", 1))
    assert update(cache, leaving("orders", 1)) == [TopicPartition("orders", 1)]
    assert cache.partition_count("orders") == 1
    assert update(cache, leaving("orders", 0)) == [TopicPartition("orders", 0)]
    assert not cache.contains("orders")
    assert cache.topic_id("orders") is None
    assert cache.topic_name(ORDERS_ID) is None


def test_a_deletion_is_returned_where_the_partition_was_never_known(cache: MetadataCache) -> None:
    # Who was away when it was known may have kept something of it: Kafka returns it, too.
    assert update(cache, leaving("absent", 0)) == [TopicPartition("absent", 0)]
    assert cache.get_all_topics() == set()
    assert cache.topic_id("absent") is None


def test_an_update_that_names_everything_deletes_what_it_does_not_name(
    cache: MetadataCache,
) -> None:
    update(cache, state("orders", 0), state("orders", 1), state("clicks", 0, topic_id=CLICKS_ID))
    assert not cache.is_complete
    deleted = update(cache, state("orders", 1, leader=2), is_full=True)
    assert set(deleted) == {TopicPartition("orders", 0), TopicPartition("clicks", 0)}
    assert cache.get_all_partitions() == {TopicPartition("orders", 1)}
    assert cache.is_complete


def test_an_update_that_is_not_marked_is_complete_with_all_topics_of_the_store(
    cache: MetadataCache,
) -> None:
    """Kafka's controller in ZooKeeper mode sends the brokers, then the partitions, unmarked."""
    assert not cache.is_complete_with(set())
    update(cache, is_full=None, brokers=[broker(2)])
    assert not cache.is_complete_with(set())
    update(cache, is_full=None)
    assert cache.is_complete_with(set())
    assert not cache.is_complete_with({"orders"})
    update(cache, state("orders", 0), is_full=None)
    assert cache.is_complete_with({"orders"})
    assert not cache.is_complete_with({"orders", "clicks"})


def test_a_controller_that_marks_its_updates_is_waited_for(cache: MetadataCache) -> None:
    update(cache, state("orders", 0), is_full=False)
    assert not cache.is_complete_with({"orders"})
    update(cache, state("orders", 0), is_full=True)
    assert cache.is_complete_with({"orders"})


def test_partitions_merge_with_those_that_are_known(cache: MetadataCache) -> None:
    update(cache, state("orders", 0, leader=1), state("clicks", 0, topic_id=CLICKS_ID))
    update(cache, state("orders", 1, leader=1), state("orders", 0, leader=2))
    leaders = {
        (topic, partition): known.leader
        for topic, partitions in cache.snapshot.partition_states.items()
        for partition, known in partitions.items()
    }
    assert leaders == {("orders", 0): 2, ("orders", 1): 1, ("clicks", 0): 1}


def test_topics_without_ids_come_and_go(cache: MetadataCache) -> None:
    update(cache, state("a", 0, topic_id=ZERO_UUID), state("b", 0, topic_id=ZERO_UUID))
    assert cache.topic_name(ZERO_UUID) is None
    update(cache, leaving("a", 0, ZERO_UUID), leaving("b", 0, ZERO_UUID))
    assert cache.get_all_topics() == set()


def test_a_topic_made_anew_has_its_new_id_only(cache: MetadataCache) -> None:
    update(cache, state("orders", 0))
    update(cache, state("orders", 0, topic_id=CLICKS_ID))
    assert cache.topic_id("orders") == CLICKS_ID
    assert cache.topic_name(ORDERS_ID) is None


def test_no_controller_is_known_after_a_negative_id(cache: MetadataCache) -> None:
    update(cache, controller_id=0)
    assert cache.controller_id == 0
    update(cache, controller_id=-1)
    assert cache.controller_id is None


def test_replica_endpoints_are_those_of_the_listener_and_of_the_living(
    cache: MetadataCache,
) -> None:
    brokers = [broker(1, "PLAINTEXT", "INTERNAL", rack="r1"), broker(2, "PLAINTEXT")]
    update(cache, state("orders", 0, replicas=(1, 2, 3)), brokers=brokers)
    partition = TopicPartition("orders", 0)
    assert cache.get_partition_replica_endpoints(partition, "PLAINTEXT") == {
        1: BrokerNode(1, "plaintext1", 9001, "r1"),
        2: BrokerNode(2, "plaintext2", 9002, None),
    }
    assert cache.get_partition_replica_endpoints(partition, "INTERNAL") == {
        1: BrokerNode(1, "internal1", 9001, "r1")
    }
    assert cache.get_partition_replica_endpoints(TopicPartition("orders", 9), "PLAINTEXT") == {}


class ChangingCache(MetadataCache):
    """An update comes after every single look at the snapshot."""

    looks: int
    versions: tuple[MetadataSnapshot, ...] = ()

    @property
    def snapshot(self) -> MetadataSnapshot:
        self.looks += 1
        return self.versions[(self.looks - 1) % 2]

    @snapshot.setter
    def snapshot(self, snapshot: MetadataSnapshot) -> None:
        self.versions = (*self.versions[-1:], snapshot)
        self.looks = 0


def test_each_query_is_answered_from_one_snapshot() -> None:
    cache = ChangingCache(1)
    other = MetadataCache(1)
    update(other, state("orders", 0, replicas=(1,)), brokers=[broker(1, "OLD")])
    before = other.snapshot
    update(other, state("orders", 0, replicas=(2,), leader=2), brokers=[broker(2, "OLD")])
    cache.snapshot, cache.snapshot = before, other.snapshot
    partition = TopicPartition("orders", 0)
    endpoints = [cache.get_partition_replica_endpoints(partition, "OLD") for _ in range(2)]
    assert [list(found) for found in endpoints] == [[1], [2]]


def test_brokers_are_found_by_listener(cache: MetadataCache) -> None:
    update(cache, brokers=[broker(1, "PLAINTEXT", "INTERNAL", rack="r1"), broker(2, "OTHER")])
    assert cache.get_alive_broker_node(1, "INTERNAL") == BrokerNode(1, "internal1", 9001, "r1")
    assert [cache.has_alive_broker(broker_id) for broker_id in (1, 2, 3)] == [True, True, False]
    assert cache.get_alive_broker_node(2, "OTHER") == BrokerNode(2, "other2", 9002, None)
    assert cache.get_alive_broker_node(2, "PLAINTEXT") is None
    assert cache.get_alive_broker_node(3, "PLAINTEXT") is None


def test_alive_brokers_come_by_id(cache: MetadataCache) -> None:
    update(cache, brokers=[broker(3), broker(1), broker(2, "OTHER")])
    assert [node.broker_id for node in cache.get_alive_brokers("PLAINTEXT")] == [1, 3]


def test_differing_listeners_are_logged_as_an_error(
    cache: MetadataCache, caplog: pytest.LogCaptureFixture
) -> None:
    update(cache, brokers=[broker(1), broker(2)])
    assert caplog.records == []
    update(cache, brokers=[broker(1), broker(2, "OTHER")])
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_state_changes_are_logged_with_their_sender(
    cache: MetadataCache, caplog: pytest.LogCaptureFixture
) -> None:
    update(cache, state("orders", 0))
    with caplog.at_level(logging.DEBUG, "odradek.state_change"):
        cache.update_metadata(
            MetadataUpdate(4, 17, BROKERS, [state("orders", 1), leaving("orders", 0)]), 123
        )
    text = [record.getMessage() for record in caplog.records]
    assert len(text) == 3
    assert all("controller 4 of epoch 17" in line and "correlation id 123" in line for line in text)
    assert "1 partitions and removed 1" in text[-1]


def test_a_topics_new_overrides_take_the_place_of_the_old(cache: MetadataCache) -> None:
    update(cache, state("orders", 0, config={"retention.ms": "5"}))
    before = cache.snapshot
    cache.update_topic_config("orders", {"segment.bytes": "7"})
    assert cache.topic_config("orders") == {"segment.bytes": "7"}
    assert before.topic_configs["orders"] == {"retention.ms": "5"}
    cache.update_topic_config("absent", {"segment.bytes": "7"})
    assert cache.topic_config("absent") == {}
