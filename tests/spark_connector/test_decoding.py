"""Avro into columns: fastavro writes, and what is decoded must be what was written."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest

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
        (["int", "string"], "one of several types"),
        ({"type": "long", "logicalType": "time-micros"}, "time-micros"),
        ("Nobody", "unknown type, 'Nobody'"),
        (["null", "Node"], "contains itself"),
        (7, "no Avro type"),
    ],
)
def test_what_spark_has_no_type_for_is_told_with_its_field(kind: Any, told: str) -> None:
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
    from pyspark.sql.types import StructField

    from odradek.spark_connector.decoding.avro import decoded_batches

    field = StructField("decoded", _parsed_ddl(spark_type(reader).ddl))
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    (found,) = decoded_batches([batch], "value", reader, writers, field, "problem")
    return found.column("decoded").to_pylist(), found.column("problem").to_pylist()


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
    assert all("no Avro of the schema" in each for each in problems[1:] if each)
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
    assert "has no schema 9" in str(problems[2])
    assert "no schema registry's header" in str(problems[3])
