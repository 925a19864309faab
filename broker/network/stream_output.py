"""What of a connection's output is sent at once over a stream, which knows no file slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...storage.io.file_slice import FileSlice

JOIN_BYTES_MAX = 64 * 1024
"""Smaller buffers are joined up to this: each sending has its price, and more so over TLS."""
READ_BYTES_MAX = 256 * 1024
"""So much of a file is in memory at once."""


def pieces(output: Sequence[Any]) -> Iterator[Any]:
    """The output as buffers to send one by one.

    Args:
        output: buffers and slices of files.

    Raises:
        StorageError: a file is shorter than its slice, or the disk fails.
    """
    small: list[Any] = []
    size = 0
    for buffer in output:
        if not isinstance(buffer, FileSlice):
            if small and size + len(buffer) > JOIN_BYTES_MAX:
                yield b"".join(small)
                small, size = [], 0
            if len(buffer) > JOIN_BYTES_MAX:
                yield buffer
            else:
                small.append(buffer)
                size += len(buffer)
            continue
        for start in range(0, buffer.size, READ_BYTES_MAX):
            part_size = min(READ_BYTES_MAX, buffer.size - start)
            read = FileSlice(buffer.file, buffer.position + start, part_size).read()
            if small:
                read, small, size = b"".join([*small, read]), [], 0
            yield read
    if small:
        yield b"".join(small)
