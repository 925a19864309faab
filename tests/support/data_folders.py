"""A data folder that holds a bit of everything, written by our own log manager.

Two partitions of `orders`: several segments, indexes with an entry for each batch, every
compression, three leader epochs, an idempotent producer, transactions of three more that end
either way and overlap, and checkpoints. `payments-0` has one segment and no producers.
`profiles-0`, where it is wanted, has been compacted.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch
from odradek.protocol.records.builder import RecordToBuild
from odradek.protocol.records.control import CONTROL_KEY, END_TRANSACTION_VALUE
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import AppendOrigin, Log, LogConfig, LogManager, TopicPartition
from odradek.storage.checkpoint.meta_properties import write_meta_properties
from odradek.storage.cleaner.cleaning_plan import CleanerSettings
from odradek.storage.cleaner.log_cleaner_manager import LogCleanerManager
from odradek.storage.cleaner.throttler import CleanerThrottler
from odradek.storage.io.files import REAL_FILES

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
MORE_ORDERS = TopicPartition("orders", 1)
PAYMENTS = TopicPartition("payments", 0)
ORDERS_ID = bytes(range(16))
PAYMENTS_ID = bytes(range(16, 32))
PROFILES = TopicPartition("profiles", 0)
PROFILES_ID = bytes(range(32, 48))
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
CONFIG = LogConfig(segment_bytes=1200, index_interval_bytes=1)
COMPACTED = CONFIG._replace(
    cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01, delete_retention_ms=0
)
ABORT, COMMIT = 0, 1
COMPRESSIONS = list(Compression)


class Writer:
    """Writes into one log what producers and a transaction coordinator would."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._numbers = itertools.count()
        self._sequences: dict[int, int] = {}

    def batch(self, producer_id: int = -1, *, records: int = 2, transactional: bool = False) -> int:
        """Append records that tell their number; returns the first offset."""
        number = next(self._numbers)
        timestamp = NOW_MS + 1000 * number
        contents: list[RecordToBuild] = [
            (b"key-%d" % (number % 5), b"value-%d-%d" % (number, index), timestamp + index, [])
            for index in range(records)
        ]
        sequence = -1 if producer_id < 0 else self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + records
        return self._append(
            build_batch(
                contents,
                compression=COMPRESSIONS[number % len(COMPRESSIONS)],
                producer_id=producer_id,
                producer_epoch=-1 if producer_id < 0 else 0,
                base_sequence=sequence,
                transactional=transactional,
            ),
            number,
        )

    def marker(self, producer_id: int, kind: int) -> int:
        """End a transaction with `ABORT` or `COMMIT`; returns the marker's offset."""
        number = next(self._numbers)
        key, value = CONTROL_KEY.pack(0, kind), END_TRANSACTION_VALUE.pack(0, 7)
        marker = build_batch(
            [(key, value, NOW_MS + 1000 * number, [])],
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        return self._append(marker, number, AppendOrigin.COORDINATOR)

    def _append(
        self, batch: bytearray, number: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> int:
        now_ms = NOW_MS + 1000 * number
        info = self.log.append_as_leader(
            memoryview(batch), leader_epoch=number // 20, origin=origin, now_ms=now_ms
        )
        self.log.flush_appends()
        return info.first_offset


def write_transactions(writer: Writer) -> None:
    """Sixty batches and markers: an idempotent producer, and three whose transactions overlap."""
    for _ in range(5):
        writer.batch(records=3)
        writer.batch(100)
        writer.batch(201, transactional=True)
        writer.batch(202, transactional=True)
        writer.batch(201, transactional=True)
        writer.marker(201, ABORT)
        writer.batch(203, transactional=True)
        writer.batch(100)
        writer.marker(202, COMMIT)
        writer.batch(202, transactional=True)
        writer.marker(203, ABORT)
        writer.marker(202, ABORT)


def compact(manager: LogManager) -> list[TopicPartition]:
    """Clean every log that is dirty, until none is; returns which were."""
    cleaner = LogCleanerManager(
        manager.logs,
        lambda: manager.log_dirs,
        lambda topic_partition: manager.logs[topic_partition].last_stable_offset,
        ManualClock(NOW_MS + 3_600_000),
    )
    cleaned: list[TopicPartition] = []
    while (candidate := run_at_once(cleaner.find_filthiest())) is not None:
        pace = CleanerThrottler(ManualClock(NOW_MS), lambda seconds: None)
        cleaning = cleaner.begin(candidate, CleanerSettings(1 << 20), pace)
        for group in cleaning.round.prepare():
            cleaner.swap_in(cleaning, cleaning.round.clean(group))
        cleaner.finished(cleaning)
        assert candidate.log.topic_partition not in cleaned, "nothing is dirty after a cleaning"
        cleaned.append(candidate.log.topic_partition)
    write = cleaner.checkpoints.prepare_write()
    if write is not None:
        cleaner.checkpoints.write_done(write())
    return cleaned


def write_data_folder(
    path: Path, *, config: LogConfig = CONFIG, clean: bool = True, compacted: bool = False
) -> None:
    """Make the data folder, closed properly or left as by a crash that loses nothing."""
    manager = LogManager([str(path)], clock=ManualClock(NOW_MS), default_config=config)
    manager.load_logs()
    write_meta_properties(
        REAL_FILES,
        str(path),
        node_id=1,
        cluster_id=CLUSTER_ID,
        directory_id="AAAAAAAAAAAAAAAAAAAAAQ",
    )
    for topic_partition, topic_id in (
        (ORDERS, ORDERS_ID),
        (MORE_ORDERS, ORDERS_ID),
        (PAYMENTS, PAYMENTS_ID),
    ):
        log = manager.get_or_create_log(topic_partition, topic_id)
        writer = Writer(log)
        if topic_partition == PAYMENTS:
            for _ in range(10):
                writer.batch()
        else:
            write_transactions(writer)
        log.flush_to_disk()
    if compacted:
        write_transactions(Writer(manager.get_or_create_log(PROFILES, PROFILES_ID, COMPACTED)))
        for log in manager.logs.values():
            log.high_watermark_moved(log.log_end_offset)
        assert compact(manager) == [PROFILES]
    manager.checkpoint_offsets()
    ends = {each: log.log_end_offset for each, log in manager.logs.items()}
    manager.checkpoint_high_watermarks(ends.get)
    if clean:
        manager.close()
    else:
        manager.abandon()
