"""`odradek groups`, and `consume --group`, which makes one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from .conftest import Odradek

pytestmark = pytest.mark.clients

SECONDS_MAX = 90.0
"""So soon a group of one member has given out its partitions."""


@pytest.fixture
def filled(on_broker: Odradek, topic: str) -> str:
    """A topic with the values 0 to 9 in partition 0, and an empty partition 1."""
    on_broker("topics", "create", topic, "-p", 2)
    on_broker("produce", topic, "-p", 0, stdin=b"".join(b"%d\n" % n for n in range(10)))
    return topic


@pytest.fixture
def group(topic: str) -> str:
    return f"group-of-{topic}"


def progress(on_broker: Odradek, group: str) -> dict[int, tuple[int | None, int, int | None]]:
    """Committed offset, end and lag of each partition, as `describe` tells them."""
    rows = [json.loads(line) for line in on_broker("groups", "describe", group, "--json").lines]
    return {row["partition"]: (row["committed"], row["end"], row["lag"]) for row in rows}


def read_as(on_broker: Odradek, topic: str, group: str, *options: object) -> list[str]:
    arguments = ("consume", topic, "--group", group, "--from-beginning", *options)
    return on_broker(*arguments).lines


@contextmanager
def member(broker: Any, topic: str, group: str) -> Iterator[None]:
    """A consumer that is in the group while the block runs."""
    with KafkaConsumer(topic, group_id=group, bootstrap_servers=broker.bootstrap) as consumer:
        deadline = time.monotonic() + SECONDS_MAX
        while not consumer.assignment():
            assert time.monotonic() < deadline, "the group gave out no partitions"
            # Long enough to join in: kafka-python 3.0 may lose its assignment otherwise.
            consumer.poll(timeout_ms=2000)
        yield


@contextmanager
def confluent_member(
    broker: Any, topic: str, group: str, protocol: str, instance_id: str | None = None
) -> Iterator[confluent_kafka.Consumer]:
    """A member of either protocol that has its partitions while the block runs."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "client.id": "a-client",
    }
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS_MAX
    while len(consumer.assignment()) < 2:
        assert time.monotonic() < deadline, "the group gave out no partitions"
        consumer.poll(0.1)
    # The coordinator learns with the next heartbeat that the member has taken them over.
    while protocol == "consumer" and not _is_stable(broker, group):
        assert time.monotonic() < deadline, "the group does not become stable"
        consumer.poll(0.1)
    yield consumer
    consumer.close()


def _is_stable(broker: Any, group: str) -> bool:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_consumer_groups([group])[group].result()
    return bool(described.state is confluent_kafka.ConsumerGroupState.STABLE)


def test_a_group_goes_on_after_what_was_shown(on_broker: Odradek, filled: str, group: str) -> None:
    assert read_as(on_broker, filled, group, "-n", 3) == ["0", "1", "2"]
    assert progress(on_broker, group)[0] == (3, 10, 7)
    assert read_as(on_broker, filled, group, "-e") == [str(n) for n in range(3, 10)]
    assert progress(on_broker, group)[0] == (10, 10, 0)


def test_list_and_describe_show_a_group(on_broker: Odradek, filled: str, group: str) -> None:
    read_as(on_broker, filled, group, "-n", 4)
    rows = [json.loads(line) for line in on_broker("groups", "list", "--json").lines]
    (row,) = [row for row in rows if row["group"] == group]
    assert row["state"] == "Empty"
    assert group in on_broker("groups", "list").out
    described = on_broker("groups", "describe", group).out
    assert f"{group}: Empty, no members, lag 6" in described


def test_names_steer_no_terminal(on_broker: Odradek, broker: Any, filled: str, group: str) -> None:
    """A group's id may hold any characters, and everybody may make one."""
    hostile = f"{group}\x1b[2J\u202e\nforged"
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": hostile}
    )
    consumer.commit(offsets=[confluent_kafka.TopicPartition(filled, 0, 3)], asynchronous=False)
    consumer.close()
    shown = [
        on_broker("groups", "list"),
        on_broker("groups", "describe", hostile),
        on_broker("groups", "delete", f"{hostile}-absent", code=1),
        on_broker("groups", "list", "--json"),
    ]
    for outcome in shown:
        assert all(line.isprintable() for line in (outcome.out + outcome.err).split("\n"))
        assert "forged" in outcome.out + outcome.err
    assert f"{group}\\x1b[2J\\u202e\\nforged" in shown[0].out
    rows = [json.loads(line) for line in shown[-1].lines]
    assert hostile in {row["group"] for row in rows}


def test_list_shows_only_what_is_requested(on_broker: Odradek, filled: str, group: str) -> None:
    read_as(on_broker, filled, group, "-n", 1)

    def listed(*options: str) -> set[str]:
        lines = on_broker("groups", "list", "--json", *options).lines
        return {json.loads(line)["group"] for line in lines}

    assert group in listed("--state", "stable,EMPTY")
    assert group not in listed("--state", "stable")
    assert group in listed("--type", "classic")
    assert group not in listed("--type", "consumer")


def test_describe_shows_members(on_broker: Odradek, broker: Any, filled: str, group: str) -> None:
    with member(broker, filled, group):
        lines = on_broker("groups", "describe", group, "--json").lines
    rows = [json.loads(line) for line in lines]
    assert [row["partition"] for row in rows] == [0, 1]
    assert {row["state"] for row in rows} == {"Stable"}
    assert all(row["client"] and row["host"] for row in rows)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_shown_with_what_they_read(
    on_broker: Odradek, broker: Any, filled: str, group: str, protocol: str
) -> None:
    with confluent_member(broker, filled, group, protocol, "instance-1"):
        (line,) = on_broker("groups", "describe", group, "--members", "--json").lines
        (state_line,) = on_broker("groups", "describe", group, "--state", "--json").lines
        shown = on_broker("groups", "describe", group).out
    told = json.loads(line)
    assert told["assignment"] == told["target"] == [f"{filled}:0", f"{filled}:1"]
    assert told["topics"] == [filled]
    assert (told["instance"], told["client"]) == ("instance-1", "a-client")
    assert told["type"] == protocol
    state = json.loads(state_line)
    assert (state["state"], state["type"], state["members"]) == ("Stable", protocol, 1)
    if protocol == "consumer":
        assert state["group_epoch"] == state["assignment_epoch"] == told["epoch"]
        assert state["assignor"] == "uniform"
    else:
        assert (state["group_epoch"], told["epoch"]) == (None, None)
    assert f"{group}: Stable, 1 member" in shown
    assert f"{filled}:0,1" in shown
    assert "every member reads what it was given" in shown


def test_a_group_with_members_is_neither_moved_nor_deleted(
    on_broker: Odradek, broker: Any, filled: str, group: str
) -> None:
    with member(broker, filled, group):
        reset = on_broker("groups", "reset-offsets", group, "-t", filled, "--to-earliest", code=1)
        deletion = on_broker("groups", "delete", group, code=1)
        forgotten = on_broker("groups", "delete-offsets", group, "-t", filled, code=1)
    assert "stop its consumers" in reset.err
    assert "stop its consumers" in deletion.err
    assert f"{filled}:0: the group reads this topic" in forgotten.err


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_whose_members_left_is_moved_and_deleted(
    on_broker: Odradek, broker: Any, filled: str, group: str, protocol: str
) -> None:
    with confluent_member(broker, filled, group, protocol) as consumer:
        position = confluent_kafka.TopicPartition(filled, 0, 5)
        consumer.commit(offsets=[position], asynchronous=False)
    (line,) = on_broker("groups", "describe", group, "--state", "--json").lines
    state = json.loads(line)
    assert (state["state"], state["type"], state["lag"]) == ("Empty", protocol, 5)
    on_broker("groups", "reset-offsets", group, "--all-topics", "--shift-by", -2, "--execute")
    assert progress(on_broker, group) == {0: (3, 10, 7)}
    on_broker("groups", "delete-offsets", group, "-t", f"{filled}:0")
    assert progress(on_broker, group) == {}
    on_broker("groups", "delete", group)
    assert "there is no such group" in on_broker("groups", "describe", group, code=1).err


def test_delete_offsets_forgets_the_partitions_that_are_named(
    on_broker: Odradek, filled: str, group: str
) -> None:
    for index in (0, 1):
        to = ("--to-offset", 0, "--execute")
        on_broker("groups", "reset-offsets", group, "-t", f"{filled}:{index}", *to)
    on_broker("groups", "delete-offsets", group, "-t", f"{filled}:1")
    assert list(progress(on_broker, group)) == [0]
    missing = on_broker("groups", "delete-offsets", f"{group}-not", "-t", filled, code=1)
    assert "there is no such group" in missing.err


def test_delete_removes_a_group(on_broker: Odradek, filled: str, group: str) -> None:
    read_as(on_broker, filled, group, "-n", 1)
    on_broker("groups", "delete", group)
    assert group not in on_broker("groups", "list").out
    for command in ("delete", "describe"):
        outcome = on_broker("groups", command, group, code=1)
        assert f"group {group}: there is no such group" in outcome.err
