"""`odradek groups reset-offsets` comes to the offsets that kafka-consumer-groups comes to."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
HOUR_MS = 3_600_000
LONG_AGO_MS = 1_000_000_000_000
"""2001-09-09T01:46:40Z."""

RULES = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "6"],
    ["--to-offset", "99"],
    ["--shift-by", "-30"],
    ["--to-datetime", "2001-09-09T04:46:40.000"],
    ["--to-datetime", "2030-01-01T00:00:00.000"],
    ["--by-duration", "P20000D"],
    ["--by-duration", "PT1H"],
]


@pytest.fixture
def group(broker, topic: str) -> str:
    """Ten records an hour apart in each of two partitions, of which 4 and 7 are committed."""
    name = f"group-{topic}"
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "-1"})])
        with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(20):
                stamp = LONG_AGO_MS + number // 2 * HOUR_MS
                producer.send(topic, b"x", partition=number % 2, timestamp_ms=stamp)
        admin.alter_group_offsets(
            name,
            {
                TopicPartition(topic, index): OffsetAndMetadata(offset, "", None)
                for index, offset in enumerate((4, 7))
            },
        )
    return name


def odradek(broker, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments, "-b", broker.bootstrap],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def offsets(reported: str) -> list[list[str]]:
    """The lines of CSV, in order; the tool says other things beside them."""
    return sorted(cells for cells in csv.reader(reported.splitlines()) if len(cells) > 2)


def test_every_rule_comes_to_the_same_offsets(java, broker, topic: str, group: str) -> None:
    for rule in RULES:
        scope = ("--topic", topic, *rule)
        theirs = java(
            TOOL,
            *("--bootstrap-server", broker.bootstrap, "--group", group),
            *("--reset-offsets", *scope, "--dry-run", "--export"),
        )
        ours = odradek(broker, "groups", "reset-offsets", group, *scope, "--export")
        assert offsets(ours) == offsets(theirs), rule
        assert len(offsets(ours)) == 2


def test_each_takes_the_others_file(java, broker, topic: str, group: str, tmp_path: Path) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap, "--group", group, "--reset-offsets")
    path = tmp_path / "offsets.csv"
    path.write_text(java(TOOL, *bootstrap, "--all-topics", "--to-current", "--export", "--dry-run"))
    taken = odradek(
        broker, "groups", "reset-offsets", group, "--from-file", str(path), "--execute", "--export"
    )
    assert offsets(taken) == [[topic, "0", "4"], [topic, "1", "7"]]
    path.write_text(
        odradek(broker, "groups", "reset-offsets", group, "-t", topic, "--to-latest", "--export")
    )
    java(TOOL, *bootstrap, "--from-file", str(path), "--execute")
    described = java(TOOL, "--bootstrap-server", broker.bootstrap, "--group", group, "--describe")
    rows = [line.split() for line in described.splitlines() if topic in line]
    assert {tuple(row[1:6]) for row in rows} == {
        (topic, "0", "10", "10", "0"),
        (topic, "1", "10", "10", "0"),
    }
