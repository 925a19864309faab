"""A stretch of a segment's file, to be sent without passing through Python."""

from __future__ import annotations

from ..errors import StorageError
from .files import StorageFile


class FileSlice:
    """Bytes of a file by position and size.

    It keeps the file open, so it stays readable when the segment is closed or deleted.

    Args:
        file: an open file of which these bytes will not change any more.
        position: where the slice begins.
        size: how many bytes it has.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: StorageFile, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int:
        """The descriptor to give `os.sendfile`."""
        return self.file.fileno()

    def read(self) -> bytes:
        """The bytes themselves.

        Raises:
            StorageError: the disk fails, or the file is shorter than the slice.
        """
        try:
            data = self.file.read_at(self.size, self.position)
        except OSError as error:
            raise StorageError(f"could not read records: {error}") from error
        if len(data) != self.size:
            raise StorageError(f"only {len(data)} of {self.size} bytes of records are left")
        return data

    def __repr__(self) -> str:
        return f"FileSlice({self.size} bytes at {self.position})"
