"""Error codes and the exceptions of the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from odradek.protocol import ApiKey, ErrorCode, KafkaError, messages

Rows = Callable[[str], list[list[str]]]


def test_error_codes_are_kafkas(kafka_rows: Rows) -> None:
    kafkas = {name: int(code) for code, name in kafka_rows("kafka-4.3.1-errors.tsv")}
    assert {code.name: code.value for code in ErrorCode} == kafkas


def test_api_keys_are_kafkas(kafka_rows: Rows) -> None:
    kafkas = {int(row[0]): f"{row[1]}Request" for row in kafka_rows("kafka-4.3.1-headers.tsv")}
    ours = {int(key): messages.request_message(key).name for key in ApiKey}
    assert kafkas.items() <= ours.items()
    # Those that Kafka 4 has dropped, as brokers of 3.9 spoke them.
    assert ours.keys() - kafkas.keys() == {4, 5, 6, 7}
    recorded = (Path(__file__).parent / "data" / "kafka-3.9-zk-frames.jsonl").read_text()
    for frame in map(json.loads, recorded.splitlines()):
        assert frame["version"] in messages.request_message(frame["api"]).versions


def test_a_kafka_error_carries_code_and_message() -> None:
    error = KafkaError(ErrorCode.INVALID_CONFIG, "x is no number")
    assert error.code is ErrorCode.INVALID_CONFIG
    assert error.message == "x is no number"
    assert str(error) == "INVALID_CONFIG: x is no number"
    assert str(KafkaError(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"
