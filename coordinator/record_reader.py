"""A cursor over the key or value of a record in a coordinators' topic.

What it reads may have been written by another broker, by hand, or half: every length is
checked against what is left before anything is made of it.
"""

from __future__ import annotations


class RecordFormatError(ValueError):
    """A record is not in a format that is known."""


class RecordReader:
    """Reads one field after the other.

    Args:
        data: a whole key or value.

    Attributes:
        flexible: whether lengths are compact and tagged fields follow (KIP-482).
    """

    __slots__ = ("_data", "_position", "flexible")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.flexible = False

    def version(self, known: range) -> int:
        """The int16 that a value begins with."""
        version = self.int16()
        if version not in known:
            raise RecordFormatError(f"version {version} is not in {known.start}-{known.stop - 1}")
        return version

    def int16(self) -> int:
        """A signed number of two bytes."""
        return self._number(2)

    def int32(self) -> int:
        """A signed number of four bytes."""
        return self._number(4)

    def int64(self) -> int:
        """A signed number of eight bytes."""
        return self._number(8)

    def unsigned_varint(self) -> int:
        """A number of one to five bytes, seven bits in each."""
        result = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
        raise RecordFormatError("a varint of more than five bytes")

    def nullable_string(self) -> str | None:
        """A string, or null."""
        length = self.unsigned_varint() - 1 if self.flexible else self.int16()
        if length < 0:
            return None
        try:
            return str(self.take(length), "utf-8")
        except UnicodeDecodeError as error:
            raise RecordFormatError(f"a string is not UTF-8: {error}") from None

    def string(self) -> str:
        """A string that may not be null."""
        text = self.nullable_string()
        if text is None:
            raise RecordFormatError("null where a string must be")
        return text

    def sized_bytes(self) -> bytes:
        """Bytes that may not be null."""
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        if length < 0:
            raise RecordFormatError("null where bytes must be")
        return self.take(length)

    def nullable_array_length(self) -> int | None:
        """The length of an array as `array_length` has it, or None for null."""
        before = self._position
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        if length == -1:
            return None
        self._position = before
        return self.array_length()

    def array_length(self) -> int:
        """The length of an array, each element of which takes a byte at least."""
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        if not 0 <= length <= len(self._data) - self._position:
            raise RecordFormatError(f"an array of {length} elements cannot be in what is left")
        return length

    def tagged_fields(self) -> dict[int, bytes]:
        """The tagged fields that end a flexible struct, by tag."""
        fields: dict[int, bytes] = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            fields[tag] = self.take(self.unsigned_varint())
        return fields

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self._position + size
        if end > len(self._data):
            raise RecordFormatError(
                f"cut short: {size} bytes expected, {len(self._data) - self._position} left"
            )
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def _number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)
