"""A log's way to the disk: flushing, closing, and leaving its folder.

Nothing is synced per append unless `flush.messages` asks for it: replication is what makes
records safe, as in Kafka. The recovery point tells up to where all is on the disk for sure;
after a crash only the segments from there on are read through.
"""

from __future__ import annotations

import os.path

from ..checkpoint.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE
from ..io.pending_flush import PendingFlush
from ..producer_state.producer_snapshot import snapshot_path
from ..segment.log_segment import LogSegment
from .readable_log import ReadableLog

DELETE_SUFFIX = "-delete"
"""Folders that end so are on their way out; a start finishes the work."""


class FlushingLog(ReadableLog):
    """A log that appends and reads, and gets what it holds to the disk."""

    def start_flush(
        self, *, closed_segments_only: bool = False, is_closing: bool = False
    ) -> PendingFlush | None:
        """What has to be synced for all that is published to be safe; None if nothing.

        Its `run` may be called in a thread; hand it to `finish_flush` afterwards. Indexes
        of the active segment are left out: a crash has it read through in any case.

        Args:
            closed_segments_only: leave out the active segment, as Kafka does at a roll.
            is_closing: the active segment is closed too, so its indexes count.

        Raises:
            StorageError: the index files could not be written.
        """
        active = self.segments.active
        end_offset = active.base_offset if closed_segments_only else self.log_end_offset
        if self.recovery_point >= end_offset:
            return None
        first = self.segments.floor_index(self.recovery_point)
        unflushed = [each for each in list(self.segments)[first:] if each.base_offset < end_offset]
        paths: list[str] = []
        if self.recovery_point == 0:
            paths.append(os.path.join(self.directory, PARTITION_METADATA_FILE))
        try:
            for segment in unflushed:
                if is_closing or segment is not active:
                    paths += self._complete_files(segment)
            if is_closing or closed_segments_only:
                paths.append(snapshot_path(self.directory, end_offset))
            self.epochs.flush()
            if self.epochs.entries:
                paths.append(self.epochs.path)
            files = [segment.file for segment in unflushed]
        except OSError as error:
            raise self._storage_error("flush", error) from error
        directories = self.unsynced_directories(unflushed)
        if is_closing and not directories:
            directories = [self.directory]  # index files may have been made just now
        indexed_to = end_offset if is_closing else min(active.base_offset, end_offset)
        return PendingFlush(
            self._files, files, paths, directories, end_offset, self.generation, indexed_to
        )

    def _complete_files(self, segment: LogSegment) -> list[str]:
        """Write a closed segment's indexes; the paths of all that is to be synced with it."""
        segment.flush_indexes()
        paths = segment.index_paths()
        snapshot = snapshot_path(self.directory, segment.base_offset)
        if self._files.exists(snapshot):
            paths.append(snapshot)
        return paths

    def finish_flush(self, flush: PendingFlush, now_ms: int = 0) -> None:
        """A flush has run: move the recovery point, unless the log was cut meanwhile.

        Args:
            flush: what `start_flush` gave.
            now_ms: the wall time, from which `flush.ms` counts anew.
        """
        self.last_flush_ms = max(self.last_flush_ms, now_ms)
        if flush.generation == self.generation:
            was_rolled = self.segments.active.base_offset > flush.indexed_to
            offset = flush.indexed_to if was_rolled else flush.offset
            self.recovery_point = max(self.recovery_point, offset)
            if flush.offset > self.segments.active.base_offset:
                self._active_indexes_lag = True

    def flush_to_disk(self) -> None:
        """Wait until all that is published is on the disk.

        Raises:
            StorageError: the disk fails.
        """
        self._run_flush(self.start_flush())

    def _run_flush(self, flush: PendingFlush | None) -> None:
        if flush is None:
            return
        try:
            flush.run()
        except OSError as error:
            self.flush_failed(error)
            raise self._storage_error("sync", error) from error
        self.finish_flush(flush)

    def close(self) -> None:
        """Write indexes and producer states, sync, and let go of the files.

        Raises:
            StorageError: the disk fails; the next start has to recover the log.
        """
        self.flush_appends()
        active = self.segments.active
        try:
            self._forget_refused()
            if self.log_end_offset > self.log_start_offset:
                self._take_producer_snapshot(self.log_end_offset)
            active.close_for_appends()
        except OSError as error:
            raise self._storage_error("close", error) from error
        if self._active_indexes_lag:
            self.recovery_point = min(self.recovery_point, active.base_offset)
        self._run_flush(self.start_flush(is_closing=True))
        self.close_files()

    def close_files(self) -> None:
        """Let go of the files as they are; slices handed out stay readable."""
        for segment in self.segments:
            segment.close()

    def move_folder(self, path: str) -> None:
        """Give the folder another name: it is on its way out, and its name is free.

        Raises:
            StorageError: the disk fails.
        """
        try:
            self._files.rename(self.directory, path)
        except OSError as error:
            raise self._storage_error("delete", error) from error
        self.close_files()
        if self.on_cut is not None:
            self.on_cut(0)
