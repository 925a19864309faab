"""The growing end of a log: batches are staged, written and published.

Appending has two steps, so that one pass of the broker's loop writes each log once:
`append_as_leader` checks and *stages*, `flush_appends` writes all that is staged and then
publishes it. Until then nothing of it can be read, and if the disk refuses it nothing of
it has been.
"""

from __future__ import annotations

from contextlib import suppress

from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.records.batch import (
    CONTROL_FLAG,
    LOG_OVERHEAD_BYTES,
    OFFSET_LENGTH_AND_EPOCH,
    TRANSACTIONAL_FLAG,
    Buffer,
    RecordBatch,
    iter_batches,
)
from ..protocol.records.validation import require_valid_crc
from .append_origin import AppendOrigin
from .errors import StorageError, UnexpectedAppendOffsetError
from .files import Files
from .leader_epoch_cache import LeaderEpochCache
from .log_append_info import LogAppendInfo
from .log_config import LogConfig
from .log_segment import OFFSETS_MAX, LogSegment
from .log_segments import LogSegments
from .log_validator import LogValidator
from .producer_snapshot import encode_snapshot, snapshot_path
from .producer_state_manager import ProducerStateManager
from .staged_appends import StagedAppends
from .topic_partition import TopicPartition


class LogAppender:
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
        self._files = files
        self.directory = directory
        self.topic_partition = topic_partition
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
        self.size = segments.size
        """Bytes of all segments."""
        self.generation = 0
        """Goes up whenever batches are cut off the end: positions from before are void."""
        self._validator = LogValidator(topic_partition, config)
        self._staged = StagedAppends(segments.active.size)
        self._earlier_staged: list[StagedAppends] = []
        self._file_has_a_dropped_tail = False

    # --- appending ---------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        now_ms: int,
    ) -> LogAppendInfo:
        """Check one batch, give it its offsets and stage it.

        Args:
            records: exactly one batch. Offsets and leader epoch are written into it, and
                the buffer must stay as it is until `flush_appends`. Bytes are copied.
            leader_epoch: the epoch this broker leads in.
            origin: who appends.
            now_ms: the wall time.

        Returns:
            The offsets it got. A producer's repetition of a batch gets that batch's.

        Raises:
            KafkaError: the batch is refused and nothing is staged: INVALID_RECORD,
                CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE,
                INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH,
                INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED.
        """
        view = records if type(records) is memoryview else memoryview(records)
        if view.readonly:
            view = memoryview(bytearray(view))
        (view, size, last_offset_delta, max_timestamp, attributes, producer_id, epoch, sequence) = (
            self._validator.validate(view, origin, now_ms)
        )
        base_offset = self.staged_end_offset
        last_offset = base_offset + last_offset_delta
        if size > self.config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes does not fit a segment of {self.topic_partition}",
            )
        if producer_id >= 0:
            if attributes & CONTROL_FLAG:
                self.producers.stage_marker(RecordBatch(view), origin)
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
                )
                if duplicate is not None:
                    return LogAppendInfo(
                        duplicate.first_offset,
                        duplicate.last_offset,
                        duplicate.timestamp,
                        duplicate.timestamp,
                        self.log_start_offset,
                        0,
                        True,
                    )
        OFFSET_LENGTH_AND_EPOCH.pack_into(
            view, 0, base_offset, size - LOG_OVERHEAD_BYTES, leader_epoch
        )
        self._stage(view, size, base_offset, last_offset, max_timestamp, leader_epoch, now_ms)
        return LogAppendInfo(
            base_offset,
            last_offset,
            max_timestamp,
            now_ms if self.config.message_timestamp_type == "LogAppendTime" else -1,
            self.log_start_offset,
            size,
        )

    def append_as_follower(self, records: Buffer, *, now_ms: int = 0) -> LogAppendInfo:
        """Stage what a leader sent, offsets and all; a batch cut at the end is left out.

        Args:
            records: any number of batches; the buffer must stay until `flush_appends`.
            now_ms: the wall time, for records that carry none.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a checksum is wrong.
            UnexpectedAppendOffsetError: the offsets do not go on from the log's end.
        """
        view = memoryview(records)
        batches = list(iter_batches(view))
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
        if staged.new_base_offset is None:
            return self.segments.active.must_roll(held + size, max_timestamp, last_offset, now_ms)
        first_timestamp = staged.batches[0][2]
        return (
            held + size > self.config.segment_bytes
            or last_offset - staged.new_base_offset > OFFSETS_MAX
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
            if self._file_has_a_dropped_tail:
                self._cut_dropped_tail()
            if self._earlier_staged:
                new_segments = self._write_to_new_segments()
            else:
                segment.file.append(staged.buffers, staged.size)
        except OSError as error:
            self._drop_staged()
            raise StorageError(f"could not append to {segment.log_path}: {error}") from error
        if new_segments:
            self._publish_in_new_segments(new_segments)
        else:
            self._publish(staged, segment)
            staged.published()
        self.log_end_offset = self.staged_end_offset
        self.producers.publish()

    def _publish(self, staged: StagedAppends, segment: LogSegment) -> None:
        for base_offset, last_offset, max_timestamp, size, leader_epoch in staged.batches:
            if leader_epoch != self.epochs.latest_epoch and leader_epoch >= 0:
                self.assign_epoch_start(leader_epoch, base_offset)
            segment.published(base_offset, last_offset, max_timestamp, size)
        self.size += staged.size

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
        self._file_has_a_dropped_tail = True
        with suppress(OSError):  # tried again before the next write
            self._cut_dropped_tail()

    def _cut_dropped_tail(self) -> None:
        self.segments.active.cut_file()
        self._file_has_a_dropped_tail = False

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """A leader of `epoch` begins to write at `offset`."""
        with suppress(OSError):  # kept in memory; `flush_to_disk` and `close` write it again
            self.epochs.assign(epoch, offset)

    # --- rolling -----------------------------------------------------------------------

    def _make_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        return LogSegment(
            self._files, self.directory, base_offset, self.config, now_ms, is_new=True
        )

    def _begin_segment(self, segment: LogSegment) -> None:
        """The active segment is full: complete its indexes, note its producers, go on.

        Both files can be made again from the batches, so a disk that refuses them now is
        no reason to refuse the batches.
        """
        with suppress(OSError):
            self.segments.active.close_for_appends()
            self._take_producer_snapshot(segment.base_offset)
        self.segments.add(segment)

    def _take_producer_snapshot(self, offset: int) -> None:
        path = snapshot_path(self.directory, offset)
        self._files.write_atomically(path, encode_snapshot(self.producers.published))
