"""The cleaner without a broker, and what readers see of a log."""

from __future__ import annotations

from collections.abc import Callable

from odradek.protocol.records import Record, RecordBatch, iter_batches, iter_records
from odradek.protocol.records.control import ControlRecordType, parse_end_transaction_marker
from odradek.protocol.records.validation import has_valid_crc
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import Log
from odradek.storage.cleaner.cleaning_plan import CleanerSettings
from odradek.storage.cleaner.log_cleaner_manager import Cleaning, LogCleanerManager
from odradek.storage.cleaner.offset_map import ENTRY_BYTES
from odradek.storage.cleaner.throttler import CleanerThrottler
from odradek.storage.io.files import REAL_FILES, Files

ROOMY = CleanerSettings(dedupe_buffer_bytes=1 << 20, io_buffer_bytes=4096)


def map_of(keys: int) -> CleanerSettings:
    """Settings under which a round remembers about so many keys; at least two."""
    return CleanerSettings(ENTRY_BYTES * (keys + 1), 1.0, 4096)


def make_manager(
    log: Log,
    clock: ManualClock,
    *,
    files: Files = REAL_FILES,
    last_stable_offset: Callable[[], int] | None = None,
) -> LogCleanerManager:
    """A cleaner for one log; all that is written counts as replicated."""
    return LogCleanerManager(
        {log.topic_partition: log},
        lambda: [log.directory.rpartition("/")[0]],
        lambda _: log.last_stable_offset if last_stable_offset is None else last_stable_offset(),
        clock,
        files,
    )


def clean(
    manager: LogCleanerManager, clock: ManualClock, settings: CleanerSettings = ROOMY
) -> Cleaning | None:
    """One round on the filthiest log, done at once; None if none is dirty enough.

    What goes wrong in it is raised.
    """
    candidate = run_at_once(manager.find_filthiest())
    if candidate is None:
        return None
    cleaning = manager.begin(candidate, settings, CleanerThrottler(clock, lambda seconds: None))
    for group in cleaning.round.prepare():
        manager.swap_in(cleaning, cleaning.round.clean(group))
    cleaning.round.sync_names()
    manager.finished(cleaning)
    write_checkpoints(manager)
    return cleaning


def write_checkpoints(manager: LogCleanerManager) -> None:
    """Bring the checkpoint files up to date."""
    write = manager.checkpoints.prepare_write()
    if write is not None:
        manager.checkpoints.write_done(write())


def read_batches(log: Log) -> list[RecordBatch]:
    """Every batch from the log's start on, each with a valid checksum, read as a client reads."""
    batches: list[RecordBatch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, 1 << 20).records
        read = list(iter_batches(found if isinstance(found, bytes) else found.read()))
        if not read:
            break
        assert all(has_valid_crc(batch) for batch in read)
        batches += read
        offset = read[-1].next_offset
    offsets = [batch.base_offset for batch in batches]
    assert offsets == sorted(set(offsets))
    return batches


def read_records(log: Log) -> list[Record]:
    """Every record but markers."""
    return [
        record
        for batch in read_batches(log)
        if not batch.is_control
        for record in iter_records(batch)
        if record.offset >= log.log_start_offset
    ]


def read_committed(log: Log) -> list[Record]:
    """What a read_committed consumer keeps of it (Kafka's CompletedFetch)."""
    end = log.last_stable_offset
    to_come = sorted(log.aborted_transactions(log.log_start_offset, end), key=lambda a: a[1])
    aborted: set[int] = set()
    records: list[Record] = []
    for batch in read_batches(log):
        if batch.base_offset >= end:
            break
        while to_come and to_come[0].first_offset <= batch.last_offset:
            aborted.add(to_come.pop(0).producer_id)
        if batch.is_control:
            marker = [parse_end_transaction_marker(record) for record in iter_records(batch)]
            if marker and marker[0] is not None and marker[0].type is ControlRecordType.ABORT:
                aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted):
            records += [each for each in iter_records(batch) if each.offset < end]
    return records


def latest_values(records: list[Record]) -> dict[bytes, bytes]:
    """The last value of each key that was not deleted after it."""
    values: dict[bytes, bytes] = {}
    for record in records:
        if record.key is not None:
            if record.value is None:
                values.pop(record.key, None)
            else:
                values[record.key] = record.value
    return values
