"""Which leader epoch begins at which offset (Kafka's LeaderEpochFileCache, KIP-101).

Replicas find with it where their logs diverge. The file is written with the log's flush, and not
synced before: what a crash loses, recovery reads from the batches.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter

from ...common.sentinels import NO_EPOCH, NO_OFFSET
from ..checkpoint.checkpoint_file import CheckpointError, read_epochs, write_epochs
from ..file_names import EPOCHS_FILE
from ..io.files import Files

logger = logging.getLogger(__name__)


_epoch_of = itemgetter(0)


class LeaderEpochFileCache:
    """Epochs and their start offsets, both rising.

    Args:
        directory: the partition's folder, whose `leader-epoch-checkpoint` is read if it is there.
            One that is damaged counts as missing: the batches know as much.
        is_new: the folder was just made, so there is no file.
    """

    __slots__ = ("_files", "_is_written", "directory", "entries", "is_trusted", "latest_epoch")

    def __init__(self, files: Files, directory: str, *, is_new: bool = False) -> None:
        self._files = files
        self.directory = directory
        self.entries: list[tuple[int, int]] = []
        self.latest_epoch = NO_EPOCH
        self.is_trusted = is_new
        """Whether what the file said was compared with the batches; see `epoch_check`."""
        self._is_written = True
        if not is_new:
            self._read()

    @property
    def path(self) -> str:
        """Of the file."""
        return os.path.join(self.directory, EPOCHS_FILE)

    def _read(self) -> None:
        try:
            entries = read_epochs(self._files, self.path)
            if not _is_rising(entries):
                raise CheckpointError(f"{self.path} has epochs or offsets that do not rise")
        except CheckpointError as error:
            logger.warning("%s; the epochs are read from the batches", error)
            self._is_written = False
            return
        self.entries = entries
        if entries:
            self.latest_epoch = entries[-1][0]

    def assign(self, epoch: int, start_offset: int) -> None:
        """A leader of `epoch` writes from `start_offset` on; `flush` writes the file.

        Known epochs stay as they are; later ones without batches are dropped. Kafka drops an epoch
        that is known, too, where such a later one is behind it, and has it begin anew.
        """
        entries = self.entries
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            return
        while entries and (entries[-1][0] > epoch or entries[-1][1] >= start_offset):
            entries.pop()  # nothing was written in them, or it has been truncated
        if not entries or entries[-1][0] < epoch:
            entries.append((epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above `epoch`, and where it ends; (-1, -1) if unknown.

        Of an epoch from before the first one known, that one's start is the end.
        """
        if epoch == NO_EPOCH or epoch > self.latest_epoch:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        after = bisect_right(self.entries, epoch, key=_epoch_of)
        end_offset = self.entries[after][1]
        return (epoch if after == 0 else self.entries[after - 1][0]), end_offset

    def epoch_for(self, offset: int) -> int:
        """The epoch a batch at `offset` was written in, or -1."""
        found = NO_EPOCH
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

    def take_over(self, other: LeaderEpochFileCache) -> None:
        """Know what the cache of a log with the same batches knows.

        Which is more than they tell: of an epoch without batches, and where one began of which
        compaction has taken the first.
        """
        if self.entries != other.entries:
            self.entries = list(other.entries)
            self._changed()
        self.is_trusted = other.is_trusted

    def clear(self) -> None:
        """Forget all epochs."""
        if self.entries:
            self.entries = []
            self._changed()

    def flush(self) -> None:
        """Write the file if it is behind."""
        if not self._is_written:
            write_epochs(self._files, self.path, self.entries)
            self._is_written = True

    def _changed(self) -> None:
        self._is_written = False
        self.latest_epoch = self.entries[-1][0] if self.entries else NO_EPOCH


def _is_rising(entries: list[tuple[int, int]]) -> bool:
    """Whether all are what epochs and offsets can be, each larger than the one before."""
    return all(
        before[0] < after[0] and before[1] < after[1]
        for before, after in pairwise([(NO_EPOCH, NO_OFFSET), *entries])
    )
