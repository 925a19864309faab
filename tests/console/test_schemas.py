"""Values in Avro, shown as JSON by what a schema registry says."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from kafka import KafkaProducer
from support.console import Console, require_harmless
from support.schema_registry_server import SchemaRegistryServer

pytestmark = pytest.mark.clients

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    server = SchemaRegistryServer()
    yield server
    server.close()


def avro(number: int, value: object) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(SCHEMA), value)
    return b"\x00" + number.to_bytes(4, "big") + written.getvalue()


def test_values_are_shown_as_json(
    broker: Any, registry: SchemaRegistryServer, tmp_path: Path, topic: str
) -> None:
    subject = {"schema": json.dumps(SCHEMA), "schemaType": "AVRO"}
    _, answer = registry.answer("POST", f"/subjects/{topic}-value/versions", subject)
    order = {"id": 4711, "note": "<b>now</b>"}
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (avro(answer["id"], order), avro(99, order), b"\x00\x00\x00\x00\x01", b"{}"):
            producer.send(topic, value, partition=0).get(30)
    arguments = ["--registry", registry.url]
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        table = console.get(f"/topics/{topic}/records")
        require_harmless(table.html)
        assert '"note": "<b>now</b>"' in table.page.text
        whole = console.page(f"/topics/{topic}/records/0/0").text
        assert '"id": 4711,' in whole
        assert f"By schema {answer['id']} of the registry." in whole
        assert "00000000" in console.page(f"/topics/{topic}/records/0/0?as=hex").text
        unknown = console.page(f"/topics/{topic}/records/0/1").text
        assert "as values of a schema registry do: with schema 99" in unknown
        assert "{}" in console.page(f"/topics/{topic}/records/0/3").text


def test_records_are_shown_though_the_registry_does_not_answer(
    broker: Any, registry: SchemaRegistryServer, tmp_path: Path, topic: str
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, avro(1, {"id": 1, "note": ""}), partition=0).get(30)
    registry.refusal = (500, {"error_code": 500, "message": "no"})
    arguments = ["--registry", registry.url]
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        assert "with schema 1" in console.page(f"/topics/{topic}/records/0/0").text


def test_values_without_a_header_are_read_by_a_file(
    broker: Any, tmp_path: Path, topic: str
) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(SCHEMA))
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (avro(0, {"id": 8, "note": "<i>"})[5:], b"\xff\xff"):
            producer.send(topic, value, partition=0).get(30)
            producer.send(f"{topic}-other", value, partition=0).get(30)
    arguments = ["--schema", f"{topic}={tmp_path / 'order.avsc'}"]
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        table = console.get(f"/topics/{topic}/records")
        require_harmless(table.html)
        assert '"note": "<i>"' in table.page.text
        whole = console.page(f"/topics/{topic}/records/0/0").text
        assert '"id": 8,' in whole
        assert "By the schema in order.avsc." in whole
        assert "By the schema" not in console.page(f"/topics/{topic}/records/0/1").text
        assert "By the schema" not in console.page(f"/topics/{topic}-other/records/0/0").text
