"""Messages are classes of values, and resolve to plain constructs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import construct
import pytest

from odradek.protocol import internal, messages
from odradek.protocol.codec.message import Message, MessageType
from odradek.protocol.codec.types import (
    Array,
    Field,
    FieldType,
    Struct,
    StructType,
    bytes_,
    int32,
    records,
    string,
    struct,
)
from odradek.protocol.codec.versions import format_versions, parse_versions
from odradek.protocol.codec.wire import construct_of


def test_messages_are_classes_whose_versions_are_constructs() -> None:
    request = messages.MetadataRequest
    assert isinstance(request, MessageType)
    assert issubclass(request, Message)
    assert isinstance(request.version(9), construct.Struct)
    [topics, *_] = request.fields
    assert isinstance(construct_of(topics.resolve(9, True).layout), construct.Construct)
    layout = topics.type.resolve(9, True, True, False)
    assert isinstance(construct_of(layout), construct.Construct)


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


def test_a_version_can_be_part_of_another_construct() -> None:
    framed = construct.Prefixed(construct.Int32sb, messages.HeartbeatResponse.version(0))
    parsed = framed.parse(b"\x00\x00\x00\x02\x00\x1brest")
    assert parsed.error_code == 27


def resolved(
    field_type: FieldType, *, flexible: bool = False, nullable: bool = False
) -> construct.Construct:
    return construct_of(field_type.resolve(0, flexible, nullable, False))


def test_types_resolve_by_version_and_flexibility() -> None:
    assert resolved(string).parse(b"\x00\x02hi") == "hi"
    assert resolved(string, flexible=True).parse(b"\x03hi") == "hi"
    assert resolved(string, flexible=True).build("hi") == b"\x03hi"
    assert resolved(bytes_, nullable=True).parse(b"\xff\xff\xff\xff") is None
    assert resolved(Array(int32)).build([1, 2]) == b"\0\0\0\2\0\0\0\1\0\0\0\2"
    assert resolved(int32).sizeof() == 4


class Epoch(Message, versions="1-5"):
    epoch: int = int32("2-4", default=-1)


def test_a_field_is_on_the_wire_in_its_versions_only() -> None:
    assert Epoch.parse(b"\0\0\0\7", version=2) == Epoch(epoch=7)
    assert Epoch.parse(b"", version=1) == Epoch(epoch=-1)
    assert Epoch.build(Epoch(epoch=7), version=4) == b"\0\0\0\7"
    assert Epoch.build(Epoch(), version=5) == b""


class OwnKey(Message, versions="0-1", flexible="1+"):
    group: str = string()
    place: Place | None = struct(nullable="1+")
    version: int = int32("1")

    class Place(Struct):
        x: int = int32()
        y: int = int32()


def test_a_message_of_ones_own_needs_a_declaration_only() -> None:
    value = OwnKey(group="g", place=OwnKey.Place(x=1, y=2))
    assert OwnKey.encoder(0)(value) == [b"\x00\x01g\x00\x00\x00\x01\x00\x00\x00\x02"]
    [encoded] = OwnKey.encoder(1)(value)
    assert encoded == b"\x02g\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"
    assert OwnKey.encoder(1)(OwnKey(group="g", place=None)) == [b"\x02g\xff\x00\x00\x00\x00\x00"]
    decoded = OwnKey.decoder(1)(b"\x02g\xff\x00\x00\x00\x07\x00", 0)
    assert decoded == (OwnKey(group="g", place=None, version=7), 8)
    assert OwnKey.api_key is None
    assert OwnKey.name == "OwnKey"
    assert repr(value) == "OwnKey(group='g', place=OwnKey.Place(x=1, y=2), version=0)"


def test_a_field_may_have_the_name_of_what_a_message_says() -> None:
    """`version` of a class is its schema's, of a value it is the field."""
    assert OwnKey(version=3).version == 3
    assert isinstance(OwnKey.version(0), construct.Struct)


def python_type_of(field: Field) -> str:
    """How a field's values are to be annotated."""
    kind = field.type.element if isinstance(field.type, Array) else field.type
    if kind is records:
        return "Records"
    name = kind.name if isinstance(kind, StructType) else type(kind.default).__name__
    name = f"list[{name}]" if isinstance(field.type, Array) else name
    return f"{name} | None" if field.nullable or field.default is None else name


@pytest.mark.parametrize("package", [messages, internal])
def test_annotations_say_what_fields_hold(package: ModuleType) -> None:
    fields = 0
    for name in package.message_names():
        message = getattr(package, name)
        for each in (message, *message.structs()):
            annotations = inspect.get_annotations(each)
            assert annotations.keys() >= {field.name for field in each.fields}
            for field in each.fields:
                fields += 1
                annotation = annotations[field.name].replace(f"{message.name}.", "")
                assert annotation == python_type_of(field), (each, field)
    assert fields > 100


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


@pytest.mark.parametrize("package", [messages, internal])
def test_type_checkers_find_every_message(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    imported = re.findall(
        r"^    from \.(\w+) import \*$", (folder / "__init__.py").read_text(), re.M
    )
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "versioned"}
    assert set(imported) == modules == package.names_by_module().keys()
