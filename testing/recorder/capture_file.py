"""Captures: files of what was recorded. Written to their end only, and readable up to there.

A capture begins with eight bytes, `ODRADEK` and the version of the format, 1. Entries follow, each

    length    uint32, of the content
    checksum  uint32, CRC-32C of the content
    content   a byte for the type, and what the type says

with big-endian numbers. Types 1 to 5 are frames, as in `FrameKind`: connection (uint32), time
(int64, nanoseconds since 1970), flags (uint8; 1: secrets were taken out), API key (int16), its
version (int16), correlation id (int32), nanoseconds that an answer took (int64), and the frame
without its length. Types 16 to 18 are JSON objects: a connection, its end, and a note. Whoever
meets another type passes over it; what a reader must know comes under another version.

Whatever ends the writer, the entries before are whole: each is written by one call, and a tail
that is not whole is recognised by length and checksum.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from struct import error as StructError
from typing import Any, BinaryIO, cast

from ...protocol.records.crc import crc32c
from ...protocol.varints import Buffer
from .addresses import Address
from .recording import FrameKind, RecordedConnection, RecordedEnd, RecordedFrame, RecordedNote

MAGIC = b"ODRADEK"
CAPTURE_VERSION = 1
START_BYTES = len(MAGIC) + 1

CONNECTION, END, NOTE = 16, 17, 18
REDACTED_FLAG = 1

ENTRY_BYTES_MAX = 256 << 20
"""More than the largest frame that is recorded."""

HEAD = Struct(">II")
FRAME = Struct(">BIqBhhiq")
FRAME_KINDS = frozenset(FrameKind)

Entry = RecordedConnection | RecordedFrame | RecordedEnd | RecordedNote


class CaptureError(Exception):
    """A file is no capture, or a damaged one; the text names it and says where."""


class CaptureWriter:
    """Writes a capture: a `Listener`.

    Args:
        path: of a file that does not exist yet.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(path, flags, 0o600)
        self._size = 0
        self._write([MAGIC + bytes([CAPTURE_VERSION])])

    def opened(self, connection: RecordedConnection) -> None:
        """A connection was made."""
        self._append_json(CONNECTION, connection._asdict())

    def passed(self, frame: RecordedFrame) -> None:
        """A frame has come whole."""
        head = FRAME.pack(
            frame.kind,
            frame.connection,
            frame.time_ns,
            REDACTED_FLAG if frame.is_redacted else 0,
            frame.api_key,
            frame.api_version,
            frame.correlation_id,
            frame.waited_ns,
        )
        self._append(head, frame.content)

    def ended(self, end: RecordedEnd) -> None:
        """A connection is over."""
        self._append_json(END, end._asdict())

    def noted(self, note: RecordedNote) -> None:
        """Something else happened."""
        self._append_json(NOTE, note._asdict())

    def close(self) -> None:
        """Close the file; it may be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _append_json(self, kind: int, fields: object) -> None:
        self._append(bytes([kind]), json.dumps(fields).encode())

    def _append(self, head: bytes, rest: Buffer) -> None:
        checksum = crc32c_of(head, rest)
        self._write([HEAD.pack(len(head) + len(rest), checksum) + head, rest])

    def _write(self, parts: list[Buffer]) -> None:
        """Write all of it, or raise OSError and leave nothing of it."""
        size = sum(map(len, parts))
        try:
            written = os.writev(self._descriptor, parts)
            while written < size:
                rest = memoryview(b"".join(parts))[written:]
                written += os.write(self._descriptor, rest)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += size


def crc32c_of(head: bytes, rest: Buffer) -> int:
    """The CRC-32C of two pieces that follow each other."""
    # The function takes an earlier checksum to go on from, of which its type says nothing.
    go_on = cast(Callable[[Buffer, int], int], crc32c)
    return go_on(rest, crc32c(head))


class CaptureReader:
    """The entries of a capture, in the order in which they were written.

    Args:
        path: the file.

    Attributes:
        torn_at: once all entries were read, the position at which the file breaks off within
            one; None if it ends with a whole one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn_at: int | None = None

    def check(self) -> None:
        """See that it is a capture.

        Raises:
            CaptureError: it is none, or of a version that is not known.
            OSError: it cannot be read.
        """
        with self.path.open("rb") as file:
            self._require_start(file.read(START_BYTES))

    def __iter__(self) -> Iterator[Entry]:
        """Read it.

        Raises:
            CaptureError: it is no capture, of a version that is not known, or damaged.
            OSError: it cannot be read.
        """
        with self.path.open("rb") as file:
            self._require_start(file.read(START_BYTES))
            position = START_BYTES
            size = os.fstat(file.fileno()).st_size
            while position < size:
                content = self._content(file, position, size)
                if content is None:
                    self.torn_at = position
                    return
                entry = self._entry(content, position)
                position += HEAD.size + len(content)
                if entry is not None:
                    yield entry

    def _require_start(self, start: bytes) -> None:
        if start[: len(MAGIC)] != MAGIC or len(start) < START_BYTES:
            raise CaptureError(f"{self.path} is no capture of odradek's")
        if start[-1] != CAPTURE_VERSION:
            raise CaptureError(
                f"{self.path} is a capture of format {start[-1]}; this odradek reads"
                f" {CAPTURE_VERSION}"
            )

    def _content(self, file: BinaryIO, position: int, size: int) -> bytes | None:
        """The content of the entry at a position; None if the file ends within it."""
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        length, checksum = HEAD.unpack(head)
        if length == 0 and not any(file.read(ENTRY_BYTES_MAX)):
            return None  # a file system that went down may leave zeros
        if not 0 < length <= ENTRY_BYTES_MAX:
            raise self._damaged(position, f"an entry cannot have {length:,} bytes")
        if length > size - position - HEAD.size:
            return None
        content = file.read(length)
        if len(content) < length:
            return None
        if crc32c(content) != checksum:
            if position + HEAD.size + length == size:
                return None  # of the last entry the disk may have kept a part only
            raise self._damaged(position, "the checksum is another")
        return content

    def _entry(self, content: bytes, position: int) -> Entry | None:
        try:
            if content[0] in (CONNECTION, END, NOTE):
                return _from_json(content[0], json.loads(content[1:]))
            if content[0] in FRAME_KINDS:
                return _frame_of(content)
        except (ValueError, TypeError, KeyError, StructError) as error:
            raise self._damaged(position, f"an entry is none ({error})") from error
        return None

    def _damaged(self, position: int, why: str) -> CaptureError:
        return CaptureError(f"{self.path} is damaged at byte {position:,}: {why}")


def _frame_of(content: bytes) -> RecordedFrame:
    kind, connection, time_ns, flags, api_key, version, correlation_id, waited_ns = (
        FRAME.unpack_from(content)
    )
    return RecordedFrame(
        FrameKind(kind),
        connection,
        time_ns,
        api_key,
        version,
        correlation_id,
        memoryview(content)[FRAME.size :],
        bool(flags & REDACTED_FLAG),
        waited_ns,
    )


def _from_json(kind: int, fields: dict[str, Any]) -> Entry:
    if kind == NOTE:
        return RecordedNote(int(fields["time_ns"]), str(fields["text"]))
    if kind == END:
        return RecordedEnd(
            int(fields["number"]),
            int(fields["time_ns"]),
            bool(fields["is_by_client"]),
            str(fields["reason"]),
        )
    addresses = (
        Address(str(fields[name][0]), int(fields[name][1]))
        for name in ("client", "broker", "broker_name")
    )
    return RecordedConnection(int(fields["number"]), int(fields["time_ns"]), *addresses)
