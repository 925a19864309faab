"""The densest bytes that are a message: of one array in it, as many elements as there can be.

They are put together from the resolved schema byte by byte, by none of the encoders, so that a
hundred megabytes of them take no time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from construct import Construct, Renamed

from odradek.protocol.codec.codegen import fixed_format
from odradek.protocol.codec.types import ResolvedStruct
from odradek.protocol.codec.wire import COMPACT_LENGTH, TAGGED_FIELDS, Presence, Repeated, Sized
from odradek.protocol.varints import encode_unsigned_varint

LARGE = {
    "?": b"\x01",
    "b": b"\x85",
    "h": b"\x7f\xff",
    "H": b"\x7f\xff",
    "i": b"\x7f\xff\xff\xff",
    "I": b"\xff\xff\xff\xff",
    "q": b"\x7f" + b"\xff" * 7,
    "d": b"\x40" + b"\x11" * 7,
    "16s": b"\x11" * 16,
}
"""Of each fixed width a value that Python keeps no object of: large, or far below zero."""

FIRST_UNKNOWN_TAG = 100


class Style(NamedTuple):
    """What elements are like."""

    numbers: bool = False
    """Large ones, each an object, and not zero."""
    tags: int = 0
    """Unknown ones in every struct."""
    text: bytes = b""
    """Of every string, and every bytes."""
    filled: bool = False
    """One element in each array within them, no struct missing."""


SHORTEST = Style()
STYLES = (
    SHORTEST,
    Style(numbers=True, filled=True),
    Style(numbers=True, tags=1),
    Style(numbers=True, text="\U0001f600".encode()),
    Style(numbers=True, text="a€".encode(), filled=True),
)


def array_paths(resolved: ResolvedStruct) -> Iterator[tuple[str, ...]]:
    """The names that lead to each array of a message's version, tagged fields among them."""
    for subcon in resolved.subcons:
        is_tagged = subcon.name == TAGGED_FIELDS
        for field in subcon.subcon.fields.values() if is_tagged else [subcon]:
            inner = field.subcon.content if isinstance(field.subcon, Presence) else field.subcon
            if isinstance(inner, ResolvedStruct):
                yield from ((field.name, *path) for path in array_paths(inner))
            elif isinstance(inner, Repeated):
                yield (field.name,)
                if isinstance(inner.element, ResolvedStruct):
                    yield from ((field.name, *path) for path in array_paths(inner.element))


class DenseMessage:
    """A version of a message, with many elements in one of its arrays and little else.

    Args:
        resolved: the version.
        path: the names that lead to the array.
        style: what its elements are like.
    """

    def __init__(self, resolved: ResolvedStruct, path: tuple[str, ...], style: Style) -> None:
        self._resolved = resolved
        self._path = path
        self._style = style
        self.element_bytes = 0
        self.with_count(0)

    def with_count(self, count: int) -> bytes:
        """The message with so many elements."""

        def content(array: Repeated) -> bytes:
            element = _written(array.element, self._style)
            self.element_bytes = max(len(element), 1)
            return _length(array, count) + element * count

        return _written(self._resolved, SHORTEST, self._path, content)


def _written(
    wire_type: Construct,
    style: Style,
    path: tuple[str, ...] = (),
    content: Callable[[Repeated], bytes] | None = None,
) -> bytes:
    """A value of a type; what the array at the end of the path holds is `content`'s."""
    if isinstance(wire_type, Renamed):
        return _written(wire_type.subcon, style, path, content)
    form = fixed_format(wire_type)
    if form is not None:
        return LARGE[form] if style.numbers else bytes(struct.calcsize(">" + form))
    if isinstance(wire_type, Presence):
        if path or style.filled:
            return b"\x01" + _written(wire_type.content, style, path, content)
        return b"\x00" if wire_type.tagged else b"\xff"
    if isinstance(wire_type, ResolvedStruct):
        return b"".join(
            _written_tags(subcon.subcon, style, path, content)
            if subcon.name == TAGGED_FIELDS
            else _written(subcon.subcon, style, path[1:], content)
            if path[:1] == (subcon.name,) and path[1:]
            else _written_array(subcon.subcon, content)
            if path[:1] == (subcon.name,)
            else _written(subcon.subcon, style)
            for subcon in wire_type.subcons
        )
    if isinstance(wire_type, Repeated):
        if path:
            return _length(wire_type, 1) + _written(wire_type.element, style, path, content)
        if style.filled:
            return _length(wire_type, 1) + _written(wire_type.element, style)
        return _length(wire_type, 0)
    return _length(wire_type, len(style.text)) + style.text


def _written_array(wire_type: Any, content: Callable[[Repeated], bytes] | None) -> bytes:
    assert content is not None
    if isinstance(wire_type, Presence):
        return b"\x01" + _written_array(wire_type.content, content)
    return content(wire_type)


def _written_tags(
    tagged: Any,
    style: Style,
    path: tuple[str, ...],
    content: Callable[[Repeated], bytes] | None,
) -> bytes:
    for tag, field in tagged.fields.items():
        if path[:1] == (field.name,):
            if path[1:]:
                value = _written(field.subcon, style, path[1:], content)
            else:
                value = _written_array(field.subcon, content)
            return (
                b"\x01" + encode_unsigned_varint(tag) + encode_unsigned_varint(len(value)) + value
            )
    unknown = (
        encode_unsigned_varint(FIRST_UNKNOWN_TAG + tag) + b"\x00" for tag in range(style.tags)
    )
    return encode_unsigned_varint(style.tags) + b"".join(unknown)


def _length(sized: Sized, size: int) -> bytes:
    if sized.length is COMPACT_LENGTH:
        return encode_unsigned_varint(size + 1)
    return size.to_bytes(sized.bytes_min, "big")
