"""One partition's log: appended to, read by offset and by time, cut at either end.

Kafka's UnifiedLog and LocalLog. Nothing is synced to the disk per append: replication is
what makes records safe, as in Kafka. `flush_to_disk` syncs, and so does `close`; the
recovery point tells up to where that has happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...common.errors import ErrorCode, KafkaError
from ..checkpoint.partition_metadata import write_topic_id
from ..errors import StorageError
from ..log_manager.deferred_deletion import DELETED_SUFFIX
from ..producer_state.producer_rebuild import rebuild_producers, remove_stray_snapshots
from ..producer_state.producer_snapshot import list_snapshots, snapshot_path
from ..producer_state.producer_state_manager import ProducerStateManager
from ..segment.log_segment import LogSegment
from ..segment.segment_reader import iter_headers
from ..segment.segment_swap import begin_swap, finish_swap
from .log_config import LogConfig
from .log_flushing import FlushingLog
from .retention import count_deletable
from .staged_appends import StagedAppends


class Log(FlushingLog):
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
            was_flushed = self.recovery_point > 0
            write_topic_id(self._files, self.directory, topic_id, was_flushed=was_flushed)
        except OSError as error:
            raise self._storage_error("note the topic id of", error) from error
        self.topic_id = topic_id

    # --- cutting -----------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop the batches that end at `offset` or later; whether there were any.

        Raises:
            StorageError: the disk fails.
        """
        assert not self._staged.batches, "staged batches must be flushed before a cut"
        if offset >= self.log_end_offset:
            self._forget_empty_epochs()
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            offset = self._end_of_cut(offset)
            self._promise_no_more_than(offset)
            self._remove_for_good(self.segments.remove_from(offset + 1), offset)
            self.segments.active.truncate_to(offset)
            self.segments.active.file.sync()
            self._end_at(min(offset, self.segments.active.next_offset()))
        except OSError as error:
            raise self._storage_error("truncate", error) from error
        return True

    def _forget_empty_epochs(self) -> None:
        """An epoch in which this broker led and wrote nothing may be unknown to later leaders.

        With nothing to cut they would disagree about it forever.
        """
        self.epochs.truncate_from_end(self.log_end_offset)
        try:
            self.epochs.flush()
        except OSError as error:
            raise self._storage_error("truncate", error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin at `offset`.

        Raises:
            StorageError: the disk fails.
        """
        assert not self._staged.batches, "staged batches must be flushed before a cut"
        try:
            self._promise_no_more_than(offset)
            self._remove_for_good(list(self.segments), -1)
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
        self.lowest_end_offset = min(self.lowest_end_offset, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.size = self.segments.size
        self._staged = StagedAppends(self.segments.active.size)
        self.epochs.truncate_from_end(offset)
        self.epochs.flush()
        start = self.log_start_offset
        unreplicated = [each for each in self.producers.unreplicated if start <= each[0] < offset]
        self.rebuild_producer_state()
        self.producers.restore_unreplicated(unreplicated)
        if self.on_cut is not None:
            self.on_cut(offset)

    def rebuild_producer_state(
        self, now_ms: int = 0, recovered: ProducerStateManager | None = None
    ) -> None:
        """Read the producers' states from the disk.

        Args:
            now_ms: the wall time, if those silent for too long shall stay out.
            recovered: the states at the log's end, if they are known already.

        Raises:
            OSError: the disk fails.
        """
        if recovered is not None and self.log_end_offset > self.log_start_offset:
            recovered.remove_expired(now_ms, self.config.producer_id_expiration_ms)
            recovered.log_start_moved(self.log_start_offset)
            self.producers = recovered
            remove_stray_snapshots(
                self._files,
                self.directory,
                self.segments,
                self.log_start_offset,
                self.log_end_offset,
            )
            return
        rebuild_producers(
            self._files,
            self.directory,
            self.segments,
            self.producers,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            now_ms=now_ms,
            expiration_ms=self.config.producer_id_expiration_ms,
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
        self.producers.log_start_moved(offset)
        self.epochs.truncate_from_start(offset)
        if self.on_start_moved is not None:
            self.on_start_moved()
        try:
            self.epochs.flush()
        except OSError as error:  # written again by `flush_to_disk`
            self._note_failure(error)
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
            self._forget_refused()
            segment = self._make_segment(self.log_end_offset, now_ms)
        except OSError as error:
            raise self._storage_error("roll", error) from error
        self._begin_segment(segment)
        self._staged = StagedAppends(0)

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by age, size and log start; returns how many.

        They get names on their way out, and are removed after `file.delete.delay.ms`.

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
            self.delete_segments_later(self.segments.remove_first(count))
        except OSError as error:
            raise self._storage_error("delete old segments of", error) from error
        self.size = self.segments.size
        self.advance_log_start_offset(max(self.segments.first.base_offset, self.log_start_offset))
        return count

    def delete_segments_later(
        self, segments: Iterable[LogSegment], *, with_snapshots: bool = True
    ) -> None:
        """Take segments that are no longer the log's from its folder.

        They are renamed at once and removed after `file.delete.delay.ms`: a slice handed
        out keeps its file.

        Args:
            segments: taken out of `segments` already.
            with_snapshots: whether the producer snapshots at their base offsets go too;
                not where another segment with the same base offset takes their place.

        Raises:
            OSError: the disk fails.
        """
        marked: list[str] = []
        try:
            for segment in segments:
                marked += segment.mark_deleted()
                snapshot = snapshot_path(self.directory, segment.base_offset)
                if with_snapshots and self._files.exists(snapshot):
                    self._files.rename(snapshot, snapshot + DELETED_SUFFIX)
                    marked.append(snapshot + DELETED_SUFFIX)
        finally:
            self.keeper.delete_later(self._files, marked, self.config.file_delete_delay_ms)

    def replace_segments(
        self, old: Sequence[LogSegment], suffixes: Sequence[str], now_ms: int
    ) -> None:
        """Put a cleaned segment in the place of those it was made of.

        Slices of the old ones stay readable. A crash leaves the old or the new.

        Args:
            old: neighbours, the active segment not among them. The cleaned one has the base
                offset of the first; its files are synced and end in `.cleaned`.
            suffixes: of those files, without `.cleaned`.
            now_ms: the wall time.

        Raises:
            StorageError: the disk fails. If that was halfway, the log is to be opened anew,
                which the keeper is told.
        """
        base_offset = old[0].base_offset
        try:
            begin_swap(self._files, self.directory, base_offset, suffixes)
        except OSError as error:
            raise self._storage_error("swap a cleaned segment into", error) from error
        try:
            self.delete_segments_later(old[:1], with_snapshots=False)
            self.delete_segments_later(old[1:])
            finish_swap(self._files, self.directory, base_offset, suffixes)
            segment = LogSegment(
                self._files, self.directory, base_offset, self.config, now_ms, is_new=False
            )
        except OSError as error:
            self.keeper.disk_failed(self.directory, error)
            raise StorageError(
                f"could not finish swapping a cleaned segment into {self.topic_partition}: {error}"
            ) from error
        if ".txnindex" in suffixes:
            _ = segment.transaction_index  # from now on it is asked
        self.segments.replace(old, segment)
        self.size = self.segments.size

    def _end_of_cut(self, offset: int) -> int:
        """Where the log ends if it is cut at `offset`: batches go whole."""
        segment = self.segments[self.segments.floor_index(offset)]
        position = segment.position_of(offset)
        for _, batch in iter_headers(segment.file, position, segment.size):
            return min(offset, batch.base_offset)
        return offset

    def _promise_no_more_than(self, offset: int) -> None:
        """Before a cut: what will be written from `offset` on is not flushed, and can be read.

        The checkpoints may say otherwise, of what was there before. Nor are the indexes of
        the segment that is cut what will be on the disk when it is closed.
        """
        flushed_to = min(offset, self.segments[self.segments.floor_index(offset)].base_offset)
        if flushed_to < self.recovery_point or offset < self.log_start_offset:
            self.recovery_point = min(self.recovery_point, flushed_to)
            self.log_start_offset = min(self.log_start_offset, offset)
            self.keeper.promises_taken_back(self)

    def _remove_for_good(self, segments: Sequence[LogSegment], end_offset: int) -> None:
        """Remove segments and the snapshots behind `end_offset` so that no crash undoes it.

        The last goes first: a crash on the way leaves a log without a gap.
        """
        for segment in reversed(segments):
            segment.delete()
        for snapshot_offset in reversed(list_snapshots(self._files, self.directory)):
            if snapshot_offset > end_offset:
                self._files.remove(snapshot_path(self.directory, snapshot_offset))
        self._files.sync_directory(self.directory)
