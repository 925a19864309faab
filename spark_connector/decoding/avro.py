"""Columns of Avro, decoded by fastavro in the executors, Arrow on both sides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ..errors import SparkConnectorError
from .avro_types import spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REGISTRY_MAGIC = 0
REGISTRY_HEADER_BYTES = 5
"""A zero and a schema's number in front of the data, as serializers with a registry write it."""

Schema = str | Mapping[str, Any]


def decode_avro(
    frame: DataFrame,
    schema: Schema,
    *,
    column: str = "value",
    into: str = "decoded",
    error_into: str = "decode_error",
    writer_schemas: Mapping[int, Schema] | None = None,
    skips_header: bool = False,
) -> DataFrame:
    """The frame with its Avro decoded; a null, such as a tombstone's value, stays null.

    Args:
        frame: as a source of topics gives it.
        schema: of the records, as JSON or parsed; a record, or any type Spark has.
        column: of binary.
        into: the new column; null where it does not decode.
        error_into: the new column that says what is wrong, null where nothing is.
        writer_schemas: for data with a schema registry's header, the schema of each number that
            may stand in it; `schema` is what they are read as. Without it the data have no
            header.
        skips_header: without `writer_schemas`: what is no Avro of the schema may have a schema
            registry's header in front, whose number says nothing new.

    Raises:
        SparkConnectorError: Spark has no type for the schema, or it is no Avro schema.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    reader = _parsed(schema)
    kind = spark_type(reader)
    parsed: Any = StructType.fromDDL(f"`{into}` {kind.ddl}")
    decoded = parsed.fields[0]
    added = [decoded, StructField(error_into, StringType())]
    kept = [field for field in frame.schema.fields if field.name not in (into, error_into)]
    writers = None
    if writer_schemas is not None:
        writers = {number: _parsed(each) for number, each in writer_schemas.items()}
    names = [field.name for field in kept]
    frame = frame.select(*names)

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from decoded_batches(
            batches, column, reader, writers, decoded, error_into, skips_header=skips_header
        )

    return frame.mapInArrow(decode, StructType([*kept, *added]))


def decoded_batches(
    batches: Iterable[pa.RecordBatch],
    column: str,
    reader: Any,
    writers: Mapping[int, Any] | None,
    decoded: Any,
    error_into: str,
    *,
    skips_header: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Each batch with two columns more; runs in an executor.

    Raises:
        SparkConnectorError: fastavro is not installed there.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    decode = _decoder(reader, writers)
    if skips_header and writers is None:
        decode = _without_header(decode)
    convert = spark_type(reader).convert
    kind = to_arrow_type(decoded.dataType)
    for batch in batches:
        values: list[Any] = []
        errors: list[str | None] = []
        for data in batch.column(column).to_pylist():
            value = error = None
            if data is not None:
                try:
                    value = decode(data)
                    value = value if convert is None else convert(value)
                except Exception as problem:  # whatever fastavro makes of hostile bytes
                    value, error = None, f"it is no Avro of the schema: {problem}"
            values.append(value)
            errors.append(error)
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, pa.array(values, kind), pa.array(errors, pa.string())],
            names=[*batch.schema.names, decoded.name, error_into],
        )


def _decoder(reader: Any, writers: Mapping[int, Any] | None) -> Callable[[bytes], Any]:
    try:
        from fastavro import parse_schema, schemaless_reader
    except ImportError:
        raise SparkConnectorError(
            "fastavro is not installed where this task runs; install 'odradek[avro]' on every"
            " worker"
        ) from None
    reader_schema = parse_schema(reader)
    if writers is None:

        def decode(data: bytes) -> Any:
            stream = BytesIO(data)
            value = schemaless_reader(stream, reader_schema, None)
            _require_end(stream, data)
            return value

        return decode
    known = {number: parse_schema(each) for number, each in writers.items()}

    def decode_with_header(data: bytes) -> Any:
        if len(data) < REGISTRY_HEADER_BYTES or data[0] != REGISTRY_MAGIC:
            raise ValueError("it has no schema registry's header")
        number = int.from_bytes(data[1:REGISTRY_HEADER_BYTES], "big")
        if number not in known:
            raise ValueError(f"writer_schemas has no schema {number}")
        stream = BytesIO(data)
        stream.seek(REGISTRY_HEADER_BYTES)
        value = schemaless_reader(stream, known[number], reader_schema)
        _require_end(stream, data)
        return value

    return decode_with_header


def _without_header(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Data as they are first: they may begin with a zero of their own."""

    def decode_either(data: bytes) -> Any:
        try:
            return decode(data)
        except Exception:
            if len(data) < REGISTRY_HEADER_BYTES or data[0] != REGISTRY_MAGIC:
                raise
            return decode(data[REGISTRY_HEADER_BYTES:])

    return decode_either


def _require_end(stream: BytesIO, data: bytes) -> None:
    """Data of another schema often decode to something, and leave bytes behind."""
    if stream.tell() != len(data):
        raise ValueError(f"{len(data) - stream.tell()} bytes are left behind it")


def _parsed(schema: Schema) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except ValueError as error:
        raise SparkConnectorError(f"the Avro schema is no JSON: {error}") from None
