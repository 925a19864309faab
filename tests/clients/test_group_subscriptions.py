"""What consumer groups read, over TCP: topics that change under them, and regular expressions.

All of it was seen of Apache Kafka 4.3.1 too: point the tests at one with
`ODRADEK_TEST_BOOTSTRAP`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from support.consumer_group_peer import Peer

from odradek.common.errors import ErrorCode as E
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

group_numbers = itertools.count()


class Bench:
    """A peer of a group of its own, and an administrator."""

    def __init__(self, broker: Any) -> None:
        self.bootstrap = broker.bootstrap
        self.admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})
        self.peer = Peer(broker.port, f"reads-{os.getpid()}-{next(group_numbers)}")
        self.peer.find_coordinator()
        self.peer.configure(assignment_interval_ms="0")

    def topic(self, name: str) -> str:
        return f"{name}-{self.peer.group_id}"

    def create(self, name: str, partitions: int) -> bytes:
        topic = self.topic(name)
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
        return self.peer.topic_id(topic)


@pytest.fixture
def bench(broker: Any) -> Iterator[Bench]:
    made = Bench(broker)
    yield made
    made.peer.close()


# -- topics that change ------------------------------------------------------------------------


def test_partitions_that_are_added_are_assigned(bench: Bench) -> None:
    topic_id = bench.create("orders", 2)
    first = bench.peer.join_until("m1", {topic_id: {0, 1}}, bench.topic("orders"))
    topic = bench.topic("orders")
    bench.admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
    reported = bench.peer.settle("m1", {topic_id: {0, 1, 2, 3, 4}}, first.epoch)
    assert reported.epoch == first.epoch + 1


def test_a_topic_that_is_created_later_is_assigned(bench: Bench) -> None:
    first = bench.peer.join_until("m1", {}, bench.topic("later"))
    topic_id = bench.create("later", 3)
    reported = bench.peer.settle("m1", {topic_id: {0, 1, 2}}, first.epoch)
    assert reported.epoch == first.epoch + 1


def test_a_topic_that_is_deleted_is_given_up(bench: Bench) -> None:
    ids = [bench.create(name, 2) for name in ("stays", "goes")]
    first = bench.peer.join_until(
        "m1", {topic_id: {0, 1} for topic_id in ids}, bench.topic("stays"), bench.topic("goes")
    )
    bench.admin.delete_topics([bench.topic("goes")])[bench.topic("goes")].result()
    reported = bench.peer.settle("m1", {ids[0]: {0, 1}}, first.epoch)
    last = bench.peer.beat_until(
        "m1", lambda beat: beat.epoch > first.epoch, reported.epoch, owned={ids[0]: [0, 1]}
    )
    assert last.epoch == first.epoch + 1


def test_a_topic_made_again_is_another_topic(bench: Bench) -> None:
    old_id = bench.create("again", 2)
    topic = bench.topic("again")
    first = bench.peer.join_until("m1", {old_id: {0, 1}}, bench.topic("again"))
    bench.admin.delete_topics([topic])[topic].result()
    wait_until(lambda: topic not in bench.admin.list_topics().topics)
    new_id = bench.create("again", 1)
    assert new_id != old_id
    bench.peer.settle("m1", {new_id: {0}}, first.epoch, owned={})


# -- regular expressions -----------------------------------------------------------------------


def test_an_expression_brings_the_topics_that_it_matches(bench: Bench) -> None:
    ids = [bench.create(name, 2) for name in ("red-1", "red-2", "blue")]
    expression = f"red-.*{bench.peer.group_id}"
    first = bench.peer.join("m1", topics=None, regex=expression)
    assert (first.error, first.assignment) == (E.NONE, {})
    bench.peer.settle("m1", {topic_id: {0, 1} for topic_id in ids[:2]}, first.epoch)
    (member,) = bench.peer.describe().members
    assert member.subscribed_topic_regex == expression
    assert member.subscribed_topic_names == []


def test_a_member_gets_what_another_ones_expression_matches_at_once(bench: Bench) -> None:
    topic_id = bench.create("red", 2)
    reported = {"topics": None, "regex": f"red-{bench.peer.group_id}"}
    first = bench.peer.join("m1", **reported)
    settled = bench.peer.settle("m1", {topic_id: {0, 1}}, first.epoch)
    second = bench.peer.join("m2", **reported)
    assert second.epoch == settled.epoch + 1
    less = bench.peer.heartbeat("m1", settled.epoch)
    assert less.assignment is not None
    assert len(less.assignment[topic_id]) == 1


def test_names_and_an_expression_together(bench: Bench) -> None:
    ids = [bench.create(name, 1) for name in ("red", "blue")]
    first = bench.peer.join("m1", bench.topic("blue"), regex=f"red-{bench.peer.group_id}")
    assert first.assignment == {ids[1]: {0}}
    bench.peer.settle("m1", {topic_id: {0} for topic_id in ids}, first.epoch)


def test_a_member_that_drops_its_expression_gives_its_topics_up(bench: Bench) -> None:
    ids = [bench.create(name, 1) for name in ("red", "blue")]
    first = bench.peer.join("m1", topics=None, regex=f"red-{bench.peer.group_id}")
    settled = bench.peer.settle("m1", {ids[0]: {0}}, first.epoch)
    reported = bench.peer.heartbeat(
        "m1", settled.epoch, regex="", topics=[bench.topic("blue")], owned={ids[0]: [0]}
    )
    assert (reported.error, reported.assignment) == (E.NONE, {})
    bench.peer.settle("m1", {ids[1]: {0}}, reported.epoch, owned={})


@pytest.mark.parametrize("expression", ["(", "[z-a]", "a(?=b)", r"(a)\1", "*", "a{1001}"])
def test_what_is_no_expression_of_re2s_is_refused(bench: Bench, expression: str) -> None:
    refused = bench.peer.join("m1", topics=None, regex=expression)
    assert refused.error is E.INVALID_REGULAR_EXPRESSION
    assert "SubscribedTopicRegex" in (refused.message or "")


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        (r"\w+\.v\d{1,2}", True),
        (r"(?i)SALES\.V1", True),
        (r"sales[[:punct:]]v1", True),
        (r"\x73ales\.\pL1", True),
        (r"(?P<name>sales)\.v1", True),
        ("sales", False),
        (r"sales\.v", False),
        ("", False),
    ],
)
def test_the_syntax_is_re2s_and_whole_names_match(
    bench: Bench, expression: str, matches: bool
) -> None:
    bench.admin.create_topics([NewTopic("sales.v1", 1, 1)])
    bench.peer.topic_id("sales.v1")
    first = bench.peer.join("m1", bench.topic("none"), regex=expression)
    assert first.error is E.NONE
    if not matches:
        other = bench.create("other", 1)
        reported = bench.peer.heartbeat("m1", first.epoch, topics=[bench.topic("other")])
        if not reported.assignment:
            reported = bench.peer.beat_until(
                "m1", lambda beat: bool(beat.assignment), reported.epoch
            )
        assert reported.assignment == {other: {0}}
        return
    reported = bench.peer.beat_until("m1", lambda beat: bool(beat.assignment), first.epoch)
    assert reported.assignment == {bench.peer.topic_id("sales.v1"): {0}}


@pytest.mark.soak
def test_a_consumer_finds_topics_that_come_and_go_by_its_expression(bench: Bench) -> None:
    """It takes a while, as expressions are resolved once in ten seconds at most."""
    bench.create("green-1", 2)
    consumer = Consumer(
        {
            "bootstrap.servers": bench.bootstrap,
            "group.id": bench.peer.group_id,
            "group.protocol": "consumer",
            "log_level": 2,
        }
    )
    consumer.subscribe([f"^green-.*{bench.peer.group_id}"])

    def wait_for(topics: set[str]) -> None:
        def are_assigned() -> bool:
            consumer.poll(0)
            return {bench.topic(t) for t in topics} == {p.topic for p in consumer.assignment()}

        wait_until(are_assigned, otherwise=lambda: str(consumer.assignment()))

    wait_for({"green-1"})
    bench.create("green-2", 2)
    wait_for({"green-1", "green-2"})
    bench.admin.delete_topics([bench.topic("green-1")])[bench.topic("green-1")].result()
    wait_for({"green-2"})
    consumer.close()


# -- settings of a group -------------------------------------------------------------------------


def test_a_groups_own_settings_hold_for_its_members(start_broker: Callable[..., Any]) -> None:
    broker = start_broker(
        settings={
            "group.consumer.min.session.timeout.ms": "500",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "300",
        }
    )
    bench = Bench(broker)
    bench.create("orders", 1)
    first = bench.peer.join("m1", bench.topic("orders"))
    assert first.interval_ms == 300
    bench.peer.configure(heartbeat_interval_ms="150", session_timeout_ms="6000")
    second = bench.peer.join("m2", bench.topic("orders"))
    assert second.interval_ms == 150
    bench.peer.outlive("m1", first.epoch)
    bench.peer.close()
