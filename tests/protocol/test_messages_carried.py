"""What a version cannot carry: unknown tagged fields survive, the rest is named or let go.

Which fields may be lost is Kafka's word, compared in `test_messages_schemas.py`; here every
one of them is set, in every message, at every version that lacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odradek.common.sentinels import ZERO_UUID
from odradek.protocol import EncodeError, encode_body, internal, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.types import Array, Field, StructType, records, string, uuid

MESSAGES: list[MessageType] = [
    *(getattr(messages, name) for name in messages.message_names()),
    *map(internal.find_message, internal.message_names()),
]
UNKNOWN = {1000: b"from the future", 70_000: b""}

Wrap = Callable[[Any], Any]


def places(struct: StructType, version: int, wrap: Wrap) -> Iterator[tuple[StructType, Wrap]]:
    """Each struct that a version has, and how to make a whole message of one of its values."""
    yield struct, wrap
    for field in struct.fields:
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, StructType) and version in field.versions:
            yield from places(inner, version, within(struct, field, wrap))


def within(struct: StructType, field: Field, wrap: Wrap) -> Wrap:
    def wrapped(value: Any) -> Any:
        content = [value] if isinstance(field.type, Array) else value
        return wrap(value_of(struct, **{field.name: content}))

    return wrapped


def value_of(struct: StructType, **fields: Any) -> Any:
    """A value that can be written: records have no default but null, which few may be."""
    empty = {field.name: b"" for field in struct.fields if field.type is records}
    return struct(**{**empty, **fields})


def other_than_default(field: Field) -> Any:
    """A value that the field does not have of itself."""
    kind, default = field.type, field.default
    if isinstance(kind, Array):
        element = kind.element
        return [element() if isinstance(element, StructType) else element.default]
    if isinstance(kind, StructType):
        inner = kind.fields[0]
        return kind(**{inner.name: other_than_default(inner)})
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default - 1 if default > 0 else default + 1
    if kind is uuid:
        return b"\x01" * len(ZERO_UUID)
    return "set" if kind is string else b"set"


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_what_a_version_lacks_is_refused_by_name_or_may_be_lost(message: MessageType) -> None:
    for version in message.versions:
        for struct, wrap in places(message, version, lambda value: value):
            plain = encode_body(wrap(value_of(struct)), version)
            for field in struct.fields:
                if version in field.versions:
                    continue
                value = wrap(value_of(struct, **{field.name: other_than_default(field)}))
                if field.ignorable:
                    assert encode_body(value, version) == plain, (version, field.name)
                    assert message.build(value, version=version) == plain
                    continue
                error = rf"^{struct.name}\.{field.name} is not in v{version}$"
                with pytest.raises(EncodeError, match=error):
                    message.encoder(version)(value)
                with pytest.raises(EncodeError, match=error):
                    message.build(value, version=version)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_unknown_tagged_fields_survive_in_every_struct(message: MessageType) -> None:
    for version in message.versions:
        for struct, wrap in places(message, version, lambda value: value):
            value = wrap(value_of(struct, unknown_tags=dict(UNKNOWN)))
            if version not in message.flexible:
                error = rf"^{struct.name} has no tagged fields in v{version}$"
                with pytest.raises(EncodeError, match=error):
                    message.encoder(version)(value)
                continue
            encoded = encode_body(value, version)
            assert UNKNOWN[1000] in encoded
            read, position = message.decoder(version)(encoded, 0)
            assert position == len(encoded)
            assert encode_body(read, version) == encoded, (version, struct.name)
            assert message.parse(encoded, version=version) == read


def test_messages_lack_fields_of_either_kind() -> None:
    lacking = [
        field.ignorable
        for message in MESSAGES
        for version in message.versions
        for struct, _ in places(message, version, lambda value: value)
        for field in struct.fields
        if version not in field.versions
    ]
    assert lacking.count(True) > 400
    assert lacking.count(False) > 300
