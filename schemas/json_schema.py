"""JSON values that a JSON Schema describes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .errors import SchemaError, ValueDecodingError, ValueEncodingError, needed_package
from .format import Decode, shortened
from .schema import Schema


class JsonReader:
    """Reads JSON; each value must be valid by its writer's schema, as Confluent's deserializers
    have it, too.

    Args:
        schema: the reader's, which says what is expected.

    Raises:
        SchemaError: it is no JSON Schema, or jsonschema is not installed.
    """

    def __init__(self, schema: Schema) -> None:
        self._title = title(parsed(schema))

    def decoder(self, writer: Schema) -> Decode:
        """What reads the values of a writer.

        Raises:
            SchemaError: the writer's schema is none, or has another title.
        """
        written = title(parsed(writer))
        if self._title and written and self._title != written:
            raise SchemaError(f"it is of {written}, not of {self._title}")
        validator = _validator(writer)

        def decode(data: bytes, start: int) -> Any:
            try:
                value = json.loads(data[start:], parse_constant=_refuse_constant)
            except (ValueError, RecursionError) as error:
                raise ValueDecodingError(f"it is no JSON: {shortened(error)}") from None
            problem = _problem(validator, value)
            if problem:
                raise ValueDecodingError(f"it is not of the JSON Schema: {problem}")
            return value

        return decode


class JsonWriter:
    """Writes JSON of one schema.

    Args:
        schema: of the values.

    Raises:
        SchemaError: it is no JSON Schema, or jsonschema is not installed.
    """

    def __init__(self, schema: Schema) -> None:
        self._validator = _validator(schema)

    def encode(self, value: Any) -> bytes:
        """The bytes of a value.

        Raises:
            ValueEncodingError: the value is not of the schema.
        """
        try:
            problem = _problem(self._validator, value)
            data = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueEncodingError(f"it is no JSON: {shortened(error)}") from None
        if problem:
            raise ValueEncodingError(f"it is not of the JSON Schema: {problem}")
        return data


def json_decoder(schema: Schema) -> Decode:
    """What reads values as text, on one line.

    Raises:
        SchemaError: it is no JSON Schema, or jsonschema is not installed.
    """
    decode = JsonReader(schema).decoder(schema)
    return lambda data, start: json.dumps(decode(data, start), ensure_ascii=False)


def json_encoder(schema: Schema) -> Callable[[str], bytes]:
    """What writes values that are given as text.

    Raises:
        SchemaError: it is no JSON Schema, or jsonschema is not installed.
    """
    encode = JsonWriter(schema).encode

    def encode_json(text: str) -> bytes:
        try:
            return encode(json.loads(text, parse_constant=_refuse_constant))
        except (ValueError, RecursionError) as error:
            raise ValueEncodingError(f"it is no JSON of the schema: {shortened(error)}") from None

    return encode_json


def parsed(schema: Schema) -> Any:
    """The schema as objects.

    Raises:
        SchemaError: it is no JSON Schema.
    """
    try:
        found = json.loads(schema.text)
    except ValueError as error:
        raise SchemaError(f"it is no JSON Schema: {shortened(error)}") from None
    if not isinstance(found, dict | bool):
        raise SchemaError(f"it is no JSON Schema: a {type(found).__name__} is none")
    return found


def title(parsed_schema: Any) -> str | None:
    """What a schema calls its values: several kinds in one topic are told apart by it."""
    return parsed_schema.get("title") if isinstance(parsed_schema, dict) else None


def _validator(schema: Schema) -> Any:
    with needed_package("jsonschema"):
        from jsonschema.validators import Draft7Validator, validator_for
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT7
    found = parsed(schema)
    kind: Any = validator_for(found, default=Draft7Validator)
    try:
        kind.check_schema(found)
        # Given a registry, jsonschema never fetches what a schema refers to from the network.
        registry: Any = Registry().with_resources(
            (
                reference.name,
                Resource.from_contents(json.loads(reference.text), default_specification=DRAFT7),
            )
            for reference in schema.references
        )
        return kind(found, registry=registry)
    except Exception as error:  # jsonschema's own, and those of a reference's text
        raise SchemaError(f"it is no JSON Schema: {shortened(error)}") from None


def _problem(validator: Any, value: Any) -> str | None:
    """The first thing that is wrong with a value."""
    from referencing.exceptions import Unresolvable

    try:
        error = next(validator.iter_errors(value), None)
    except Unresolvable as missing:
        return f"the schema refers to {missing.ref}, which the registry does not tell of"
    except RecursionError:
        return "it is nested too deep"
    return None if error is None else f"{error.json_path}: {shortened(error.message)}"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
