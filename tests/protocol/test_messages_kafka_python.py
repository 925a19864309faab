"""Our bytes against kafka-python's own codec, at every version that both have."""

from __future__ import annotations

import importlib
import pkgutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import kafka.protocol as kafka_python
import pytest
from kafka.protocol.api_message import ApiMessage

from odradek.protocol import messages, wire
from odradek.protocol.message import Message
from odradek.protocol.types import ResolvedStruct

Rows = Callable[[str], list[list[str]]]


def kafka_python_messages() -> Iterator[tuple[Message, Any]]:
    """Our message and kafka-python's class of the same name."""
    for package in ("admin", "consumer", "metadata", "producer", "sasl"):
        root = importlib.import_module(f"{kafka_python.__name__}.{package}")
        names = [info.name for info in pkgutil.iter_modules(getattr(root, "__path__", []))]
        modules = [root, *(importlib.import_module(f"{root.__name__}.{name}") for name in names)]
        for module in modules:
            for name, theirs in vars(module).items():
                is_message = isinstance(theirs, type) and issubclass(theirs, ApiMessage)
                if is_message and name in messages.message_names():
                    yield getattr(messages, name), theirs


PAIRS = {ours.name: (ours, theirs) for ours, theirs in kafka_python_messages()}


def test_kafka_python_has_most_of_what_clients_use() -> None:
    assert len(PAIRS) >= 80
    assert {"ProduceRequest", "FetchResponse", "OffsetFetchResponse"} <= PAIRS.keys()


def without_unknown_tags(value: Any) -> Any:
    """The value as it was, with what kafka-python would not write again taken out."""
    if hasattr(value, "unknown_tags"):
        value.unknown_tags = None
        for name in type(value).__slots__:
            without_unknown_tags(getattr(value, name))
    elif isinstance(value, list):
        for element in value:
            without_unknown_tags(element)
    return value


def assert_same(ours: Any, theirs: Any, resolved: ResolvedStruct) -> None:
    """See that kafka-python finds the same values under the same names."""
    for subcon in resolved.subcons:
        if subcon.name == wire.TAGGED_FIELDS:
            fields = list(subcon.subcon.fields.values())
        else:
            fields = [subcon]
        for field in fields:
            if field.name.endswith("_authorized_operations"):
                continue  # A set of bits there, under another name; its bytes are compared.
            assert_same_field(getattr(ours, field.name), getattr(theirs, field.name), field.subcon)


def assert_same_field(ours: Any, theirs: Any, wire_type: Any) -> None:
    if isinstance(wire_type, wire.Presence):
        wire_type = wire_type.content
    if ours is None:
        assert theirs is None
    elif isinstance(wire_type, wire.Repeated):
        assert len(ours) == len(theirs)
        for our_element, their_element in zip(ours, theirs, strict=True):
            assert_same_field(our_element, their_element, wire_type.element)
    elif isinstance(wire_type, ResolvedStruct) and theirs is None:
        assert ours == wire_type.declaration.value_class()  # It was not on the wire.
    elif isinstance(wire_type, ResolvedStruct):
        assert_same(ours, theirs, wire_type)
    elif isinstance(theirs, uuid.UUID):
        assert ours == theirs.bytes
    elif isinstance(theirs, int | str | float):
        assert ours == theirs
    elif isinstance(theirs, bytes | memoryview):
        assert bytes(ours) == bytes(theirs)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS)
def test_kafka_python_reads_our_bytes_and_writes_the_same(
    ours: Message, theirs: Any, kafka_rows: Rows
) -> None:
    side = "request" if ours.name.endswith("Request") else "response"
    for row_side, api_key, row_version, body in kafka_rows("kafka-4.3.1-messages.tsv"):
        version = int(row_version)
        if (row_side, int(api_key)) != (side, ours.api_key) or version > theirs.max_version:
            continue
        value = without_unknown_tags(ours.decoder(version)(bytes.fromhex(body), 0)[0])
        if ours.name == "ApiVersionsResponse":
            value.error_code = 0  # With an error kafka-python takes it for version 0.
        encoded = b"".join(ours.encoder(version)(value))
        read = theirs.decode(encoded, version=version)
        assert_same(value, read, ours.version(version))
        read._header = None  # Decoding does not set it, and encoding asks for it.
        assert bytes(read.encode(version=version)) == encoded
