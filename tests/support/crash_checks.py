"""What must hold of a log after a crash, whatever the crash did.

Each check reads the log through its public face, or its index files entry by entry, and
compares with a plain walk over the batches it holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from odradek.protocol.records import Record, RecordBatch, iter_batches, iter_records
from odradek.protocol.records.validation import has_valid_crc
from odradek.storage import Log

from .crash_partition import CrashPartition, Replay, replay


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
    reported = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    for batch in found:
        if not batch.is_transactional or batch.is_control:
            continue
        is_told = any(
            each.producer_id == batch.producer_id
            and each.first_offset <= batch.base_offset <= each.last_offset
            for each in reported
        )
        is_aborted = any(
            number == batch.producer_id and first <= batch.base_offset <= last
            for number, first, last in whole.aborted
        )
        assert is_told == is_aborted, f"{batch!r} is aborted: {is_aborted}; told: {reported}"


def check_recovered(partition: CrashPartition, log: Log, *, lost_power: bool) -> None:
    """Compare a recovered log with all that it may be, and let the model go on from it.

    Args:
        partition: the model of before the crash.
        log: what was found.
        lost_power: if not, only the process was killed, and nothing published may be gone.

    Raises:
        AssertionError: the log is none of them, or its side files do not fit its batches.
    """
    found = read_batches(log, partition.random)
    for batch in found:
        assert has_valid_crc(batch), f"a batch with a bad checksum can be read: {batch!r}"
    candidates = partition.candidates(lost_power=lost_power)
    if partition.config.compacts:
        history = check_compacted(log, found, candidates, partition.ever_aborted)
    else:
        history = _history_of(partition, log, found, candidates)
    end = log.log_end_offset
    is_all_promised = not lost_power and not partition.is_cutting
    promised = partition.end_offset if is_all_promised else partition.flushed_end
    assert end >= promised, f"{promised} was promised, the log ends at {end}"
    start_min = min(partition.start_min, end)
    assert start_min <= log.log_start_offset <= partition.start_max, (
        f"the log starts at {log.log_start_offset}, not in {start_min}..{partition.start_max}"
    )
    partition.go_on_from(history, end, lost_power=lost_power)
    check_consistent(partition, log, found)


def check_consistent(partition: CrashPartition, log: Log, found: list[RecordBatch]) -> None:
    """Indexes, epochs and producers agree with the batches."""
    assert log.size == sum(segment.size for segment in log.segments)
    check_segments(log)
    check_lookups(log, found, partition.random)
    if partition.config.compacts:
        check_epochs_of_batches(log, found)
    else:
        check_epochs(log, found)
    check_producers(partition, log, found)


def read_batches(log: Log, source: random.Random) -> list[RecordBatch]:
    """Every batch of a log, read in pieces of any size."""
    found: list[RecordBatch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, source.choice((1, 200, 3000))).records
        batches = list(iter_batches(records if isinstance(records, bytes) else records.read()))
        if not batches:
            break  # compaction left nothing up to the end
        found += batches
        offset = batches[-1].next_offset
    return found


def _history_of(
    partition: CrashPartition,
    log: Log,
    found: list[RecordBatch],
    candidates: list[list[RecordBatch]],
) -> list[RecordBatch]:
    """The history that the log goes on with, batch by batch and byte by byte."""
    requested = [_bytes_of(batch) for batch in found]
    for history in candidates:
        left = [
            batch
            for batch in history
            if log.log_start_offset <= batch.last_offset < log.log_end_offset
        ]
        ends = {batch.next_offset for batch in history}
        if not found and log.log_start_offset == log.log_end_offset:
            ends |= {log.segments.first.base_offset, log.log_start_offset}
        if log.log_end_offset in ends and [_bytes_of(batch) for batch in left] == requested:
            return history
    known = [[(each.base_offset, each.next_offset) for each in history] for history in candidates]
    raise AssertionError(
        f"{partition.topic_partition} has {log.log_start_offset}..{log.log_end_offset}, batches "
        f"{[(each.base_offset, each.next_offset) for each in found]}, which is part of none of "
        f"{known}"
    )


def _bytes_of(batch: RecordBatch) -> bytes:
    return bytes(batch.buffer[batch.position : batch.position + batch.size_in_bytes])


# --- indexes -----------------------------------------------------------------------------------


def check_segments(log: Log) -> None:
    """Each index entry points at the batch it claims; segments follow each other."""
    for index, segment in enumerate(log.segments):
        is_last = index + 1 == len(log.segments)
        if not is_last and log.segments[index + 1].base_offset <= log.log_start_offset:
            continue  # never read again, so nobody has looked whether it is whole
        data = segment.file.read_at(segment.size, 0)
        assert segment.file.size() == segment.size
        positions = {batch.position: batch for batch in iter_batches(data)}
        entries = [segment.offset_index.entry(slot) for slot in range(len(segment.offset_index))]
        assert entries == sorted(set(entries))
        for offset, position in entries:
            batch = positions.get(position)
            assert batch is not None, f"{segment}: no batch at {position}, which is for {offset}"
            assert batch.last_offset == offset, f"{segment}: {batch!r} lies there, not {offset}"
        latest = -1
        noted = [segment.time_index.entry(slot) for slot in range(len(segment.time_index))]
        by_last_offset = {batch.last_offset: batch for batch in positions.values()}
        for entry in noted:
            batch = by_last_offset[entry.offset]
            assert batch.max_timestamp == entry.timestamp > latest
            latest = entry.timestamp
            earlier = [each for each in positions.values() if each.last_offset <= entry.offset]
            assert max(each.max_timestamp for each in earlier) == entry.timestamp
        timestamps = [batch.max_timestamp for batch in positions.values()]
        assert segment.load_max_timestamp() == max(timestamps, default=-1)
        if not is_last:
            assert segment.next_offset() <= log.segments[index + 1].base_offset
    assert log.segments.active.next_offset() == log.log_end_offset or not log.segments.active.size


def check_lookups(log: Log, found: list[RecordBatch], source: random.Random) -> None:
    """Lookups by offset and by time answer as a walk over all batches does."""
    if not found:
        return
    for _ in range(3):
        offset = source.randint(log.log_start_offset, log.log_end_offset - 1)
        expected = next((batch for batch in found if batch.last_offset >= offset), None)
        records = log.read(offset, 1).records
        if expected is None:
            assert len(records) == 0
        else:
            data = records if isinstance(records, bytes) else records.read()
            assert next(iter_batches(data)).base_offset == expected.base_offset
    records_by_time = [
        (record.timestamp, record.offset)
        for batch in found
        for record in iter_records(batch)
        if record.offset >= log.log_start_offset
    ]
    for _ in range(3 if records_by_time else 0):
        requested = source.choice(records_by_time)[0] + source.randint(-1, 1)
        first = next((each for each in records_by_time if each[0] >= requested), None)
        answer = log.offset_for_timestamp(requested)
        assert (None if answer is None else answer[:2]) == first, f"at time {requested}"
    if log.log_start_offset > log.segments.first.base_offset or log.config.compacts:
        return  # the latest of all may be a record that can no longer be read
    latest = max(timestamp for timestamp, _ in records_by_time)
    answer = log.max_timestamp()
    assert answer is not None
    assert answer[:2] == next(each for each in records_by_time if each[0] == latest)


# --- epochs and producers ----------------------------------------------------------------------


def check_epochs(log: Log, found: list[RecordBatch]) -> None:
    """The epochs begin where the batches say they do."""
    expected: list[tuple[int, int]] = []
    for batch in found:
        if not expected or expected[-1][0] != batch.partition_leader_epoch:
            start = max(batch.base_offset, log.log_start_offset)
            expected.append((batch.partition_leader_epoch, start))
    entries = [entry for entry in log.epochs.entries if entry[1] < log.log_end_offset]
    assert entries == expected, f"epochs are {entries}, the batches say {expected}"


def check_epochs_of_batches(log: Log, found: list[RecordBatch]) -> None:
    """Of a compacted log the batches that began an epoch may be gone."""
    for batch in found:
        offset = max(batch.base_offset, log.log_start_offset)
        assert log.epochs.epoch_for(offset) == batch.partition_leader_epoch


def check_producers(partition: CrashPartition, log: Log, found: list[RecordBatch]) -> None:
    """Producers and aborted transactions are what a replay finds.

    A producer that wrote before the log's start may be known, from a snapshot, or not.
    """
    history = [each for each in partition.batches if each.next_offset <= log.log_end_offset]
    whole = replay(history)
    rest = replay([batch for batch in found if batch.base_offset >= partition.start_seen])
    compacted = partition.config.compacts
    for number, state in log.producers.published.items():
        actual = (
            state.producer_epoch,
            state.last_sequence,
            _visible(state.current_txn_first_offset, log.log_start_offset),
            state.coordinator_epoch,
        )
        possible = [
            _state_of(each, number, log.log_start_offset)
            for each in _replays(history, found, partition.start_seen)
            if number in each.producers
        ]
        if compacted:  # markers may be gone
            possible += [(*each[:3], -1) for each in possible]
        assert actual in possible, f"producer {number} is {actual}, a replay says {possible}"
        offsets = [batch.last_offset for batch in state.batches]
        known = whole.producers[number].offsets
        kept = offsets[-1:] if compacted else offsets
        assert kept == known[len(known) - len(kept) :]
        assert offsets or number not in rest.producers or not rest.producers[number].offsets
    missing = rest.producers.keys() - log.producers.published.keys()
    assert not missing, f"producers {missing} have batches in the log and are not known"
    check_aborted_data(log, whole, found)
    if not compacted:
        check_aborted(log, whole, found, partition.random)
    log.high_watermark_moved(log.log_end_offset)
    begun = [state.current_txn_first_offset for state in log.producers.published.values()]
    unstable = min((offset for offset in begun if offset >= 0), default=log.log_end_offset)
    assert log.last_stable_offset == max(unstable, log.log_start_offset)
    partition.resume_producers()


def _replays(
    history: list[RecordBatch], found: list[RecordBatch], start_seen: int
) -> Iterator[Replay]:
    """Of all batches, and of those from any on that can no longer be read.

    How much a log still knows of what it has deleted is up to the snapshots that are left. They
    may have been taken when the log began at `start_seen`, and a crash undone that deletion.
    """
    first = max(found[0].base_offset if found else 0, start_seen)
    for index, batch in enumerate(history):
        if index == 0 or batch.base_offset <= first:
            yield replay(history[index:])


def check_aborted(log: Log, whole: Replay, found: list[RecordBatch], source: random.Random) -> None:
    """The aborted transactions of any range are those of a replay."""
    start, end = log.log_start_offset, log.log_end_offset
    if not found:
        return
    for _ in range(2):
        first = source.randint(start, end - 1)
        upper = source.randint(first + 1, end)
        expected = {
            each for each in whole.aborted if each[1] < upper and each[2] >= max(first, start)
        }
        actual = {
            (each.producer_id, each.first_offset, each.last_offset)
            for each in log.aborted_transactions(first, upper)
        }
        begun_before_start = {each for each in expected if each[1] < start}
        assert expected - begun_before_start <= actual, (
            f"aborted in {first}..{upper}: {sorted(expected)}, the log says {sorted(actual)}"
        )
        allowed = {(each[0], each[2]) for each in expected}
        assert {(each[0], each[2]) for each in actual} <= allowed, (
            f"aborted in {first}..{upper}: {sorted(expected)}, the log says {sorted(actual)}"
        )


def _state_of(result: Replay, number: int, log_start_offset: int) -> tuple[int, int, int, int]:
    state = result.producers[number]
    first_offset = _visible(state.txn_first_offset, log_start_offset)
    return state.epoch, state.last_sequence, first_offset, state.coordinator_epoch


def _visible(txn_first_offset: int, log_start_offset: int) -> int:
    """Where a transaction begins for readers; how much earlier it did is not known for sure."""
    return txn_first_offset if txn_first_offset < 0 else max(txn_first_offset, log_start_offset)
