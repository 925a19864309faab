"""Variable-length integers: seven bits a byte, the lowest first, as Kafka's ByteUtils has them.

Messages of flexible versions use *unsigned* varints of at most 32 bits (KIP-482). Records of
format v2 use *zigzag* varints of at most 64 bits: signed numbers, of which 0, -1, 1, -2 are
written as the unsigned 0, 1, 2, 3 (KIP-98).
"""

from __future__ import annotations

from ..common.errors import ErrorCode, KafkaError
from .errors import ProtocolError

VARINT_BYTES_MAX = 5
UNSIGNED_VARINT_MAX = 0xFFFFFFFF

ZIGZAG_BITS_MAX = 70
"""Ten bytes of seven bits carry any 64-bit number; a longer one is not a number."""

Buffer = bytes | bytearray | memoryview


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a varint; gives its value and the position after it.

    Raises:
        ProtocolError: it is longer than five bytes or larger than 32 bits.
        IndexError: the buffer ends within it.
    """
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    return read_unsigned_varint_rest(buffer, position, byte)


def read_unsigned_varint_rest(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
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


def encode_unsigned_varint(value: int) -> bytes:
    """The bytes of a value from 0 to 2**32 - 1.

    Raises:
        ValueError: the value is outside that range.
    """
    if not 0 <= value <= UNSIGNED_VARINT_MAX:
        raise ValueError(f"{value} does not fit an unsigned varint of 32 bits")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_unsigned_varint_rest(value: int) -> bytes:
    """The bytes of a value above 127 without its first byte."""
    return encode_unsigned_varint(value >> 7)


def read_zigzag_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The signed number at `position`, and the position after it.

    Raises:
        IndexError: the data ends inside the number.
        KafkaError: CORRUPT_MESSAGE, it is longer than any 64-bit number.
    """
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = data[position + 1]
    if second < 0x80:
        raw = byte & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    raw, position = read_raw_zigzag(data, position)
    return (raw >> 1) ^ -(raw & 1), position


def read_raw_zigzag(data: Buffer, position: int) -> tuple[int, int]:
    """The unsigned number that encodes the signed one at `position`, and the position after it.

    Raises:
        IndexError: the data ends inside the number.
        KafkaError: CORRUPT_MESSAGE, it is longer than any 64-bit number.
    """
    raw = shift = 0
    while True:
        byte = data[position]
        position += 1
        if byte < 0x80:
            return raw | byte << shift, position
        raw |= (byte & 0x7F) << shift
        shift += 7
        if shift >= ZIGZAG_BITS_MAX:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a record holds an endless number")


def append_zigzag_varint(output: bytearray, value: int) -> None:
    """Write a signed number of up to 64 bits at the end of `output`."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    while raw > 0x7F:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)
