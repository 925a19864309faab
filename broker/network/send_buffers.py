"""Sending what a connection has to say: bytes, and slices of files."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Sized

from ...storage.io.file_slice import FileSlice

SENDMSG_BUFFERS_MAX = 1000
SEND_BYTES_MAX = 1 << 20
"""So much is sent before others get their turn, though the socket may take more: it takes some
hundred microseconds."""


def send_some(sock: socket.socket, output: list[object]) -> bool:
    """Send at most `SEND_BYTES_MAX` of the buffers; False where some are left.

    Raises:
        OSError: as `send_buffers`.
    """
    first: list[object] = []
    left = SEND_BYTES_MAX
    while output and left > 0:
        buffer = output.pop(0)
        size = len(buffer)  # type: ignore[arg-type]  # a buffer, or a slice
        if size > left:
            output.insert(0, _part(buffer, left, size))
            buffer = _part(buffer, 0, left)
        first.append(buffer)
        left -= size
    done = send_buffers(sock, first)
    output[:0] = first
    return done and not output


def in_memory_bytes(output: Iterable[Sized]) -> int:
    """How much memory output holds: slices of files are read when they are sent."""
    return sum(len(buffer) for buffer in output if not isinstance(buffer, FileSlice))


def _part(buffer: object, start: int, end: int) -> object:
    if isinstance(buffer, FileSlice):
        return FileSlice(buffer.file, buffer.position + start, end - start)
    return memoryview(buffer)[start:end]  # type: ignore[arg-type]  # a buffer


def send_buffers(sock: socket.socket, output: list[object]) -> bool:
    """Send the buffers in order and take them off the list; False where the socket is full.

    Bytes go out together by one `sendmsg`, file slices by `sendfile`, with MSG_MORE on
    what goes before one so that header and records share segments.

    Raises:
        OSError: the connection is gone, or a file is shorter than its slice says.
    """
    if len(output) == 1 and type(output[0]) is bytes:  # as most answers are
        try:
            sent = sock.send(output[0])
        except BlockingIOError:
            return False
        if sent == len(output[0]):
            output.clear()
            return True
        output[0] = memoryview(output[0])[sent:]
        return False
    while output:
        first = output[0]
        if isinstance(first, FileSlice):
            if not _send_file(sock, first, output):
                return False
            continue
        data, count = first, 1
        if len(output) > 1 and not isinstance(output[1], FileSlice):
            batch: list[object] = []
            for buffer in output:
                if isinstance(buffer, FileSlice) or len(batch) == SENDMSG_BUFFERS_MAX:
                    break
                batch.append(buffer)
            data, count = b"".join(batch), len(batch)  # type: ignore[arg-type]  # buffers
        more = count < len(output)
        size = len(data)  # type: ignore[arg-type]  # a buffer
        try:
            sent = sock.send(data, socket.MSG_MORE if more else 0)  # type: ignore[arg-type]  # a buffer
        except BlockingIOError:
            return False
        if sent < size:
            output[:count] = [memoryview(data)[sent:]]  # type: ignore[arg-type]  # a buffer
            return False
        del output[:count]
    return True


def _send_file(sock: socket.socket, part: FileSlice, output: list[object]) -> bool:
    size = part.size
    try:
        sent = os.sendfile(sock.fileno(), part.file.fileno(), part.position, size) if size else 0
    except BlockingIOError:
        return False
    if size and not sent:
        raise OSError(errno.EIO, "a log segment is shorter than its index says")
    if sent < size:
        output[0] = FileSlice(part.file, part.position + sent, size - sent)
        return False
    del output[0]
    return True
