"""Avro into columns: fastavro writes, and what is decoded must be what was written."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from odradek.schemas.schema import AVRO, PROTOBUF, KnownSchemas, Schema
from odradek.schemas.values import Reader, ValueDecoder, ValueEncoder
from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.decoding.avro_types import spark_type

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "namespace": "test",
    "fields": [
        {"name": "number", "type": "int"},
        {"name": "distance", "type": ["null", "long"]},
        {"name": "late", "type": "double"},
        {"name": "carrier", "type": {"type": "enum", "name": "Carrier", "symbols": ["AA", "UA"]}},
        {"name": "other", "type": ["null", "Carrier"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "seats", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
        {
            "name": "crew",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Person",
                    "fields": [
                        {"name": "badge", "type": {"type": "string", "logicalType": "uuid"}}
                    ],
                },
            },
        },
    ],
}
DDL = (
    "STRUCT<`number`: INT, `distance`: BIGINT, `late`: DOUBLE, `carrier`: STRING, `other`: STRING,"
    " `day`: DATE, `at`: TIMESTAMP, `price`: DECIMAL(9, 2), `id`: STRING, `hash`: BINARY,"
    " `seats`: MAP<STRING, ARRAY<INT>>, `crew`: ARRAY<STRUCT<`badge`: STRING>>>"
)
IDS = [UUID(int=number) for number in (1, 2)]


def flight(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "distance": None if number % 2 else number * 1000,
        "late": number / 4,
        "carrier": "UA",
        "other": None if number % 3 else "AA",
        "day": date(2013, 6, 1 + number % 9),
        "at": datetime(2013, 6, 1, 12, number % 60, tzinfo=UTC),
        "price": Decimal(number) / 100,
        "id": IDS[0],
        "hash": b"abcd",
        "seats": {"A": [1, 2], "B": []},
        "crew": [{"badge": each} for each in IDS],
    }


def decoded_flight(number: int) -> dict[str, Any]:
    """As Arrow hands it out: an id is text, a map is pairs."""
    return flight(number) | {
        "id": str(IDS[0]),
        "seats": [("A", [1, 2]), ("B", [])],
        "crew": [{"badge": str(each)} for each in IDS],
    }


def test_a_schema_becomes_a_type_of_spark() -> None:
    assert spark_type(FLIGHT).ddl == DDL


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ({"type": "fixed", "size": 12, "name": "D", "logicalType": "duration"}, "duration"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "of 39 digits"),
        ("Nobody", "unknown type, 'Nobody'"),
        (["null", "Node"], "contains itself"),
        (7, "no Avro type"),
    ],
)
def test_what_spark_has_no_type_for_is_reported_with_its_field(kind: Any, told: str) -> None:
    schema = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": kind}]}
    with pytest.raises(SparkConnectorError, match=f"the field 'next' .*{told}"):
        spark_type(schema)


@pytest.fixture
def fastavro() -> Any:
    return pytest.importorskip("fastavro")


def written(fastavro: Any, record: dict[str, Any], schema: Any = FLIGHT) -> bytes:
    output = BytesIO()
    fastavro.schemaless_writer(
        output, fastavro.parse_schema(json.loads(json.dumps(schema))), record
    )
    return output.getvalue()


def decoded(
    values: list[bytes | None], writers: dict[int, Any] | None = None, reader: Any = FLIGHT
) -> tuple[list[Any], list[str | None]]:
    """The two columns that are added."""
    pytest.importorskip("pyspark")
    import pyarrow as pa
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    from odradek.spark_connector.decoding.values import DecodingPlan, decoded_batches

    schema = as_schema(reader)
    source = writers and KnownSchemas({each: as_schema(writers[each]) for each in writers})
    added = StructType(
        [
            StructField("decoded", _parsed_ddl(spark_type(reader).ddl)),
            StructField("problem", StringType()),
            StructField("id", IntegerType()),
        ]
    )
    readers = (Reader(schema),)
    plan = DecodingPlan(ValueDecoder(source, readers), "value", readers, added)
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    (found,) = decoded_batches([batch], plan)
    return found.column("decoded").to_pylist(), found.column("problem").to_pylist()


def as_schema(schema: Any) -> Schema:
    return Schema(AVRO, json.dumps(schema))


def _parsed_ddl(ddl: str) -> Any:
    """Spark's own parser needs a JVM; this knows what the tests use."""
    from pyspark.sql import types

    named = {
        "INT": types.IntegerType(),
        "BIGINT": types.LongType(),
        "DOUBLE": types.DoubleType(),
        "STRING": types.StringType(),
        "DATE": types.DateType(),
        "TIMESTAMP": types.TimestampType(),
        "BINARY": types.BinaryType(),
        "DECIMAL(9, 2)": types.DecimalType(9, 2),
        "MAP<STRING, ARRAY<INT>>": types.MapType(
            types.StringType(), types.ArrayType(types.IntegerType())
        ),
        "ARRAY<STRUCT<`badge`: STRING>>": types.ArrayType(
            types.StructType([types.StructField("badge", types.StringType())])
        ),
    }
    fields = ddl.removeprefix("STRUCT<`").removesuffix(">").split(", `")
    return types.StructType(
        [
            types.StructField(name, named[kind])
            for name, kind in (each.split("`: ", 1) for each in fields)
        ]
    )


def test_records_are_decoded_and_nulls_stay(fastavro: Any) -> None:
    values = [written(fastavro, flight(number)) for number in range(5)]
    found, problems = decoded([*values, None])
    assert found == [decoded_flight(number) for number in range(5)] + [None]
    assert problems == [None] * 6


def test_what_does_not_decode_is_a_row_that_says_why(fastavro: Any) -> None:
    whole = written(fastavro, flight(3))
    found, problems = decoded([whole, whole[:-3], b"", whole + b"more"])
    assert found == [decoded_flight(3), None, None, None]
    assert problems[0] is None
    assert all("cut off" in str(each) for each in problems[1:3])
    assert problems[3] is not None
    assert "4 bytes are left" in problems[3]


def test_a_registrys_header_chooses_the_writers_schema(fastavro: Any) -> None:
    reader = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "number", "type": "long"},
            {"name": "name", "type": "string", "default": "none"},
        ],
    }
    old = {"type": "record", "name": "R", "fields": [{"name": "number", "type": "int"}]}
    data = [
        b"\0" + (1).to_bytes(4, "big") + written(fastavro, {"number": 7}, old),
        b"\0" + (2).to_bytes(4, "big") + written(fastavro, {"number": 8, "name": "x"}, reader),
        b"\0" + (9).to_bytes(4, "big") + b"?",
        b"\1",
    ]
    found, problems = decoded(data, {1: old, 2: reader}, reader)
    assert found == [{"number": 7, "name": "none"}, {"number": 8, "name": "x"}, None, None]
    assert "no schema was given for the id 9" in str(problems[2])
    assert "not in the wire format" in str(problems[3])


def test_a_value_that_its_column_cannot_hold_is_a_row_that_says_why(fastavro: Any) -> None:
    """Such as a decimal with more digits than its type has: Avro's bytes hold any number."""
    good, wide = flight(1), flight(2)
    wide["price"] = Decimal(10**12)
    values = [written(fastavro, good), wide_price(fastavro, wide), written(fastavro, good)]
    found, problems = decoded(values)
    assert found == [decoded_flight(1), None, decoded_flight(1)]
    assert problems[::2] == [None, None]
    assert "it does not fit its column" in str(problems[1])


def wide_price(fastavro: Any, record: dict[str, Any]) -> bytes:
    """As a writer does who takes more digits."""
    schema = json.loads(json.dumps(FLIGHT).replace('"precision": 9', '"precision": 30'))
    return written(fastavro, record, schema)


A = {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int"}]}
B = {"type": "record", "name": "B", "fields": [{"name": "n", "type": "int"}]}


@pytest.mark.parametrize(
    ("union", "ddl", "values"),
    [
        (["int", "long"], "BIGINT", [(5, 5)]),
        (["null", "float", "double"], "DOUBLE", [(0.5, 0.5), (None, None)]),
        (
            ["int", "string", "null"],
            "STRUCT<member0: INT, member1: STRING>",
            [(5, {"member0": 5}), ("x", {"member1": "x"}), (None, None)],
        ),
        (
            ["bytes", "boolean", {"type": "array", "items": "string"}],
            "STRUCT<member0: BINARY, member1: BOOLEAN, member2: ARRAY<STRING>>",
            [(b"x", {"member0": b"x"}), (True, {"member1": True}), (["y"], {"member2": ["y"]})],
        ),
        (
            [A, B],
            "STRUCT<member0: STRUCT<`n`: INT>, member1: STRUCT<`n`: INT>>",
            [(("A", {"n": 1}), {"member0": {"n": 1}}), (("B", {"n": 2}), {"member1": {"n": 2}})],
        ),
        (
            ["long", {"type": "long", "logicalType": "timestamp-millis"}],
            "STRUCT<member0: BIGINT, member1: TIMESTAMP>",
            [(5, {"member0": 5})],
        ),
    ],
)
def test_unions_are_as_sparks_own_from_avro_has_them(
    union: Any, ddl: str, values: list[tuple[Any, Any]]
) -> None:
    """What is decoded is a field of its branch, and becomes the same again."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "u", "type": union}]}
    kind = spark_type(schema)
    assert kind.ddl == f"STRUCT<`u`: {ddl}>"
    decoder = ValueDecoder(None, (Reader(as_schema(schema)),))
    encoder = ValueEncoder(as_schema(schema))
    for value, expected in values:
        data = encoder.encode({"u": value})
        row = {"u": decoder.decode(data).value["u"]}
        row = kind.convert(row) if kind.convert else row
        assert row == {"u": expected}
        whole = (
            dict.fromkeys(kind_fields(ddl), None) | expected
            if isinstance(expected, dict)
            else expected
        )
        back = kind.revert({"u": whole}) if kind.revert else {"u": whole}
        assert encoder.encode(back) == data


def kind_fields(ddl: str) -> list[str]:
    return re.findall(r"member\d", ddl)


def test_types_of_a_namespace_and_of_other_schemas_are_known_by_their_names() -> None:
    state = {"type": "enum", "name": "State", "namespace": "shop", "symbols": ["A"]}
    order = {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "a", "type": "State"}, {"name": "b", "type": ["null", "shop.State"]}],
    }
    assert spark_type(order, [state]).ddl == "STRUCT<`a`: STRING, `b`: STRING>"


def test_the_types_of_protobuf() -> None:
    from odradek.schemas.protobuf import message_descriptor
    from odradek.spark_connector.decoding.protobuf_types import spark_type as type_of_message

    text = (Path(__file__).parents[1] / "schemas" / "orders.proto").read_text()
    kind = type_of_message(message_descriptor(Schema(PROTOBUF, text), None))
    assert kind.ddl == (
        "STRUCT<`id`: BIGINT, `customer`: STRING, `discount`: DOUBLE, `state`: STRING,"
        " `lines`: ARRAY<STRUCT<`article`: STRING, `count`: BIGINT>>, `stock`: MAP<STRING, INT>,"
        " `at`: TIMESTAMP, `note`: STRING, `token`: BINARY, `large`: DECIMAL(20, 0),"
        " `more`: STRING, `card`: STRING, `voucher`: INT>"
    )
    node = 'syntax = "proto3"; message Node { Node next = 1; }'
    with pytest.raises(SparkConnectorError, match="the message Node contains itself"):
        type_of_message(message_descriptor(Schema(PROTOBUF, node), None))


def test_the_types_of_json_schema() -> None:
    from odradek.spark_connector.decoding.json_schema_types import spark_type as type_of_json

    schema = {
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "who": {"oneOf": [{"type": "null"}, {"$ref": "person.json#/definitions/person"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "stock": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "any": True,
            "either": {"type": ["string", "integer"]},
            "pair": {"type": "array", "items": [{"type": "string"}]},
            "free": {"type": "object"},
            "`": {"enum": ["a", 1]},
        }
    }
    person = {"definitions": {"person": {"type": "object", "properties": {"n": {"$ref": "#/x"}}}}}
    assert type_of_json(schema, {"person.json": {**person, "x": {"type": "string"}}}).ddl == (
        "STRUCT<`id`: BIGINT, `price`: DOUBLE, `who`: STRUCT<`n`: STRING>, `tags`: ARRAY<STRING>,"
        " `stock`: MAP<STRING, BOOLEAN>, `any`: STRING, `either`: STRING, `pair`: STRING,"
        " `free`: STRING, ````: STRING>"
    )
    with pytest.raises(SparkConnectorError, match="contains itself at #"):
        type_of_json({"type": "array", "items": {"$ref": "#"}})
    with pytest.raises(SparkConnectorError, match="refers to #/definitions/x, which is not there"):
        type_of_json({"$ref": "#/definitions/x"})
