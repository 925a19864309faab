"""A compacted log that lives at random, and what must hold of it all the time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import Record, build_batch
from odradek.protocol.records.builder import RecordToBuild
from odradek.runtime.clock import ManualClock
from odradek.storage import AppendOrigin, Log, LogConfig, TopicPartition, load_log
from odradek.storage.cleaner.cleaning_plan import CleanerSettings
from odradek.storage.cleaner.log_cleaner_manager import Cleaning

from .compaction import (
    ROOMY,
    clean,
    latest_values,
    make_manager,
    map_of,
    read_batches,
    read_committed,
    read_records,
)
from .transactions import marker

TABLE = TopicPartition("table", 0)
KEYS = [b"key-%d" % number for number in range(9)]
RETENTION_MS = 5_000
STEPS = 60
PLAIN, IDEMPOTENT, TRANSACTIONAL = -1, 1, (2, 3)


class CompactedLife:
    """A log, and every record ever written to it.

    Args:
        folder: of the log directory.
        seed: decides everything.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = str(folder / TABLE.folder_name)
        self.clock = ManualClock(1_700_000_000_000)
        self.config = LogConfig(
            segment_bytes=1200,
            index_interval_bytes=self.random.choice([0, 150]),
            cleanup_policy=frozenset({"compact"}),
            min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=RETENTION_MS,
            message_timestamp_type=self.random.choice(["CreateTime", "LogAppendTime"]),
        )
        self.log = self.open(clean_shutdown=True)
        self.manager = make_manager(self.log, self.clock)
        self.written: dict[int, Record] = {}
        self.aborted: set[int] = set()
        """Offsets of records in aborted transactions."""
        self.open_transactions: dict[int, list[int]] = {}
        self.sequences: dict[int, int] = {}
        self.horizons: dict[int, int] = {}
        """When a tombstone may go, of those that a round has seen."""

    def open(self, *, clean_shutdown: bool = False) -> Log:
        now_ms = self.clock.now_ms()
        return load_log(
            self.folder, TABLE, self.config, now_ms=now_ms, clean_shutdown=clean_shutdown
        )

    # --- what happens ------------------------------------------------------------------

    def append(self) -> None:
        producer_id = self.random.choice([PLAIN, PLAIN, IDEMPOTENT, *TRANSACTIONAL, *TRANSACTIONAL])
        now_ms = self.clock.now_ms()
        records: list[RecordToBuild] = []
        for _ in range(self.random.randint(1, 5)):
            value = None
            if self.random.random() < 0.8:
                value = self.random.randbytes(self.random.choice([0, 3, 60, 200]))
            headers: list[tuple[str, bytes | None]] = []
            if self.random.random() < 0.1:
                headers.append(("h", None))
            timestamp = now_ms - self.random.randint(0, 3000)
            records.append((self.random.choice(KEYS), value, timestamp, headers))
        header: dict[str, Any] = {}
        if producer_id != PLAIN:
            header = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": self.sequences.get(producer_id, 0),
                "transactional": producer_id in TRANSACTIONAL,
            }
            self.sequences[producer_id] = self.sequences.get(producer_id, 0) + len(records)
        batch = build_batch(records, compression=self.random.choice(list(Compression)), **header)
        info = self.log.append_as_leader(batch, leader_epoch=0, now_ms=now_ms)
        self.log.flush_appends()
        for delta, (key, value, timestamp, of_record) in enumerate(records):
            offset = info.first_offset + delta
            if self.config.uses_log_append_time:
                timestamp = now_ms
            self.written[offset] = Record(offset, timestamp, key, value, list(of_record))
            if producer_id in TRANSACTIONAL:
                self.open_transactions.setdefault(producer_id, []).append(offset)

    def end_transaction(self) -> None:
        if not self.open_transactions:
            return
        producer_id = self.random.choice(list(self.open_transactions))
        commit = self.random.random() < 0.5
        batch = marker(producer_id, commit=commit, timestamp=self.clock.now_ms())
        self.log.append_as_leader(
            batch, leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=self.clock.now_ms()
        )
        self.log.flush_appends()
        offsets = self.open_transactions.pop(producer_id)
        if not commit:
            self.aborted.update(offsets)
        self.log.high_watermark_moved(self.log.log_end_offset)

    def roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    def wait(self) -> None:
        self.clock.advance(self.random.choice([10, 1000, RETENTION_MS]))

    def restart(self) -> None:
        self.log.close()
        self._reopen(clean_shutdown=True)

    def crash(self) -> None:
        self._reopen()

    def lose_snapshots(self) -> None:
        """What is left in the log has to tell all of its producers."""
        for path in Path(self.folder).glob("*.snapshot"):
            path.unlink()
        self._reopen()

    def _reopen(self, *, clean_shutdown: bool = False) -> None:
        states = dict(self.log.producers.published)
        end_offset = self.log.log_end_offset
        self.log = self.open(clean_shutdown=clean_shutdown)
        assert self.log.log_end_offset == end_offset
        assert {
            producer_id: (state.producer_epoch, state.last_sequence, state.current_txn_first_offset)
            for producer_id, state in self.log.producers.published.items()
        } == {
            producer_id: (state.producer_epoch, state.last_sequence, state.current_txn_first_offset)
            for producer_id, state in states.items()
        }
        self.log.high_watermark_moved(end_offset)
        self.manager = make_manager(self.log, self.clock)

    def clean(self) -> None:
        now_ms = self.clock.now_ms()
        settings = self.random.choice([ROOMY, map_of(2), map_of(4)])
        before = {record.offset for record in read_records(self.log)}
        batches_before = read_batches(self.log)
        cleaning = self.run_round(settings)
        if cleaning is None:
            return
        self.check_round(cleaning, before, now_ms)
        plan = cleaning.round.plan
        ends = {batch.base_offset: batch.next_offset for batch in batches_before}
        assert all(ends[each.base_offset] == each.next_offset for each in read_batches(self.log))
        for segment in plan.segments:
            if segment.base_offset < cleaning.round.end_offset:
                for offset, record in self.written.items():
                    is_seen = segment.base_offset <= offset < segment.end_offset
                    if is_seen and record.value is None:
                        self.horizons.setdefault(offset, now_ms + RETENTION_MS)

    def run_round(self, settings: CleanerSettings) -> Cleaning | None:
        return clean(self.manager, self.clock, settings)

    def step(self) -> None:
        """Let something happen."""
        steps = [
            *[self.append] * 4,
            *[self.end_transaction] * 2,
            *[self.clean] * 2,
            self.roll,
            self.wait,
            self.restart,
            self.crash,
            self.lose_snapshots,
        ]
        self.random.choice(steps)()

    # --- what must hold ----------------------------------------------------------------

    def check_round(self, cleaning: Cleaning, before: set[int], now_ms: int) -> None:
        """What a round took away, it had to: and the other way."""
        end_offset = cleaning.round.end_offset
        assert end_offset > cleaning.round.plan.first_dirty_offset
        read_up_to = max(
            segment.end_offset
            for segment in cleaning.round.plan.segments
            if segment.base_offset < end_offset
        )
        left = {record.offset for record in read_records(self.log)}
        latest: dict[bytes | None, int] = {}
        for offset in sorted(self.written):
            if offset < end_offset and offset not in self.aborted:
                latest[self.written[offset].key] = offset
        for offset in before:
            record = self.written[offset]
            must_go = offset < read_up_to and offset in self.aborted
            if offset < end_offset and not must_go:
                is_old = self.horizons.get(offset, now_ms + 1) <= now_ms
                must_go = offset < latest[record.key] or (record.value is None and is_old)
            assert (offset not in left) == must_go, f"offset {offset} of {record}"

    def check(self) -> None:
        """What readers see is what was written, or what it comes to in the end."""
        for record in read_records(self.log):
            assert record == self.written[record.offset]
        end = self.log.last_stable_offset
        committed = [
            self.written[offset]
            for offset in sorted(self.written)
            if offset < end and offset not in self.aborted
        ]
        seen = read_committed(self.log)
        assert latest_values(seen) == latest_values(committed)
        assert not {record.offset for record in seen} & self.aborted
