"""Keys and values with schemas, of files and of a registry: shown as JSON, searched, produced."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import fastavro
import pytest
from kafka import KafkaConsumer, KafkaProducer
from support.console import Answer, Console, require_harmless
from support.schema_registry_server import SchemaRegistryServer

from odradek.client.producer.partitioner import partition_of_key

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


FILES = {
    ".avsc": json.dumps(SCHEMA),
    ".proto": 'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }',
    ".json": '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}',
}
WRITTEN = {
    # What the specifications of Avro and Protobuf show of 64 and of 150, and of texts.
    ".avsc": {"id": 64, "note": "foo"},
    ".proto": {"id": "150", "note": "testing"},
    ".json": {"id": 7},
}
BYTES = {
    ".avsc": b"\x80\x01\x06foo",
    ".proto": b"\x08\x96\x01\x12\x07testing",
    ".json": b'{"id": 7}',
}


def test_values_are_produced_and_searched_by_files_of_all_formats(
    broker: Any, tmp_path: Path, topic: str
) -> None:
    arguments = ["--console-write"]
    for number, (suffix, text) in enumerate(FILES.items()):
        file = tmp_path / f"order{suffix}"
        file.write_text(text)
        arguments += ["--schema", f"{topic}-{number}={file}"]
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        for number, suffix in enumerate(FILES):
            name = f"{topic}-{number}"
            console.post("/topics", {"name": name})
            path, value = f"/topics/{name}/produce", WRITTEN[suffix]
            assert f"JSON, by the schema in order{suffix}" in console.page(path).text

            def produce(value: object, path: str = path) -> Answer:
                text = json.dumps(value)
                return console.post(path, {"value": text, "value_as": "schema", "partition": 0})

            shown = console.page(produce(value).location).text
            assert f"By the schema in order{suffix}." in shown
            refused = produce({"note": []})
            require_harmless(refused.html)
            assert (refused.status, "schema does not allow it" in refused.page.text) == (400, True)

            produce({**value, "id": 9_000})
            found = console.page(f"/topics/{name}/records?where=id+%3D+9000").text
            assert re.search(r'"id": ?"?9000\b', found), found
            assert not re.search(rf'"id": ?"?{value["id"]}\b', found), found
            with KafkaConsumer(
                name, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
            ) as consumer:
                assert next(consumer).value == BYTES[suffix]


def test_values_are_produced_and_searched_by_a_registry(
    broker: Any, registry: SchemaRegistryServer, tmp_path: Path, topic: str
) -> None:
    arguments = ["--console-write", "--registry", registry.url]
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        console.post("/topics", {"name": topic})
        fields = {"value": '{"id": 64, "note": "foo"}', "value_as": "schema", "partition": 0}
        unknown = console.post(f"/topics/{topic}/produce", fields)
        assert (unknown.status, f"{topic}-value" in unknown.page.text) == (400, True)
        subject = {"schema": json.dumps(SCHEMA), "schemaType": "AVRO"}
        _, answer = registry.answer("POST", f"/subjects/{topic}-value/versions", subject)
        produced = console.post(f"/topics/{topic}/produce", fields)
        assert f"By schema {answer['id']} of the registry." in console.page(produced.location).text
        with KafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            assert next(consumer).value == avro(answer["id"], {"id": 64, "note": "foo"})
        search = f"/topics/{topic}/records?where=id+%3D+"
        assert '"note": "foo"' in console.page(f"{search}64").text
        assert '"note": "foo"' not in console.page(f"{search}65").text

    registry.refusal = (500, {"error_code": 500, "message": "no"})
    with Console(broker.bootstrap, tmp_path / "log", ["--registry", registry.url]) as console:
        assert f"schema registry {registry.url}" in console.page(f"{search}64").text


KEY = {"type": "record", "name": "Id", "fields": [{"name": "id", "type": "long"}]}


def test_keys_are_shown_searched_and_produced_by_a_registry(
    broker: Any, registry: SchemaRegistryServer, tmp_path: Path, topic: str
) -> None:
    arguments = ["--console-write", "--registry", registry.url]
    produce, records = f"/topics/{topic}/produce", f"/topics/{topic}/records"
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        console.post("/topics", {"name": topic, "partitions": 6})
        fields = {"key": '{"id": 64}', "key_as": "schema", "value": "sixty-four"}
        unknown = console.post(produce, fields)
        assert (unknown.status, f"{topic}-key" in unknown.page.text) == (400, True)
        subject = {"schema": json.dumps(KEY), "schemaType": "AVRO"}
        _, answer = registry.answer("POST", f"/subjects/{topic}-key/versions", subject)
        assert f"JSON, by the registry's schema of {topic}-key" in console.page(produce).text
        whole = console.page(console.post(produce, fields).location)
        assert '"id": 64' in whole.text
        assert f"By schema {answer['id']} of the registry." in whole.text
        front = b"\0" + answer["id"].to_bytes(4, "big")
        with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for key, value in ((front + b"\x82\x01", b"sixty-five"), (b"plain", b"of text")):
                producer.send(topic, value, key).get(30)
            # As the key of an older schema: it is not where the latest one's bytes would lead.
            producer.send(topic, b"the same", front + b"\x80\x01", partition=3).get(30)
        with KafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            found = {each.value: each for each in (next(consumer) for _ in range(4))}
        assert found[b"sixty-four"].key == front + b"\x80\x01"  # as Avro's specification has 64
        assert found[b"sixty-four"].partition == partition_of_key(found[b"sixty-four"].key, 6)
        assert '{"id": 64}' in console.page(records).text

        for query, values in {
            "key=%7B+%22id%22%3A64%7D": {"sixty-four", "the same"},
            "key=%7B%22id%22%3A+65%7D": {"sixty-five"},
            "key=plain": {"of text"},
            "text=%22id%22%3A+65": {"sixty-five"},
            "key=66": set(),
        }.items():
            text = console.page(f"{records}?{query}").text
            assert {
                each for each in ("sixty-four", "the same", "sixty-five", "of text") if each in text
            } == values, query

    registry.refusal = (500, {"error_code": 500, "message": "no"})
    with Console(broker.bootstrap, tmp_path / "log", ["--registry", registry.url]) as console:
        assert "with schema" in console.page(f"{records}/3/0").text
        assert f"schema registry {registry.url}" in console.page(f"{records}?text=id").text


@pytest.mark.parametrize("suffix", FILES)
def test_keys_without_a_header_are_read_and_written_by_a_file(
    broker: Any, tmp_path: Path, topic: str, suffix: str
) -> None:
    (tmp_path / f"id{suffix}").write_text(FILES[suffix])
    arguments = ["--console-write", "--key-schema", f"{topic}={tmp_path / f'id{suffix}'}"]
    with Console(broker.bootstrap, tmp_path / "log", arguments) as console:
        console.post("/topics", {"name": topic, "partitions": 6})
        path, key = f"/topics/{topic}/produce", json.dumps(WRITTEN[suffix])
        form = console.page(path).text
        assert form.count(f"JSON, by the schema in id{suffix}") == 1  # of the key alone
        written = console.post(path, {"key": key, "key_as": "schema", "value": "{}"}).location
        refused = console.post(path, {"key": '{"note": []}', "key_as": "schema", "value": "{}"})
        require_harmless(refused.html)
        assert (refused.status, "schema does not allow it" in refused.page.text) == (400, True)
        whole = console.page(written).text
        assert f"By the schema in id{suffix}." in whole
        assert f"By the schema in id{suffix}." not in console.page(f"{written}?as=hex").text
        with KafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            record = next(consumer)
        assert (record.key, record.value) == (BYTES[suffix], b"{}")
        assert record.partition == partition_of_key(BYTES[suffix], 6)
        search = urlencode({"key": json.dumps(WRITTEN[suffix], indent=2)})
        found = console.page(f"/topics/{topic}/records?{search}").text
        assert re.search(rf'"id": ?{json.dumps(WRITTEN[suffix]["id"])}', found), found
