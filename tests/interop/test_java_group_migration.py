"""Java's consumers rolled from one group protocol to the other, in one group, while they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.java_members import JavaMembers
from support.watched_group import Member, WatchedGroup

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PARTITIONS = 12
SECONDS_MAX = 60.0
SETTINGS = {
    "consumer": {"group.protocol": "consumer"},
    "cooperative": {
        "group.protocol": "classic",
        "heartbeat.interval.ms": "100",
        "session.timeout.ms": "30000",
        "partition.assignment.strategy": (
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
        ),
    },
    "eager": {
        "group.protocol": "classic",
        "heartbeat.interval.ms": "100",
        "session.timeout.ms": "30000",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
    },
}

Join = Callable[[str, str], Member]


@pytest.fixture
def watch() -> WatchedGroup:
    return WatchedGroup(range(PARTITIONS))


@pytest.fixture
def read_topic(broker, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})
    (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    made.result(SECONDS_MAX)
    return topic


@pytest.fixture
def join(
    broker, watch: WatchedGroup, read_topic: str, java_command: list[str], tmp_path: Path
) -> Iterator[Join]:
    """Start a member of a kind; members of one kind share a Java process."""
    processes: dict[str, JavaMembers] = {}
    with ExitStack() as stack:

        def start(kind: str, name: str) -> Member:
            if kind not in processes:
                where = (broker.bootstrap, read_topic, f"group-{read_topic}")
                errors = tmp_path / f"{kind}.log"
                processes[kind] = stack.enter_context(
                    JavaMembers(java_command, watch, *where, SETTINGS[kind], errors)
                )
            return processes[kind].join(name, None)

        yield start


@pytest.mark.parametrize("classic", ["eager", "cooperative"])
def test_members_are_rolled_to_the_new_protocol_and_back_while_they_read(
    broker, watch: WatchedGroup, join: Join, read_topic: str, classic: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2})
    sent = 0

    def send_and_read() -> None:
        nonlocal sent
        for number in range(PARTITIONS * 5):
            producer.produce(read_topic, str(number), partition=number % PARTITIONS)
        assert producer.flush(SECONDS_MAX) == 0
        sent += PARTITIONS * 5
        watch.wait_until_read(sent)

    members = {f"{classic}-{number}": join(classic, f"{classic}-{number}") for number in range(3)}
    watch.wait_until_settled(members.keys())
    send_and_read()
    for turn, kind in enumerate(("consumer", classic)):
        for number, old in enumerate(list(members)):
            name = f"{kind}-{turn}-{number}"
            members[name] = join(kind, name)
            watch.wait_until_settled(members.keys())
            send_and_read()
            leaving = members.pop(old)
            leaving.leave()
            leaving.wait_until_closed()
            watch.wait_until_settled(members.keys())
            send_and_read()
    for member in members.values():
        member.leave()
        member.wait_until_closed()
    assert watch.violations(dict.fromkeys(range(PARTITIONS), sent // PARTITIONS)) == []
