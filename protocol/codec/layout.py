"""What a message is at one version: a tree of what its bytes hold, in which no version is left.

The codecs are generated from it, and `wire` makes the plain construct of it that they are tested
against. It knows nothing of construct: a broker serves without importing it.
"""

from __future__ import annotations

import struct

STRING_BYTES_MAX = 0x7FFF
"""Kafka's limit for strings, also where a compact length could say more."""


class Layout:
    """The bytes of one value.

    Attributes:
        bytes_min: the fewest that a value takes.
    """

    __slots__ = ("bytes_min",)

    bytes_min: int


class FixedLayout(Layout):
    """A value that takes the same bytes always.

    Args:
        form: its `struct` format.
    """

    __slots__ = ("form",)

    def __init__(self, form: str) -> None:
        self.form = form
        self.bytes_min = struct.calcsize(f">{form}")


class SizedLayout(Layout):
    """A value led by its length or count, in which -1 is null.

    Args:
        length: the `struct` format of the length; None for a compact one, a varint one larger
            than it is.
        nullable: whether null is allowed.
    """

    __slots__ = ("length", "nullable")

    def __init__(self, length: str | None, nullable: bool) -> None:
        self.length = length
        self.nullable = nullable
        self.bytes_min = 1 if length is None else struct.calcsize(f">{length}")


class TextLayout(SizedLayout):
    """A string in UTF-8."""

    __slots__ = ()


class BlobLayout(SizedLayout):
    """Bytes."""

    __slots__ = ()


class RecordsLayout(SizedLayout):
    """Record batches, which decoders hand on as a view and encoders as they are."""

    __slots__ = ()


class ArrayLayout(SizedLayout):
    """An array.

    Args:
        length: of its count; see `SizedLayout`.
        nullable: whether null is allowed.
        element: the layout of one element.
    """

    __slots__ = ("element",)

    def __init__(self, length: str | None, nullable: bool, element: Layout) -> None:
        super().__init__(length, nullable)
        self.element = element


class PresenceLayout(Layout):
    """A struct that may be null, led by a sign of its presence.

    The sign is an int8, negative for null; but within a tagged field it is a varint, 0 for
    null (`MessageDataGenerator.generateStructReader`).

    Args:
        content: the struct.
        tagged: whether it is the value of a tagged field.
    """

    __slots__ = ("content", "tagged")

    def __init__(self, content: Layout, tagged: bool) -> None:
        self.content = content
        self.tagged = tagged
        self.bytes_min = 1


class TagsLayout(Layout):
    """The end of every struct of a flexible version: fields by number (KIP-482).

    Args:
        fields: the known fields by tag.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: dict[int, Member]) -> None:
        self.fields = fields
        self.bytes_min = 1


class Member:
    """A field of a struct at one version.

    Args:
        name: the field's.
        layout: of its value.
    """

    __slots__ = ("layout", "name")

    def __init__(self, name: str, layout: Layout) -> None:
        self.name = name
        self.layout = layout
