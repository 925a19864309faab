"""Kafka's own consumer in groups of both protocols, and its transactional producer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient
from support.group_churn import GroupChurn, check_static_restarts, instance_of
from support.java_members import JavaMembers
from support.watched_group import WatchedGroup

pytestmark = [pytest.mark.timeout(900)]

PARTITIONS = 24
SECONDS_MAX = 60.0
SHORT, LONG = 20, 200
CLASSIC = {
    "group.protocol": "classic",
    "heartbeat.interval.ms": "100",
    "session.timeout.ms": "30000",
}
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
KINDS = {
    "classic eager": {**CLASSIC, "partition.assignment.strategy": RANGE},
    "classic cooperative": {**CLASSIC, "partition.assignment.strategy": COOPERATIVE},
    "consumer uniform": {"group.protocol": "consumer", "group.remote.assignor": "uniform"},
    "consumer range": {"group.protocol": "consumer", "group.remote.assignor": "range"},
}


@pytest.fixture
def read_topic(broker, topic: str) -> str:
    """A topic of 24 partitions."""
    create(broker.bootstrap, topic)
    return topic


def create(bootstrap: str, topic: str) -> None:
    """Create a topic of 24 partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    made.result(SECONDS_MAX)


@pytest.fixture
def start_members(
    broker, read_topic: str, java_command: list[str], tmp_path: Path
) -> Iterator[Callable[[WatchedGroup, dict[str, str]], JavaMembers]]:
    """Start the Java process of members with these settings."""
    with ExitStack() as stack:

        def start(watch: WatchedGroup, settings: dict[str, str]) -> JavaMembers:
            where = (broker.bootstrap, read_topic, f"group-{read_topic}")
            errors = tmp_path / "java.log"
            return stack.enter_context(JavaMembers(java_command, watch, *where, settings, errors))

        yield start


def churn(broker, topic: str, start_members, settings: dict[str, str], rebalances: int) -> None:
    """Let members come and go; nothing may be wrong, and their last commits are there."""
    watch = WatchedGroup(range(PARTITIONS))
    members = start_members(watch, settings)
    history = GroupChurn(watch, members.join, broker.bootstrap, topic, seed=8)

    history.run(rebalances)

    history.check()
    generations = watch.ownership.generations()
    assert generations[-1] - generations[0] >= rebalances
    assert watch.resumption.resumed > rebalances
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    found = admin.list_group_offsets(f"group-{topic}")[f"group-{topic}"]
    admin.close()
    committed = {each.partition: tuple(at[:2]) for each, at in found.items()}
    assert committed == watch.resumption.acknowledged


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_no_partition_has_two_owners_or_none_as_members_come_and_go(
    broker, read_topic: str, start_members, kind: str
) -> None:
    churn(broker, read_topic, start_members, KINDS[kind], SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_partition_has_two_owners_or_none_in_a_long_life(
    broker, read_topic: str, start_members, kind: str
) -> None:
    churn(broker, read_topic, start_members, KINDS[kind], LONG)


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_static_members_restart_without_a_rebalance(
    broker, read_topic: str, start_members, kind: str
) -> None:
    watch = WatchedGroup(range(PARTITIONS), instance_of)
    members = start_members(watch, KINDS[kind])

    check_static_restarts(watch, members.join, broker.bootstrap, read_topic)


SHORT_SESSIONS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "5000",
}


@pytest.mark.interop
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_members_owned_that_were_killed_is_owned_and_read_by_others(
    start_broker, java_command: list[str], topic: str, tmp_path: Path, protocol: str
) -> None:
    broker = start_broker(settings=SHORT_SESSIONS)
    create(broker.bootstrap, topic)
    settings = {"group.protocol": protocol}
    if protocol == "classic":
        settings |= {"heartbeat.interval.ms": "100", "session.timeout.ms": "5000"}
    watch = WatchedGroup(range(PARTITIONS))
    where = (broker.bootstrap, topic, f"group-{topic}", settings)
    ends = dict.fromkeys(range(PARTITIONS), 0)
    with (
        JavaMembers(java_command, watch, *where, tmp_path / "staying.log") as staying,
        JavaMembers(java_command, watch, *where, tmp_path / "dying.log") as dying,
    ):
        names = [staying.join(f"staying-{n}", None).name for n in range(3)]
        doomed = [dying.join(f"dying-{n}", None).name for n in range(3)]
        watch.wait_until_settled(names + doomed)
        feed(broker.bootstrap, topic, watch, ends)
        watch.wait_until(
            lambda: watch.resumption.acknowledged.keys() == ends.keys(),
            lambda: f"only these are committed: {sorted(watch.resumption.acknowledged)}",
        )
        dying.kill()
        feed(broker.bootstrap, topic, watch, ends)
        watch.wait_until_settled(names)
    assert watch.violations(ends) == []
    assert watch.resumption.resumed


def feed(bootstrap: str, topic: str, watch: WatchedGroup, ends: dict[int, int]) -> None:
    """A record more for each partition; wait until all were read."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2})
    for partition in ends:
        producer.produce(topic, b"%d" % ends[partition], partition=partition)
        ends[partition] += 1
    assert producer.flush(SECONDS_MAX) == 0
    watch.wait_until_read(sum(ends.values()))


@pytest.mark.interop
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_transactions_are_all_or_nothing(java, broker, topic: str, protocol: str) -> None:
    reported = java("odradek.interop.Transactions", broker.bootstrap, topic, protocol)

    assert reported == "read 60 committed of 120\n"
