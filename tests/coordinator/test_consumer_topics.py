"""Topics as consumer groups see them: images, hashes, and word of changes.

That hashes are Kafka's is compared in tests/interop, and with a record of Kafka's in
`test_consumer_records`.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.partition_state import LEADER_DURING_DELETE, PartitionState
from odradek.coordinator.group.consumer.topics import (
    NO_TOPICS_HASH,
    MetadataTopics,
    TopicHashes,
    TopicMetadata,
    topic_hash,
    xxh3,
)
from odradek.metadata.metadata_cache import MetadataCache, MetadataUpdate

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16

JAVA_HASHES = [
    -6266602912829716452,
    5729351036430577319,
    -7070882647087117672,
    7938407634120260973,
    7350251351420641343,
    5588288208404383240,
]
"""What hash4j 0.22.0, with which Kafka 4.3.1 hashes, makes of n bytes (i * 7 + n), n being 3, 7,
13, 100, 200 and 2143."""


class KnownTopics:
    """A metadata cache that a test tells of topics, and what groups hear of it."""

    def __init__(self) -> None:
        self.cache = MetadataCache(1)
        self.now_ms = 1_000
        self.racks: dict[int, str | None] = {1: None, 2: None}
        self.topics = MetadataTopics(self.cache, lambda: self.now_ms)
        self.heard: list[tuple[set[str], bool]] = []
        self.topics.listeners.append(lambda names, new: self.heard.append((set(names), new)))

    def update(
        self, name: str = "orders", topic_id: bytes = ORDERS, partitions: int = 1, leader: int = 1
    ) -> None:
        states = [
            PartitionState(name, topic_id, index, 1, leader, 0, (1, 2), 0, (1, 2))
            for index in range(partitions)
        ]
        self.cache.update_metadata(MetadataUpdate(1, 1, self._brokers(), states))

    def update_brokers(self, *alive: int) -> None:
        brokers = [broker for broker in self._brokers() if broker.broker_id in alive]
        self.cache.update_metadata(MetadataUpdate(1, 1, brokers))

    def _brokers(self) -> list[LiveBroker]:
        return [
            LiveBroker(broker_id, (EndPoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), rack)
            for broker_id, rack in self.racks.items()
        ]

    def racks_of(self, name: str) -> Sequence[set[str]]:
        topic = self.topics.image().find(name)
        assert topic is not None
        return [set(racks) for racks in topic.racks]


def test_an_image_finds_topics_by_name_and_names_by_id() -> None:
    known = KnownTopics()
    known.update(partitions=3)
    image = known.topics.image()
    found = image.find("orders")
    assert found is not None
    assert (found.topic_id, found.partition_count) == (ORDERS, 3)
    assert image.name_of(ORDERS) == "orders"
    assert image.find("none") is None
    assert image.name_of(PAYMENTS) is None
    assert set(image.names()) == {"orders"}


def test_an_image_does_not_change_and_later_ones_have_greater_versions() -> None:
    known = KnownTopics()
    known.update()
    before = known.topics.image()
    known.update("payments", PAYMENTS)
    assert before.find("payments") is None
    assert known.topics.image().version > before.version


def test_versions_are_of_wall_time_so_that_another_broker_can_compare_them() -> None:
    first, second = KnownTopics(), KnownTopics()
    for _ in range(5):
        first.update()
    second.now_ms = 9_000
    second.update()
    assert second.topics.image().version > first.topics.image().version


def test_groups_hear_which_topics_came_changed_and_went() -> None:
    known = KnownTopics()
    known.update()
    known.update(partitions=2)
    known.update("payments", PAYMENTS)
    known.update(partitions=2, leader=LEADER_DURING_DELETE)
    assert known.heard == [
        ({"orders"}, True),
        ({"orders"}, False),
        ({"payments"}, True),
        ({"orders"}, False),
    ]


def test_a_topic_made_again_under_its_name_is_a_new_one() -> None:
    known = KnownTopics()
    known.update()
    known.update(topic_id=PAYMENTS)
    assert known.heard[-1] == ({"orders"}, True)


def test_nothing_is_heard_when_only_brokers_come_and_go() -> None:
    known = KnownTopics()
    known.update()
    known.heard.clear()
    known.update_brokers(1)
    assert known.heard == []


def test_racks_are_those_of_the_replicas_brokers() -> None:
    known = KnownTopics()
    known.racks = {1: "a", 2: "b"}
    known.update(partitions=2)
    assert known.racks_of("orders") == [{"a", "b"}, {"a", "b"}]


def test_racks_of_brokers_that_went_before_anybody_asked_are_known() -> None:
    """A coordinator is made when a broker leads its first group: when another one has gone."""
    known = KnownTopics()
    known.racks = {1: "a", 2: "b"}
    known.update(partitions=1)
    known.update_brokers(1)
    topics = MetadataTopics(known.cache, lambda: 5_000)
    found = topics.image().find("orders")
    assert found is not None
    assert [set(racks) for racks in found.racks] == [{"a", "b"}]


def test_racks_of_brokers_that_are_gone_are_remembered() -> None:
    known = KnownTopics()
    known.racks = {1: "a", 2: "b"}
    known.update()
    before = known.topics.image().find("orders")
    known.update_brokers(1)
    assert known.topics.image().find("orders") == before


# -- hashes ----------------------------------------------------------------------------------


class Image:
    """An image of some topics."""

    version = 1

    def __init__(self, *topics: TopicMetadata) -> None:
        self._topics = {topic.name: topic for topic in topics}
        self.found: list[str] = []

    def names(self) -> list[str]:
        return list(self._topics)

    def find(self, name: str) -> TopicMetadata | None:
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return None


def group_hash_of(*topics: TopicMetadata, reads: Sequence[str] = ("orders", "payments")) -> int:
    return TopicHashes(lambda: Image(*topics)).metadata_hash(reads)


def test_the_hash_tells_every_change_that_needs_another_assignment() -> None:
    orders, payments = (
        TopicMetadata("orders", ORDERS, [(), ()]),
        TopicMetadata("payments", PAYMENTS, [()]),
    )
    variants = [
        (orders, payments),
        (orders,),
        (payments,),
        (orders._replace(racks=[()]), payments),
        (orders._replace(topic_id=PAYMENTS), payments),
        (orders._replace(racks=[("a",), ()]), payments),
        (orders._replace(racks=[(), ("a",)]), payments),
        (orders._replace(racks=[("a", "b"), ()]), payments),
    ]
    hashes = [group_hash_of(*topics) for topics in variants]
    assert len(set(hashes)) == len(variants)
    assert all(-(2**63) <= number < 2**63 for number in hashes)


def test_the_hash_does_not_depend_on_any_order() -> None:
    orders, payments = (
        TopicMetadata("orders", ORDERS, [("b", "a")]),
        TopicMetadata("payments", PAYMENTS, [()]),
    )
    assert group_hash_of(orders, payments) == group_hash_of(
        payments, orders._replace(racks=[("a", "b")]), reads=("payments", "orders")
    )


def test_topics_that_are_not_there_do_not_count() -> None:
    orders = TopicMetadata("orders", ORDERS, [()])
    assert group_hash_of(orders) == group_hash_of(orders, reads=("orders",))
    assert group_hash_of(reads=("orders",)) == NO_TOPICS_HASH
    assert group_hash_of(orders, reads=()) == NO_TOPICS_HASH


def test_a_hash_is_of_the_topic_as_it_is_now() -> None:
    topics = [TopicMetadata("orders", ORDERS, [()])]
    hashes = TopicHashes(lambda: Image(*topics))
    before = hashes.metadata_hash(["orders"])
    topics[0] = topics[0]._replace(racks=[(), ()])
    assert hashes.metadata_hash(["orders"]) != before
    topics.clear()
    assert hashes.metadata_hash(["orders"]) == NO_TOPICS_HASH
    topics.append(TopicMetadata("orders", ORDERS, [()]))
    assert hashes.metadata_hash(["orders"]) == before


def test_xxh3_has_the_published_values() -> None:
    """The hash of nothing stands in xxHash's own tests; the others Kafka's library computed."""
    assert xxh3(b"") == 0x2D06800538D394C2
    data = [bytes((i * 7 + size) & 255 for i in range(size)) for size in (3, 7, 13, 100, 200, 2143)]
    assert [xxh3(each) for each in data] == JAVA_HASHES


def test_a_topics_hash_is_the_one_that_kafka_computed() -> None:
    topic = TopicMetadata("foo", bytes(range(16)), [("a", "b"), ("c",)])
    assert topic_hash(topic) == -7257059602912857437
