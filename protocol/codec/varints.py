"""Unsigned varints: seven bits a byte, the lowest first, five bytes at most."""

from __future__ import annotations

from ..errors import ProtocolError

VARINT_BYTES_MAX = 5
UNSIGNED_VARINT_MAX = 0xFFFFFFFF

Buffer = bytes | bytearray | memoryview


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a varint; gives its value and the position after it.

    Raises:
        ProtocolError: it is longer than five bytes or larger than 32 bits.
        IndexError: the buffer ends within it.
    """
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    return read_varint_rest(buffer, position, byte)


def read_varint_rest(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read on in a varint whose first byte, with its top bit set, was read already.

    Raises:
        ProtocolError: it is longer than five bytes or larger than 32 bits.
        IndexError: the buffer ends within it.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > UNSIGNED_VARINT_MAX:
                raise ProtocolError(f"a varint holds {value}, more than 32 bits")
            return value, position
    raise ProtocolError(f"a varint has more than {VARINT_BYTES_MAX} bytes")


def encode_varint(value: int) -> bytes:
    """The bytes of a value from 0 to 2**32 - 1.

    Raises:
        ValueError: the value is outside that range.
    """
    if not 0 <= value <= UNSIGNED_VARINT_MAX:
        raise ValueError(f"{value} is no unsigned varint of 32 bits")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_varint_rest(value: int) -> bytes:
    """The bytes of a value above 127 without its first byte."""
    return encode_varint(value >> 7)
