"""Framed answers as buffers: bytes, and slices of segment files."""

from __future__ import annotations

from typing import Any

from ...storage.io.file_slice import FileSlice

LENGTH_BYTES = 4
HEAD_BYTES = 8
"""Of an answer's length and correlation id."""


def total_size(buffers: list[Any]) -> int:
    """How many bytes the buffers have together."""
    return sum(len(buffer) for buffer in buffers)


def split(buffers: list[Any], size: int) -> tuple[list[Any], list[Any]]:
    """The first so many bytes, and the others; nothing is read from files for it."""
    head: list[Any] = []
    for index, buffer in enumerate(buffers):
        length = len(buffer)
        if size < length:
            if size:
                head.append(_part(buffer, 0, size))
            return head, [_part(buffer, size, length), *buffers[index + 1 :]]
        head.append(buffer)
        size -= length
    return head, []


def _part(buffer: Any, start: int, end: int) -> Any:
    if isinstance(buffer, FileSlice):
        return FileSlice(buffer.file, buffer.position + start, end - start)
    return memoryview(buffer)[start:end]


def to_bytes(buffers: list[Any]) -> bytearray:
    """All of them in memory.

    Raises:
        StorageError: the disk fails.
    """
    data = bytearray()
    for buffer in buffers:
        data += buffer.read() if isinstance(buffer, FileSlice) else buffer
    return data


def records_ranges(buffers: list[Any]) -> list[range]:
    """Where records lie that come from segment files."""
    ranges = []
    position = 0
    for buffer in buffers:
        if isinstance(buffer, FileSlice) and len(buffer):
            ranges.append(range(position, position + len(buffer)))
        position += len(buffer)
    return ranges


def turn_over_bit(data: bytearray, position: int, bit: int) -> None:
    """Turn over one bit of one byte."""
    data[position] ^= 1 << bit
