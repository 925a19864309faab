"""The growing end of a log: batches are staged, written and published.

Appending has two steps, so that one pass of the broker's loop writes each log once:
`append_as_leader` checks and *stages*, `flush_appends` writes all that is staged, then publishes
it. Until then nothing of it can be read, and if the disk refuses it nothing of it has been.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile

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
from ..checkpoint.partition_metadata import sync_topic_id
from ..epoch.leader_epoch_cache import LeaderEpochCache
from ..errors import UnexpectedAppendOffsetError
from ..io.files import Files
from ..producer_state.producer_rebuild import take_snapshot
from ..producer_state.producer_state_manager import ProducerStateManager
from ..producer_state.verification_guard import NOT_REQUIRED, VerificationGuard
from ..segment.log_segment import OFFSETS_MAX, LogSegment
from ..segment.log_segments import LogSegments
from .aborted_transactions import AbortedTransactions
from .append_origin import AppendOrigin
from .kept_log import KeptLog
from .log_append_info import LogAppendInfo
from .log_config import LogConfig
from .log_validator import LogValidator
from .staged_appends import StagedAppends


class LogAppender(KeptLog):
    """The state of a log, and all that makes it grow; `Log` adds reading and cutting.

    Args:
        files: the file system.
        directory: the partition's folder.
        topic_partition: whose log it is.
        config: the topic's settings.
        segments: what is on the disk, at least one.
        log_start_offset: the first offset that may be read.
        log_end_offset: the next offset.
        recovery_point: everything before it is on the disk for sure.
        epochs: which leader epoch began where.
        producers: the states of its producers.
        topic_id: of the topic it belongs to, if known.
    """

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
        epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        topic_id: bytes | None,
    ) -> None:
        super().__init__(files, directory, topic_partition)
        self.topic_id = topic_id
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        """The offset the next published batch gets."""
        self.staged_end_offset = log_end_offset
        """The offset the next staged batch gets."""
        self.recovery_point = recovery_point
        self.last_flush_ms = 0
        """When it was flushed last; `flush.ms` counts from there."""
        self.size = segments.size
        """Bytes of all segments."""
        self.generation = 0
        """Goes up whenever batches are cut off the end: positions from before are void."""
        self.lowest_end_offset = log_end_offset
        """How far the log was ever cut back since it was opened."""
        self.on_cut: Callable[[int], None] | None = None
        """Told where the log ends after a cut, and 0 when it leaves its folder."""
        self._aborted: AbortedTransactions | None = None
        """None while there are none: most logs never have any."""
        if any(each.has_transaction_index for each in segments):
            self._aborted = AbortedTransactions()
        self._validator = LogValidator(topic_partition, config)
        self._staged = StagedAppends(segments.active.size)
        self._earlier_staged: list[StagedAppends] = []
        self._was_refused = False
        """Whether a part of what was staged last may lie in the file all the same."""
        self._active_indexes_lag = False
        """Whether the recovery point has passed batches whose indexes are not synced."""

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
        """Stage what a leader sent, offsets and all; a batch cut at the end is left out.

        Args:
            records: any number of batches; the buffer must stay until `flush_appends`.
            leader_epoch: as the follower knows it; a batch of a later epoch is left out with all
                behind it (KAFKA-18723). None: any may be there.
            now_ms: the wall time, for records that carry none.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a checksum is wrong.
            UnexpectedAppendOffsetError: the offsets do not go on from the log's end.
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
        staged = self._staged
        active = self.segments.active
        if (
            staged.position + staged.size + size > active.size_limit
            or max_timestamp > active.roll_after_timestamp
            or last_offset - active.base_offset > OFFSETS_MAX
            or active.roll_by_clock
        ) and self._must_roll(size, last_offset, max_timestamp, now_ms):
            self._earlier_staged.append(staged)
            staged = self._staged = StagedAppends(0, base_offset, now_ms)
        staged.batches.append((base_offset, last_offset, max_timestamp, size, leader_epoch))
        staged.buffers.append(view)
        staged.size += size
        self.staged_end_offset = last_offset + 1

    def _must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """The exact question behind the cheap one of `_stage`."""
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

    # --- flushing ----------------------------------------------------------------------

    def flush_appends(self) -> None:
        """Write what is staged, then publish it.

        Raises:
            StorageError: the disk refused it. All that was staged is dropped; what was
                published stays, and the log takes appends again once there is room.
        """
        staged = self._staged
        if not staged.batches:
            return
        segment = self.segments.active
        new_segments: list[LogSegment] = []
        try:
            self._forget_refused()
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
        """`flush.messages` is reached: all is on the disk before anyone hears of it.

        Indexes are not, so the recovery point passes no closed segment here; the flush that
        follows a roll lets it.
        """
        segments = self.segments
        unflushed = range(segments.floor_index(self.recovery_point), len(segments))
        try:
            for segment in (*(segments[index] for index in unflushed), *new_segments):
                segment.file.sync()
            if self.recovery_point == 0:
                sync_topic_id(self._files, self.directory)
            for directory in self.unsynced_directories(new_segments[-1:] or [segments.active]):
                self._files.sync_directory(directory)
        except OSError as error:
            for segment in new_segments:
                with suppress(OSError):
                    segment.delete()
            self._drop_staged()
            self.flush_failed(error)
            raise self._storage_error("sync", error) from error

    def unsynced_directories(self, segments: Sequence[LogSegment]) -> list[str]:
        """The directories with names that no sync has seen, given the unflushed segments."""
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
        """Producers know of the batches before `end_offset`, all in the active segment."""
        for aborted in self.producers.publish(end_offset):
            if self._aborted is None:
                self._aborted = AbortedTransactions()
            self._aborted.note(self.segments.active, aborted)

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
            for segment in new_segments:
                with suppress(OSError):
                    segment.delete()
            raise
        return new_segments

    def _publish_in_new_segments(self, new_segments: list[LogSegment]) -> None:
        first, *others = self._earlier_staged
        self._publish(first, self.segments.active)
        for group, segment in zip((*others, self._staged), new_segments, strict=True):
            self._publish_producers(segment.base_offset)
            self._begin_segment(segment)
            self._publish(group, segment)
        self._earlier_staged = []
        self._staged = StagedAppends(self.segments.active.size)

    def _drop_staged(self) -> None:
        """Nothing of what was staged has been: neither on the disk nor for producers."""
        self._earlier_staged = []
        self._staged = StagedAppends(self.segments.active.size)
        self.staged_end_offset = self.log_end_offset
        self.producers.drop()
        self._was_refused = True
        try:
            self.segments.active.cut_file()
        except OSError as error:  # tried again before the next write
            self._note_failure(error)

    def _forget_refused(self) -> None:
        """Before anything comes behind it: what was refused may not come back after a crash.

        Raises:
            OSError: the disk fails.
        """
        if self._was_refused:
            self.segments.active.cut_file()
            self.segments.active.file.sync()
            self._files.sync_directory(self.directory)
            self._was_refused = False

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """A leader of `epoch` begins to write at `offset`.

        It is written with the next flush: until then a crash has the batches read, which
        name their epoch too, and an epoch without batches is nothing to remember.
        """
        self.epochs.note(epoch, offset)

    # --- rolling -----------------------------------------------------------------------

    def _make_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        segment = LogSegment(
            self._files, self.directory, base_offset, self.config, now_ms, is_new=True
        )
        segment.spread(self.keeper.jitter(), self.config)
        return segment

    def _begin_segment(self, segment: LogSegment) -> None:
        """The active segment is full: complete its indexes, note its producers, go on.

        Both files can be made again from the batches, so a disk that refuses them now is
        no reason to refuse the batches.
        """
        closing = self.segments.active
        try:
            closing.close_for_appends()
            self._take_producer_snapshot(segment.base_offset)
        except OSError as error:
            self._note_failure(error)
        self.segments.add(segment)
        # Its indexes are not synced yet, even where each batch was.
        self.recovery_point = min(self.recovery_point, closing.base_offset)
        self.keeper.rolled(self)

    def _take_producer_snapshot(self, offset: int) -> None:
        take_snapshot(self._files, self.directory, self.producers, offset)
