"""A client's bytes in the broker's log: escaped, and never a line of their own."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.slow

JOINED_SECONDS_MAX = 60.0
GROUP = "group\x1b[2J\x9b\u202e\n2026-01-01 00:00:00,000 INFO odradek: forged"


def test_a_client_forges_no_line_of_the_log(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", arguments=["--verbose"]) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "group.protocol": "consumer"}
        )
        consumer.subscribe(["orders"])

        def is_assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(is_assigned, JOINED_SECONDS_MAX)
        consumer.close()
        broker.stop()
        lines = broker.log.split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    about_it = [line for line in lines if "forged" in line]
    assert about_it
    assert all("odradek.coordinator" in line.partition("group")[0] for line in about_it)
