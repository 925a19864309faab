"""Share consumers of Kafka, franz-go and librdkafka: alone, together, they and brokers killed."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.broker_cluster import BrokerCluster, ask
from support.share_members import JAVA_CLASS, LibrdkafkaMember, ShareHistory, ShareMembers

from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

TOPIC, GROUP = "work", "workers"
TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
GROUP_RESOURCE = 32
SECONDS_MAX = 60.0
PARTITION_UA = -1
"""The producer chooses the partition."""
SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "10000",
    "group.share.session.timeout.ms": "10000",
    "group.share.min.record.lock.duration.ms": "10000",
    "group.share.record.lock.duration.ms": "10000",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
Start = Callable[[ShareHistory, str], ShareMembers]


@pytest.fixture
def start_java(java_command: list[str], tmp_path: Path) -> Iterator[Start]:
    """Start a process of members that are Kafka's own share consumers."""
    with ExitStack() as stack:
        yield starter(stack, [*java_command, JAVA_CLASS], tmp_path / "java.log")


@pytest.fixture
def start_go(go_program: str, tmp_path: Path) -> Iterator[Start]:
    """Start a process of members that are franz-go's."""
    with ExitStack() as stack:
        yield starter(stack, [go_program, "share"], tmp_path / "go.log")


@pytest.fixture(params=["java", "go"])
def start_members(request: pytest.FixtureRequest) -> Start:
    """Start a process of members, of one client and then of the other."""
    start: Start = request.getfixturevalue(f"start_{request.param}")
    return start


def starter(stack: ExitStack, program: Sequence[str], errors: Path) -> Start:
    """What starts processes that end with a stack."""

    def start(history: ShareHistory, bootstrap: str) -> ShareMembers:
        members = ShareMembers(program, history, bootstrap, TOPIC, GROUP, errors)
        return stack.enter_context(members)

    return start


@pytest.fixture
def share_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of its own, which may be killed."""
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as broker:
        prepare(broker.bootstrap, replicas=1)
        yield broker


def prepare(bootstrap: str, replicas: int) -> None:
    """The topic, of two partitions, and a group that reads it from its beginning."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    (made,) = admin.create_topics([NewTopic(TOPIC, 2, replicas)]).values()
    made.result(SECONDS_MAX)
    request = messages.IncrementalAlterConfigsRequest
    answer = ask(
        int(bootstrap.split(",")[0].rpartition(":")[2]),
        request(
            resources=[
                request.AlterConfigsResource(
                    resource_type=GROUP_RESOURCE,
                    resource_name=GROUP,
                    configs=[
                        request.AlterableConfig(
                            name="share.auto.offset.reset", config_operation=0, value="earliest"
                        )
                    ],
                )
            ]
        ),
        1,
    )
    assert [each.error_code for each in answer.responses] == [0]


def produce(bootstrap: str, *values: str, partition: int = PARTITION_UA) -> None:
    """Send values, and wait until they are acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 2})
    for value in values:
        producer.produce(TOPIC, value, partition=partition)
    assert producer.flush(SECONDS_MAX) == 0


def wait_for_values(history: ShareHistory, count: int) -> None:
    """Wait until so many different values were delivered."""
    history.wait(lambda heard: len(heard.counts()) >= count, "too little came")


def wait_until_done(
    bootstrap: str, produced: Collection[str], history: ShareHistory, java: Callable[..., str]
) -> None:
    """Wait until the group begins behind all that was produced.

    Not every acknowledgement is confirmed: a broker that is killed after it was stored, and before
    it is answered, leaves its member with an error, and nobody gets the record again. So a record
    more is sent to each partition until what is stored begins with it.
    """
    history.wait(lambda heard: heard.counts().keys() >= set(produced), "not all was delivered")
    deadline = time.monotonic() + SECONDS_MAX
    for attempt in itertools.count():
        history.wait(lambda heard: not heard.unanswered, "acknowledgements were not answered")
        markers = [f"marker-{attempt}-{partition}" for partition in (0, 1)]
        for partition, marker in enumerate(markers):
            produce(bootstrap, marker, partition=partition)
        history.wait(
            lambda heard: set(markers) <= heard.counts().keys() and not heard.unanswered,  # noqa: B023  # it is called here only
            "markers did not come",
        )
        ends = [
            next(each.offset for each in history.deliveries if each.value == marker)
            for marker in markers
        ]
        rows = java(TOOL, "--bootstrap-server", bootstrap, "--describe", "--group", GROUP)
        found = sorted(line.split()[2:5] for line in rows.splitlines() if TOPIC in line.split())
        if all(
            int(start) >= end and lag == "0"
            for (_, start, lag), end in zip(found, ends, strict=True)
        ):
            return
        assert time.monotonic() < deadline, (found, ends)


def test_records_are_accepted_released_rejected_and_renewed(
    share_broker: BrokerProcess, start_members: Start
) -> None:
    values = [f"v{number}" for number in range(60)]
    produce(share_broker.bootstrap, *values, "release-1", "reject-1", "renew-1")
    history = ShareHistory()
    members = start_members(history, share_broker.bootstrap)

    members.join("a")
    members.join("b")
    history.wait(
        lambda heard: len(heard.counts()) == 63 and len(heard.counts()["release-1"]) == 5,
        "not all was delivered",
    )
    members.leave("a")
    members.leave("b")

    history.check()
    counts = history.counts()
    assert counts["release-1"] == [1, 2, 3, 4, 5]
    assert all(counts[value] == [1] for value in (*values, "reject-1", "renew-1"))


def test_records_of_a_killed_member_go_to_others(
    share_broker: BrokerProcess, start_members: Start
) -> None:
    produce(share_broker.bootstrap, "hold-1")
    history = ShareHistory()
    killed = start_members(history, share_broker.bootstrap)
    killed.join("killed")
    history.wait(lambda heard: heard.counts() == {"hold-1": [1]}, "the record was not delivered")

    killed.kill()
    others = start_members(history, share_broker.bootstrap)
    others.join("other")

    history.wait(lambda heard: heard.counts() == {"hold-1": [1, 2]}, "it did not come again")
    history.wait(lambda heard: heard.acknowledged.total() == 1, "it was not acknowledged")
    history.check()


def test_a_killed_broker_remembers_what_was_acknowledged(
    share_broker: BrokerProcess, start_members: Start, java: Callable[..., str]
) -> None:
    history = ShareHistory()
    members = start_members(history, share_broker.bootstrap)
    members.join("a")
    members.join("b")
    produced: list[str] = []
    for life in range(3):
        values = [f"v{life}-{number}" for number in range(200)]
        produced += values
        produce(share_broker.bootstrap, *values)
        # It is killed with some of them under way.
        wait_for_values(history, len(produced) - 150)
        share_broker.kill()
        share_broker.start()

    wait_until_done(share_broker.bootstrap, produced, history, java)
    history.check()


def test_members_go_on_when_leaders_and_coordinators_are_killed(
    tmp_path: Path, start_java: Start, start_go: Start, java: Callable[..., str]
) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(BrokerCluster(tmp_path, settings=SETTINGS))
        bootstrap = ",".join(cluster.bootstrap)
        prepare(bootstrap, replicas=3)
        history = ShareHistory()
        members = {"java": start_java(history, bootstrap), "go": start_go(history, bootstrap)}
        for name, process in members.items():
            process.join(name)
        stack.enter_context(LibrdkafkaMember("librdkafka", history, bootstrap, TOPIC, GROUP))
        produced: list[str] = []
        for victim in cluster.running:
            values = [f"v{victim}-{number}" for number in range(100)]
            produced += values
            produce(bootstrap, *values)
            wait_for_values(history, len(produced) - 80)
            cluster.brokers[victim].kill()
            produce(bootstrap, f"alone-{victim}")
            produced.append(f"alone-{victim}")
            cluster.brokers[victim].start()
            cluster.wait_in_sync(TOPIC)

        wait_until_done(bootstrap, produced, history, java)
        # While there is a broker that hears of it.
        for name, process in members.items():
            process.leave(name)
        history.check()


def test_three_clients_share_a_group(
    share_broker: BrokerProcess, start_java: Start, start_go: Start
) -> None:
    history = ShareHistory()
    bootstrap = share_broker.bootstrap
    start_java(history, bootstrap).join("java")
    start_go(history, bootstrap).join("go")
    produced: list[str] = []
    deadline = time.monotonic() + 2 * SECONDS_MAX
    with LibrdkafkaMember("librdkafka", history, bootstrap, TOPIC, GROUP):
        # A little at a time, until each of them has got some.
        while {each.member for each in history.deliveries} != {"java", "go", "librdkafka"}:
            assert time.monotonic() < deadline, Counter(each.member for each in history.deliveries)
            values = [f"v{len(produced) + number}" for number in range(10)]
            produced += values
            produce(bootstrap, *values)
            wait_for_values(history, len(produced))
        history.wait(
            lambda heard: heard.acknowledged.total() == len(produced), "not all was acknowledged"
        )

    history.check()
    assert set(history.acknowledged.values()) == {1}
    assert history.counts() == {value: [1] for value in produced}


def test_the_tool_describes_resets_and_deletes(
    share_broker: BrokerProcess, start_java: Start, java: Callable[..., str]
) -> None:
    produce(share_broker.bootstrap, *(f"v{number}" for number in range(10)))
    history = ShareHistory()
    members = start_java(history, share_broker.bootstrap)
    members.join("a")
    history.wait(lambda heard: len(heard.acknowledged) == 10, "not all was accepted")
    members.leave("a")

    def groups(*arguments: str) -> list[list[str]]:
        to = ("--bootstrap-server", share_broker.bootstrap)
        reported = java(TOOL, *to, *arguments)
        rows = [line.split() for line in reported.splitlines()]
        return sorted(row for row in rows if TOPIC in row)

    at = [sum(partition == number for partition, _ in history.acknowledged) for number in (0, 1)]
    described = groups("--describe", "--group", GROUP)
    # What is done with at the end is counted, though the start moves with the next change.
    assert [row[:3] for row in described] == [[GROUP, TOPIC, "0"], [GROUP, TOPIC, "1"]]
    assert [row[4] for row, count in zip(described, at, strict=True) if count] == ["0"] * sum(
        1 for count in at if count
    )
    groups("--reset-offsets", "--to-earliest", "--topic", TOPIC, "--group", GROUP, "--execute")
    assert [row[3] for row in groups("--describe", "--group", GROUP)] == ["0", "0"]
    groups("--delete-offsets", "--group", GROUP, "--topic", TOPIC)
    assert groups("--describe", "--group", GROUP) == []
    assert GROUP in java(TOOL, "--bootstrap-server", share_broker.bootstrap, "--list")
    groups("--delete", "--group", GROUP)
    assert GROUP not in java(TOOL, "--bootstrap-server", share_broker.bootstrap, "--list")
