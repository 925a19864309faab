"""Values from and to bytes, whatever the format: what Spark's side and the command line use."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from .errors import (
    OtherTypeError,
    RegistryError,
    SchemaError,
    UnknownSchemaError,
    ValueDecodingError,
)
from .format import Decode
from .schema import AVRO, JSON, KINDS, PROTOBUF, Schema, SchemaSource
from .wire_format import HEADER_BYTES, header, schema_id_of


class Reader(NamedTuple):
    """What values are read as."""

    schema: Schema
    message: str | None = None
    """Of a Protobuf schema, the message's full name; without it the first."""


class DecodedValue(NamedTuple):
    """A value."""

    schema_id: int | None
    """None of a value without a header."""
    reader: int
    """As which of the decoder's readers it is read."""
    value: Any


Candidates = list[tuple[int, Decode]] | str
"""What reads the values of a schema, with the numbers of their readers; or why nothing does."""


class ValueDecoder:
    """Reads values.

    It can be sent to other processes: each has one that keeps what it made of schemas.

    Args:
        source: knows the schemas of the ids in front of values; None: there are no ids, and the
            one reader's schema wrote them all.
        readers: what to read as; the first that is of a value's format and name. None given: each
            value as its writer wrote it.

    Raises:
        SchemaError: a reader's schema will not do, or a package is not installed.
    """

    def __init__(self, source: SchemaSource | None, readers: tuple[Reader, ...] = ()) -> None:
        if source is None and len(readers) != 1:
            raise SchemaError("values without a header need one schema that says what they are")
        self._source = source
        self._readers = readers
        self._made = [_format_reader(each) for each in readers]
        self._candidates: dict[int, Candidates] = {}
        self._plain = _plain_decode(readers[0], self._made[0]) if source is None else None

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_decoder, (self._source, self._readers)

    def decode(self, data: bytes) -> DecodedValue:
        """The value of some bytes.

        Raises:
            ValueDecodingError: they are none.
            RegistryError: their schema cannot be had now.
        """
        if self._plain is not None:
            return DecodedValue(None, 0, self._plain(data, 0))
        schema_id = schema_id_of(data)
        candidates = self._candidates.get(schema_id) or self._candidates_of(schema_id)
        if isinstance(candidates, str):
            raise ValueDecodingError(candidates)
        other = None
        for reader, decode in candidates:
            try:
                return DecodedValue(schema_id, reader, decode(data, HEADER_BYTES))
            except OtherTypeError as error:
                other = other or error
        assert other is not None  # there is at least one candidate
        raise other

    def _candidates_of(self, schema_id: int) -> Candidates:
        assert self._source is not None  # or every value is plain
        try:
            writer = self._source.schema(schema_id)
        except UnknownSchemaError as error:
            # It is not kept: somebody may register the schema.
            return f"its schema is unknown: {error}"
        found: list[tuple[int, Decode]] = []
        problems = []
        for number, decoder in self._decoders_for(writer):
            try:
                found.append((number, decoder(writer)))
            except SchemaError as error:
                problems.append(str(error))
        known: Candidates = found or f"its schema, {schema_id}, is not read here: {problems[0]}"
        self._candidates[schema_id] = known
        return known

    def _decoders_for(self, writer: Schema) -> list[tuple[int, Callable[[Schema], Decode]]]:
        """What may make a decoder of a writer's schema."""
        if not self._readers:
            return [(0, decoder_as_written)]
        return [
            (number, made.decoder if reader.schema.kind == writer.kind else _refuse(reader))
            for number, (reader, made) in enumerate(zip(self._readers, self._made, strict=True))
        ]


class ValueEncoder:
    """Writes values of one schema.

    Args:
        schema: of all of them.
        schema_id: stands in front; None: nothing does.
        message: of a Protobuf schema, the message's full name; without it the first.

    Raises:
        SchemaError: the schema will not do, or a package is not installed.
    """

    def __init__(
        self, schema: Schema, schema_id: int | None = None, message: str | None = None
    ) -> None:
        self._arguments = (schema, schema_id, message)
        front = b"" if schema_id is None else header(schema_id)
        self._encode: Callable[[Any], bytes]
        if schema.kind == AVRO:
            from .avro import AvroWriter

            self._encode = AvroWriter(schema).encode
        elif schema.kind == JSON:
            from .json_schema import JsonWriter

            self._encode = JsonWriter(schema).encode
        else:
            from .protobuf import ProtobufWriter

            writer = ProtobufWriter(require_kind(schema), message)
            self._encode = writer.encode
            front += b"" if schema_id is None else writer.indexes
        self._front = front

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, self._arguments

    def encode(self, value: Any) -> bytes:
        """The bytes of a value.

        Raises:
            ValueEncodingError: it is not of the schema.
        """
        return self._front + self._encode(value)


class JsonDecoder:
    """Values as text in their format's own JSON, on one line each.

    Args:
        source: knows the schemas of the ids in front of values; None: there are no ids.
        schema: without ids, of all values.
        message: of a Protobuf schema without ids, the message's full name.

    Raises:
        SchemaError: the schema will not do, or a package is not installed.
    """

    def __init__(
        self, source: SchemaSource | None, schema: Schema | None = None, message: str | None = None
    ) -> None:
        self._source = source
        self._decoders: dict[int, Decode] = {}
        self._plain: Decode | None = None
        if source is None:
            if schema is None:
                raise SchemaError("values without a header need a schema that says what they are")
            if schema.kind == PROTOBUF:
                from .protobuf import plain_json_decoder

                self._plain = plain_json_decoder(schema, message)
            else:
                self._plain = _format(schema).json_decoder(schema)

    def decode(self, data: bytes) -> str:
        """The text of a value.

        Raises:
            ValueDecodingError: the bytes are none.
            RegistryError: their schema cannot be had now.
        """
        if self._plain is not None:
            return str(self._plain(data, 0))
        schema_id = schema_id_of(data)
        decode = self._decoders.get(schema_id)
        if decode is None:
            decode = self._decoders[schema_id] = self._decoder(schema_id)
        return str(decode(data, HEADER_BYTES))

    def _decoder(self, schema_id: int) -> Decode:
        assert self._source is not None  # or every value is plain
        try:
            schema = self._source.schema(schema_id)
            made: Decode = _format(schema).json_decoder(schema)
            return made
        except RegistryError:
            raise
        except SchemaError as error:
            raise ValueDecodingError(f"its schema cannot be used: {error}") from None


class JsonEncoder:
    """Bytes of values that are given as text in their format's own JSON.

    Args:
        schema: of all of them.
        schema_id: stands in front; None: nothing does.
        message: of a Protobuf schema, the message's full name; without it the first.

    Raises:
        SchemaError: the schema will not do, or a package is not installed.
    """

    def __init__(
        self, schema: Schema, schema_id: int | None = None, message: str | None = None
    ) -> None:
        self._front = b"" if schema_id is None else header(schema_id)
        if schema.kind == PROTOBUF:
            from .protobuf import ProtobufWriter, json_encoder

            self._encode = json_encoder(schema, message)
            if schema_id is not None:
                self._front += ProtobufWriter(schema, message).indexes
        else:
            self._encode = _format(schema).json_encoder(schema)

    def encode(self, text: str) -> bytes:
        """The bytes of a value.

        Raises:
            ValueEncodingError: the text is none of the schema.
        """
        return self._front + self._encode(text)


def _format(schema: Schema) -> Any:
    """The module of a schema's format."""
    if require_kind(schema).kind == AVRO:
        from . import avro

        return avro
    if schema.kind == JSON:
        from . import json_schema

        return json_schema
    from . import protobuf

    return protobuf


@lru_cache(maxsize=16)
def shared_decoder(source: SchemaSource | None, readers: tuple[Reader, ...]) -> ValueDecoder:
    """The one decoder of a process with these arguments."""
    return ValueDecoder(source, readers)


@lru_cache(maxsize=16)
def shared_encoder(schema: Schema, schema_id: int | None, message: str | None) -> ValueEncoder:
    """The one encoder of a process with these arguments."""
    return ValueEncoder(schema, schema_id, message)


def decoder_as_written(schema: Schema) -> Decode:
    """What reads values as the schema has them that wrote them.

    Raises:
        SchemaError: it will not do, or a package is not installed.
    """
    if schema.kind == PROTOBUF:
        from .protobuf import any_message_decoder

        return any_message_decoder(schema)
    found: Decode = _format_reader(Reader(schema)).decoder(schema)
    return found


def require_kind(schema: Schema) -> Schema:
    """The schema itself.

    Raises:
        SchemaError: it is of a format that is not known here.
    """
    if schema.kind not in KINDS:
        raise SchemaError(f"it is of the format {schema.kind!r}, not one of {', '.join(KINDS)}")
    return schema


def _format_reader(reader: Reader) -> Any:
    if reader.schema.kind == AVRO:
        from .avro import AvroReader

        return AvroReader(reader.schema)
    if reader.schema.kind == JSON:
        from .json_schema import JsonReader

        return JsonReader(reader.schema)
    from .protobuf import ProtobufReader

    return ProtobufReader(require_kind(reader.schema), reader.message)


def _plain_decode(reader: Reader, made: Any) -> Decode:
    decode: Decode = (
        made.decode_plain if reader.schema.kind == PROTOBUF else made.decoder(reader.schema)
    )
    return decode


def _refuse(reader: Reader) -> Callable[[Schema], Decode]:
    def refuse(writer: Schema) -> Decode:
        raise SchemaError(f"it is of the format {writer.kind}, not {reader.schema.kind}")

    return refuse
