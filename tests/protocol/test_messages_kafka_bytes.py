"""Our codecs against bytes that Kafka 4.3.1 and 3.9.1 wrote, and traffic of Kafka 3.9 brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol import ApiKey, decode_body, encode_body, internal, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.headers import (
    read_request_header,
    read_request_start,
    read_response_header,
    request_header,
    response_header,
)

Rows = Callable[[str], list[list[str]]]

DATA = Path(__file__).parent / "data"
RECORDED = [
    json.loads(line) for line in (DATA / "kafka-3.9-zk-frames.jsonl").read_text().splitlines()
]
RECORDED_IDS = [f"{index}-{ApiKey(frame['api']).name}" for index, frame in enumerate(RECORDED)]

SIDES: dict[str, Callable[[int], MessageType]] = {
    "request": messages.request_message,
    "response": messages.response_message,
}


def kafkas_messages(kafka_rows: Rows) -> list[tuple[MessageType, int, bytes]]:
    """Every message that Kafka wrote, with its version."""
    return [
        (SIDES[side](int(api_key)), int(version), bytes.fromhex(body))
        for file in ("kafka-4.3.1-messages.tsv", "kafka-3.9.1-messages.tsv")
        for side, api_key, version, body in kafka_rows(file)
    ] + [
        (internal.find_message(name), int(version), bytes.fromhex(body))
        for name, version, body in kafka_rows("kafka-4.3.1-internal-messages.tsv")
    ]


def test_kafkas_own_messages_come_back_as_the_same_bytes(kafka_rows: Rows) -> None:
    for message, version, encoded in kafkas_messages(kafka_rows):
        value, position = message.decoder(version)(encoded, 0)
        assert position == len(encoded), (message, version)
        assert b"".join(message.encoder(version)(value)) == encoded, (message, version)
        assert message.parse(encoded, version=version) == value, (message, version)
        assert message.build(value, version=version) == encoded, (message, version)


def test_kafkas_own_messages_cover_every_version_of_every_message(kafka_rows: Rows) -> None:
    covered = {(message.name, version) for message, version, _ in kafkas_messages(kafka_rows)}
    declared = [getattr(messages, name) for name in messages.message_names()]
    declared += [internal.find_message(name) for name in internal.message_names()]
    assert covered == {
        (message.name, version) for message in declared for version in message.versions
    }


@pytest.mark.parametrize("frame", RECORDED, ids=RECORDED_IDS)
def test_recorded_requests_come_back_as_the_same_bytes(frame: dict[str, str]) -> None:
    recorded = bytes.fromhex(frame["request"])
    api_key, version, correlation_id = read_request_start(recorded)
    assert (api_key, version) == (frame["api"], frame["version"])
    same_id, client_id, position = read_request_header(recorded)
    assert same_id == correlation_id
    request = decode_body(api_key, version, recorded[position:])
    header = request_header(api_key, version, correlation_id, client_id)
    assert header + encode_body(request, version) == recorded


@pytest.mark.parametrize("frame", RECORDED, ids=RECORDED_IDS)
def test_recorded_responses_come_back_as_the_same_bytes(frame: dict[str, str]) -> None:
    recorded = bytes.fromhex(frame["response"])
    api_key, version = int(frame["api"]), int(frame["version"])
    correlation_id, position = read_response_header(recorded, api_key, version)
    assert correlation_id == read_request_start(bytes.fromhex(frame["request"]))[2]
    response = decode_body(api_key, version, recorded[position:], response=True)
    header = response_header(api_key, version, correlation_id)
    assert header + encode_body(response, version) == recorded
