"""Values with schemas at the command line: JSON to people, and bytes to topics.

The JSON is the format's own: Avro's, with the branches of unions named, Protobuf's, and JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..common.errors import fail
from ..common.show import note
from ..declarations import Option

if TYPE_CHECKING:
    from ...client.consumer.fetched_records import FetchedRecord
    from ...schemas.schema import Schema

RegistryUrl = Annotated[
    str | None,
    Option(
        "--registry",
        metavar="URL",
        help="Values are of this schema registry's schemas, and are JSON here.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    Option("--schema", help="Values are of a file's schema: .avsc, .proto or .json."),
]
MessageName = Annotated[
    str | None,
    Option("--message", help="Of a .proto file, which message; by default the first."),
]

Show = Callable[["FetchedRecord"], str | None]
"""Makes JSON of a record's value; None where there is none to be made."""


def value_shower(registry: str | None, schema: Path | None, message: str | None) -> Show | None:
    """What shows values by the options of `consume`; None: they are shown as they are.

    A value that does not decode is noted and shown as it is.
    """
    if registry is None and schema is None:
        return None
    if registry is not None and schema is not None:
        fail("with --registry each value says itself of which schema it is; leave out --schema")
    from ...schemas.errors import SchemaError, ValueDecodingError
    from ...schemas.registry import SchemaRegistry
    from ...schemas.values import JsonDecoder

    try:
        source = None if registry is None else SchemaRegistry(registry)
        decoder = JsonDecoder(source, None if schema is None else _schema_of(schema), message)
    except SchemaError as error:
        fail(str(error))

    def show(record: FetchedRecord) -> str | None:
        try:
            return None if record.value is None else decoder.decode(record.value)
        except ValueDecodingError as error:
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            note(f"the value of {where} is shown as it is: {error}")
            return None
        except SchemaError as error:
            fail(str(error))

    return show


def value_encoder(
    registry: str | None, schema: Path | None, message: str | None, subject: str
) -> Callable[[bytes], bytes] | None:
    """What makes bytes of values by the options of `produce`; None: they are bytes already.

    Args:
        registry: its URL; without one nothing stands in front of values.
        schema: what is written; with a registry, the subject gets it.
        message: of a Protobuf schema.
        subject: whose latest schema it is without a file.
    """
    if registry is None and schema is None:
        return None
    from ...schemas.errors import SchemaError, ValueEncodingError
    from ...schemas.registry import SchemaRegistry
    from ...schemas.values import JsonEncoder

    try:
        given = None if schema is None else _schema_of(schema)
        number = None
        if registry is not None:
            asked = SchemaRegistry(registry)
            if given is None:
                number, given = asked.latest(subject)
            else:
                number = asked.register(subject, given)
        assert given is not None  # one of both options is there
        encoder = JsonEncoder(given, number, message)
    except SchemaError as error:
        fail(str(error))

    def encode(value: bytes) -> bytes:
        try:
            return encoder.encode(value.decode())
        except (ValueEncodingError, UnicodeDecodeError) as error:
            fail(f"a value cannot be written, and what came before it has been sent: {error}")

    return encode


def _schema_of(path: Path) -> Schema:
    from ...schemas.schema import schema_of_file

    return schema_of_file(path)
