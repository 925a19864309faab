"""Which aborted transactions end in a segment (Kafka's TransactionIndex and AbortedTxn, KIP-98).

A reader of committed records gets every batch and this list, and leaves out itself what
was aborted. An entry lies in the segment that holds the marker; the transaction may have
begun in an earlier one. Entries reach the file when the segment is flushed, rolled or
closed: what a crash loses is found again in the batches.
"""

from __future__ import annotations

from bisect import bisect_left
from struct import Struct

from ...common.named_tuple import NamedTuple
from ...common.sentinels import INT64_MAX
from ..errors import CorruptIndexError
from ..io.files import Files

TRANSACTION_INDEX_VERSION = 0
ABORTED_TRANSACTION = Struct(">hqqqq")
"""Version, producer id, first offset, last offset, last stable offset."""

LAST_OFFSET = Struct(">18xq8x")
UNKNOWN_BYTES = 2**63
"""In place of a size: a write failed halfway, so the file is to be cut first."""


class AbortedTxn(NamedTuple):
    """One aborted transaction."""

    producer_id: int
    first_offset: int
    """Of its first record."""
    last_offset: int
    """Of the marker that ended it."""
    last_stable_offset: int
    """When it ended: all transactions below it have their entries before this one."""


class TransactionIndex:
    """A `.txnindex` file: made with its first entry, read at first use.

    Args:
        path: the index's file, which need not be there.
        base_offset: the segment's.
    """

    __slots__ = ("_entries", "_file_bytes", "_files", "_persisted_bytes", "base_offset", "path")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self._entries: bytearray | None = None
        self._persisted_bytes = 0
        """Up to here the file holds what memory holds."""
        self._file_bytes = 0

    @property
    def entries(self) -> bytearray:
        """All entries in file form, loaded if need be."""
        entries = self._entries
        if entries is None:
            data = self._files.read_bytes(self.path) if self._files.exists(self.path) else b""
            entries = self._entries = bytearray(data)
            self._persisted_bytes = self._file_bytes = len(data)
        return entries

    def __len__(self) -> int:
        return len(self.entries) // ABORTED_TRANSACTION.size

    def append(self, aborted: AbortedTxn) -> None:
        """Note a transaction that ended after all those noted before.

        Raises:
            ValueError: it ended before the last one noted.
        """
        count = len(self)
        if count and aborted.last_offset <= self._last_offset(count - 1):
            raise ValueError(f"{aborted} does not end after the last of {count} in {self.path}")
        self.entries.extend(ABORTED_TRANSACTION.pack(TRANSACTION_INDEX_VERSION, *aborted))

    def read_all(self) -> list[AbortedTxn]:
        """Every entry, in the order in which the transactions ended."""
        return [self._entry(slot) for slot in range(len(self))]

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that reach into a range of offsets.

        Args:
            fetch_offset: the first offset of the range.
            upper_bound_offset: the first one behind it.

        Returns:
            The transactions, and whether no later segment can hold more of them.
        """
        found: list[AbortedTxn] = []
        count = len(self)
        for slot in range(bisect_left(range(count), fetch_offset, key=self._last_offset), count):
            aborted = self._entry(slot)
            if aborted.first_offset < upper_bound_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose markers lie at `offset` or later."""
        count = bisect_left(range(len(self)), offset, key=self._last_offset)
        size = count * ABORTED_TRANSACTION.size
        del self.entries[size:]
        self._persisted_bytes = min(self._persisted_bytes, size)

    def reset(self) -> None:
        """Drop all entries, also those of the file, unread."""
        self._entries = bytearray()
        self._persisted_bytes = 0
        self._file_bytes = UNKNOWN_BYTES if self._files.exists(self.path) else 0

    def flush(self) -> None:
        """Bring the file up to date, making it if there is none."""
        entries = self._entries
        if entries is None or len(entries) == self._persisted_bytes == self._file_bytes:
            return
        if not entries:
            self._files.remove(self.path)
            self._persisted_bytes = self._file_bytes = 0
            return
        file = self._files.open(self.path, create=self._file_bytes == 0)
        holds_more = self._file_bytes > self._persisted_bytes
        self._file_bytes = UNKNOWN_BYTES  # until the writing has come to its end
        if holds_more:
            file.truncate(self._persisted_bytes)
        if len(entries) > self._persisted_bytes:
            file.append([entries[self._persisted_bytes :]], len(entries) - self._persisted_bytes)
        self._persisted_bytes = self._file_bytes = len(entries)

    @property
    def has_file(self) -> bool:
        """Whether there is a file, as far as is known without asking the disk."""
        return self._file_bytes > 0

    def sync(self) -> None:
        """Wait until the file is on the disk, if there is one."""
        if self.has_file:
            self._files.open(self.path).sync()

    def sanity_check(self, end_offset: int = INT64_MAX) -> None:
        """Refuse a file whose entries cannot be what was written.

        Args:
            end_offset: where the segment ends, if known.

        Raises:
            CorruptIndexError: it ends inside an entry, or an entry has an unknown version,
                offsets that contradict each other, or does not follow the one before.
        """
        entries = self.entries
        if len(entries) % ABORTED_TRANSACTION.size:
            raise CorruptIndexError(f"{self.path} ends inside an entry")
        previous = self.base_offset - 1
        for version, producer_id, first, last, last_stable in ABORTED_TRANSACTION.iter_unpack(
            entries
        ):
            if (
                version != TRANSACTION_INDEX_VERSION
                or producer_id < 0
                or not 0 <= first < last
                or last <= previous
                or last_stable < 0
                or last >= end_offset
            ):
                raise CorruptIndexError(
                    f"{self.path} has an impossible entry: version {version}, producer "
                    f"{producer_id}, offsets {first} to {last}, last stable offset {last_stable}, "
                    f"after offset {previous}"
                )
            previous = last

    def _entry(self, slot: int) -> AbortedTxn:
        return AbortedTxn(
            *ABORTED_TRANSACTION.unpack_from(self.entries, slot * ABORTED_TRANSACTION.size)[1:]
        )

    def _last_offset(self, slot: int) -> int:
        offset: int = LAST_OFFSET.unpack_from(self.entries, slot * ABORTED_TRANSACTION.size)[0]
        return offset
