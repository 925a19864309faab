"""Zigzag variable-length integers, as records of format v2 use them (KIP-98)."""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ..codec.varints import Buffer

VARINT_BITS_MAX = 70
"""Ten bytes of seven bits carry any 64-bit number; a longer one is not a number."""


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
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
    raw, position = read_raw_varint(data, position)
    return (raw >> 1) ^ -(raw & 1), position


def read_raw_varint(data: Buffer, position: int) -> tuple[int, int]:
    """What stands for the signed number at `position`, and the position after it.

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
        if shift >= VARINT_BITS_MAX:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a record holds an endless number")


def append_varint(output: bytearray, value: int) -> None:
    """Write a signed number of up to 64 bits at the end of `output`."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    while raw > 0x7F:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)
