"""`odradek groups reset-offsets`: the rules of kafka-consumer-groups, shown first."""

from __future__ import annotations

import csv
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from .conftest import Odradek

pytestmark = pytest.mark.clients

HOUR_MS = 3_600_000
LONG_AGO_MS = 1_000_000_000_000
"""2001-09-09T01:46:40Z; record N is N hours later."""


@pytest.fixture
def filled(on_broker: Odradek, topic: str) -> str:
    """Ten records an hour apart in partition 0, and an empty partition 1."""
    on_broker("topics", "create", topic, "-p", 2, "-c", "retention.ms=-1")
    lines = [
        json.dumps({"value": str(n), "partition": 0, "timestamp": LONG_AGO_MS + n * HOUR_MS})
        for n in range(10)
    ]
    on_broker("produce", topic, "--format", "json", stdin="\n".join(lines).encode())
    return topic


@pytest.fixture(scope="module")
def standing(broker: Any) -> tuple[str, str]:
    """A topic and a group as `filled` and `group` make them, which stay as they are."""
    topic, group = f"standing-{os.getpid()}", f"group-standing-{os.getpid()}"
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "-1"})])
        with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for n in range(10):
                stamp = LONG_AGO_MS + n * HOUR_MS
                producer.send(topic, b"%d" % n, partition=0, timestamp_ms=stamp)
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(4, "", None)})
    return topic, group


@pytest.fixture
def group(on_broker: Odradek, filled: str) -> str:
    """A group that has committed 4 in partition 0, and nothing in partition 1."""
    name = f"group-of-{filled}"
    to = ("--to-offset", 4, "--execute")
    on_broker("groups", "reset-offsets", name, "-t", f"{filled}:0", *to)
    return name


@pytest.fixture
def reset(on_broker: Odradek, group: str) -> Odradek:
    """Run `groups reset-offsets` of the group with the options given."""
    return lambda *options, **how: on_broker("groups", "reset-offsets", group, *options, **how)


def committed(on_broker: Odradek, group: str) -> dict[int, int]:
    lines = on_broker("groups", "describe", group, "--json").lines
    return {row["partition"]: row["committed"] for row in map(json.loads, lines)}


def planned(reset: Odradek, *options: object) -> dict[int, int]:
    rows = [json.loads(line) for line in reset(*options, "--json").lines]
    assert not any(row["executed"] for row in rows)
    return {row["partition"]: row["new"] for row in rows}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-current"], 4),
        (["--to-offset", "6"], 6),
        (["--to-offset", "99"], 10),
        (["--shift-by", "3"], 7),
        (["--shift-by", "-3"], 1),
        (["--shift-by", "-30"], 0),
        (["--shift-by", "30"], 10),
        (["--to-datetime", "2001-09-09T04:46:40Z"], 3),
        (["--to-datetime", "2001-09-09T04:46:40.001"], 4),
        (["--to-datetime", "2000-01-01"], 0),
        (["--to-datetime", "2100-01-01"], 10),
        (["--by-duration", "PT1H"], 10),
        (["--by-duration", "P36500D"], 0),
    ],
)
def test_offsets_go_where_the_rule_says(
    on_broker: Odradek, standing: tuple[str, str], options: list[str], expected: int
) -> None:
    topic, group = standing
    where = ("groups", "reset-offsets", group, "-t", f"{topic}:0", "--json")
    (line,) = on_broker(*where, *options).lines
    told = json.loads(line)
    assert (told["committed"], told["new"], told["executed"]) == (4, expected, False)


@pytest.mark.parametrize(("options", "expected"), [(["--to-earliest"], 0), (["--shift-by", 3], 7)])
def test_only_execute_moves_a_group(
    on_broker: Odradek,
    reset: Odradek,
    filled: str,
    group: str,
    options: list[object],
    expected: int,
) -> None:
    where = ("-t", f"{filled}:0", *options)
    assert planned(reset, *where) == planned(reset, *where, "--dry-run") == {0: expected}
    assert committed(on_broker, group) == {0: 4}
    reset(*where, "--execute")
    assert committed(on_broker, group) == {0: expected}


def test_the_first_look_says_that_nothing_was_changed(reset: Odradek, filled: str) -> None:
    shown = reset("-t", f"{filled}:0", "--to-earliest")
    assert "4 read again" in shown.out
    assert "would be" in shown.out
    assert "nothing was changed; add --execute" in shown.err
    done = reset("-t", f"{filled}:0", "--to-latest", "--execute")
    assert "6 skipped" in done.out
    assert "is now" in done.out
    assert done.err == ""


def test_an_offset_past_the_end_is_reported(reset: Odradek, filled: str) -> None:
    shown = reset("-t", f"{filled}:0", "--to-offset", 99)
    assert f"{filled}:0 has no offset 99; its nearest is 10" in shown.err


def test_a_topic_means_all_its_partitions_and_all_topics_what_is_committed(
    on_broker: Odradek, reset: Odradek, filled: str
) -> None:
    assert planned(reset, "-t", filled, "--to-latest") == {0: 10, 1: 0}
    assert planned(reset, "-t", f"{filled}:0,1", "--to-current") == {0: 4, 1: 0}
    assert planned(reset, "--all-topics", "--to-latest") == {0: 10}


def test_what_is_not_committed_cannot_be_shifted(reset: Odradek, filled: str) -> None:
    refusal = reset("-t", filled, "--shift-by", 1, code=1).err
    assert f"{filled}:1 has no committed offset to shift" in refusal


def test_what_was_exported_is_taken_back(
    on_broker: Odradek, reset: Odradek, filled: str, group: str, tmp_path: Path
) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(reset("--all-topics", "--to-current", "--export").out)
    assert list(csv.reader(path.open())) == [[filled, "0", "4"]]
    reset("--all-topics", "--to-earliest", "--execute")
    reset("--from-file", path, "--execute")
    assert committed(on_broker, group) == {0: 4}


def test_several_groups_stand_in_one_file(
    on_broker: Odradek, filled: str, group: str, tmp_path: Path
) -> None:
    other = f"{group}-other"
    both = ("groups", "reset-offsets", group, other)
    path = tmp_path / "offsets.csv"
    path.write_text(on_broker(*both, "-t", f"{filled}:0", "--to-latest", "--export").out)
    assert sorted(csv.reader(path.open())) == [
        [group, filled, "0", "10"],
        [other, filled, "0", "10"],
    ]
    on_broker(*both, "--from-file", path, "--execute")
    assert committed(on_broker, group) == committed(on_broker, other) == {0: 10}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no offsets in it"),
        ("{topic},0\n", "line 1: write TOPIC,PARTITION,OFFSET"),
        ("{topic},0,1\n{topic},x,1\n", "line 2: write TOPIC,PARTITION,OFFSET"),
        ("{topic},0,-1\n", "line 1: write TOPIC,PARTITION,OFFSET"),
        ("{topic},9,1\n", "has no partition 9; it has 2, from 0"),
        ("no-{topic},0,1\n", "there is no such topic"),
        ("{group}-not,{topic},0,1\n", "has no offsets for group"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_with_its_line(
    reset: Odradek, filled: str, group: str, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text.format(topic=filled, group=group))
    assert sentence in reset("--from-file", path, code=1).err


def test_what_does_not_go_together_is_reported(
    on_broker: Odradek, reset: Odradek, filled: str
) -> None:
    def refusal(*options: object) -> str:
        return reset(*options, code=1).err

    assert "say where to, once" in refusal("-t", filled)
    assert "say where to, once" in refusal("-t", filled, "--to-earliest", "--to-latest")
    assert "say which topics" in refusal("--to-earliest")
    assert "say which topics" in refusal("-t", filled, "--all-topics", "--to-earliest")
    assert "not both" in refusal("-t", filled, "--to-earliest", "--execute", "--dry-run")
    assert "'soon' is no time" in refusal("-t", filled, "--to-datetime", "soon")
    assert "'soon' is no duration" in refusal("-t", filled, "--by-duration", "soon")
    assert (
        "or give --all-groups"
        in on_broker("groups", "reset-offsets", "-t", filled, "--to-latest", code=1).err
    )


def test_reset_names_what_it_does_not_find(reset: Odradek, filled: str) -> None:
    def refusal(topic: str) -> str:
        return reset("-t", topic, "--to-earliest", code=1).err

    assert "there is no such topic" in refusal(f"{filled}-not")
    assert f"topic {filled} has no partition 9; it has 2, from 0" in refusal(f"{filled}:9")
    assert "write TOPIC:NUMBER" in refusal(f"{filled}:first")


def test_of_all_groups_those_with_members_are_left(
    on_broker: Odradek, broker: Any, filled: str, group: str
) -> None:
    with KafkaConsumer(
        filled, group_id=f"{group}-busy", bootstrap_servers=broker.bootstrap
    ) as consumer:
        deadline = time.monotonic() + 90
        while not consumer.assignment():
            assert time.monotonic() < deadline, "the group gave out no partitions"
            consumer.poll(timeout_ms=500)
        all_groups = ("groups", "reset-offsets", "--all-groups", "-t", f"{filled}:0")
        outcome = on_broker(*all_groups, "--to-latest", "--json", code=1)
    rows = {row["group"]: row for row in map(json.loads, outcome.lines)}
    assert rows[group]["new"] == 10
    assert f"{group}-busy" not in rows
    assert f"{group}-busy" in outcome.err
