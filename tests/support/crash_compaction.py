"""What must be left of a log whose segments were compacted, and what may be gone."""

from __future__ import annotations

from odradek.protocol.records import Record, RecordBatch, iter_records
from odradek.storage import Log

from .crash_partition import Replay, replay


def check_compacted(
    log: Log,
    found: list[RecordBatch],
    candidates: list[list[RecordBatch]],
    ever_aborted: set[int],
) -> list[RecordBatch]:
    """Find the history that a compacted log goes on with.

    Every record in the log has to be one that was written at its offset, and of each key the
    latest that was not aborted has to be there, unless it is a tombstone.

    Args:
        log: what was found after a crash.
        found: its batches.
        candidates: what it may be a part of.
        ever_aborted: offsets of records whose transaction was aborted once; they may be gone
            although a crash took the marker, since it is going to be written again. Those
            aborted in a candidate are added.

    Raises:
        AssertionError: it is a part of none.
    """
    records = {record.offset: record for batch in found for record in iter_records(batch)}
    assert list(records) == sorted(records)
    for history in candidates:
        ever_aborted |= aborted_offsets(history)
    problems = []
    for history in candidates:
        problem = _problem(log, records, history, ever_aborted)
        if problem is None:
            return history
        problems.append(problem)
    raise AssertionError(
        f"{log.topic_partition} from {log.log_start_offset} to {log.log_end_offset} holds "
        f"{list(records)}: {problems}"
    )


def _problem(
    log: Log, records: dict[int, Record], history: list[RecordBatch], aborted: set[int]
) -> str | None:
    written = {record.offset: record for batch in history for record in iter_records(batch)}
    for offset, record in records.items():
        original = written.get(offset)
        if original is None or original[:4] != record[:4]:
            return f"{record} was not written, but {original}"
    latest: dict[bytes | None, int] = {}
    for batch in history:
        if not batch.is_control and batch.next_offset <= log.log_end_offset:
            for record in iter_records(batch):
                if record.offset not in aborted:
                    latest[record.key] = record.offset
    for key, offset in latest.items():
        is_needed = offset >= log.log_start_offset and written[offset].value is not None
        if is_needed and offset not in records:
            return f"the latest record of {key!r}, at {offset}, is gone"
    return None


def aborted_offsets(history: list[RecordBatch]) -> set[int]:
    """The offsets of all records in transactions that were aborted."""
    ranges = replay(history).aborted
    return {
        offset
        for batch in history
        for number, first, last in ranges
        if batch.producer_id == number and batch.is_transactional and not batch.is_control
        for offset in range(batch.base_offset, batch.next_offset)
        if first <= offset <= last
    }


def check_aborted_data(log: Log, whole: Replay, found: list[RecordBatch]) -> None:
    """Each aborted batch that is left is told of, and none that was committed."""
    told = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    for batch in found:
        if not batch.is_transactional or batch.is_control:
            continue
        is_told = any(
            each.producer_id == batch.producer_id
            and each.first_offset <= batch.base_offset <= each.last_offset
            for each in told
        )
        is_aborted = any(
            number == batch.producer_id and first <= batch.base_offset <= last
            for number, first, last in whole.aborted
        )
        assert is_told == is_aborted, f"{batch!r} is aborted: {is_aborted}; told: {told}"
