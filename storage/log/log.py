"""One partition's log: appended to, read by offset and by time, truncated at either end.

Kafka's UnifiedLog and LocalLog. An append has two steps, so that one pass of the broker's loop
writes each log once: `append_as_leader` and `append_as_follower` check and *stage* batches,
`flush_appends` writes all that is staged and then publishes it. Nothing can be read before it
is published, and if the disk refuses a write, nothing of it was appended.

Nothing is synced per append unless `flush.messages` says so: replication is what makes records
safe, as in Kafka. Everything before the recovery point is on the disk; after a crash only the
segments from there on are read through.
"""

from __future__ import annotations

import os.path
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import (
    CONTROL_FLAG,
    LOG_OVERHEAD_BYTES,
    OFFSET_LENGTH_AND_EPOCH,
    TRANSACTIONAL_FLAG,
    Buffer,
    RecordBatch,
    iter_batches,
)
from ...protocol.records.validation import require_valid_crc
from ...runtime.steps import run_at_once
from ..checkpoint.partition_metadata import sync_topic_id, write_topic_id
from ..epoch.epoch_check import check_epochs
from ..epoch.leader_epoch_file_cache import LeaderEpochFileCache
from ..errors import StorageError, UnexpectedAppendOffsetError, is_disk_failure
from ..file_names import (
    DELETED_SUFFIX,
    PARTITION_METADATA_FILE,
    TRANSACTION_INDEX_SUFFIX,
    snapshot_path,
)
from ..index.time_index import TimestampAndOffset
from ..index.transaction_index import AbortedTxn
from ..io.file_slice import FileSlice
from ..io.files import Files
from ..io.open_files import OPEN_FILES
from ..io.pending_flush import PendingFlush
from ..producer_state.producer_replay import replay_segment
from ..producer_state.producer_snapshot import (
    list_snapshots,
    load_latest_snapshot,
    remove_stray_snapshots,
    take_snapshot,
)
from ..producer_state.producer_state_manager import ProducerStateManager
from ..producer_state.verification_guard import NOT_REQUIRED, VerificationGuard
from ..segment.log_segment import OFFSETS_MAX, LogSegment, StagedBatch
from ..segment.log_segments import LogSegments
from ..segment.segment_reader import iter_headers
from ..segment.segment_swap import begin_swap, finish_swap
from .append_origin import AppendOrigin
from .log_append_info import LogAppendInfo
from .log_config import LogConfig
from .log_owner import NULL_LOG_OWNER, LogOwner
from .log_read import LogRead
from .log_validator import LogValidator


class StagedAppends:
    """Batches that are accepted and not written yet, bound for one segment.

    Args:
        position: where in the segment's file the first will lie.
        new_base_offset: of the segment to be made for them; None for the active one.
        created_ms: the wall time at which that segment is made.
    """

    __slots__ = ("batches", "buffers", "created_ms", "new_base_offset", "position", "size")

    def __init__(
        self, position: int, new_base_offset: int | None = None, created_ms: int = 0
    ) -> None:
        self.position = position
        self.new_base_offset = new_base_offset
        self.created_ms = created_ms
        self.batches: list[StagedBatch] = []
        self.buffers: list[Buffer] = []
        self.size = 0

    def published(self) -> None:
        """Start again after what has been written to the active segment."""
        self.batches.clear()
        self.buffers.clear()
        self.position += self.size
        self.size = 0


NOTHING_STAGED: Final = StagedAppends(0)
"""Of all logs to which nothing was appended yet, or nothing since where it goes has changed."""


class Log:
    """A log that `log_loader.load_log` has made or found.

    Every method that touches the disk raises `StorageError` where the disk fails, and says so
    to the log's owner unless the disk is only full.

    Args:
        directory: the partition's folder.
        config: the topic's settings.
        segments: what is on the disk, at least one.
        log_start_offset: the first offset that may be read.
        log_end_offset: the next offset.
        recovery_point: everything before it is on the disk.
        epochs: which leader epoch began where.
        producers: the states of its producers.
        topic_id: of the topic it belongs to, if known.
    """

    __slots__ = (
        "_active_indexes_lag",
        "_earlier_staged",
        "_files",
        "_staged",
        "_validator",
        "_was_refused",
        "config",
        "directory",
        "epochs",
        "generation",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "lowest_end_offset",
        "on_cut",
        "on_start_moved",
        "owner",
        "producers",
        "recovery_point",
        "segments",
        "size",
        "staged_end_offset",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        segments: LogSegments,
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        epochs: LeaderEpochFileCache,
        producers: ProducerStateManager,
        topic_id: bytes | None,
    ) -> None:
        self._files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.owner: LogOwner = NULL_LOG_OWNER
        """Hears of failures, rolls and deletions; a log manager takes its place."""
        self.topic_id = topic_id
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        """The offset that the next published batch gets."""
        self.staged_end_offset = log_end_offset
        """The offset that the next staged batch gets."""
        self.recovery_point = recovery_point
        self.last_flush_ms = 0
        """When it was flushed last; `flush.ms` counts from there."""
        self.size = segments.size
        """Bytes of all segments."""
        self.generation = 0
        """Goes up with each truncation: positions from before it are void."""
        self.lowest_end_offset = log_end_offset
        """How far the log was ever truncated since it was opened."""
        self.on_cut: Callable[[int], None] | None = None
        """Called with the log's end after a truncation, and with 0 when its folder moves away."""
        self.on_start_moved: Callable[[], None] | None = None
        """Called when the log start offset has advanced."""
        self._validator = LogValidator(topic_partition, config)
        self._staged = NOTHING_STAGED
        self._earlier_staged: tuple[StagedAppends, ...] = ()
        self._was_refused = False
        """Whether a part of what was staged last may lie in the file although it was refused."""
        self._active_indexes_lag = False
        """Whether the recovery point has passed batches whose indexes are not synced."""

    def configure(self, config: LogConfig) -> None:
        """Apply changed settings, from the next append on."""
        self.config = config
        self._validator.configure(config)
        for segment in self.segments:
            segment.configure(config)

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Note the topic this log belongs to, in its folder too.

        Raises:
            KafkaError: INCONSISTENT_TOPIC_ID, it belongs to another topic of the same name.
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

    @property
    def log_dir(self) -> str:
        """The log directory that holds the partition's folder."""
        return os.path.dirname(self.directory)

    def flush_failed(self, error: OSError) -> None:
        """A flush did not complete: whatever the reason, even a full disk, the disk has failed.

        What the operating system had not written yet may be gone from its memory too, and a
        second sync would succeed all the same.
        """
        self.owner.disk_failed(self.directory, error)

    def _note_failure(self, error: OSError) -> None:
        if is_disk_failure(error):
            self.owner.disk_failed(self.directory, error)

    def _storage_error(self, verb: str, error: OSError) -> StorageError:
        """What to raise for an error of the disk; the owner hears of it."""
        self._note_failure(error)
        return StorageError(f"could not {verb} {self.topic_partition}: {error}")

    # --- appending ---------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        now_ms: int,
        transaction_version: int = 0,
        guard: VerificationGuard | None = NOT_REQUIRED,
    ) -> LogAppendInfo:
        """Check one batch, give it its offsets and stage it.

        Args:
            records: exactly one batch. Offsets and leader epoch are written into it, and
                the buffer must stay as it is until `flush_appends`. Bytes are copied.
            leader_epoch: the epoch this broker leads in.
            origin: who appends.
            now_ms: the wall time.
            transaction_version: of the coordinator's feature, if it is a marker (KIP-890).
            guard: what a transaction that begins with it was verified with.

        Returns:
            The offsets it got. A producer's repetition of a batch gets that batch's.

        Raises:
            KafkaError: nothing is staged: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE,
                RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER,
                INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED.
        """
        view = records if type(records) is memoryview else memoryview(records)
        if view.readonly:
            view = memoryview(bytearray(view))
        (view, size, last_offset_delta, max_timestamp, attributes, producer_id, epoch, sequence) = (
            self._validator.validate(view, origin, now_ms)
        )
        base_offset = self.staged_end_offset
        last_offset = base_offset + last_offset_delta
        if size > self.segments.active.size_limit and size > self.config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes does not fit a segment of {self.topic_partition}",
            )
        if producer_id >= 0:
            if attributes & CONTROL_FLAG:
                batch = RecordBatch(view)
                self.producers.stage_marker(batch, base_offset, origin, transaction_version)
            else:
                duplicate = self.producers.stage(
                    producer_id,
                    epoch,
                    sequence,
                    last_offset_delta,
                    base_offset,
                    max_timestamp,
                    transactional=attributes & TRANSACTIONAL_FLAG != 0,
                    origin=origin,
                    guard=guard,
                )
                if duplicate is not None:
                    first, last = duplicate.first_offset, duplicate.last_offset
                    at = duplicate.timestamp
                    return LogAppendInfo(first, last, at, at, self.log_start_offset, 0, True)
        OFFSET_LENGTH_AND_EPOCH.pack_into(
            view, 0, base_offset, size - LOG_OVERHEAD_BYTES, leader_epoch
        )
        self._stage(view, size, base_offset, last_offset, max_timestamp, leader_epoch, now_ms)
        append_ms = now_ms if self.config.message_timestamp_type == "LogAppendTime" else -1
        start = self.log_start_offset
        info = (base_offset, last_offset, max_timestamp, append_ms, start, size, False)
        return tuple.__new__(LogAppendInfo, info)  # its own constructor takes twice as long

    def append_as_follower(
        self, records: Buffer, *, leader_epoch: int | None = None, now_ms: int = 0
    ) -> LogAppendInfo:
        """Stage what a leader sent, with its offsets; a batch cut at the end is left out.

        Args:
            records: any number of batches; the buffer must stay until `flush_appends`.
            leader_epoch: as the follower knows it; a batch of a later epoch is left out with all
                after it (KAFKA-18723). None: any may be there.
            now_ms: the wall time, for records that carry none.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a checksum is wrong.
            UnexpectedAppendOffsetError: the offsets do not continue from the log's end.
        """
        view = memoryview(records)
        batches = list(iter_batches(view))
        if leader_epoch is not None:
            batches = list(
                takewhile(lambda batch: batch.partition_leader_epoch <= leader_epoch, batches)
            )
        next_offset = self.staged_end_offset
        for batch in batches:
            require_valid_crc(batch)
            if batch.base_offset < next_offset:
                raise UnexpectedAppendOffsetError(
                    f"{self.topic_partition} ends at {next_offset} and was given {batch!r}",
                    batches[0].base_offset,
                    batches[-1].last_offset,
                )
            next_offset = batch.next_offset
        first_offset = batches[0].base_offset if batches else next_offset
        max_timestamp = -1
        staged_bytes = 0
        for batch in batches:
            size = batch.size_in_bytes
            self.producers.stage_replicated(batch)
            self._stage(
                view[batch.position : batch.position + size],
                size,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
                batch.partition_leader_epoch,
                now_ms,
            )
            staged_bytes += size
            max_timestamp = max(max_timestamp, batch.max_timestamp)
        return LogAppendInfo(
            first_offset, next_offset - 1, max_timestamp, -1, self.log_start_offset, staged_bytes
        )

    def _stage(
        self,
        view: memoryview,
        size: int,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        leader_epoch: int,
        now_ms: int,
    ) -> None:
        active = self.segments.active
        staged = self._staged
        if staged is NOTHING_STAGED:
            staged = self._staged = StagedAppends(active.size)
        if (
            staged.position + staged.size + size > active.size_limit
            or max_timestamp > active.roll_after_timestamp
            or last_offset - active.base_offset > OFFSETS_MAX
            or active.roll_by_clock
        ) and self._must_roll(size, last_offset, max_timestamp, now_ms):
            self._earlier_staged = (*self._earlier_staged, staged)
            staged = self._staged = StagedAppends(0, base_offset, now_ms)
        staged.batches.append((base_offset, last_offset, max_timestamp, size, leader_epoch))
        staged.buffers.append(view)
        staged.size += size
        self.staged_end_offset = last_offset + 1

    def _must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """The exact condition, of which `_stage` has checked a cheap approximation."""
        staged = self._staged
        held = staged.position + staged.size
        if held == 0:
            return False
        active = self.segments.active
        if staged.new_base_offset is None and active.size:
            return active.must_roll(held + size, max_timestamp, last_offset, now_ms)
        first_offset, _, first_timestamp, *_ = staged.batches[0]
        return (
            held + size > self.config.segment_bytes
            or last_offset - first_offset > OFFSETS_MAX
            or (first_timestamp >= 0 and max_timestamp - first_timestamp > self.config.segment_ms)
        )

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """A leader of `epoch` begins to write at `offset`.

        The checkpoint is written with the next flush: until then a crash has the batches read,
        which carry their epoch too, and an epoch without batches need not be remembered.
        """
        self.epochs.assign(epoch, offset)

    # --- writing what is staged --------------------------------------------------------

    def flush_appends(self) -> None:
        """Write what is staged, then publish it.

        Raises:
            StorageError: the disk refused it. All that was staged is dropped; what was
                published stays, and the log takes appends again once the disk has space.
        """
        staged = self._staged
        if not staged.batches:
            return
        segment = self.segments.active
        new_segments: list[LogSegment] = []
        try:
            if self._was_refused:
                self._erase_refused()
            if self._earlier_staged:
                new_segments = self._write_to_new_segments()
            else:
                segment.file.append(staged.buffers, staged.size)
        except OSError as error:
            self._drop_staged()
            raise self._storage_error("append to", error) from error
        must_sync = self.staged_end_offset - self.recovery_point >= self.config.flush_messages
        if must_sync:
            self._sync_staged(new_segments)
        if new_segments:
            self._publish_in_new_segments(new_segments)
        else:
            self._publish(staged, segment)
            staged.published()
        self.log_end_offset = self.staged_end_offset
        self._publish_producers(self.log_end_offset)
        if must_sync and self.recovery_point >= self.segments.active.base_offset:
            self.recovery_point = self.log_end_offset
            self._active_indexes_lag = True

    def _sync_staged(self, new_segments: list[LogSegment]) -> None:
        """`flush.messages` is reached: sync before the batches are published.

        Indexes are not synced, so the recovery point passes no closed segment here; the flush
        that follows a roll advances it.
        """
        segments = self.segments
        unflushed = range(segments.floor_index(self.recovery_point), len(segments))
        try:
            for segment in (*(segments[index] for index in unflushed), *new_segments):
                segment.file.sync()
            if self.recovery_point == 0:
                sync_topic_id(self._files, self.directory)
            for directory in self._unsynced_directories(new_segments[-1:] or [segments.active]):
                self._files.sync_directory(directory)
        except OSError as error:
            _delete_all(new_segments)
            self._drop_staged()
            self.flush_failed(error)
            raise self._storage_error("sync", error) from error

    def _unsynced_directories(self, segments: Sequence[LogSegment]) -> list[str]:
        """The directories with names that no sync has covered, given the unflushed segments."""
        active = self.segments.active
        if segments and segments[-1] is active and active.base_offset < self.recovery_point:
            return []
        if self.recovery_point > 0:
            return [self.directory]
        return [self.directory, os.path.dirname(self.directory)]

    def _publish(self, staged: StagedAppends, segment: LogSegment) -> None:
        latest_epoch = self.epochs.latest_epoch
        for base_offset, _, _, _, leader_epoch in staged.batches:
            if leader_epoch != latest_epoch and leader_epoch >= 0:
                self.assign_epoch_start(leader_epoch, base_offset)
                latest_epoch = self.epochs.latest_epoch
        segment.published(staged.batches)
        self.size += staged.size

    def _publish_producers(self, end_offset: int) -> None:
        """Publish the producer states before `end_offset`, all in the active segment."""
        for aborted in self.producers.publish(end_offset):
            self.segments.append_aborted_transaction(aborted)

    def _write_to_new_segments(self) -> list[LogSegment]:
        """Fill the active segment and go on in new ones, which are deleted if any write fails."""
        first, *others = self._earlier_staged
        new_segments: list[LogSegment] = []
        try:
            if first.batches:
                self.segments.active.file.append(first.buffers, first.size)
            for group in (*others, self._staged):
                assert group.new_base_offset is not None
                segment = self._make_segment(group.new_base_offset, group.created_ms)
                new_segments.append(segment)
                segment.file.append(group.buffers, group.size)
        except OSError:
            _delete_all(new_segments)
            raise
        return new_segments

    def _publish_in_new_segments(self, new_segments: list[LogSegment]) -> None:
        first, *others = self._earlier_staged
        self._publish(first, self.segments.active)
        for group, segment in zip((*others, self._staged), new_segments, strict=True):
            self._publish_producers(segment.base_offset)
            self._begin_segment(segment)
            self._publish(group, segment)
        self._earlier_staged = ()
        self._staged = NOTHING_STAGED

    def _drop_staged(self) -> None:
        """Undo what was staged, on the disk and for producers."""
        self._earlier_staged = ()
        self._staged = NOTHING_STAGED
        self.staged_end_offset = self.log_end_offset
        self.producers.drop()
        self._was_refused = True
        try:
            self.segments.active.cut_file()
        except OSError as error:  # tried again before the next write
            self._note_failure(error)

    def _erase_refused(self) -> None:
        """Before the next write: what was refused must not come back after a crash."""
        self.segments.active.cut_file()
        self.segments.active.file.sync()
        self._files.sync_directory(self.directory)
        self._was_refused = False

    # --- rolling -----------------------------------------------------------------------

    def roll(self, now_ms: int) -> None:
        """Begin another segment, unless the active one is empty."""
        assert not self._staged.batches, "staged batches must be flushed before a roll"
        if self.segments.active.size == 0:
            return
        try:
            if self._was_refused:
                self._erase_refused()
            segment = self._make_segment(self.log_end_offset, now_ms)
        except OSError as error:
            raise self._storage_error("roll", error) from error
        self._begin_segment(segment)
        self._staged = NOTHING_STAGED

    def _make_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        segment = LogSegment(
            self._files, self.directory, base_offset, self.config, now_ms, is_new=True
        )
        segment.spread(self.owner.jitter(), self.config)
        return segment

    def _begin_segment(self, segment: LogSegment) -> None:
        """The active segment is full: complete its indexes, take a producer snapshot, go on.

        Both can be made again from the batches, so a disk that refuses them now is no reason
        to refuse the batches.
        """
        closing = self.segments.active
        try:
            closing.close_for_appends()
            take_snapshot(self._files, self.directory, self.producers, segment.base_offset)
        except OSError as error:
            self._note_failure(error)
        self.segments.add(segment)
        # Its indexes are not synced yet, even where each batch was.
        self.recovery_point = min(self.recovery_point, closing.base_offset)
        self.owner.rolled(self.topic_partition)

    # --- reading -----------------------------------------------------------------------

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
            return self._read_segments(start_offset, max_bytes, upper_offset, minimum_one_batch)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def _read_segments(
        self, start_offset: int, max_bytes: int, upper_offset: int | None, minimum_one_batch: bool
    ) -> LogRead:
        segments = self.segments
        active = segments.active
        if start_offset >= active.base_offset:
            segment, index = active, -1
        else:
            index = segments.floor_index(start_offset)
            segment = segments[index]
        position = segment.position_to_read(start_offset)
        while position >= segment.size:  # compaction may leave a gap at a segment's end
            if segment is active:
                return LogRead(b"", start_offset)
            index += 1
            segment = segments[index]
            position = segment.position_to_read(start_offset)
        limit = segment.size
        if upper_offset is not None:
            if upper_offset <= segment.base_offset:
                limit = 0
            elif segment is active or upper_offset < segments[index + 1].base_offset:
                limit = segment.position_of(upper_offset)
        size = limit - position
        if size > max_bytes:
            first_bytes = segment.batch_size_at(position)
            size = max_bytes
            if first_bytes > max_bytes:
                size = first_bytes if minimum_one_batch else 0
        if size <= 0:
            return LogRead(b"", start_offset)
        records = FileSlice(segment.file, position, size)
        if OPEN_FILES.is_scarce:
            held = OPEN_FILES.into_memory(segment, records)
            return LogRead(held, start_offset, segment.base_offset, position)
        return LogRead(records, start_offset, segment.base_offset, position)

    def offset_for_timestamp(
        self, timestamp_ms: int, upper_offset: int | None = None
    ) -> TimestampAndOffset | None:
        """The first record not earlier than `timestamp_ms`, if it is below `upper_offset`.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
        """
        try:
            found = self.segments.find_offset_by_timestamp(timestamp_ms, self.log_start_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error
        return _below(found, upper_offset)

    def max_timestamp(self, upper_offset: int | None = None) -> TimestampAndOffset | None:
        """The first record that has the latest timestamp of all, if below `upper_offset` (KIP-734).

        As in Kafka it may lie before the log's start, and of records without timestamps it
        is the first, with -1.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
        """
        try:
            found = self.segments.find_max_timestamp()
        except OSError as error:
            raise self._storage_error("read", error) from error
        return _below(found, upper_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch` and where it ends, or (-1, -1)."""
        self._check_epochs()
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def latest_epoch(self) -> int:
        """The last leader epoch that began in this log, or -1."""
        self._check_epochs()
        return self.epochs.latest_epoch

    def _check_epochs(self) -> None:
        """Compare epochs that an earlier process wrote with the batches, before their first use."""
        if self.epochs.is_trusted:
            return
        try:
            check_epochs(self.segments, self.epochs, self.log_start_offset, self.log_end_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error

    # --- transactions ------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended, and its end is replicated.

        Kafka's rule without the high watermark, which may lie before it and is the caller's
        to add.
        """
        first_unstable = self.producers.first_unstable_offset
        if first_unstable is None:
            return self.log_end_offset
        return max(first_unstable, self.log_start_offset)

    def high_watermark_moved(self, offset: int) -> None:
        """The high watermark is `offset`: transactions whose markers lie before it are stable.

        The owner of the high watermark calls it; it may leave that out while
        `producers.unreplicated` is empty.
        """
        self.producers.forget_unreplicated(offset)

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTxn]:
        """The aborted transactions that reach into a range of offsets, `upper_offset` excluded."""
        if not self.segments.has_aborted_transactions:
            return []
        try:
            return self.segments.aborted_transactions(start_offset, upper_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def aborted_transactions_in(self, read: LogRead) -> list[AbortedTxn]:
        """Those that a reader of committed records has to leave out of what it just read."""
        if not self.segments.has_aborted_transactions or not len(read.records):
            return []
        try:
            upper_offset = self._upper_bound_of(read)
        except OSError as error:
            raise self._storage_error("read", error) from error
        return self.aborted_transactions(read.first_offset, upper_offset)

    def _upper_bound_of(self, read: LogRead) -> int:
        """An offset after all that was read, though not always directly after it.

        From the offset index, as in Kafka's OffsetIndex.fetchUpperBoundOffset.
        """
        segments = self.segments
        index = segments.floor_index(read.segment_base_offset)
        offset_index = segments[index].offset_index
        slots = range(len(offset_index))
        end = read.position + len(read.records)
        slot = bisect_left(slots, end, key=lambda each: offset_index.entry(each)[1])
        if slot < len(slots):
            offset = offset_index.entry(slot)[0]
            if segments[index].start_position(offset) >= end:  # else the index is corrupt
                return offset
        return segments[index + 1].base_offset if index + 1 < len(segments) else self.log_end_offset

    def rebuild_producer_state(
        self, now_ms: int = 0, recovered: ProducerStateManager | None = None
    ) -> None:
        """Read the producers' states from snapshots and batches (UnifiedLog.rebuildProducerState).

        Snapshots that no later start can use are removed, new ones taken where the last two
        segments begin and at the end of the log.

        Args:
            now_ms: the wall time, to leave out expired producers.
            recovered: the states at the log's end, if they are known already.
        """
        expiration_ms = self.config.producer_id_expiration_ms
        start, end = self.log_start_offset, self.log_end_offset
        base_offsets = [segment.base_offset for segment in self.segments]
        files, directory = self._files, self.directory
        left = remove_stray_snapshots(files, directory, base_offsets, start, end)
        if recovered is not None and end > start:
            run_at_once(recovered.remove_expired(now_ms, expiration_ms))
            recovered.log_start_moved(start)
            self.producers = recovered
            return
        offset, states = load_latest_snapshot(files, directory, left, start, end)
        kept = {
            producer_id: state
            for producer_id, state in states.items()
            if not state.is_expired(now_ms, expiration_ms)
        }
        self.producers.replace_all(kept, offset)
        if offset >= end:
            return
        for segment in list(self.segments)[self.segments.floor_index(offset) :]:
            if segment.base_offset in base_offsets[-2:]:
                with suppress(OSError):
                    take_snapshot(self._files, self.directory, self.producers, segment.base_offset)
            replay_segment(segment, self.producers, offset)
        with suppress(OSError):
            take_snapshot(self._files, self.directory, self.producers, end)

    # --- truncating the end ------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop the batches that end at `offset` or later; whether there were any."""
        assert not self._staged.batches, "staged batches must be flushed before a truncation"
        if offset >= self.log_end_offset:
            # An epoch in which this broker led and wrote nothing may be unknown to later
            # leaders: with nothing to truncate they would disagree about it forever.
            self.epochs.truncate_from_end(self.log_end_offset)
            try:
                self.epochs.flush()
            except OSError as error:
                raise self._storage_error("truncate", error) from error
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            offset = self._batch_boundary(offset)
            self._lower_recovery_point(offset)
            self._delete_durably(self.segments.remove_from(offset + 1), offset)
            self.segments.active.truncate_to(offset)
            self.segments.active.file.sync()
            self._truncated(min(offset, self.segments.active.next_offset()))
        except OSError as error:
            raise self._storage_error("truncate", error) from error
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin at `offset`."""
        assert not self._staged.batches, "staged batches must be flushed before a truncation"
        try:
            self._lower_recovery_point(offset)
            self._delete_durably(list(self.segments), -1)
            self.segments.replace_all(self._make_segment(offset, self.segments.active.created_ms))
            self.epochs.clear()
            self.epochs.flush()
            self.log_start_offset = offset
            self._truncated(offset)
        except OSError as error:
            raise self._storage_error("truncate", error) from error

    def _batch_boundary(self, offset: int) -> int:
        """Where the log ends if it is truncated to `offset`: batches go whole."""
        segment = self.segments[self.segments.floor_index(offset)]
        position = segment.position_of(offset)
        for _, batch in iter_headers(segment.file, position, segment.size):
            return min(offset, batch.base_offset)
        return offset

    def _lower_recovery_point(self, offset: int) -> None:
        """Before a truncation: what is written from `offset` on is not flushed, but can be read.

        The checkpoints may say otherwise, of what was there before. Nor are the indexes of the
        truncated segment on the disk as they will be when it is closed.
        """
        flushed_to = min(offset, self.segments[self.segments.floor_index(offset)].base_offset)
        if flushed_to < self.recovery_point or offset < self.log_start_offset:
            self.recovery_point = min(self.recovery_point, flushed_to)
            self.log_start_offset = min(self.log_start_offset, offset)
            self.owner.recovery_point_lowered(self.topic_partition)

    def _delete_durably(self, segments: Sequence[LogSegment], end_offset: int) -> None:
        """Remove segments and the snapshots after `end_offset` so that no crash undoes it.

        The last goes first: a crash in between leaves a log without a gap.
        """
        for segment in reversed(segments):
            segment.delete()
        for snapshot_offset in reversed(list_snapshots(self._files, self.directory)):
            if snapshot_offset > end_offset:
                self._files.remove(snapshot_path(self.directory, snapshot_offset))
        self._files.sync_directory(self.directory)

    def _truncated(self, offset: int) -> None:
        """The log ends at `offset` now: drop what is known of later offsets."""
        self.generation += 1
        self.log_end_offset = self.staged_end_offset = offset
        self.lowest_end_offset = min(self.lowest_end_offset, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.size = self.segments.size
        self._staged = NOTHING_STAGED
        self.epochs.truncate_from_end(offset)
        self.epochs.flush()
        start = self.log_start_offset
        unreplicated = [each for each in self.producers.unreplicated if start <= each[0] < offset]
        self.rebuild_producer_state()
        self.producers.restore_unreplicated(unreplicated)
        if self.on_cut is not None:
            self.on_cut(offset)

    # --- advancing the start -----------------------------------------------------------

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

    def delete_old_segments(self, now_ms: int, high_watermark: int, most: int | None = None) -> int:
        """Drop the oldest segments by age, size and log start; returns how many.

        They are marked as deleted, and removed after `file.delete.delay.ms`.

        Args:
            now_ms: wall time.
            high_watermark: what is not below it stays.
            most: no more than so many.
        """
        try:
            count = self._count_deletable(now_ms, high_watermark, most)
            if count == 0:
                return 0
            if count == len(self.segments):
                self.roll(now_ms)
            removed = self.segments.remove_first(count)
            self.size -= sum(segment.size for segment in removed)
            self.delete_segments_later(removed)
        except OSError as error:
            raise self._storage_error("delete old segments of", error) from error
        self.advance_log_start_offset(max(self.segments.first.base_offset, self.log_start_offset))
        return count

    def _count_deletable(self, now_ms: int, high_watermark: int, most: int | None) -> int:
        """How many of the oldest segments may go (Kafka's UnifiedLog.deletableSegments).

        All of them if even the active one, which holds something, is too old: it has to be
        rolled first. What is not yet replicated stays.
        """
        segments, config = self.segments, self.config
        is_sized = config.deletes and config.retention_bytes >= 0
        excess_bytes = self.size - config.retention_bytes if is_sized else -1
        count = 0
        for index, segment in enumerate(segments):
            is_last = index + 1 == len(segments)
            end_offset = self.log_end_offset if is_last else segments[index + 1].base_offset
            if high_watermark < end_offset or (is_last and segment.size == 0):
                break
            is_before_start = not is_last and end_offset <= self.log_start_offset
            is_too_old = (
                config.deletes
                and config.retention_ms >= 0
                and now_ms - segment.largest_timestamp() > config.retention_ms
            )
            if not (is_before_start or is_too_old or segment.size <= excess_bytes):
                break
            if count == most:
                break
            excess_bytes -= segment.size
            count += 1
        return count

    def delete_segments_later(
        self, segments: Iterable[LogSegment], *, with_snapshots: bool = True
    ) -> None:
        """Remove the files of segments that are no longer the log's.

        They are renamed at once and removed after `file.delete.delay.ms`: a slice handed
        out keeps its file.

        Args:
            segments: taken out of `segments` already.
            with_snapshots: whether the producer snapshots at their base offsets go too;
                not where another segment with the same base offset takes their place.
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
            self.owner.delete_later(self._files, marked, self.config.file_delete_delay_ms)

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
            StorageError: the disk fails. If that was halfway, the log has to be opened again,
                and its owner hears that the disk failed.
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
            self.owner.disk_failed(self.directory, error)
            raise StorageError(
                f"could not finish swapping a cleaned segment into {self.topic_partition}: {error}"
            ) from error
        if TRANSACTION_INDEX_SUFFIX in suffixes:
            _ = segment.transaction_index  # made, so that lookups include it
        self.segments.replace(old, segment)
        self.size = self.segments.size

    # --- syncing and closing -----------------------------------------------------------

    def start_flush(
        self, *, closed_segments_only: bool = False, is_closing: bool = False
    ) -> PendingFlush | None:
        """What has to be synced for all that is published to be safe; None if nothing.

        Its `run` may be called in a thread; hand it to `finish_flush` afterwards. Indexes
        of the active segment are left out: after a crash it is read through in any case.

        Args:
            closed_segments_only: leave out the active segment, as Kafka does at a roll.
            is_closing: the active segment is closed too, so its indexes are synced.
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
                    segment.flush_indexes()
                    paths += segment.index_paths()
                    snapshot = snapshot_path(self.directory, segment.base_offset)
                    if self._files.exists(snapshot):
                        paths.append(snapshot)
            if is_closing or closed_segments_only:
                paths.append(snapshot_path(self.directory, end_offset))
            self.epochs.flush()
            if self.epochs.entries:
                paths.append(self.epochs.path)
            files = [segment.file for segment in unflushed]
        except OSError as error:
            raise self._storage_error("flush", error) from error
        directories = self._unsynced_directories(unflushed)
        if is_closing and not directories:
            directories = [self.directory]  # index files may have been made just now
        indexed_to = end_offset if is_closing else min(active.base_offset, end_offset)
        return PendingFlush(
            self._files, files, paths, directories, end_offset, self.generation, indexed_to
        )

    def finish_flush(self, flush: PendingFlush, now_ms: int = 0) -> None:
        """A flush has run: advance the recovery point, unless the log was truncated meanwhile.

        Args:
            flush: what `start_flush` gave.
            now_ms: monotonic milliseconds, from which `flush.ms` counts again.
        """
        self.last_flush_ms = max(self.last_flush_ms, now_ms)
        if flush.generation == self.generation:
            was_rolled = self.segments.active.base_offset > flush.indexed_to
            offset = flush.indexed_to if was_rolled else flush.offset
            self.recovery_point = max(self.recovery_point, offset)
            if flush.offset > self.segments.active.base_offset:
                self._active_indexes_lag = True

    def flush_to_disk(self) -> None:
        """Wait until all that is published is on the disk."""
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
        """Write indexes and producer states, sync, and close the files.

        Raises:
            StorageError: the disk fails; the next start has to recover the log.
        """
        self.flush_appends()
        active = self.segments.active
        try:
            if self._was_refused:
                self._erase_refused()
            if self.log_end_offset > self.log_start_offset:
                take_snapshot(self._files, self.directory, self.producers, self.log_end_offset)
            active.close_for_appends()
        except OSError as error:
            raise self._storage_error("close", error) from error
        if self._active_indexes_lag:
            self.recovery_point = min(self.recovery_point, active.base_offset)
        self._run_flush(self.start_flush(is_closing=True))
        self.close_files()

    def close_files(self) -> None:
        """Close the files as they are; slices handed out stay readable."""
        for segment in self.segments:
            segment.close()

    def move_folder(self, path: str) -> None:
        """Rename the folder, because the log is being deleted."""
        try:
            self._files.rename(self.directory, path)
        except OSError as error:
            raise self._storage_error("delete", error) from error
        self.close_files()
        if self.on_cut is not None:
            self.on_cut(0)

    def relocate(self, path: str) -> None:
        """The folder was renamed to `path`; open files stay what they are.

        A flush that is under way is void: it may not have found the index files.
        """
        self.directory = path
        self.epochs.directory = path
        for segment in self.segments:
            segment.relocate(path)
        self.generation += 1


def _delete_all(segments: Iterable[LogSegment]) -> None:
    for segment in segments:
        with suppress(OSError):
            segment.delete()


def _below(found: TimestampAndOffset | None, upper_offset: int | None) -> TimestampAndOffset | None:
    if found is None or (upper_offset is not None and found.offset >= upper_offset):
        return None
    return found
