"""Framed answers as buffers, sent whole or a piece at a time, and requests that are held."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...storage.io.file_slice import FileSlice

if TYPE_CHECKING:
    from ...broker.request.requests import ClientConnection, Request


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


def keep_memory(value: Any) -> None:
    """Copy what a decoded request refers to in its frame, which is used again after the pass.

    Args:
        value: a message, or a struct or list within one; it is changed in place.
    """
    if isinstance(value, list):
        for index, element in enumerate(value):
            if isinstance(element, memoryview):
                value[index] = _copied(element)
            else:
                keep_memory(element)
        return
    for name in getattr(type(value), "__slots__", ()):
        element = getattr(value, name, None)
        if isinstance(element, memoryview):
            setattr(value, name, _copied(element))
        elif not isinstance(element, str | bytes | int | float | dict | None):
            keep_memory(element)


def _copied(view: memoryview) -> memoryview:
    # Writable, for offsets are patched into records where they lie.
    return memoryview(bytearray(view))


def records_size(value: Any) -> int:
    """How many bytes of records a request brings."""
    if isinstance(value, memoryview):
        return len(value)
    if isinstance(value, list):
        return sum(records_size(element) for element in value)
    if isinstance(value, str | bytes | int | float | dict | None):
        return 0
    names = getattr(type(value), "__slots__", ())
    return sum(records_size(getattr(value, name, None)) for name in names)


PIECE_MS = 50
"""A piece is what the line carries in this time."""

After = Callable[[int, Callable[[], None]], None]
"""Calls a function after some milliseconds."""


class Piece:
    """A part of an answer in the order of a connection's answers."""

    __slots__ = ("buffers",)

    def __init__(self, buffers: list[Any] | None) -> None:
        self.buffers = buffers


class Trickle:
    """Sends one answer piece by piece. What comes behind it on the connection waits.

    Args:
        request: whose place in the order it takes.
        buffers: the framed answer.
        bytes_per_second: how fast it goes.
        after: calls back later.
        wait_ms: before the first piece, for what the line has carried before.
        note_sent: called with how many milliseconds the line is busy with each piece.
    """

    def __init__(
        self,
        request: Request[Any],
        buffers: list[Any],
        bytes_per_second: int,
        after: After,
        note_sent: Callable[[float], None],
    ) -> None:
        self._connection: ClientConnection = request.connection
        self._rest = buffers
        self._bytes_per_second = bytes_per_second
        self._after = after
        self._note_sent = note_sent
        self._last = Piece(None)
        order = self._connection.unanswered
        order[order.index(request)] = self._last

    def start(self, wait_ms: int) -> None:
        """Begin after some milliseconds, when the line has carried what was before."""
        if wait_ms > 0:
            self._after(wait_ms, self._send_piece)
        else:
            self._send_piece()

    def _send_piece(self) -> None:
        connection = self._connection
        if connection.is_closed:
            return
        size = max(self._bytes_per_second * PIECE_MS // 1000, 1)
        buffers, self._rest = split(self._rest, size)
        sent = total_size(buffers)
        connection.unsent_bytes += sent
        busy_ms = sent * 1000 / self._bytes_per_second
        self._note_sent(busy_ms)
        if self._rest:
            order = connection.unanswered
            order.insert(order.index(self._last), Piece(buffers))
            self._after(max(int(busy_ms), 1), self._send_piece)
        else:
            self._last.buffers = buffers
        connection.note_answered()
