"""Kafka's own `kafka-streams-groups.sh`, and `odradek groups`, side by side with Apache Kafka.

Each command goes to both brokers, and says the same of both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from support.broker_cluster import ask
from support.java_tools import JavaTools
from support.side_by_side import Both

from odradek.cli.main import main
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.internal.versioned import CONSUMER_OFFSETS, CoordinatorRecord, decode_record
from odradek.testing.waiting import wait_until
from odradek.tools.conformance.brokers import start_kafka, start_odradek
from odradek.tools.conformance.scenarios.streams_groups import FIRST, LEAVE, beat, reading, topology

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
TOPIC, GROUP = "words", "word-count"
WATCHER = "watcher"
"""A group that tells when the coordinator knows the topic."""
SECONDS_MAX = 60.0
COMMIT_VERSION, COORDINATOR_VERSION = 9, 4
Groups = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def both(
    kafka_libs: Path, tools: JavaTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("streams")
    with (
        start_kafka(folder / "kafka", kafka_libs) as kafka,
        start_odradek(folder / "odradek") as odradek,
    ):
        addresses = (kafka.bootstrap, odradek.bootstrap)
        for address in addresses:
            admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
            (made,) = admin.create_topics([NewTopic(TOPIC, 2, 1)]).values()
            made.result(SECONDS_MAX)
            producer = Producer({"bootstrap.servers": address, "log_level": 2})
            for number in range(10):
                producer.produce(TOPIC, f"word {number}", partition=number % 2)
            assert producer.flush(SECONDS_MAX) == 0
        yield Both(tools, addresses, (TOOL,), ((r"127\.0\.0\.1:\d+ +", "BROKER "),))


@pytest.fixture
def groups(both: Both, capsys: pytest.CaptureFixture[str]) -> Groups:
    """Run `odradek groups ...`, which says the same of both; with --json, returns its objects."""

    def run(*arguments: str) -> list[dict[str, Any]]:
        said = []
        for address in both.addresses:
            capsys.readouterr()
            code = main(["groups", *arguments, "--bootstrap-server", address])
            out, err = capsys.readouterr()
            assert code == 0, err
            said.append((out, err))
        assert said[0] == said[1]
        return (
            [json.loads(line) for line in said[0][0].splitlines()] if "--json" in arguments else []
        )

    return run


def join(address: str) -> None:
    """Have a member join that gets both tasks, and commits what it has read of the first."""
    port = int(address.rpartition(":")[2])
    reported = topology(reading(TOPIC, name="count"))

    def is_known() -> bool:
        # Kafka makes the topic of groups when somebody looks for a coordinator.
        ask(port, messages.FindCoordinatorRequest(coordinator_keys=[GROUP]), COORDINATOR_VERSION)
        answer = ask(port, beat(WATCHER, topology=reported), 0)
        ask(port, beat(WATCHER, epoch=LEAVE), 0)
        return bool(answer.active_tasks)

    wait_until(is_known, SECONDS_MAX)
    ask(port, messages.DeleteGroupsRequest(groups_names=[WATCHER]), 2)
    answer = ask(port, beat(GROUP, topology=reported), 0)
    assert answer.active_tasks, answer
    make = messages.OffsetCommitRequest
    partition = make.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    commit = make(
        group_id=GROUP,
        generation_id_or_member_epoch=answer.member_epoch,
        member_id=FIRST,
        topics=[make.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    committed = ask(port, commit, COMMIT_VERSION)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE


def streams_records(address: str) -> list[CoordinatorRecord]:
    """What the broker has stored of the group so far, but for what each broker makes up."""
    settings = {"bootstrap.servers": address, "group.id": "none", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("__consumer_offsets", 0, 0)])
    found = []
    while (record := consumer.poll(SECONDS_MAX)) is not None and record.error() is None:
        decoded = decode_record(CONSUMER_OFFSETS, record.key(), record.value())
        if decoded.kind.startswith("StreamsGroup") and decoded.key.group_id == GROUP:
            for made_up in ("metadata_hash", "assignment_timestamp"):
                if hasattr(decoded.value, made_up):
                    setattr(decoded.value, made_up, 0)
            found.append(decoded)
    consumer.close()
    return found


def leave(address: str) -> None:
    answer = ask(int(address.rpartition(":")[2]), beat(GROUP, epoch=LEAVE), 0)
    assert answer.error_code == ErrorCode.NONE


def test_they_list_describe_reset_and_delete(both: Both, groups: Groups) -> None:
    for address in both.addresses:
        join(address)
    of_group = ("--group", GROUP)
    assert both.same("--list")[1].split() == [GROUP]
    both.same("--list", "--state")
    both.same("--describe", *of_group)
    both.same("--describe", *of_group, "--verbose")
    both.same("--describe", *of_group, "--offsets")
    both.same("--describe", *of_group, "--state", "--verbose")
    assert "ACTIVE: count:[0,1]" in both.same("--describe", *of_group, "--members", "--verbose")[1]
    in_use = both.run("--delete", *of_group)
    assert both.masked(in_use[1]) == both.masked(in_use[0])

    (listed,) = groups("list", "--type", "streams", "--json")
    assert (listed["group"], listed["type"], listed["state"]) == (GROUP, "streams", "Stable")
    (member,) = groups("describe", GROUP, "--members", "--json")
    assert (member["member"], member["type"]) == (FIRST, "streams")
    assert member["assignment"] == member["target"] == [f"{TOPIC}:0", f"{TOPIC}:1"]
    rows = groups("describe", GROUP, "--json")
    assert [(row["committed"], row["end"], row["lag"]) for row in rows] == [
        (3, 5, 2),
        (None, 5, None),
    ]
    groups("describe", GROUP, "--state", "--json")

    for address in both.addresses:
        leave(address)
    both.same("--describe", *of_group, "--state")
    for topics in (("--all-input-topics",), ("--input-topic", TOPIC)):
        for how in ("--dry-run", "--execute"):
            both.same("--reset-offsets", *of_group, *topics, "--to-latest", how)
    groups("reset-offsets", GROUP, "--topic", TOPIC, "--to-latest", "--execute")
    assert [row["lag"] for row in groups("describe", GROUP, "--json")] == [0, 0]
    groups("reset-offsets", GROUP, "--topic", TOPIC, "--to-earliest", "--execute")
    assert [row["lag"] for row in groups("describe", GROUP, "--json")] == [5, 5]
    groups("delete-offsets", GROUP, "--topic", f"{TOPIC}:0")
    assert [row["partition"] for row in groups("describe", GROUP, "--json")] == [1]
    both.same("--delete-offsets", *of_group, "--all-input-topics")
    assert groups("describe", GROUP, "--json") == []
    groups("delete", GROUP)
    of_kafka, of_odradek = (list(map(str, streams_records(each))) for each in both.addresses)
    assert of_odradek == of_kafka
    assert len(of_kafka) > len(("metadata", "topology", "targets", "current", "and their ends"))
    assert both.same("--list")[1].split() == []
    both.refused("--describe", *of_group)
