"""`odradek groups`, and `consume --group`, which makes one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaConsumer

from .conftest import Odradek

pytestmark = pytest.mark.clients


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
        deadline = time.monotonic() + 20
        while not consumer.assignment():
            assert time.monotonic() < deadline, "the group gave out no partitions"
            # Long enough to join in: kafka-python 3.0 may lose its assignment otherwise.
            consumer.poll(timeout_ms=2000)
        yield


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
    assert f"{group}: Empty, lag 6" in described


def test_describe_shows_members(on_broker: Odradek, broker: Any, filled: str, group: str) -> None:
    with member(broker, filled, group):
        lines = on_broker("groups", "describe", group, "--json").lines
    rows = [json.loads(line) for line in lines]
    assert [row["partition"] for row in rows] == [0, 1]
    assert {row["state"] for row in rows} == {"Stable"}
    assert all(row["client"] and row["host"] for row in rows)


@pytest.mark.parametrize(
    ("to", "expected"),
    [("earliest", 0), ("latest", 10), ("6", 6), ("99", 10), ("2000-01-01", 0), ("2100-01-01", 10)],
)
def test_reset_moves_a_group(
    on_broker: Odradek, filled: str, group: str, to: str, expected: int
) -> None:
    read_as(on_broker, filled, group, "-n", 3)
    on_broker("groups", "reset-offsets", group, "--topic", filled, "--to", to)
    assert progress(on_broker, group)[0] == (expected, 10, 10 - expected)


def test_a_dry_run_moves_nothing(on_broker: Odradek, filled: str, group: str) -> None:
    read_as(on_broker, filled, group, "-n", 3)
    outcome = on_broker(
        "groups", "reset-offsets", group, "-t", f"{filled}:0", "--to", "latest", "--dry-run"
    )
    assert "would commit" in outcome.out
    assert progress(on_broker, group)[0] == (3, 10, 7)


def test_reset_names_what_it_does_not_find(on_broker: Odradek, filled: str, group: str) -> None:
    def refusal(topic: str, to: str) -> str:
        return on_broker("groups", "reset-offsets", group, "-t", topic, "--to", to, code=1).err

    assert "there is no such topic" in refusal(f"{filled}-not", "earliest")
    assert f"topic {filled} has no partition 9; it has 2, from 0" in refusal(f"{filled}:9", "1")
    assert "write TOPIC:NUMBER" in refusal(f"{filled}:first", "1")
    assert "'soon' is no time" in refusal(filled, "soon")


def test_a_group_with_members_is_neither_moved_nor_deleted(
    on_broker: Odradek, broker: Any, filled: str, group: str
) -> None:
    with member(broker, filled, group):
        reset = on_broker(
            "groups", "reset-offsets", group, "-t", filled, "--to", "earliest", code=1
        )
        deletion = on_broker("groups", "delete", group, code=1)
    assert "stop its consumers" in reset.err
    assert "stop its consumers" in deletion.err


def test_delete_removes_a_group(on_broker: Odradek, filled: str, group: str) -> None:
    read_as(on_broker, filled, group, "-n", 1)
    on_broker("groups", "delete", group)
    assert group not in on_broker("groups", "list").out
    for command in ("delete", "describe"):
        outcome = on_broker("groups", command, group, code=1)
        assert f"group {group}: there is no such group" in outcome.err
