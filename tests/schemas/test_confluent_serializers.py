"""What Confluent's serializers write is read here, and what is written here they read."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from odradek.schemas.errors import ValueDecodingError
from odradek.schemas.registry import SchemaRegistry
from odradek.schemas.schema import AVRO, JSON, PROTOBUF, Schema
from odradek.schemas.values import Reader, ValueDecoder, ValueEncoder

CONTEXT = SerializationContext("orders", MessageField.VALUE)
PROTO = Schema(PROTOBUF, Path(__file__).with_name("orders.proto").read_text())

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "token", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
        {"name": "stock", "type": {"type": "map", "values": "int"}},
        {"name": "code", "type": ["int", "string", {"type": "array", "items": "State"}]},
    ],
}
AVRO_SCHEMA = Schema(AVRO, json.dumps(ORDER))

JSON_ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": ["null", "string"]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
    },
    "definitions": {"line": {"type": "object", "properties": {"count": {"type": "number"}}}},
}
JSON_SCHEMA = Schema(JSON, json.dumps(JSON_ORDER))


def order(code: Any = 7) -> dict[str, Any]:
    return {
        "id": 2**40,
        "customer": None,
        "at": datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC),
        "day": date(1969, 7, 20),
        "token": UUID(int=5),
        "price": Decimal("-12.34"),
        "state": "PAID",
        "stock": {"a": 1, "b": -1},
        "code": code,
    }


def registry_of(client: Any) -> SchemaRegistry:
    return SchemaRegistry("mock://tests", client)


@pytest.mark.parametrize("code", [7, "seven", ["OPEN", "PAID"]])
def test_avro_of_confluent_is_read(mock_client: Any, code: Any) -> None:
    data = AvroSerializer(mock_client, json.dumps(ORDER))(order(code), CONTEXT)
    registry = registry_of(mock_client)
    schema_id, schema = registry.latest("orders-value")
    for readers in ((), (Reader(schema),)):
        assert ValueDecoder(registry, readers).decode(data) == (schema_id, 0, order(code))


def test_confluent_reads_our_avro(mock_client: Any) -> None:
    registry = registry_of(mock_client)
    schema_id = registry.register("orders-value", AVRO_SCHEMA)
    data = ValueEncoder(AVRO_SCHEMA, schema_id).encode(order())
    assert AvroDeserializer(mock_client)(data, CONTEXT) == order()


def test_a_record_of_an_older_schema_is_read_as_the_newer(mock_client: Any) -> None:
    """Avro's resolution: a field that is gone, one with a default, a wider number, an alias."""
    old = {
        "type": "record",
        "name": "shop.Purchase",
        "fields": [{"name": "n", "type": "int"}, {"name": "gone", "type": "string"}],
    }
    new = {
        "type": "record",
        "name": "shop.Order",
        "aliases": ["shop.Purchase"],
        "fields": [
            {"name": "number", "type": "double", "aliases": ["n"]},
            {"name": "state", "type": "string", "default": "OPEN"},
        ],
    }
    data = AvroSerializer(mock_client, json.dumps(old))({"n": 3, "gone": "x"}, CONTEXT)
    decoder = ValueDecoder(registry_of(mock_client), (Reader(Schema(AVRO, json.dumps(new))),))
    assert decoder.decode(data).value == {"number": 3.0, "state": "OPEN"}


def message(orders: Any) -> Any:
    made = orders.Order(
        id=-(2**40),
        customer="a",
        state=orders.PAID,
        lines=[orders.Order.Line(article="x", count=2**32 - 1), orders.Order.Line()],
        stock={"x": -1},
        token=b"\0\1",
        large=2**64 - 1,
        voucher=5,
    )
    made.at.FromDatetime(datetime(2024, 2, 29, 12, 30, 0, 123456))
    made.note.value = ""
    made.more.update({"deep": [1.5, None, {"x": True}]})
    return made


MESSAGE = {
    "id": -(2**40),
    "customer": "a",
    "discount": None,
    "state": "PAID",
    "lines": [{"article": "x", "count": 2**32 - 1}, {"article": "", "count": 0}],
    "stock": {"x": -1},
    "at": datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC),
    "note": "",
    "token": b"\0\1",
    "large": 2**64 - 1,
    "more": {"deep": [1.5, None, {"x": True}]},
    "card": None,
    "voucher": 5,
}


def test_protobuf_of_confluent_is_read(mock_client: Any, orders: Any) -> None:
    """As the serializer registers it, in base64, and as text that is compiled here."""
    serialize = ProtobufSerializer(orders.Order, mock_client, {"use.deprecated.format": False})
    data = serialize(message(orders), CONTEXT)
    for readers in ((), (Reader(PROTO),), (Reader(PROTO, "shop.Order"),)):
        decoder = ValueDecoder(registry_of(mock_client), readers)
        assert decoder.decode(data).value == MESSAGE


def test_other_messages_of_a_file_are_distinguished(mock_client: Any, orders: Any) -> None:
    """A nested message, and the second of the file: their indexes are in the wire format."""
    values = {}
    for kind, made in (
        (orders.Cancelled, orders.Cancelled(id=9)),
        (orders.Order.Line, orders.Order.Line(article="y")),
        (orders.Order, message(orders)),
    ):
        serialize = ProtobufSerializer(kind, mock_client, {"use.deprecated.format": False})
        values[kind.DESCRIPTOR.full_name] = serialize(made, CONTEXT)
    readers = (Reader(PROTO), Reader(PROTO, "shop.Cancelled"))
    decoder = ValueDecoder(registry_of(mock_client), readers)
    assert decoder.decode(values["shop.Order"])[1:] == (0, MESSAGE)
    assert decoder.decode(values["shop.Cancelled"])[1:] == (1, {"id": 9})
    with pytest.raises(ValueDecodingError, match=r"it is of shop.Order.Line, not of shop.Order"):
        decoder.decode(values["shop.Order.Line"])
    as_written = ValueDecoder(registry_of(mock_client))
    assert as_written.decode(values["shop.Order.Line"]).value == {"article": "y", "count": 0}


@pytest.mark.parametrize("name", ["shop.Order", "shop.Order.Line", "shop.Cancelled"])
def test_confluent_reads_our_protobuf(mock_client: Any, orders: Any, name: str) -> None:
    kind = {
        "shop.Order": orders.Order,
        "shop.Order.Line": orders.Order.Line,
        "shop.Cancelled": orders.Cancelled,
    }[name]
    # The mock hands out schemas as they came, and Confluent's deserializer wants base64.
    serialize = ProtobufSerializer(kind, mock_client, {"use.deprecated.format": False})
    serialize(kind(), CONTEXT)
    schema_id, _ = registry_of(mock_client).latest("orders-value")
    given = {"shop.Order": MESSAGE, "shop.Order.Line": {"count": 3}, "shop.Cancelled": {"id": 1}}
    data = ValueEncoder(PROTO, schema_id, name).encode(given[name])
    deserialize = ProtobufDeserializer(kind, {"use.deprecated.format": False}, mock_client)
    expected = {
        "shop.Order": message(orders),
        "shop.Order.Line": orders.Order.Line(count=3),
        "shop.Cancelled": orders.Cancelled(id=1),
    }
    assert deserialize(data, CONTEXT) == expected[name]


def test_json_of_confluent_is_read_and_ours_by_it(mock_client: Any) -> None:
    value = {"id": 1, "customer": None, "lines": [{"count": 1.5}]}
    text = json.dumps(JSON_ORDER)
    data = JSONSerializer(text, mock_client)(value, CONTEXT)
    registry = registry_of(mock_client)
    schema_id, schema = registry.latest("orders-value")
    assert ValueDecoder(registry, (Reader(schema),)).decode(data) == (schema_id, 0, value)
    written = ValueEncoder(JSON_SCHEMA, schema_id).encode(value)
    assert JSONDeserializer(text, None, mock_client)(written, CONTEXT) == value


def test_what_is_not_valid_json_of_the_schema_is_refused(mock_client: Any) -> None:
    good = JSONSerializer(json.dumps(JSON_ORDER), mock_client)({"id": 1}, CONTEXT)
    decoder = ValueDecoder(registry_of(mock_client))
    for body, told in (
        (b'{"id": "x"}', r"\$\.id: 'x' is not of type 'integer'"),
        (b'{"id": NaN}', "no JSON: NaN"),
        (b'{"id": 1', "it is no JSON"),
        (b"\xff", "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
    ):
        with pytest.raises(ValueDecodingError, match=told):
            decoder.decode(good[:5] + body)


SIMPLE = Schema(
    AVRO,
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "n", "type": "long"},
                {"name": "t", "type": "string"},
                {"name": "b", "type": ["null", "bytes"]},
                {"name": "f", "type": {"type": "array", "items": "double"}},
            ],
        }
    ),
)
records = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1),
        "t": st.text(),
        "b": st.none() | st.binary(),
        "f": st.lists(st.floats(allow_nan=False)),
    }
)


@given(records)
def test_avro_comes_back_and_a_part_of_it_is_refused(record: dict[str, Any]) -> None:
    data = ValueEncoder(SIMPLE).encode(record)
    decoder = ValueDecoder(None, (Reader(SIMPLE),))
    assert decoder.decode(data).value == record
    for cut in range(len(data)):
        with pytest.raises(ValueDecodingError, match="cut off"):
            decoder.decode(data[:cut])
    with pytest.raises(ValueDecodingError, match="1 bytes are left"):
        decoder.decode(data + b"\0")


@given(
    st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            "customer": st.text(),
            "discount": st.none() | st.floats(allow_nan=False),
            "stock": st.dictionaries(st.text(), st.integers(-(2**31), 2**31 - 1)),
            "at": st.none() | st.datetimes(timezones=st.just(UTC)),
            "large": st.integers(0, 2**64 - 1),
        }
    )
)
def test_protobuf_comes_back(value: dict[str, Any]) -> None:
    data = ValueEncoder(PROTO, 1).encode(value)
    decoder = ValueDecoder(_Source(PROTO), (Reader(PROTO),))
    found = decoder.decode(data).value
    assert {name: found[name] for name in value} == value


@given(st.binary(max_size=60), st.sampled_from([AVRO_SCHEMA, PROTO, JSON_SCHEMA]))
def test_no_bytes_raise_anything_else(data: bytes, schema: Schema) -> None:
    decoder = ValueDecoder(_Source(schema))
    for front in (b"", b"\0\0\0\0\1", b"\0\0\0\0\1\2"):
        with suppress(ValueDecodingError):
            decoder.decode(front + data)


class _Source:
    """Has one schema for every id."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def schema(self, schema_id: int) -> Schema:
        return self._schema
