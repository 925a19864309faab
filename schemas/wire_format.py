"""Confluent's wire format: a zero, a schema's id in four bytes, then what the format wrote.

Behind the id of a Protobuf schema stands which of its messages follows: how many indexes, and each
of them, in zigzag varints; the usual case, the file's first message, is one zero. See "Wire format"
in the documentation of Confluent's Schema Registry.
"""

from __future__ import annotations

from .errors import ValueDecodingError

MAGIC = 0
HEADER_BYTES = 5
FIRST_MESSAGE = (0,)
INDEXES_MAX = 100
"""Messages are not nested deeper: protoc stops at 32."""
VARINT_BYTES_MAX = 5


def schema_id_of(data: bytes) -> int:
    """The id in front of a value.

    Raises:
        ValueDecodingError: the value is not in the wire format.
    """
    if len(data) < HEADER_BYTES:
        raise ValueDecodingError(
            f"it is not in the wire format: it has {len(data)} bytes, fewer than the header"
        )
    if data[0] != MAGIC:
        raise ValueDecodingError(
            f"it is not in the wire format: it begins with the byte {data[0]}, not with 0"
        )
    schema_id = int.from_bytes(data[1:HEADER_BYTES], "big", signed=True)
    if schema_id < 0:
        raise ValueDecodingError(f"it is not in the wire format: {schema_id} is no schema's id")
    return schema_id


def schema_id_or_none(data: bytes) -> int | None:
    """The id in front of a value; None where it is not in the wire format."""
    try:
        return schema_id_of(data)
    except ValueDecodingError:
        return None


def header(schema_id: int) -> bytes:
    """What stands in front of a value of a schema."""
    return bytes([MAGIC]) + schema_id.to_bytes(4, "big")


def read_message_indexes(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    """Which message of its file follows, and where it begins.

    Args:
        data: a value of Protobuf.
        position: behind the header.

    Raises:
        ValueDecodingError: there are no such indexes.
    """
    count, position = _read_zigzag(data, position)
    if count == 0:
        return FIRST_MESSAGE, position
    if not 0 < count <= INDEXES_MAX:
        raise ValueDecodingError(f"its message indexes are damaged: there are {count} of them")
    indexes = []
    for _ in range(count):
        index, position = _read_zigzag(data, position)
        indexes.append(index)
    return tuple(indexes), position


def message_indexes(indexes: tuple[int, ...]) -> bytes:
    """The bytes that say which message of its file follows."""
    if indexes == FIRST_MESSAGE:
        return b"\0"
    return b"".join(_zigzag(number) for number in (len(indexes), *indexes))


def _read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(data[position : position + VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), position + place + 1
    raise ValueDecodingError("its message indexes are cut off or damaged")


def _zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 31)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
