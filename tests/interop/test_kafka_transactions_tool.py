"""Kafka's own kafka-transactions tool against the broker, and what `odradek transactions` says."""

from __future__ import annotations

import json
import subprocess
import sys

import confluent_kafka
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from support.hanging_transaction import LOST_PRODUCER_ID, leave_hanging

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOL = "org.apache.kafka.tools.TransactionsCommand"


def table(reported: str) -> list[dict[str, str]]:
    """The rows of a table as the tool prints it, columns between tabs."""
    lines = [[cell.strip() for cell in line.split("\t")] for line in reported.splitlines() if line]
    head, *rows = lines
    return [dict(zip(head, row, strict=False)) for row in rows]


def without_duration(row: dict[str, str]) -> dict[str, str]:
    """What does not change with the clock's minute."""
    return {name: value for name, value in row.items() if not name.startswith("Duration")}


def odradek(broker, *arguments: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "transactions", *arguments, "-b", broker.bootstrap],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_transactions_tool_lists_describes_and_ends_transactions(
    java, start_broker, topic: str
) -> None:
    broker = start_broker(settings={"transaction.partition.verification.enable": "false"})
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "-1"})])

    def transactions(*arguments: str) -> list[dict[str, str]]:
        reported = java(TOOL, "--bootstrap-server", broker.bootstrap, *arguments)
        return table(reported) if reported.strip() else []

    name = f"tx-{topic}"
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,  # the tools take a while on a busy machine
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction", partition=1)
    assert producer.flush(30) == 0
    (listed,) = transactions("list")
    assert (listed["TransactionalId"], listed["TransactionState"]) == (name, "Ongoing")
    (described,) = transactions("describe", "--transactional-id", name)
    (ours,) = odradek(broker, "describe", name, "--json")
    assert described["TopicPartitions"] == f"{topic}-1"
    assert described["ProducerId"] == str(ours["producer_id"])
    assert described["CurrentTransactionStartTimeMs"] == str(ours["started"])
    transactions("forceTerminateTransaction", "--transactionalId", name)
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(30)
    (described,) = transactions("describe", "--transactional-id", name)
    assert described["TransactionState"] == "Empty"

    leave_hanging(broker.port, topic)
    (found,) = transactions("find-hanging", "--topic", topic)
    (again,) = transactions("find-hanging", "--broker-id", "1")
    assert without_duration(found) == without_duration(again)
    (ours,) = odradek(broker, "find-hanging", "--json")
    assert (found["ProducerId"], found["StartOffset"]) == (str(LOST_PRODUCER_ID), "0")
    assert found["CoordinatorEpoch"] == str(ours["coordinator_epoch"])
    where = ("--topic", topic, "--partition", "0")
    transactions("abort", *where, "--start-offset", "0")
    (producer_state,) = transactions("describe-producers", *where)
    assert producer_state["CurrentTransactionStartOffset"] == "None"
    assert odradek(broker, "find-hanging", "--json") == []
