"""Protobuf by messages that are made at run time, of what a registry or a `.proto` file says.

Google's runtime has messages but no compiler. The text of a schema is compiled by protoc, as
grpcio-tools brings it, to descriptors; registries may also give these in base64.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .errors import (
    OtherTypeError,
    SchemaError,
    ValueDecodingError,
    ValueEncodingError,
    needed_package,
)
from .format import Decode, shortened
from .schema import Schema
from .wire_format import FIRST_MESSAGE, message_indexes, read_message_indexes

MAIN_FILE = "odradek_value.proto"
FAULT = re.compile(r"[\w/.-]+\.proto:")
COMPILE_TIMEOUT_S = 60.0
WELL_KNOWN = re.compile(r"(google/(?:protobuf|type)|confluent(?:/type)?)/([a-z_]+)\.proto")
"""Files that every compiler has, or every serializer of Confluent's."""
PACKAGES = {
    "google/protobuf": "google.protobuf",
    "google/type": "google.type",
    "confluent": "confluent_kafka.schema_registry.confluent",
    "confluent/type": "confluent_kafka.schema_registry.confluent.type",
}
TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double", "String", "Bytes")
}
JSON_LIKE = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class ProtobufReader:
    """Reads messages as one schema has them: fields by their numbers.

    Args:
        schema: the reader's.
        message: the message's full name; without it the file's first.

    Raises:
        SchemaError: it is no schema, has no such message, or a package is not installed.
    """

    def __init__(self, schema: Schema, message: str | None = None) -> None:
        self.descriptor = message_descriptor(schema, message)
        self._class = _message_class(self.descriptor)
        self._value = value_of(self.descriptor)

    def decoder(self, writer: Schema) -> Decode:
        """What reads a writer's values, of this reader's message.

        Raises:
            SchemaError: the writer's schema is none.
        """
        file = descriptor_file(writer)
        parse = self._class.FromString
        value_of_message = self._value

        def decode(data: bytes, start: int) -> Any:
            indexes, start = read_message_indexes(data, start)
            name = message_at(file, indexes).full_name
            if name != self.descriptor.full_name:
                raise OtherTypeError(f"it is of {name}, not of {self.descriptor.full_name}")
            return decode_message(parse, value_of_message, data, start)

        return decode

    def decode_plain(self, data: bytes, start: int) -> Any:
        """The value of a message without indexes in front.

        Raises:
            ValueDecodingError: it is none.
        """
        return decode_message(self._class.FromString, self._value, data, start)


def any_message_decoder(schema: Schema) -> Decode:
    """What reads each message of a schema as what it is.

    Raises:
        SchemaError: it is no schema, or a package is not installed.
    """
    return _any_message_decoder(schema, value_of)


def _any_message_decoder(schema: Schema, value_of: Callable[[Any], Callable[[Any], Any]]) -> Decode:
    file = descriptor_file(schema)
    known: dict[tuple[int, ...], tuple[Any, Callable[[Any], Any]]] = {}

    def decode(data: bytes, start: int) -> Any:
        indexes, start = read_message_indexes(data, start)
        if indexes not in known:
            descriptor = message_at(file, indexes)
            known[indexes] = _message_class(descriptor).FromString, value_of(descriptor)
        return decode_message(*known[indexes], data, start)

    return decode


class ProtobufWriter:
    """Writes messages of one schema.

    Args:
        schema: of the values.
        message: its full name; without it the file's first.

    Raises:
        SchemaError: it is no schema, has no such message, or a package is not installed.
    """

    def __init__(self, schema: Schema, message: str | None = None) -> None:
        self._descriptor = message_descriptor(schema, message)
        self._class = _message_class(self._descriptor)
        self.indexes = message_indexes(indexes_of(self._descriptor))
        """What stands in front of a message in the wire format."""

    def encode(self, value: Any) -> bytes:
        """The bytes of a message, given as a dictionary; None is a field that is not set.

        Raises:
            ValueEncodingError: the value is not of the schema.
        """
        message = self._class()
        try:
            fill(message, value)
            return bytes(message.SerializeToString())
        except Exception as error:  # whatever the runtime makes of other objects
            raise ValueEncodingError(f"it is not of the schema: {shortened(error)}") from None


def json_decoder(schema: Schema) -> Decode:
    """What reads each message of a schema as text in Protobuf's own JSON.

    Raises:
        SchemaError: it is no schema, or a package is not installed.
    """
    return _any_message_decoder(schema, lambda descriptor: _message_json)


def plain_json_decoder(schema: Schema, message: str | None) -> Decode:
    """The same for one message, without indexes in front.

    Raises:
        SchemaError: it is no schema, has no such message, or a package is not installed.
    """
    parse = _message_class(message_descriptor(schema, message)).FromString
    return lambda data, start: decode_message(parse, _message_json, data, start)


def json_encoder(schema: Schema, message: str | None) -> Callable[[str], bytes]:
    """What writes a message that is given in Protobuf's own JSON.

    Raises:
        SchemaError: it is no schema, has no such message, or a package is not installed.
    """
    made = _message_class(message_descriptor(schema, message))

    def encode_json(text: str) -> bytes:
        from google.protobuf.json_format import Parse

        try:
            return bytes(Parse(text, made()).SerializeToString())
        except Exception as error:  # ParseError, and what protobuf makes of other text
            raise ValueEncodingError(f"it is no JSON of the schema: {shortened(error)}") from None

    return encode_json


def _message_json(message: Any) -> str:
    from google.protobuf.json_format import MessageToJson

    return str(MessageToJson(message, indent=None, preserving_proto_field_name=True))


def decode_message(
    parse: Callable[[bytes], Any], value: Callable[[Any], Any], data: bytes, start: int
) -> Any:
    """The value of a message that begins at a place.

    Raises:
        ValueDecodingError: it is none.
    """
    try:
        return value(parse(data[start:]))
    except Exception as error:  # DecodeError, and values that Python has no object for
        raise ValueDecodingError(f"it is no Protobuf of the schema: {shortened(error)}") from None


# --- Descriptors ----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def descriptor_file(schema: Schema) -> Any:
    """The descriptor of a schema's file.

    Raises:
        SchemaError: it is no Protobuf schema, or what compiles it is not installed.
    """
    with needed_package("protobuf"):
        from google.protobuf.descriptor_pool import DescriptorPool
    files = {MAIN_FILE: _file_proto(MAIN_FILE, schema.text)}
    for reference in schema.references:
        files[reference.name] = _file_proto(reference.name, reference.text)
    if None in files.values():
        files = _compiled(schema)
    pool = DescriptorPool()
    try:
        _add(pool, MAIN_FILE, files, set())
        return pool.FindFileByName(MAIN_FILE)
    except (TypeError, KeyError, ValueError) as error:
        raise SchemaError(f"it is no Protobuf schema: {shortened(error)}") from None


def message_descriptor(schema: Schema, message: str | None) -> Any:
    """The descriptor of a message.

    Raises:
        SchemaError: the schema has none of this name.
    """
    file = descriptor_file(schema)
    if message is None:
        return message_at(file, FIRST_MESSAGE)
    try:
        return file.pool.FindMessageTypeByName(message)
    except KeyError:
        names = ", ".join(sorted(each.full_name for each in file.message_types_by_name.values()))
        raise SchemaError(f"the schema has no message {message!r}; it has {names}") from None


def message_at(file: Any, indexes: tuple[int, ...]) -> Any:
    """The descriptor that indexes lead to.

    Raises:
        ValueDecodingError: they lead nowhere.
    """
    found: Any = None
    messages = list(file.message_types_by_name.values())
    for index in indexes:
        if not 0 <= index < len(messages):
            raise ValueDecodingError(
                f"its message indexes are {list(indexes)}, but the schema has no such message"
            )
        found = messages[index]
        messages = list(found.nested_types)
    return found


def indexes_of(descriptor: Any) -> tuple[int, ...]:
    """Where in its file a message is."""
    outer = descriptor.containing_type
    if outer is not None:
        names = [each.name for each in outer.nested_types]
        return (*indexes_of(outer), names.index(descriptor.name))
    return (list(descriptor.file.message_types_by_name).index(descriptor.name),)


def _message_class(descriptor: Any) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)


def _file_proto(name: str, text: str) -> Any:
    """The file that base64 holds; None where it is text to be compiled."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        proto = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    proto.name = name
    return proto


def _compiled(schema: Schema) -> dict[str, Any]:
    """What protoc makes of a schema's text, file by file.

    Raises:
        SchemaError: it refuses it, or is not installed.
    """
    with needed_package("grpcio-tools, which brings protoc"):
        grpc_tools = importlib.import_module("grpc_tools")
        common_protos = importlib.import_module("google.type")
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    known = [
        Path(grpc_tools.__path__[0]) / "_proto",
        Path(common_protos.__path__[0]).parent.parent,
    ]
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for reference in ((MAIN_FILE, schema.text), *schema.references):
            path = (folder / reference[0]).resolve()
            if not path.is_relative_to(folder):
                raise SchemaError(f"it refers to {reference[0]!r}, which is no name of a file")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(reference[1], encoding="utf-8")
        result = folder / "descriptors"
        paths = [f"-I{each}" for each in (folder, *known)]
        answer = subprocess.run(
            [
                *(sys.executable, "-m", "grpc_tools.protoc", *paths),
                *(f"--descriptor_set_out={result}", "--include_imports", MAIN_FILE),
            ],
            capture_output=True,
            text=True,
            timeout=COMPILE_TIMEOUT_S,
        )
        if answer.returncode != 0:
            # Beside what it says of files, protoc logs what is of use to its authors only.
            faults = [line for line in answer.stderr.splitlines() if FAULT.match(line)]
            said = "; ".join(faults).replace(f"{folder}/", "") or answer.stderr
            said = said.replace(f"{MAIN_FILE}:", "line ")
            raise SchemaError(f"it is no Protobuf schema: {shortened(said)}")
        found = FileDescriptorSet.FromString(result.read_bytes())
    return {each.name: each for each in found.file}


def _add(pool: Any, name: str, files: dict[str, Any], added: set[str]) -> None:
    """Add a file to a pool, behind those that it imports."""
    if name in added:
        return
    added.add(name)
    proto = files.get(name)
    if proto is None:
        proto = _well_known(name)
    for other in proto.dependency:
        _add(pool, other, files, added)
    pool.AddSerializedFile(proto.SerializeToString())


def _well_known(name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    known = WELL_KNOWN.fullmatch(name)
    if known is None:
        raise KeyError(f"it imports {name!r}, which its references do not name")
    try:
        module = importlib.import_module(f"{PACKAGES[known[1]]}.{known[2]}_pb2")
    except ImportError:
        raise KeyError(f"it imports {name!r}, which is not installed here") from None
    proto = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto


# --- Messages and Python's objects ----------------------------------------------------------


def value_of(descriptor: Any) -> Callable[[Any], Any]:
    """What makes a Python value of messages: a dictionary by the fields' names; of well-known
    types a datetime, a timedelta, or the value that is wrapped."""
    name = descriptor.full_name
    if name == TIMESTAMP:
        return _datetime
    if name == DURATION:
        return lambda message: timedelta(
            seconds=message.seconds, microseconds=message.nanos // 1000
        )
    if name in WRAPPERS:
        return lambda message: message.value
    if name in JSON_LIKE:
        from google.protobuf.json_format import MessageToDict

        return lambda message: MessageToDict(message)
    fields: list[tuple[str, Callable[[Any], Any]]] = []

    def convert(message: Any) -> Any:
        if not fields:  # made late, since messages may hold themselves
            fields.extend((field.name, _field_value(field)) for field in descriptor.fields)
        return {field: get(message) for field, get in fields}

    return convert


def _field_value(field: Any) -> Callable[[Any], Any]:
    name = field.name
    if is_map(field):
        value = _single_value(field.message_type.fields_by_name["value"])
        return lambda message: {key: value(each) for key, each in getattr(message, name).items()}
    single = _single_value(field)
    if field.is_repeated:
        return lambda message: [single(each) for each in getattr(message, name)]
    if field.has_presence:
        return lambda message: single(getattr(message, name)) if message.HasField(name) else None
    return lambda message: single(getattr(message, name))


def _single_value(field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        return value_of(field.message_type)
    if field.enum_type is not None:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        # A writer may know more names than the reader.
        return lambda number: names.get(number, str(number))
    return lambda value: value


def is_map(field: Any) -> bool:
    """Whether a field is a map, which Protobuf has as repeated messages of key and value."""
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def fill(message: Any, value: Any) -> None:
    """Give a message what a value of `value_of` says.

    Raises:
        TypeError, ValueError, KeyError: it is of other types, or has other fields.
    """
    descriptor = message.DESCRIPTOR
    name = descriptor.full_name
    if name == TIMESTAMP:
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        microseconds = (moment - EPOCH) // MICROSECOND
        message.seconds, message.nanos = microseconds // 1_000_000, microseconds % 1_000_000 * 1000
    elif name == DURATION:
        message.FromTimedelta(value)
    elif name in WRAPPERS:
        message.value = value
        message.SetInParent()
    elif name in JSON_LIKE:
        from google.protobuf.json_format import ParseDict

        ParseDict(value, message)
    else:
        message.SetInParent()
        unknown = [field for field in value if field not in descriptor.fields_by_name]
        if unknown:
            raise ValueError(f"{name} has no field {unknown[0]!r}")
        for field_name, part in value.items():
            if part is not None:
                _fill_field(message, descriptor.fields_by_name[field_name], part)


def _fill_field(message: Any, field: Any, value: Any) -> None:
    target = getattr(message, field.name)
    if is_map(field):
        entry = field.message_type.fields_by_name["value"]
        for key, each in value.items():
            if entry.message_type is not None:
                fill(target[key], each)
            else:
                target[key] = _scalar(entry, each)
    elif field.is_repeated:
        for each in value:
            if field.message_type is not None:
                fill(target.add(), each)
            else:
                target.append(_scalar(field, each))
    elif field.message_type is not None:
        fill(target, value)
    else:
        setattr(message, field.name, _scalar(field, value))


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is None or not isinstance(value, str):
        return value
    known = field.enum_type.values_by_name.get(value)
    return int(value) if known is None else known.number


def _datetime(message: Any) -> datetime:
    return EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
