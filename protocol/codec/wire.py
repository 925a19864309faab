"""What a message is at one version: plain constructs, in which no version is left.

They are the source of truth for the bytes. Interpreted they are the oracle that the
generated codecs are tested against, so they check all that those check. Both are made of the same
layout (`struct_of`). Malformed bytes raise `construct.ConstructError`.
"""

from __future__ import annotations

import io
from typing import Any

import construct
from construct import Construct

from ..varints import UNSIGNED_VARINT_MAX, VARINT_BYTES_MAX, encode_unsigned_varint
from .layout import (
    STRING_BYTES_MAX,
    ArrayLayout,
    BlobLayout,
    FixedLayout,
    Layout,
    Member,
    PresenceLayout,
    RecordsLayout,
    SizedLayout,
    TextLayout,
)
from .types import StructLayout, StructType

TAGGED_FIELDS = "tagged_fields"
UNKNOWN = "unknown"


class WireError(construct.ConstructError):  # type: ignore[misc]  # untyped
    """Bytes that are no value of the type, or a value that the type cannot hold."""


def remaining_bytes(stream: io.BytesIO) -> int:
    """How much of a seekable stream is left."""
    position = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(position)
    return end - position


class UnsignedVarint(Construct):  # type: ignore[misc]  # untyped
    """An unsigned varint of at most five bytes and 32 bits."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for index in range(VARINT_BYTES_MAX):
            byte: int = construct.stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value > UNSIGNED_VARINT_MAX:
                    raise WireError(f"a varint holds {value}, more than 32 bits", path=path)
                return value
        raise WireError(f"a varint has more than {VARINT_BYTES_MAX} bytes", path=path)

    def _build(self, value: int, stream: Any, context: Any, path: str) -> int:
        encoded = encode_unsigned_varint(value)
        construct.stream_write(stream, encoded, len(encoded), path)
        return value


class CompactLength(UnsignedVarint):
    """A length of a flexible version: a varint one larger than it, and zero for null."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return super()._parse(stream, context, path) - 1

    def _build(self, value: int, stream: Any, context: Any, path: str) -> int:
        super()._build(value + 1, stream, context, path)
        return value


UNSIGNED_VARINT = UnsignedVarint()
COMPACT_LENGTH = CompactLength()


class Sized(Construct):  # type: ignore[misc]  # untyped
    """A value led by its length or count, in which -1 is null.

    Args:
        length: the construct of the length.
        nullable: whether null is allowed.
    """

    def __init__(self, length: Construct, nullable: bool) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable

    @property
    def bytes_min(self) -> int:
        """The fewest bytes a value takes: those of its length alone."""
        return 1 if self.length is COMPACT_LENGTH else int(self.length.sizeof())

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        size = self.length._parsereport(stream, context, path)
        if size < 0:
            if size == -1 and self.nullable:
                return None
            raise WireError(f"a length of {size}", path=path)
        return self._parse_content(size, stream, context, path)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        if value is None:
            if not self.nullable:
                raise WireError("null where a value must be", path=path)
            self.length._build(-1, stream, context, path)
        else:
            self._build_content(value, stream, context, path)
        return value

    def _parse_content(self, size: int, stream: Any, context: Any, path: str) -> Any:
        if size > remaining_bytes(stream):
            raise WireError(f"{size} bytes announced, fewer are left", path=path)
        return construct.stream_read(stream, size, path)

    def _build_content(self, value: Any, stream: Any, context: Any, path: str) -> None:
        content = bytes(value)
        self.length._build(len(content), stream, context, path)
        construct.stream_write(stream, content, len(content), path)


class Text(Sized):
    """A string in UTF-8."""

    def _parse_content(self, size: int, stream: Any, context: Any, path: str) -> str:
        if size > STRING_BYTES_MAX:
            raise WireError(f"a string of {size} bytes", path=path)
        content: bytes = super()._parse_content(size, stream, context, path)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise WireError(f"no UTF-8: {error}", path=path) from None

    def _build_content(self, value: Any, stream: Any, context: Any, path: str) -> None:
        if not isinstance(value, str):
            raise WireError(f"{type(value).__name__} instead of a string", path=path)
        try:
            content = value.encode()
        except UnicodeEncodeError as error:
            raise WireError(f"no UTF-8: {error}", path=path) from None
        if len(content) > STRING_BYTES_MAX:
            raise WireError(f"a string of {len(content)} bytes", path=path)
        super()._build_content(content, stream, context, path)


class Blob(Sized):
    """Bytes."""


class RecordsBlob(Sized):
    """Record batches, which decoders hand on as a view and encoders as they are."""


class Repeated(Sized):
    """An array.

    Args:
        element: the construct of one element.
    """

    def __init__(self, length: Construct, nullable: bool, element: Construct) -> None:
        super().__init__(length, nullable)
        self.element = element

    def _parse_content(self, size: int, stream: Any, context: Any, path: str) -> list[Any]:
        if size * max(bytes_min(self.element), 1) > remaining_bytes(stream):
            raise WireError(f"{size} elements announced, fewer fit what is left", path=path)
        parse = self.element._parsereport
        return [parse(stream, context, f"{path}[{index}]") for index in range(size)]

    def _build_content(self, value: Any, stream: Any, context: Any, path: str) -> None:
        self.length._build(len(value), stream, context, path)
        for index, element in enumerate(value):
            self.element._build(element, stream, context, f"{path}[{index}]")


class Presence(Construct):  # type: ignore[misc]  # untyped
    """A struct that may be null, led by a sign of its presence.

    The sign is an int8, negative for null; but within a tagged field it is a varint, 0 for
    null (`MessageDataGenerator.generateStructReader`).

    Args:
        content: the struct.
        tagged: whether it is the value of a tagged field.
    """

    def __init__(self, content: Construct, tagged: bool) -> None:
        super().__init__()
        self.content = content
        self.tagged = tagged

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        if self.tagged:
            present = UNSIGNED_VARINT._parsereport(stream, context, path) > 0
        else:
            present = construct.Int8sb._parsereport(stream, context, path) >= 0
        return self.content._parsereport(stream, context, path) if present else None

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        sign = UNSIGNED_VARINT if self.tagged else construct.Int8sb
        sign._build((0 if self.tagged else -1) if value is None else 1, stream, context, path)
        if value is not None:
            self.content._build(value, stream, context, path)
        return value


class TaggedFields(Construct):  # type: ignore[misc]  # untyped
    """The end of every struct of a flexible version: fields by number (KIP-482).

    Its value is a mapping from field names, for those that are there, to their values, and
    from `unknown` to a mapping of other tags to their bytes.

    Args:
        fields: the known fields by tag.
    """

    def __init__(self, fields: dict[int, construct.Renamed]) -> None:
        super().__init__()
        self.fields = fields

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = UNSIGNED_VARINT._parsereport(stream, context, path)
        if 2 * count > remaining_bytes(stream):
            raise WireError(f"{count} tagged fields announced, fewer fit", path=path)
        result = construct.Container()
        unknown: dict[int, bytes] = {}
        for _ in range(count):
            tag = UNSIGNED_VARINT._parsereport(stream, context, path)
            size = UNSIGNED_VARINT._parsereport(stream, context, path)
            if size > remaining_bytes(stream):
                raise WireError(f"tag {tag}: {size} bytes announced, fewer are left", path=path)
            field = self.fields.get(tag)
            if field is None:
                unknown[tag] = construct.stream_read(stream, size, path)
                continue
            start = stream.tell()
            result[field.name] = field._parsereport(stream, context, path)
            if stream.tell() - start != size:
                raise WireError(f"tag {tag} does not have the announced {size} bytes", path=path)
        result[UNKNOWN] = unknown or None
        return result

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        contents: dict[int, bytes] = dict(value.get(UNKNOWN) or {})
        for tag, field in self.fields.items():
            if tag in contents:
                raise WireError(f"tag {tag} is both known and unknown", path=path)
            if field.name in value:
                contents[tag] = self._field_bytes(field, value[field.name], context, path)
        UNSIGNED_VARINT._build(len(contents), stream, context, path)
        for tag, content in sorted(contents.items()):
            UNSIGNED_VARINT._build(tag, stream, context, path)
            UNSIGNED_VARINT._build(len(content), stream, context, path)
            construct.stream_write(stream, content, len(content), path)
        return value

    @staticmethod
    def _field_bytes(field: construct.Renamed, value: Any, context: Any, path: str) -> bytes:
        content = io.BytesIO()
        field._build(value, content, context, path)
        return content.getvalue()


class ResolvedStruct(construct.Struct):  # type: ignore[misc]  # untyped
    """A plain `construct.Struct` that knows which declared struct it is a version of.

    Args:
        declaration: the declared struct.
        version: of the message.
    """

    def __init__(self, declaration: StructType, version: int, *subcons: Construct) -> None:
        super().__init__(*subcons)
        self.declaration = declaration
        self.version = version


def bytes_min(wire_type: Construct) -> int:
    """The fewest bytes that a value of a resolved type takes."""
    if isinstance(wire_type, construct.Renamed):
        return bytes_min(wire_type.subcon)
    if isinstance(wire_type, construct.Struct):
        return sum(bytes_min(subcon) for subcon in wire_type.subcons)
    if isinstance(wire_type, Sized):
        return wire_type.bytes_min
    if isinstance(wire_type, Presence | TaggedFields | UnsignedVarint):
        return 1
    return int(wire_type.sizeof())


FIXED: dict[str, Construct] = {
    "?": construct.Flag,
    "b": construct.Int8sb,
    "h": construct.Int16sb,
    "H": construct.Int16ub,
    "i": construct.Int32sb,
    "I": construct.Int32ub,
    "q": construct.Int64sb,
    "d": construct.Float64b,
}
"""The construct of each `struct` format but for those of bytes."""

SIZED: dict[type[SizedLayout], type[Sized]] = {
    TextLayout: Text,
    BlobLayout: Blob,
    RecordsLayout: RecordsBlob,
}


def struct_of(layout: StructLayout) -> ResolvedStruct:
    """The plain construct of a struct's layout."""
    subcons = [_renamed(member) for member in layout.members]
    if layout.tags is not None:
        known = {tag: _renamed(field) for tag, field in layout.tags.fields.items()}
        subcons.append(construct.Renamed(TaggedFields(known), newname=TAGGED_FIELDS))
    return ResolvedStruct(layout.declaration, layout.version, *subcons)


def _renamed(member: Member) -> construct.Renamed:
    return construct.Renamed(construct_of(member.layout), newname=member.name)


def construct_of(layout: Layout) -> Construct:
    """The plain construct of any layout but of tagged fields, which a struct's holds."""
    if isinstance(layout, FixedLayout):
        return FIXED.get(layout.form) or construct.Bytes(layout.bytes_min)
    if isinstance(layout, StructLayout):
        return struct_of(layout)
    if isinstance(layout, PresenceLayout):
        return Presence(construct_of(layout.content), layout.tagged)
    assert isinstance(layout, SizedLayout)
    length = COMPACT_LENGTH if layout.length is None else FIXED[layout.length]
    if isinstance(layout, ArrayLayout):
        return Repeated(length, layout.nullable, construct_of(layout.element))
    return SIZED[type(layout)](length, layout.nullable)
