"""Values in Confluent's wire format as columns, and columns as values.

The executors decode, Arrow on both sides. What does not decode is a row like any other that says
why; a registry that gives no answer fails the task, and so the query: nothing is known of those
values, and a query that is started again begins with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...schemas.errors import SchemaError, ValueDecodingError, ValueEncodingError
from ...schemas.registry import SchemaRegistry
from ...schemas.schema import JSON, PROTOBUF, KnownSchemas, Schema, SchemaSource
from ...schemas.values import DecodedValue, Reader, ValueDecoder, ValueEncoder
from ...schemas.wire_format import schema_id_or_none
from ..errors import SparkConnectorError
from ..worker_imports import forget_zip_importers
from .column_types import ColumnType, nullable, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Registry = str | Mapping[str, Any] | SchemaRegistry
"""A registry's URL, the settings of confluent-kafka's client for it, or one that is there."""

ReadAs = str | Schema | Reader
"""A subject, whose latest schema it is, or the schema itself, or that with a message's name."""

DECODED = "decoded"
ERROR = "decode_error"
SCHEMA_ID = "schema_id"

ERROR_HEADER = "__connect.errors."
"""What Kafka Connect's headers of dead letters begin with (KIP-298)."""


def decode_values(
    frame: DataFrame,
    registry: Registry | Mapping[int, Schema] | None,
    read_as: ReadAs | Mapping[str, ReadAs],
    *,
    column: str = "value",
    error_into: str = ERROR,
    schema_id_into: str = SCHEMA_ID,
) -> DataFrame:
    """The frame with its values decoded; a null, such as a tombstone's value, stays null.

    The schemas that wrote the values are asked for by the ids in front of them, each once in a
    process. No row is left out: one that does not decode has null in the columns of values, and
    says why; `dead_letters` makes records of those.

    Args:
        frame: as a source of topics gives it, a stream or not.
        registry: knows the schemas of the ids; a dictionary does, too. None: values have no ids,
            and are of the schema of `read_as`.
        read_as: what the new column `decoded` is to have: the latest schema of a subject as it is
            now, or a schema. Values of older and newer schemas are read as this one, by the rules
            of their format. Of several kinds in a topic, the name of a column for each: a value
            is in the first whose record, message or title it has.
        column: of binary.
        error_into: the new column that says what is wrong, null where nothing is.
        schema_id_into: the new column with the id in front of each value, null where there is none.

    Raises:
        SparkConnectorError: the registry does not answer, has no such subject, or Spark has no
            type for a schema.
    """
    targets = dict(read_as) if isinstance(read_as, Mapping) else {DECODED: read_as}
    try:
        source = _source(registry)
        readers = tuple(_reader(each, source) for each in targets.values())
        columns = dict(zip(targets, readers, strict=True))
        decoder = ValueDecoder(source, readers)
        return with_decoded(frame, decoder, columns, column, error_into, schema_id_into)
    except SchemaError as error:
        raise SparkConnectorError(str(error)) from None


def with_decoded(
    frame: DataFrame,
    decoder: Decoder,
    readers: Mapping[str, Reader],
    column: str,
    error_into: str,
    schema_id_into: str | None,
) -> DataFrame:
    """`decode_values` with a decoder.

    Args:
        frame: any.
        decoder: of the values.
        readers: the decoder's, in its order, by the names of their columns.
        column: of binary.
        error_into: the new column that says what is wrong.
        schema_id_into: the new column with the ids; None: no such column.

    Raises:
        SparkConnectorError: Spark has no type for a schema.
        SchemaError: a schema will not do.
    """
    from pyspark.sql.types import StructType

    types = [f"{quoted(name)} {column_type(each).ddl}" for name, each in readers.items()]
    types.append(f"{quoted(error_into)} STRING")
    if schema_id_into is not None:
        types.append(f"{quoted(schema_id_into)} INT")
    added: Any = StructType.fromDDL(", ".join(types))
    names = {field.name for field in added.fields}
    kept = [field for field in frame.schema.fields if field.name not in names]
    plan = DecodingPlan(decoder, column, tuple(readers.values()), added)

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        yield from decoded_batches(batches, plan)

    selected = frame.select(*[quoted(field.name) for field in kept])
    return selected.mapInArrow(decode, StructType([*kept, *added.fields]))


def dead_letters(frame: DataFrame, *, error: str = ERROR, schema_id: str = SCHEMA_ID) -> DataFrame:
    """The records of a frame of `decode_values` that did not decode.

    Keys, values and headers are as they were, and a frame that is written to a topic takes them
    there. Where from and why is in the columns `origin_topic`, `origin_partition`, `origin_offset`,
    `reason` and `schema_id`, and in headers that are called as Kafka Connect's (KIP-298).

    Args:
        frame: with the columns of a source of topics; `headers` may be missing.
        error: the column that says what is wrong.
        schema_id: that of the ids.
    """
    from pyspark.sql import functions as F

    return dead_records(frame, error).select(
        "key",
        "value",
        "headers",
        F.col("topic").alias("origin_topic"),
        F.col("partition").alias("origin_partition"),
        F.col("offset").alias("origin_offset"),
        "timestamp",
        F.col(error).alias("reason"),
        F.col(schema_id).alias("schema_id"),
    )


def dead_records(frame: DataFrame, error: str = ERROR) -> DataFrame:
    """The rows of `decode_values` that did not decode, with headers that say where from and why.

    Args:
        frame: with the columns of a source of topics; `headers` may be missing.
        error: the column that says what is wrong.
    """
    from pyspark.sql import functions as F

    kind = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
    given = F.col("headers") if "headers" in frame.columns else F.lit(None)
    said = {
        "topic": F.col("topic"),
        "partition": F.col("partition"),
        "offset": F.col("offset"),
        "stage": F.lit("VALUE_CONVERTER"),
        "exception.message": F.col(error),
    }
    added = [
        F.struct(
            F.lit(f"{ERROR_HEADER}{name}").alias("key"),
            value.cast("string").cast("binary").alias("value"),
        )
        for name, value in said.items()
    ]
    headers = F.concat(F.coalesce(given.cast(kind), F.array().cast(kind)), F.array(*added))
    return frame.where(F.col(error).isNotNull()).withColumn("headers", headers.cast(kind))


def encode_values(
    frame: DataFrame,
    registry: Registry | None,
    subject: str | None,
    schema: Schema | None = None,
    *,
    column: str = DECODED,
    into: str = "value",
    message: str | None = None,
    registers: bool = True,
) -> DataFrame:
    """The frame with a column of values in the wire format; null stays null.

    The id is had once, here; the executors ask no registry.

    Args:
        frame: any.
        registry: that knows the schema, or is told of it. None: nothing stands in front.
        subject: whose latest schema is used, or who gets `schema`.
        schema: to write with.
        column: a struct with the schema's fields, as `decode_values` has them, or another type.
        into: the new column.
        message: of a Protobuf schema, the message's full name; without it the first.
        registers: whether a schema that the subject has not yet is registered.

    Raises:
        SparkConnectorError: the registry refuses, does not answer or does not know the schema, or
            Spark has no type for it. A row that is not of the schema fails the query that writes.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, StructField, StructType

    try:
        schema_id, schema = _to_write(registry, subject, schema, registers)
        encoder = ValueEncoder(schema, schema_id, message)
        reader = Reader(schema, message)
        kind = column_type(reader)
    except SchemaError as error:
        raise SparkConnectorError(str(error)) from None
    kept = [field for field in frame.schema.fields if field.name != into]
    scratch = "__odradek_value"
    # Spark itself makes a struct of the user's one of the schema's: fields by their names.
    shaped = frame.withColumn(scratch, _shaped(F.col(quoted(column)), frame, column, kind))
    names = [field.name for field in kept]

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        yield from encoded_batches(batches, encoder, reader, scratch, into)

    selected = shaped.select(*[quoted(name) for name in names], scratch)
    return selected.mapInArrow(encode, StructType([*kept, StructField(into, BinaryType())]))


class Decoder(Protocol):
    """Makes values of bytes."""

    def decode(self, data: bytes) -> DecodedValue:
        """The value of some bytes.

        Raises:
            ValueDecodingError: they are none.
            RegistryError: their schema cannot be had now.
        """


class DecodingPlan(NamedTuple):
    """What the executors are sent."""

    decoder: Decoder
    column: str
    readers: tuple[Reader, ...]
    added: Any
    """The StructType of the columns that come: of each reader, of errors, perhaps of ids."""


def decoded_batches(
    batches: Iterable[pa.RecordBatch], plan: DecodingPlan
) -> Iterator[pa.RecordBatch]:
    """Each batch with the new columns; runs in an executor.

    Raises:
        SparkConnectorError: the registry does not answer, or a package is not installed.
    """
    schema = _arrow_schema(plan.added)
    kinds = [nullable(column_type(reader).convert) for reader in plan.readers]
    for batch in batches:
        rows = _Rows(len(kinds))
        place = batch.schema.get_field_index(plan.column)
        for data in batch.column(place).to_pylist():
            rows.add(plan.decoder, kinds, data)
        yield rows.batch(batch, plan.added, schema)


def _arrow_schema(struct: Any) -> pa.Schema:
    """Spark's, whose timestamps are UTC's; newer ones want to be told."""
    from pyspark.sql.pandas.types import to_arrow_schema

    convert: Any = to_arrow_schema
    zone = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    return convert(struct, **zone)


class _Rows:
    """The new columns of a batch, as they grow.

    Args:
        readers: how many.
    """

    def __init__(self, readers: int) -> None:
        self._values: list[list[Any]] = [[] for _ in range(readers)]
        self._errors: list[str | None] = []
        self._ids: list[int | None] = []

    def add(self, decoder: Decoder, converts: list[Any], data: bytes | None) -> None:
        """The next row."""
        for values in self._values:
            values.append(None)
        error = schema_id = None
        if data is not None:
            try:
                schema_id, reader, value = decoder.decode(data)
                self._values[reader][-1] = converts[reader](value)
            except ValueDecodingError as problem:
                error, schema_id = str(problem), schema_id_or_none(data)
            except SchemaError as problem:
                raise SparkConnectorError(str(problem)) from None
            except (ValueError, TypeError, ArithmeticError, RecursionError) as problem:
                error = f"it does not fit its column: {problem}"
        self._errors.append(error)
        self._ids.append(schema_id)

    def batch(self, batch: pa.RecordBatch, added: Any, schema: pa.Schema) -> pa.RecordBatch:
        """The batch with the new columns."""
        import pyarrow as pa

        columns = [
            self._column(values, field.type)
            for values, field in zip(self._values, schema, strict=False)
        ]
        columns += [pa.array(self._errors, pa.string()), pa.array(self._ids, pa.int32())]
        names = [field.name for field in added.fields]
        del columns[len(names) :]
        kept = [name for name in batch.schema.names if name not in names]
        return pa.RecordBatch.from_arrays(
            [*(batch.column(name) for name in kept), *columns], names=[*kept, *names]
        )

    def _column(self, values: list[Any], kind: Any) -> pa.Array:
        """A column; values that Arrow refuses become errors of their rows only."""
        import pyarrow as pa

        try:
            return pa.array(values, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            for place, value in enumerate(values):
                try:
                    pa.array([value], kind)
                except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
                    values[place] = None
                    self._errors[place] = f"it does not fit its column: {problem}"
            return pa.array(values, kind)


def encoded_batches(
    batches: Iterable[pa.RecordBatch],
    encoder: ValueEncoder,
    reader: Reader,
    column: str,
    into: str,
) -> Iterator[pa.RecordBatch]:
    """Each batch with a column of bytes in place of the values'; runs in an executor.

    Raises:
        SparkConnectorError: a value is not of the schema.
    """
    import pyarrow as pa

    revert = nullable(column_type(reader).revert)
    for batch in batches:
        encoded: list[bytes | None] = []
        for value in batch.column(batch.schema.get_field_index(column)).to_pylist():
            try:
                encoded.append(None if value is None else encoder.encode(revert(value)))
            except (ValueEncodingError, ValueError, TypeError) as problem:
                raise SparkConnectorError(f"a row cannot be encoded: {problem}") from None
        names = [name for name in batch.schema.names if name != column]
        arrays = [batch.column(name) for name in names]
        yield pa.RecordBatch.from_arrays(
            [*arrays, pa.array(encoded, pa.binary())], names=[*names, into]
        )


def column_type(reader: Reader) -> ColumnType:
    """The type of the column that a reader's values make.

    Raises:
        SparkConnectorError: Spark has none.
        SchemaError: the schema will not do.
    """
    schema = reader.schema
    if schema.kind == PROTOBUF:
        from ...schemas.protobuf import message_descriptor
        from . import protobuf_types

        return protobuf_types.spark_type(message_descriptor(schema, reader.message))
    if schema.kind == JSON:
        from . import json_schema_types

        documents = {each.name: json.loads(each.text) for each in schema.references}
        return json_schema_types.spark_type(json.loads(schema.text), documents)
    from . import avro_types

    references = [json.loads(each.text) for each in schema.references]
    return avro_types.spark_type(json.loads(schema.text), references)


def _source(registry: Registry | Mapping[int, Schema] | None) -> SchemaSource | None:
    if registry is None or isinstance(registry, SchemaRegistry):
        return registry
    if isinstance(registry, str):
        return SchemaRegistry(registry)
    if all(isinstance(key, int) for key in registry):
        return KnownSchemas({int(key): schema for key, schema in registry.items()})
    return SchemaRegistry({str(name): value for name, value in registry.items()})


def _reader(read_as: ReadAs, source: SchemaSource | None) -> Reader:
    if isinstance(read_as, Reader):
        return read_as
    if isinstance(read_as, Schema):
        return Reader(read_as)
    if not isinstance(source, SchemaRegistry):
        raise SparkConnectorError(
            f"the subject {read_as} needs a registry that knows it; else give the schema itself"
        )
    return Reader(source.latest(read_as)[1])


def _to_write(
    registry: Registry | None, subject: str | None, schema: Schema | None, registers: bool
) -> tuple[int | None, Schema]:
    """The id and the schema of the values that are written."""
    if registry is None:
        if schema is None:
            raise SparkConnectorError("without a registry, give the schema to write with")
        return None, schema
    source = _source(registry)
    assert isinstance(source, SchemaRegistry)  # by the type of `registry`
    if subject is None:
        raise SparkConnectorError("give the subject that has the schema, or is to get it")
    if schema is None:
        return source.latest(subject)
    if registers:
        return source.register(subject, schema), schema
    return source.look_up(subject, schema), schema


def _shaped(value: Any, frame: DataFrame, column: str, kind: ColumnType) -> Any:
    """A column cast to the schema's type, its fields by name.

    Raises:
        SparkConnectorError: it has fields that the schema has not.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    parsed: Any = StructType.fromDDL(f"value {kind.ddl}")
    target = parsed.fields[0].dataType
    given = frame.schema[column].dataType
    if not isinstance(target, StructType) or not isinstance(given, StructType):
        return value.cast(target)
    unknown = [name for name in given.names if name not in target.names]
    if unknown:
        raise SparkConnectorError(f"the schema has no field {unknown[0]!r}, but the column does")
    fields = [
        (value[field.name] if field.name in given.names else F.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in target.fields
    ]
    return F.when(value.isNotNull(), F.struct(*fields))
