"""One partition's log: appended to, read by offset and by time, cut at either end.

Kafka's UnifiedLog and LocalLog. Nothing is synced to the disk per append: replication is
what makes records safe, as in Kafka. `flush_to_disk` syncs, and so does `close`; the
recovery point tells up to where that has happened.
"""

from __future__ import annotations

import os.path
from contextlib import suppress

from ..protocol.errors import ErrorCode, KafkaError
from .errors import StorageError
from .log_appender import LogAppender
from .log_config import LogConfig
from .log_read import LogRead
from .log_reader import find_max_timestamp, find_offset_by_timestamp, read_segments
from .log_segment import LogSegment
from .partition_metadata import write_topic_id
from .pending_flush import PendingFlush
from .producer_rebuild import rebuild_producers
from .producer_snapshot import snapshot_path
from .retention import count_deletable
from .staged_appends import StagedAppends
from .time_index import TimestampAndOffset


class Log(LogAppender):
    """A log that `log_loader.load_log` has made or found. See `LogAppender` for its state."""

    def configure(self, config: LogConfig) -> None:
        """Take over changed settings; they hold from the next append on."""
        self.config = config
        self._validator.configure(config)
        for segment in self.segments:
            segment.configure(config)

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Note the topic this log belongs to, in its folder too.

        Raises:
            KafkaError: INCONSISTENT_TOPIC_ID, it belongs to another of the same name.
            StorageError: the disk fails.
        """
        if self.topic_id == topic_id:
            return
        if self.topic_id is not None:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the log of {self.topic_partition} is of another topic of that name",
            )
        try:
            write_topic_id(self._files, self.directory, topic_id)
        except OSError as error:
            raise self._storage_error("note the topic id of", error) from error
        self.topic_id = topic_id

    # --- reading -----------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended; the high watermark is the caller's to add."""
        first_unstable = self.producers.first_unstable_offset()
        return self.log_end_offset if first_unstable is None else first_unstable

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        upper_offset: int | None = None,
        minimum_one_batch: bool = True,
    ) -> LogRead:
        """Batches from the one that holds `start_offset` on, as a slice of one segment.

        Args:
            start_offset: where to begin.
            max_bytes: the slice is cut there, be it inside a batch, as Kafka cuts it. If
                even the first batch is larger, nothing is returned, or that batch whole.
            upper_offset: no batch that reaches it is returned: high watermark, last stable
                offset or log end, which is the default.
            minimum_one_batch: return the first batch whatever its size.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, outside of start and end of the log;
                CORRUPT_MESSAGE, the file holds something that is no batch.
            StorageError: the disk fails.
        """
        end_offset = self.log_end_offset
        if start_offset < self.log_start_offset or start_offset > end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {start_offset} of {self.topic_partition}, which has "
                f"{self.log_start_offset} to {end_offset}",
            )
        if upper_offset is not None:
            if start_offset >= upper_offset:
                return LogRead(b"", start_offset)
            if upper_offset >= end_offset:
                upper_offset = None
        if start_offset == end_offset:
            return LogRead(b"", start_offset)
        try:
            return read_segments(
                self.segments, start_offset, max_bytes, upper_offset, minimum_one_batch
            )
        except OSError as error:
            raise self._storage_error("read", error) from error

    def offset_for_timestamp(
        self, timestamp_ms: int, upper_offset: int | None = None
    ) -> TimestampAndOffset | None:
        """The first record not earlier than `timestamp_ms`, if it is below `upper_offset`.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
            StorageError: the disk fails.
        """
        try:
            found = find_offset_by_timestamp(self.segments, timestamp_ms, self.log_start_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error
        return _below(found, upper_offset)

    def max_timestamp(self, upper_offset: int | None = None) -> TimestampAndOffset | None:
        """The first record that has the latest timestamp of all, if below `upper_offset`.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
            StorageError: the disk fails.
        """
        try:
            found = find_max_timestamp(self.segments, self.log_start_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error
        return _below(found, upper_offset)

    def latest_epoch(self) -> int:
        """The last leader epoch known to the log, or -1."""
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch` and where it ends, or (-1, -1)."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    # --- cutting -----------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop the batches that end at `offset` or later; whether there were any.

        Raises:
            StorageError: the disk fails.
        """
        assert not self._staged.batches, "staged batches must be flushed before a cut"
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            self._remove_segments(self.segments.remove_from(offset + 1))
            self.segments.active.truncate_to(offset)
            self._end_at(min(offset, self.segments.active.next_offset()))
        except OSError as error:
            raise self._storage_error("truncate", error) from error
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin at `offset`.

        Raises:
            StorageError: the disk fails.
        """
        assert not self._staged.batches, "staged batches must be flushed before a cut"
        try:
            old = list(self.segments)
            for segment in old:
                segment.delete()
            self.segments.replace_all(self._make_segment(offset, self.segments.active.created_ms))
            self.epochs.clear()
            self.epochs.flush()
            self.log_start_offset = offset
            self._end_at(offset)
        except OSError as error:
            raise self._storage_error("truncate", error) from error

    def _end_at(self, offset: int) -> None:
        """Everything that knows of offsets behind a cut forgets them."""
        self.generation += 1
        self.log_end_offset = self.staged_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.size = self.segments.size
        self._staged = StagedAppends(self.segments.active.size)
        self.epochs.truncate_from_end(offset)
        self.epochs.flush()
        self.rebuild_producer_state()

    def rebuild_producer_state(self) -> None:
        """Read the producers' states from the disk.

        Raises:
            OSError: the disk fails.
            KafkaError: CORRUPT_MESSAGE, a segment holds something that is no batch.
        """
        rebuild_producers(
            self._files,
            self.directory,
            self.segments,
            self.producers,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
        )

    def advance_log_start_offset(self, offset: int) -> bool:
        """Nothing before `offset` may be read any more; whether that changes anything.

        Segments wholly before it go with the next `delete_old_segments`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, the log ends before `offset`.
        """
        if offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} ends at {self.log_end_offset}, before {offset}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.truncate_from_start(offset)
        with suppress(OSError):  # written again by `flush_to_disk`
            self.epochs.flush()
        return True

    def roll(self, now_ms: int) -> None:
        """Begin another segment, unless the active one is empty.

        Raises:
            StorageError: the disk fails.
        """
        assert not self._staged.batches, "staged batches must be flushed before a roll"
        if self.segments.active.size == 0:
            return
        try:
            segment = self._make_segment(self.log_end_offset, now_ms)
        except OSError as error:
            raise self._storage_error("roll", error) from error
        self._begin_segment(segment)
        self._staged = StagedAppends(0)

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by age, size and log start; returns how many.

        They are removed at once, not after `file.delete.delay.ms`: a slice handed out
        keeps its file.

        Raises:
            StorageError: the disk fails.
        """
        try:
            count = count_deletable(
                self.segments,
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=high_watermark,
                now_ms=now_ms,
            )
            if count == 0:
                return 0
            if count == len(self.segments):
                self.roll(now_ms)
            self._remove_segments(self.segments.remove_first(count))
        except OSError as error:
            raise self._storage_error("delete old segments of", error) from error
        self.size = self.segments.size
        self.advance_log_start_offset(max(self.segments.first.base_offset, self.log_start_offset))
        return count

    def _remove_segments(self, segments: list[LogSegment]) -> None:
        for segment in segments:
            segment.delete()
            self._files.remove(snapshot_path(self.directory, segment.base_offset))

    # --- the disk ----------------------------------------------------------------------

    def start_flush(self) -> PendingFlush | None:
        """What has to be synced for all that is published to be safe; None if nothing.

        Its `run` may be called in a thread; hand it to `finish_flush` afterwards.

        Raises:
            StorageError: the index files could not be written.
        """
        if self.recovery_point >= self.log_end_offset:
            return None
        first = self.segments.floor_index(self.recovery_point)
        unflushed = list(self.segments)[first:]
        paths: list[str] = []
        try:
            for segment in unflushed:
                segment.flush_indexes()
                paths += (segment.offset_index.path, segment.time_index.path)
            self.epochs.flush()
            if self.epochs.entries:
                paths.append(self.epochs.path)
            files = [segment.file for segment in unflushed]
        except OSError as error:
            raise self._storage_error("flush", error) from error
        return PendingFlush(
            self._files,
            files,
            paths,
            self.directory,
            self.log_end_offset,
            self.generation,
        )

    def finish_flush(self, flush: PendingFlush) -> None:
        """A flush has run: move the recovery point, unless the log was cut meanwhile."""
        if flush.generation == self.generation:
            self.recovery_point = max(self.recovery_point, flush.offset)

    def flush_to_disk(self) -> None:
        """Wait until all that is published is on the disk.

        Raises:
            StorageError: the disk fails.
        """
        flush = self.start_flush()
        if flush is None:
            return
        try:
            flush.run()
        except OSError as error:
            raise self._storage_error("sync", error) from error
        self.finish_flush(flush)

    def close(self) -> None:
        """Write indexes and producer states, sync, and let go of the files.

        Raises:
            StorageError: the disk fails; the next start has to recover the log.
        """
        self.flush_appends()
        try:
            self.segments.active.close_for_appends()
            for segment in self.segments:
                segment.flush_indexes()
            if self.log_end_offset > self.log_start_offset:
                self._take_producer_snapshot(self.log_end_offset)
        except OSError as error:
            raise self._storage_error("close", error) from error
        self.flush_to_disk()
        for segment in self.segments:
            segment.close()

    def delete(self) -> None:
        """Remove the log from the disk.

        The folder gets another name first, so that a crash in between leaves no half of a
        log, and the name is free for a new one.

        Raises:
            StorageError: the disk fails.
        """
        name = f"{self.topic_partition.topic[:200]}-{self.topic_partition.partition}"
        parent = os.path.dirname(self.directory)
        doomed = os.path.join(parent, f"{name}.{(self.topic_id or b'').hex()}{DELETE_SUFFIX}")
        try:
            self._files.remove_tree(doomed)
            self._files.rename(self.directory, doomed)
            for segment in self.segments:
                segment.close()
            self._files.remove_tree(doomed)
        except OSError as error:
            raise self._storage_error("delete", error) from error

    def _storage_error(self, verb: str, error: OSError) -> StorageError:
        return StorageError(f"could not {verb} {self.topic_partition}: {error}")


DELETE_SUFFIX = "-delete"
"""Folders that end so are on their way out; a start finishes the work."""


def _below(found: TimestampAndOffset | None, upper_offset: int | None) -> TimestampAndOffset | None:
    if found is None or (upper_offset is not None and found.offset >= upper_offset):
        return None
    return found
