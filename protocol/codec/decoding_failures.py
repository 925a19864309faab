"""What generated decoders call beside the straight way: errors, and tagged fields nobody knows."""

from __future__ import annotations

from ..errors import ProtocolError
from ..varints import Buffer, read_unsigned_varint, read_unsigned_varint_rest


def bad_length(field: str, size: int) -> ProtocolError:
    """The error for a length below zero, or for null where it is not allowed."""
    if size == -1:
        return ProtocolError(f"{field} is null")
    return ProtocolError(f"{field} has a length of {size}")


def too_long(field: str, size: int) -> ProtocolError:
    """The error for a string beyond Kafka's limit."""
    return ProtocolError(f"{field} has {size} bytes, more than a string may")


def too_many(field: str, count: int, remaining: int, is_charged: bool = False) -> ProtocolError:
    """The error for a count of elements that cannot be there, or that would cost too much."""
    if is_charged and count <= remaining:
        return ProtocolError(f"{field} announces {count} elements, more than such a message may")
    return ProtocolError(f"{field} announces {count} elements in {max(remaining, 0)} bytes")


def too_much(field: str) -> ProtocolError:
    """The error for content that would cost too much."""
    return ProtocolError(f"with {field} the message holds more than one may")


def bad_tag(tag: int) -> ProtocolError:
    """The error for a tagged field that does not have the size announced for it."""
    return ProtocolError(f"tagged field {tag} does not have the size it announces")


def unknown_tags(buffer: Buffer, position: int, count: int) -> tuple[dict[int, bytes] | None, int]:
    """Read tagged fields of which none is known; gives them and the position after them.

    Args:
        buffer: the message.
        position: after the first byte of the count.
        count: that byte, not zero.

    Raises:
        ProtocolError: there are fewer bytes than announced.
        IndexError: the buffer ends within a varint.
    """
    if count > 127:
        count, position = read_unsigned_varint_rest(buffer, position, count)
    if count * 2 > len(buffer) - position:
        raise too_many("tagged fields", count, len(buffer) - position)
    return counted_unknown_tags(buffer, position, count)


def counted_unknown_tags(
    buffer: Buffer, position: int, count: int
) -> tuple[dict[int, bytes] | None, int]:
    """The same, from after the count on."""
    end = len(buffer)
    unknown: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        stop = position + size
        if stop > end:
            raise bad_tag(tag)
        unknown[tag] = bytes(buffer[position:stop])
        position = stop
    return unknown or None, position


def cut_short(error: Exception | None) -> ProtocolError:
    """The error for bytes that end too early or are no text."""
    if isinstance(error, UnicodeDecodeError):
        return ProtocolError(f"a string is not UTF-8: {error.reason}")
    return ProtocolError("the message ends before its fields do")
