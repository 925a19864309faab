"""Columns of Avro whose schemas are at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...schemas.errors import SchemaError, ValueDecodingError
from ...schemas.schema import AVRO, KnownSchemas, Schema
from ...schemas.values import DecodedValue, Reader, ValueDecoder
from ...schemas.wire_format import HEADER_BYTES, schema_id_or_none
from ..errors import SparkConnectorError
from .values import Decoder, with_decoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AvroSchema = str | Mapping[str, Any]


def decode_avro(
    frame: DataFrame,
    schema: AvroSchema,
    *,
    column: str = "value",
    into: str = "decoded",
    error_into: str = "decode_error",
    writer_schemas: Mapping[int, AvroSchema] | None = None,
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
    reader = Reader(_schema(schema))
    source = None
    if writer_schemas is not None:
        source = KnownSchemas({number: _schema(each) for number, each in writer_schemas.items()})
    try:
        decoder: Decoder = ValueDecoder(source, (reader,))
        if skips_header and source is None:
            decoder = _DecoderPastHeaders(decoder)
        return with_decoded(frame, decoder, {into: reader}, column, error_into, None)
    except SchemaError as error:
        raise SparkConnectorError(str(error)) from None


class _DecoderPastHeaders:
    """Takes values as they are first: they may begin with a zero of their own.

    Args:
        decoder: of values without a header.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def decode(self, data: bytes) -> DecodedValue:
        """The value of some bytes.

        Raises:
            ValueDecodingError: they are none, with a header or without.
        """
        try:
            return self._decoder.decode(data)
        except ValueDecodingError:
            if schema_id_or_none(data) is None:
                raise
            return self._decoder.decode(data[HEADER_BYTES:])


def _schema(schema: AvroSchema) -> Schema:
    return Schema(AVRO, schema if isinstance(schema, str) else json.dumps(schema))
