"""What a registry is asked for, how often, and what is said of one that is down, slow or wrong."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from support.schema_registry_server import SchemaRegistryServer

from odradek.schemas import registry as registry_module
from odradek.schemas.errors import (
    RegistryError,
    SchemaError,
    UnknownSchemaError,
    ValueDecodingError,
)
from odradek.schemas.registry import SchemaRegistry
from odradek.schemas.schema import AVRO, PROTOBUF, KnownSchemas, Schema
from odradek.schemas.values import Reader, ValueDecoder, ValueEncoder

LONG = Schema(AVRO, '"long"')
QUICK = {"timeout": 0.3, "max.retries": 1, "retries.wait.ms": 1}


def quick(server: SchemaRegistryServer, **settings: Any) -> SchemaRegistry:
    """A registry's client that gives up soon."""
    return SchemaRegistry({"url": server.url, **QUICK, **settings})


def test_a_schema_is_requested_once_in_a_process(server: SchemaRegistryServer) -> None:
    registry = quick(server)
    number = registry.register("n-value", LONG)
    server.requests.clear()
    decoder = ValueDecoder(registry)
    again = pickle.loads(pickle.dumps(decoder))
    third = pickle.loads(pickle.dumps(decoder))
    data = ValueEncoder(LONG, number).encode(5)
    for each in (again, third, again):
        assert [each.decode(data).value for _ in range(100)] == [5] * 100
    assert server.requests == [f"GET /schemas/ids/{number}"]


def test_an_unknown_id_is_not_requested_with_each_value(
    server: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = ValueDecoder(quick(server))
    for _ in range(100):
        with pytest.raises(ValueDecodingError) as told:
            decoder.decode(b"\0\0\0\0\1\2")
    assert str(told.value) == (
        f"its schema is unknown: the schema registry {server.url} has no schema 1: Schema not found"
        " (HTTP 404)"
    )
    assert len(server.requests) == 1
    # Somebody registers it, and after a while it is asked for again.
    quick(server).register("n-value", LONG)
    monkeypatch.setattr(registry_module.time, "monotonic", lambda: 1e12)
    assert decoder.decode(b"\0\0\0\0\1\2").value == 1


def test_a_registry_that_is_down_says_nothing_of_a_value(server: SchemaRegistryServer) -> None:
    registry = quick(server)
    server.close()
    with pytest.raises(RegistryError) as told:
        ValueDecoder(registry).decode(b"\0\0\0\0\1\2")
    assert str(told.value).startswith(
        f"the schema registry {server.url} does not answer when it is asked for schema 1 (Connect"
    )
    assert str(told.value).endswith("it was asked 2 times, with a time-out of 0.3 s")


def test_a_registry_that_is_slow_is_given_up(server: SchemaRegistryServer) -> None:
    server.gate.clear()
    with pytest.raises(RegistryError, match=r"asked for schema 7 \(ReadTimeout: .* 2 times"):
        quick(server).schema(7)


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        ((500, {"error_code": 50001, "message": "store"}), r"asked for schema 1 and says: store"),
        ((401, {"error_code": 401, "message": "Who?"}), r"schema 1 and says: Who\? \(HTTP 401\)"),
        ((200, b"<html>"), "does not answer when it is asked for schema 1"),
        ((503, b"gone\nfor lunch"), "HTTP 503"),
    ],
)
def test_an_answer_that_is_none_says_nothing_of_a_value(
    server: SchemaRegistryServer, refusal: tuple[int, Any], told: str
) -> None:
    server.refusal = refusal
    with pytest.raises(RegistryError, match=told) as raised:
        quick(server).schema(1)
    assert "\n" not in str(raised.value)
    server.refusal = None
    quick(server).register("n-value", LONG)
    assert quick(server).schema(1) == LONG


def test_what_a_registry_refuses_to_register_is_reported(server: SchemaRegistryServer) -> None:
    server.refusal = (409, {"error_code": 409, "message": "READER_FIELD_MISSING_DEFAULT_VALUE"})
    with pytest.raises(
        SchemaError, match=r"refuses the registration of a schema as n-value: READER_"
    ):
        quick(server).register("n-value", LONG)


def test_a_subject_that_is_not_there(server: SchemaRegistryServer) -> None:
    with pytest.raises(UnknownSchemaError, match="has no subject n-value: Subject 'n-value' not"):
        quick(server).latest("n-value")
    with pytest.raises(UnknownSchemaError, match="has no version of n-value with this schema"):
        quick(server).look_up("n-value", LONG)


def test_a_password_in_the_url_is_not_reported(server: SchemaRegistryServer) -> None:
    url = server.url.replace("http://", "http://me:secret@")
    server.refusal = (401, {"error_code": 401, "message": "no"})
    with pytest.raises(RegistryError) as told:
        SchemaRegistry({"url": url, **QUICK}).schema(1)
    assert "secret" not in str(told.value)
    assert server.url in str(told.value)


@pytest.mark.parametrize(
    "settings", [{"url": "ftp://x"}, {"url": "http://x", "time": 3}, {"timeout": 3}]
)
def test_settings_that_will_not_do(settings: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="the settings of the schema registry will not do"):
        SchemaRegistry(settings)


def test_references_are_fetched_with_a_schema(server: SchemaRegistryServer) -> None:
    """Of Avro by names, of Protobuf by files; one of them needs another."""
    from confluent_kafka.schema_registry import Schema as ClientSchema
    from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient

    client = SchemaRegistryClient({"url": server.url})
    enum = '{"type": "enum", "name": "shop.State", "symbols": ["OPEN", "PAID"]}'
    line = {
        "type": "record",
        "name": "shop.Line",
        "fields": [{"name": "state", "type": "shop.State"}],
    }
    order = {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "lines", "type": {"type": "array", "items": "shop.Line"}}],
    }
    states, lines = (SchemaReference(f"shop.{name}", name, 1) for name in ("State", "Line"))
    client.register_schema("State", ClientSchema(enum, AVRO))
    client.register_schema("Line", ClientSchema(json.dumps(line), AVRO, [states]))
    number = client.register_schema("Order", ClientSchema(json.dumps(order), AVRO, [lines]))
    registry = quick(server)
    value = {"lines": [{"state": "PAID"}]}
    data = ValueEncoder(registry.schema(number), number).encode(value)
    assert ValueDecoder(registry).decode(data).value == value

    common = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    main = 'syntax = "proto3"; import "shop/money.proto"; message Bill { shop.Money total = 1; }'
    client.register_schema("money", ClientSchema(common, PROTOBUF))
    reference = SchemaReference("shop/money.proto", "money", 1)
    number = client.register_schema("bill", ClientSchema(main, PROTOBUF, [reference]))
    value = {"total": {"cents": 5}}
    data = ValueEncoder(registry.schema(number), number).encode(value)
    assert ValueDecoder(registry).decode(data).value == value


def test_a_mock_registry_is_sent_as_its_schemas(mock_client: Any) -> None:
    registry = SchemaRegistry("mock://tests", mock_client)
    number = registry.register("n-value", LONG)
    data = ValueEncoder(LONG, number).encode(5)
    sent = pickle.loads(pickle.dumps(ValueDecoder(registry)))
    assert sent.decode(data).value == 5
    with pytest.raises(ValueDecodingError, match="no schema was given for the id 9"):
        sent.decode(b"\0\0\0\0\x09\2")


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (Schema(AVRO, "{"), "no Avro schema"),
        (Schema(AVRO, '"shop.Nobody"'), "no Avro schema"),
        (Schema(PROTOBUF, "message {"), r"no Protobuf schema: line 1:\d+: Expected message name"),
        (Schema(PROTOBUF, 'import "other.proto";'), "no Protobuf schema: .*other.proto"),
        (Schema("JSON", "7"), "no JSON Schema"),
        (Schema("JSON", '{"type": "nothing"}'), "no JSON Schema"),
        (Schema("XML", "<x/>"), "of the format 'XML'"),
    ],
)
def test_a_schema_that_is_none_is_reported_each_value_or_at_once(schema: Schema, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        ValueEncoder(schema)
    decoder = ValueDecoder(KnownSchemas({1: schema}))
    with pytest.raises(ValueDecodingError, match=f"its schema, 1, is not read here: .*{told}"):
        decoder.decode(b"\0\0\0\0\1\2")


def test_values_of_another_format_or_record_are_reported() -> None:
    person = Schema(AVRO, '{"type": "record", "name": "shop.Person", "fields": []}')
    order = Schema(AVRO, '{"type": "record", "name": "shop.Order", "fields": []}')
    proto = Schema(PROTOBUF, 'syntax = "proto3"; message Order {}')
    decoder = ValueDecoder(KnownSchemas({1: person, 2: proto}), (Reader(order),))
    with pytest.raises(ValueDecodingError, match=r"it is of shop.Person, not of shop.Order"):
        decoder.decode(b"\0\0\0\0\1")
    with pytest.raises(ValueDecodingError, match=r"it is of the format PROTOBUF, not AVRO"):
        decoder.decode(b"\0\0\0\0\2\0")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it has 0 bytes"),
        (b"\0\0\0\1", "it has 4 bytes"),
        (b"\1\0\0\0\1", "begins with the byte 1"),
        (b"\0\xff\0\0\1", "is no schema's id"),
    ],
)
def test_what_is_not_in_the_wire_format_is_reported(data: bytes, told: str) -> None:
    with pytest.raises(ValueDecodingError, match=f"not in the wire format: .*{told}"):
        ValueDecoder(KnownSchemas({})).decode(data)
