"""Where numbers stand in an encoded message, found by the codec of its schema.

A message is encoded with a mark in place of each number that differs from one request, or one
answer, to the next; where the marks stand, the numbers do. So what a fast path compares and what
it answers with are cut by the generated codec, and nothing here knows a layout.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

MARK = 0x7A5B_3C1D_0000_0000
"""What all marks of eight bytes begin with; it is hardly found in a name."""
SHORT_MARK = 0x5A3C_96E1
"""A mark of four bytes, for a message with one such number."""

encode_mark = struct.Struct(">q").pack
encode_short_mark = struct.Struct(">i").pack


def find_marks(encoded: bytes, marks: Sequence[bytes]) -> list[int]:
    """Where the marks stand in an encoded message.

    Args:
        encoded: the message.
        marks: what was put in place of its numbers, in their order.

    Raises:
        ValueError: one of them is not there, or more than once.
    """
    found: list[int] = []
    at = 0
    for mark in marks:
        at = encoded.index(mark, at)
        found.append(at)
        at += len(mark)
    if any(encoded.count(mark) != 1 for mark in marks):
        raise ValueError("the message holds a mark that was not put there")
    return found
