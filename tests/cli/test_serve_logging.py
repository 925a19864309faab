"""What `odradek serve` logs: by its options, and by levels that are changed while it runs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from odradek.cli.serve.parser import LOG_LEVELS
from odradek.common.log_lines import LEVELS
from odradek.testing.process.broker_process import BrokerProcess


def test_the_option_has_kafkas_levels() -> None:
    assert [each.upper() for each in LOG_LEVELS] == list(LEVELS)
    assert list(LEVELS.values()) == sorted(LEVELS.values(), reverse=True)


def test_json_lines_of_a_level_that_is_changed_at_run_time(tmp_path: Path) -> None:
    arguments = ["--log-level", "error", "--log-format", "json", "--broker-id", "7"]
    with BrokerProcess(tmp_path / "data", arguments=arguments) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        changes = {"odradek": (AlterConfigOp.SET, "DEBUG")}
        admin.alter_configs([ConfigResource(ConfigResourceType.BROKER_LOGGER, "7", changes)])
        assert broker.log == ""
        admin.create_topics({"orders": {"num_partitions": 1, "replication_factor": 1}})
        admin.close()
    events = [json.loads(line) for line in broker.log.splitlines()]
    assert any("orders" in event["message"] for event in events)
    for event in events:
        assert event.keys() >= {"timestamp", "level", "logger", "message", "broker_id"}
        assert event["level"] in logging.getLevelNamesMapping()
    # What the process itself does, such as to listen to signals, is no broker's.
    assert {event["broker_id"] for event in events} <= {7, None}
    assert any(event["broker_id"] == 7 for event in events)


def test_text_is_the_default_and_verbose_is_info(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", arguments=["-v"]) as broker:
        pass
    lines = broker.log.splitlines()
    assert any(" INFO odradek." in line for line in lines)
    assert not any(" DEBUG " in line for line in lines)
