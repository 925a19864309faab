"""Kafka's own Java client and command-line tools against the broker."""

from __future__ import annotations

import json

import pytest
from kafka import KafkaConsumer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOLS = "org.apache.kafka.tools"
PATIENTLY = ("--request-timeout-ms", "60000")
"""The console producer gives up a record after four requests of a second and a half each."""


def test_java_client_produces_consumes_and_administers(java, broker, topic: str) -> None:
    reported = java("odradek.interop.RoundTrip", broker.bootstrap, topic)

    assert reported == "produced and consumed 5000 records\n"
    assert sum(end_offsets(broker, topic, 4).values()) == 5000


def test_topics_tool_creates_describes_alters_and_deletes(java, broker, topic: str) -> None:
    def topics(*arguments: str) -> str:
        bootstrap = ("--bootstrap-server", broker.bootstrap)
        return java(f"{TOOLS}.TopicCommand", *bootstrap, *arguments)

    topics("--create", "--topic", topic, "--partitions", "2", "--config", "segment.bytes=1048576")
    assert topic in topics("--list").split()
    described = topics("--describe", "--topic", topic)
    assert "PartitionCount: 2" in described
    assert "segment.bytes=1048576" in described
    topics("--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in topics("--describe", "--topic", topic)
    topics("--delete", "--topic", topic)
    assert topic not in topics("--list").split()


def test_console_tools_and_group_tool_share_a_group(java, broker, topic: str) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    lines = "".join(f"line {number}\n" for number in range(100))

    java(f"{TOOLS}.ConsoleProducer", *bootstrap, *PATIENTLY, "--topic", topic, input=lines)
    consumed = java(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *bootstrap,
        *("--topic", topic, "--from-beginning", "--max-messages", "100"),
        *("--group", f"group-{topic}"),
    )
    assert consumed == lines

    def groups(*arguments: str) -> str:
        tool = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
        return java(tool, *bootstrap, "--group", f"group-{topic}", *arguments)

    row = groups("--describe").split("CONSUMER-ID", 1)[1].split("\n", 1)[1].split()
    assert row[1:6] == [topic, "0", "100", "100", "0"]
    groups("--reset-offsets", "--to-offset", "40", "--topic", topic, "--execute")
    row = groups("--describe").split("CONSUMER-ID", 1)[1].split("\n", 1)[1].split()
    assert row[1:6] == [topic, "0", "40", "100", "60"]
    groups("--delete")


def test_offsets_tool_tells_start_and_end(java, broker, topic: str) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    to_topic = (*bootstrap, *PATIENTLY, "--topic", topic)
    java(f"{TOOLS}.ConsoleProducer", *to_topic, input="a\nb\nc\n")

    def offsets(time: str) -> str:
        return java(f"{TOOLS}.GetOffsetShell", *bootstrap, "--topic", topic, "--time", time)

    assert offsets("earliest") == f"{topic}:0:0\n"
    assert offsets("latest") == f"{topic}:0:3\n"


def test_performance_tool_sends_all_its_records(java, broker, topic: str) -> None:
    reported = java(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", "50000", "--record-size", "100"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.bootstrap}"),
    )

    assert "50000 records sent" in reported
    assert end_offsets(broker, topic, 1) == {0: 50000}


def test_verifiable_producer_and_consumer_agree(java, broker, topic: str) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    common = (*bootstrap, "--topic", topic, "--max-messages", "1000")

    produced = java(f"{TOOLS}.VerifiableProducer", *common, "--acks", "-1")
    consumed = java(
        f"{TOOLS}.VerifiableConsumer", *common, "--group-id", f"group-{topic}", "--verbose"
    )

    sent = [event for event in events(produced) if event["name"] == "producer_send_success"]
    read = [event for event in events(consumed) if event["name"] == "record_data"]
    commits = [event for event in events(consumed) if event["name"] == "offsets_committed"]
    assert [event["offset"] for event in sent] == list(range(1000))
    assert [event["value"] for event in read] == [event["value"] for event in sent]
    assert commits[-1]["offsets"] == [{"topic": topic, "partition": 0, "offset": 1000}]
    assert all(commit["success"] for commit in commits)


def events(output: str) -> list[dict]:
    """The JSON lines of a verifiable client."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def end_offsets(broker, topic: str, partitions: int) -> dict[int, int]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    requested = [TopicPartition(topic, partition) for partition in range(partitions)]
    offsets = consumer.end_offsets(requested)
    consumer.close()
    return {partition.partition: offset for partition, offset in offsets.items()}
