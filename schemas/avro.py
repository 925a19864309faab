"""Avro by fastavro: values of a writer's schema read as the reader's has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO, StringIO
from typing import Any

from .errors import SchemaError, ValueDecodingError, ValueEncodingError, needed_package
from .format import Decode, shortened
from .schema import Schema

NAMED = ("record", "error", "enum", "fixed")
PYTHON_TYPES = {
    "record": "dict",
    "error": "dict",
    "map": "dict",
    "enum": "str",
    "string": "str",
    "fixed": "bytes",
    "bytes": "bytes",
}


class AvroReader:
    """Reads Avro as one schema has it.

    Args:
        schema: the reader's.

    Raises:
        SchemaError: it is no Avro schema, or fastavro is not installed.
    """

    def __init__(self, schema: Schema) -> None:
        self._parsed = parsed(schema)
        self._name = full_name(self._parsed)
        # Names are asked for where nothing else tells the branches of a union apart only: fastavro
        # fails to name a type that the reader's union knows by its name alone.
        self._named = any(is_ambiguous(union) for union in unions_in(schema))

    def decoder(self, writer: Schema) -> Decode:
        """What reads the values of a writer; of Avro's resolution, what concerns values fails then.

        Raises:
            SchemaError: the writer's schema is none, or of another record.
        """
        from fastavro import schemaless_reader

        written = parsed(writer)
        self._require_same_record(written)
        reader = None if written == self._parsed else self._parsed
        named = self._named

        def decode(data: bytes, start: int) -> Any:
            stream = BytesIO(data)
            stream.seek(start)
            try:
                value = schemaless_reader(stream, written, reader, return_named_type=named)
            except Exception as error:  # whatever fastavro makes of hostile bytes
                if isinstance(error, EOFError | IndexError) and stream.tell() == len(data):
                    raise ValueDecodingError(
                        "it is cut off, or damaged at its end: its Avro goes on behind it"
                    ) from None
                raise ValueDecodingError(
                    f"it is no Avro of the schema: {shortened(error)}"
                ) from None
            if stream.tell() != len(data):
                # Data of another schema often decode to something, and leave bytes behind.
                left = len(data) - stream.tell()
                raise ValueDecodingError(
                    f"it is no Avro of the schema: {left} bytes are left behind it"
                )
            return value

        return decode

    def _require_same_record(self, written: Any) -> None:
        """Avro's resolution wants the same unqualified name, or an alias; fastavro says so of each
        value, with both schemas whole."""
        name = full_name(written)
        if self._name is None or name is None:
            return
        aliases = {each.rpartition(".")[2] for each in self._parsed.get("aliases", ())}
        if name.rpartition(".")[2] not in {self._name.rpartition(".")[2], *aliases}:
            raise SchemaError(f"it is of {name}, not of {self._name}")


class AvroWriter:
    """Writes Avro of one schema.

    Args:
        schema: of the values.

    Raises:
        SchemaError: it is no Avro schema, or fastavro is not installed.
    """

    def __init__(self, schema: Schema) -> None:
        self._parsed = parsed(schema)

    def encode(self, value: Any) -> bytes:
        """The bytes of a value; fields that it lacks get their defaults.

        Raises:
            ValueEncodingError: the value is not of the schema.
        """
        from fastavro import schemaless_writer

        stream = BytesIO()
        try:
            schemaless_writer(stream, self._parsed, value, strict_allow_default=True)
        except Exception as error:  # whatever fastavro makes of other objects
            raise ValueEncodingError(f"it is not of the schema: {shortened(error)}") from None
        return stream.getvalue()


def json_decoder(schema: Schema) -> Decode:
    """What reads values as text in Avro's own JSON, as Kafka's console consumers show it.

    Raises:
        SchemaError: it is no Avro schema, or fastavro is not installed.
    """
    decode = AvroReader(schema).decoder(schema)
    known = parsed(schema)
    # The reader has said what to install where fastavro is missing.
    from fastavro import json_writer

    def decode_to_json(data: bytes, start: int) -> str:
        text = StringIO()
        json_writer(text, known, [decode(data, start)])
        return text.getvalue()

    return decode_to_json


def json_encoder(schema: Schema) -> Callable[[str], bytes]:
    """What writes values that are given in Avro's own JSON.

    Raises:
        SchemaError: it is no Avro schema, or fastavro is not installed.
    """
    known, encode = parsed(schema), AvroWriter(schema).encode

    def encode_json(text: str) -> bytes:
        from fastavro import json_reader

        try:
            (value,) = json_reader(StringIO(text), known)
        except Exception as error:  # whatever fastavro makes of other text
            raise ValueEncodingError(f"it is no JSON of the schema: {shortened(error)}") from None
        return encode(value)

    return encode_json


def parsed(schema: Schema) -> Any:
    """The schema as fastavro wants it.

    Raises:
        SchemaError: it is no Avro schema, or fastavro is not installed.
    """
    with needed_package("fastavro"):
        from fastavro import parse_schema
    names: dict[str, Any] = {}
    try:
        for reference in schema.references:
            parse_schema(json.loads(reference.text), names)
        return parse_schema(json.loads(schema.text), names)
    except Exception as error:  # of JSON, of names, of types: fastavro has several
        raise SchemaError(f"it is no Avro schema: {shortened(error)}") from None


def full_name(parsed_schema: Any) -> str | None:
    """The name of a named type; None of others."""
    if isinstance(parsed_schema, dict) and parsed_schema.get("type") in NAMED:
        return str(parsed_schema["name"])
    return None


def unions_in(schema: Schema) -> Iterator[list[Any]]:
    """Every union of a schema and of what it refers to."""
    for text in (schema.text, *(reference.text for reference in schema.references)):
        yield from _unions(json.loads(text))


def _unions(schema: Any) -> Iterator[list[Any]]:
    if isinstance(schema, list):
        yield schema
        for each in schema:
            yield from _unions(each)
    elif isinstance(schema, dict):
        for part in ("type", "items", "values"):
            if isinstance(schema.get(part), list | dict):
                yield from _unions(schema[part])
        for field in schema.get("fields", ()):
            yield from _unions(field)


def is_ambiguous(union: list[Any]) -> bool:
    """Whether values of different branches can look the same, and names tell them apart."""
    kinds = [each.get("type") if isinstance(each, dict) else each for each in union]
    others = [kind for kind in kinds if kind != "null"]
    if len(others) < 2:
        return False
    # What is known by its name alone may be any of the named types.
    types = [PYTHON_TYPES.get(kind, "other") for kind in others if kind in PYTHON_TYPES]
    unknown = any(isinstance(kind, str) and not _is_avro_type(kind) for kind in others)
    named = unknown or any(kind in NAMED for kind in others)
    return named and (unknown or len(set(types)) < len(types))


def _is_avro_type(kind: str) -> bool:
    return kind in {*PYTHON_TYPES, "boolean", "int", "long", "float", "double", "array"}
