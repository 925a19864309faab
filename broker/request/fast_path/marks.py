"""Where numbers and records stand in an encoded message, found by the codec of its schema.

A message is encoded with marks in place of what differs from one request, or one answer, to the
next; where the marks stand, that does. So what a memo compares and what it answers with are cut
by the generated codec, and nothing here knows a layout.
"""

from __future__ import annotations

import struct

MARK = 0x7A5B_3C1D_0000_0000
"""The first number's mark, the second's is one more; it is hardly found in a name."""
SHORT_MARK = 0x5A3C_96E1
"""The mark of a number of four bytes, of which a message has one at most."""
RECORDS_MARK = bytes(range(0x80, 0xA0))

_encode_mark = struct.Struct(">q").pack
_encoded_short_mark = struct.pack(">i", SHORT_MARK)


def find_marks(encoded: bytes, count: int, first: int = 0) -> list[int]:
    """Where the marks of so many numbers stand in an encoded message, in their order.

    Args:
        encoded: the message.
        count: of the marks.
        first: the number of the first one.

    Raises:
        ValueError: one of them is not there, or more than once.
    """
    found: list[int] = []
    for number in range(first, first + count):
        mark = _encode_mark(MARK + number)
        found.append(encoded.index(mark, found[-1] if found else 0))
        if encoded.count(mark) != 1:
            raise ValueError("the message holds a mark that was not put there")
    return found


def find_short_mark(encoded: bytes) -> int:
    """Where the number of four bytes stands in an encoded message; -1: nowhere."""
    return encoded.find(_encoded_short_mark)


def split_at_records(encoded: bytes, *, is_flexible: bool) -> list[bytes]:
    """What stands in an encoded message around the records and their lengths.

    Args:
        encoded: the message, with marks in place of records.
        is_flexible: whether lengths are varints.
    """
    *before, end = encoded.split(RECORDS_MARK)
    length_bytes = 1 if is_flexible else 4
    return [*(part[:-length_bytes] for part in before), end]
