"""Which leader epoch begins at which offset (Kafka's LeaderEpochFileCache, KIP-101).

Replicas find with it where their logs part. The file is written at each new epoch, but
not synced: a crash of the machine may lose entries, and the recovery that follows reads
them from the batches again.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from .checkpoint_file import read_epochs, write_epochs
from .files import Files

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1

_epoch_of = itemgetter(0)


class LeaderEpochCache:
    """Epochs and their start offsets, both rising.

    Args:
        files: the file system.
        path: `leader-epoch-checkpoint` in the partition's folder, read if it is there.
    """

    def __init__(self, files: Files, path: str, *, is_new: bool = False) -> None:
        self._files = files
        self.path = path
        self.entries: list[tuple[int, int]] = []
        self.latest_epoch = UNDEFINED_EPOCH
        self._is_written = True
        if not is_new:
            for epoch, offset in read_epochs(files, path):
                self._insert(epoch, offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """A leader of `epoch` writes from `start_offset` on; known epochs stay as they are.

        Raises:
            OSError: the file could not be written; the cache itself has the entry, and the
                next `flush` tries again.
        """
        if self._insert(epoch, start_offset):
            self._changed()
            self.flush()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above `epoch`, and where it ends; (-1, -1) if unknown.

        Of an epoch from before the first one known, that one's start is the end.
        """
        if epoch == UNDEFINED_EPOCH or epoch > self.latest_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        after = bisect_right(self.entries, epoch, key=_epoch_of)
        end_offset = self.entries[after][1]
        return (epoch if after == 0 else self.entries[after - 1][0]), end_offset

    def epoch_for(self, offset: int) -> int:
        """The epoch a batch at `offset` was written in, or -1."""
        found = UNDEFINED_EPOCH
        for epoch, start_offset in self.entries:
            if start_offset > offset:
                break
            found = epoch
        return found

    def truncate_from_end(self, end_offset: int) -> None:
        """The log ends at `end_offset` now: later epochs never were."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: its epoch begins there too."""
        before = [entry for entry in self.entries if entry[1] <= start_offset]
        if before and before != [(before[-1][0], start_offset)]:
            self.entries = [(before[-1][0], start_offset), *self.entries[len(before) :]]
            self._changed()

    def clear(self) -> None:
        """Forget all epochs."""
        if self.entries:
            self.entries = []
            self._changed()

    def flush(self) -> None:
        """Write the file if it is behind.

        Raises:
            OSError: the disk fails.
        """
        if not self._is_written:
            write_epochs(self._files, self.path, self.entries)
            self._is_written = True

    def _insert(self, epoch: int, start_offset: int) -> bool:
        entries = self.entries
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()  # nothing was written in them, or it has been cut off
        entries.append((epoch, start_offset))
        self.latest_epoch = epoch
        return True

    def _changed(self) -> None:
        self._is_written = False
        self.latest_epoch = self.entries[-1][0] if self.entries else UNDEFINED_EPOCH
