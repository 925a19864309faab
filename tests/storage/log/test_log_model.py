"""Random lives of a log against a list of records: appends, cuts, faults, crashes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.selection import short

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.storage import LogConfig, StorageError, TopicPartition, load_log

ORDERS = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200)
STEPS = 120


class Life:
    """A log and what it should hold: `records[offset] = (timestamp, value)`."""

    def __init__(self, folder: Path, files, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.files = files
        self.records: dict[int, tuple[int, bytes]] = {}
        self.next_timestamp = 1000
        self.log = self.open(clean_shutdown=True, log_start_offset=0)

    def open(self, **arguments):
        return load_log(str(self.folder), ORDERS, CONFIG, files=self.files, **arguments)

    def stage_some(self) -> dict[int, tuple[int, bytes]]:
        staged = {}
        for _ in range(self.random.randint(1, 8)):
            records = []
            for _ in range(self.random.randint(1, 4)):
                self.next_timestamp += self.random.randint(-3, 10)
                value = bytes(self.random.randint(0, 150))
                records.append((b"k", value, self.next_timestamp, []))
            batch = build_batch(records, compression=self.random.choice(list(Compression)))
            info = self.log.append_as_leader(batch, leader_epoch=0, now_ms=0)
            for delta, (_, value, timestamp, _) in enumerate(records):
                staged[info.first_offset + delta] = (timestamp, value)
        return staged

    def append(self) -> None:
        staged = self.stage_some()
        self.log.flush_appends()
        self.records.update(staged)

    def append_to_a_full_disk(self) -> None:
        self.stage_some()
        self.files.room_bytes = self.random.randint(0, 60)
        with pytest.raises(StorageError):
            self.log.flush_appends()
        self.files.room_bytes = None

    def truncate(self) -> None:
        self.log.truncate_to(
            self.random.randint(self.log.log_start_offset, self.log.log_end_offset)
        )
        self.forget()

    def delete_records(self) -> None:
        offset = self.random.randint(self.log.log_start_offset, self.log.log_end_offset)
        self.log.advance_log_start_offset(offset)
        self.log.delete_old_segments(0, self.log.log_end_offset)
        self.forget()

    def forget(self) -> None:
        log = self.log
        self.records = {
            offset: record
            for offset, record in self.records.items()
            if log.log_start_offset <= offset < log.log_end_offset
        }

    def restart(self) -> None:
        start_offset = self.log.log_start_offset
        self.log.close()
        self.log = self.open(clean_shutdown=True, log_start_offset=start_offset)

    def crash(self) -> None:
        start_offset = self.log.log_start_offset
        self.log = self.open(log_start_offset=start_offset)

    def crash_with_a_torn_tail(self) -> None:
        path = Path(self.log.segments.active.log_path)
        torn = self.random.randint(0, min(40, path.stat().st_size))
        with path.open("ab") as file:
            file.truncate(path.stat().st_size - torn)
        before = self.log.log_end_offset
        self.crash()
        assert self.log.log_end_offset <= before
        self.forget()

    def check(self) -> None:
        log = self.log
        assert sorted(self.records) == list(range(log.log_start_offset, log.log_end_offset))
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            max_bytes = self.random.choice([1, 300, 5000])
            batches = list(iter_batches(log.read(offset, max_bytes).records.read()))
            for record in (each for batch in batches for each in iter_records(batch)):
                if record.offset >= log.log_start_offset:
                    assert self.records[record.offset] == (record.timestamp, record.value)
            offset = batches[-1].next_offset
        if self.records:
            self.check_lookup()

    def check_lookup(self) -> None:
        requested = self.random.choice(list(self.records.values()))[0]
        first = min(offset for offset, (time, _) in self.records.items() if time >= requested)
        found = self.log.offset_for_timestamp(requested)
        assert found[:2] == (self.records[first][0], first)


@pytest.mark.parametrize("seed", short(range(6), 2))
def test_a_log_holds_what_it_was_given_through_all_it_lives(tmp_path, faulty_files, seed) -> None:
    life = Life(tmp_path / "orders-0", faulty_files, seed)
    for _ in range(STEPS):
        step = life.random.choice(
            [
                life.append,
                life.append,
                life.append,
                life.append_to_a_full_disk,
                life.truncate,
                life.delete_records,
                life.restart,
                life.crash,
                life.crash_with_a_torn_tail,
            ]
        )
        step()
        life.check()
