"""`odradek produce` and `consume` with schemas: JSON here, in topics what serializers write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from support.schema_registry_server import SchemaRegistryServer, schema_registry

from .conftest import Odradek

pytestmark = pytest.mark.clients

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": ["null", "string"], "default": None},
            {"name": "code", "type": "bytes"},
        ],
    }
)
VALUE = {"id": 1, "customer": "é", "code": b"\xff\0"}
AS_JSON = {"id": 1, "customer": {"string": "é"}, "code": "\xff\0"}
PROTO = 'syntax = "proto3"; message A { int32 x = 1; } message B { int64 y = 1; bytes z = 2; }'


@pytest.fixture
def server() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as running:
        yield running


def values_of(broker: Any, topic: str) -> list[bytes]:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap) as client:
        place = TopicPartition(topic, 0)
        client.assign([place])
        client.seek_to_beginning()
        end = client.end_offsets([place])[place]
        values: list[bytes] = []
        while client.position(place) < end:
            values += [each.value for part in client.poll(1000).values() for each in part]
    return values


def test_json_becomes_what_confluent_reads_and_what_it_writes_is_json(
    on_broker: Odradek, broker: Any, topic: str, server: SchemaRegistryServer, tmp_path: Path
) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    client = SchemaRegistryClient({"url": server.url})
    context = SerializationContext(topic, MessageField.VALUE)
    line = json.dumps(AS_JSON).encode() + b"\n"
    on_broker("produce", topic, "--registry", server.url, "--schema", path, stdin=line)
    (data,) = values_of(broker, topic)
    assert AvroDeserializer(client)(data, context) == VALUE
    assert AvroSerializer(client, ORDER)(VALUE, context) == data
    # From now on the subject has a latest schema.
    on_broker("produce", topic, "--registry", server.url, stdin=line)
    shown = on_broker("consume", topic, "--from-beginning", "-e", "--registry", server.url).out
    assert [json.loads(each) for each in shown.splitlines()] == [AS_JSON] * 2
    whole = on_broker(
        "consume", topic, "--from-beginning", "-e", "--format", "json", "--registry", server.url
    ).out
    assert [json.loads(each)["value"] for each in whole.splitlines()] == [AS_JSON] * 2
    on_broker(
        *("produce", topic, "--format", "json", "--registry", server.url),
        stdin=whole.encode(),
    )
    assert values_of(broker, topic) == [data] * 4


def test_a_file_alone_does_without_a_registry(
    on_broker: Odradek, broker: Any, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "messages.proto"
    path.write_text(PROTO)
    options = ("--schema", path, "--message", "B")
    on_broker("produce", topic, *options, stdin=b'{"y": "5", "z": "/w=="}\n')
    assert values_of(broker, topic) == [b"\x08\x05\x12\x01\xff"]
    shown = on_broker("consume", topic, "--from-beginning", "-e", *options).out
    assert json.loads(shown) == {"y": "5", "z": "/w=="}


def test_what_does_not_decode_is_shown_as_it_is_with_the_reason(
    on_broker: Odradek, broker: Any, topic: str, server: SchemaRegistryServer
) -> None:
    client = SchemaRegistryClient({"url": server.url})
    good = AvroSerializer(client, '"long"')(5, SerializationContext(topic, MessageField.VALUE))
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (good, b"plain", None, good[:-1]):
            producer.send(topic, value, partition=0, key=b"k")
    outcome = on_broker("consume", topic, "--from-beginning", "-e", "--registry", server.url)
    assert outcome.out.split("\n")[:3] == ["5", "plain", "null"]
    notes = [each for each in outcome.err.splitlines() if "shown as it is" in each]
    assert [each.partition(" at offset ")[2][:1] for each in notes] == ["1", "3"]
    assert "begins with the byte 112" in notes[0]
    assert "cut off" in notes[1]


def test_what_cannot_be_written_or_looked_up_is_a_sentence(
    on_broker: Odradek, broker: Any, topic: str, server: SchemaRegistryServer, tmp_path: Path
) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    for arguments, stdin, sentence in (
        (("produce", topic, "--registry", server.url), b"{}\n", f"has no subject {topic}-value"),
        (("produce", topic, "--schema", path), b"{}\n", "a value cannot be written, and what"),
        (("produce", topic, "--schema", tmp_path / "x"), b"", "should end in .avsc, .proto"),
        (("consume", topic, "--schema", path, "--registry", server.url), b"", "leave out --schema"),
        (("consume", topic, "--registry", "nowhere"), b"", "settings of the schema registry"),
    ):
        outcome = on_broker(*arguments, stdin=stdin, code=1)
        assert sentence in outcome.err
        assert "Traceback" not in outcome.err
