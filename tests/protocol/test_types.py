"""Messages, fields and types are constructs, and resolve to plain ones."""

from __future__ import annotations

import construct
import pytest

from odradek.protocol import messages
from odradek.protocol.codec.message import Message
from odradek.protocol.codec.types import Array, Bytes, Field, Int32, String, Struct, Uuid
from odradek.protocol.codec.versions import format_versions, parse_versions


def test_messages_fields_and_types_are_constructs() -> None:
    request = messages.MetadataRequest
    assert isinstance(request, Message)
    for thing in (request, request.fields[0], request.fields[0].type, String, Uuid):
        assert isinstance(thing, construct.Construct)


def test_a_version_is_a_plain_struct_that_parses_and_builds() -> None:
    plain = messages.MetadataRequest.version(9)
    assert isinstance(plain, construct.Struct)
    container = plain.parse(b"\x02\x02t\x00\x01\x00\x01\x00")
    assert container.topics[0].name == "t"
    assert container.allow_auto_topic_creation is True
    assert plain.build(container) == b"\x02\x02t\x00\x01\x00\x01\x00"


def test_a_message_parses_and_builds_values_with_its_version_as_a_parameter() -> None:
    request = messages.HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    encoded = messages.HeartbeatRequest.build(request, version=0)
    assert encoded == b"\x00\x01g\x00\x00\x00\x03\x00\x01m"
    assert messages.HeartbeatRequest.parse(encoded, version=0) == request


def test_a_message_can_be_part_of_another_construct() -> None:
    framed = construct.Prefixed(construct.Int32sb, messages.HeartbeatResponse)
    parsed = framed.parse(b"\x00\x00\x00\x02\x00\x1brest", version=0)
    assert parsed.error_code == 27


def test_types_take_version_and_flexibility_as_parameters() -> None:
    assert String.parse(b"\x00\x02hi", version=0) == "hi"
    assert String.parse(b"\x03hi", version=0, flexible=True) == "hi"
    assert String.build("hi", version=0, flexible=True) == b"\x03hi"
    assert Bytes.parse(b"\xff\xff\xff\xff", version=0, nullable=True) is None
    assert Array(Int32).build([1, 2], version=0) == b"\0\0\0\2\0\0\0\1\0\0\0\2"
    assert Int32.sizeof() == 4


def test_a_field_is_on_the_wire_in_its_versions_only() -> None:
    field = Field("epoch", Int32, "2-4", default=-1)
    assert field.parse(b"\0\0\0\7", version=2) == 7
    assert field.parse(b"", version=1) == -1
    assert field.build(7, version=4) == b"\0\0\0\7"
    assert field.build(7, version=5) == b""


def test_a_message_of_ones_own_needs_a_declaration_only() -> None:
    own = Message(
        "OwnKey",
        Field("group", String),
        Field("place", Struct("Place", Field("x", Int32), Field("y", Int32)), nullable="1+"),
        versions="0-1",
        flexible="1+",
    )
    value = own(group="g", place=own.Place(x=1, y=2))
    assert own.encoder(0)(value) == [b"\x00\x01g\x00\x00\x00\x01\x00\x00\x00\x02"]
    assert own.encoder(1)(value) == [b"\x02g\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00"]
    assert own.encoder(1)(own(group="g", place=None)) == [b"\x02g\xff\x00"]
    assert own.decoder(1)(b"\x02g\xff\x00", 0) == (own(group="g", place=None), 4)
    assert own.api_key is None


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("0+", range(0x8000)),
        ("3", range(3, 4)),
        ("3-13", range(3, 14)),
        ("7+", range(7, 0x8000)),
        ("none", range(0)),
    ],
)
def test_ranges_of_versions_read_and_write_as_in_kafkas_definitions(
    text: str, versions: range
) -> None:
    assert parse_versions(text) == versions
    assert format_versions(versions) == text


@pytest.mark.parametrize("text", ["", "x", "3-", "-3", "1-2-3"])
def test_what_is_no_range_of_versions_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"int\(\)"):
        parse_versions(text)
