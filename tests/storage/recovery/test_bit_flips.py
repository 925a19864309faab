"""One bit of a file is wrong: it is found and made again, refused by name, or does no harm.

The folder is written by a log manager and closed properly, so that a start takes it at its
word. Then, for each bit of a file in turn, the log is opened and asked everything.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from support.crash_checks import read_batches
from support.crash_partition import CrashPartition, replay

from odradek.common.errors import ErrorCode, KafkaError
from odradek.log_tools.verify.log_verify import Verification, VerifyOptions
from odradek.protocol.records import RecordBatch, iter_records
from odradek.runtime.clock import ManualClock
from odradek.storage import Log, LogConfig, LogDirectoryError, LogManager, TopicPartition
from odradek.storage import load_log as storage_load_log
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
FOLDER = "/data/orders-0"
CONFIG = LogConfig(segment_bytes=1200, index_interval_bytes=1)
TOPIC_ID = bytes(range(16))
HEADER_BITS = 61 * 8
BATCHES_MIN = 40


class Written:
    """A folder, and what is true of it."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        manager = open_manager(self.files)
        partition = CrashPartition(ORDERS, CONFIG, random.Random(7), TOPIC_ID)
        partition.log = manager.get_or_create_log(ORDERS, TOPIC_ID, CONFIG)
        while len(partition.batches) < BATCHES_MIN or partition.log.producers.open_transactions:
            if len(partition.batches) % 7 == 0:
                partition.lead_in_a_new_epoch()
            partition.stage_some()
            partition.flush_appends()
        log = partition.log
        log.advance_log_start_offset(2)
        manager.checkpoint_high_watermarks({ORDERS: log.log_end_offset}.get)
        self.base_offsets = [segment.base_offset for segment in log.segments]
        self.epochs = list(log.epochs.entries)
        self.end_offset = log.log_end_offset
        self.batches = read_batches(log, random.Random(7))
        self.records = [record for batch in self.batches for record in iter_records(batch)]
        self.producers = replay(partition.batches).producers
        self.aborted = {
            (number, first, last) for number, first, last in replay(partition.batches).aborted
        }
        manager.close()

    def path(self, name: str) -> str:
        return f"{FOLDER}/{name}"

    def of_closed_segment(self, suffix: str) -> str:
        """A file of the second segment."""
        return self.path(f"{self.base_offsets[1]:020d}{suffix}")

    def flipped(self, path: str, bits: range | None = None) -> Iterator[MemoryFiles]:
        """Copies of the folder, each with one bit of a file the other way round."""
        for bit in bits or range(len(self.files.read_bytes(path)) * 8):
            files = self.files.copy()
            files.flip_bit(path, bit)
            yield files

    def check_answers(self, log: Log) -> None:
        """Everything that a broker asks of a log."""
        assert (log.log_start_offset, log.log_end_offset) == (2, self.end_offset)
        for batch in self.batches:
            for offset in {max(batch.base_offset, 2), batch.last_offset}:
                assert bytes(first_batch(log, offset).buffer) == bytes(batch_bytes(batch))
        for record in self.records[::3]:
            requested = next(each for each in self.records if each.timestamp >= record.timestamp)
            found = log.offset_for_timestamp(record.timestamp)
            if requested.offset >= 2:
                assert found[:2] == (requested.timestamp, requested.offset)
        latest = max(self.records, key=lambda each: each.timestamp)
        assert log.max_timestamp()[:2] == (latest.timestamp, latest.offset)

    def check_aborted(self, log: Log) -> None:
        found = {
            (each.producer_id, each.first_offset, each.last_offset)
            for each in log.aborted_transactions(2, self.end_offset)
        }
        assert found == {each for each in self.aborted if each[2] >= 2}

    def check_producers(self, log: Log) -> None:
        for number, state in log.producers.published.items():
            known = self.producers[number]
            assert (state.producer_epoch, state.last_sequence) == (known.epoch, known.last_sequence)
        assert log.producers.published.keys() == self.producers.keys()


def open_manager(files: MemoryFiles) -> LogManager:
    manager = LogManager(["/data"], clock=ManualClock(NOW_MS), files=files, recovery_threads=1)
    manager.directories.claim(1, "a-cluster", random.Random(1))
    manager.load_logs({ORDERS.topic: CONFIG})
    return manager


def open_log(files: MemoryFiles) -> Log:
    return storage_load_log(
        FOLDER,
        ORDERS,
        CONFIG,
        files=files,
        now_ms=NOW_MS,
        clean_shutdown=True,
        recovery_point=1 << 40,
        log_start_offset=2,
    )


def batch_bytes(batch: RecordBatch) -> bytes:
    return bytes(batch.buffer[batch.position : batch.position + batch.size_in_bytes])


def first_batch(log: Log, offset: int) -> RecordBatch:
    records = log.read(offset, 1).records
    assert not isinstance(records, bytes)
    return RecordBatch(records.read())


def verify(files: MemoryFiles) -> list[str]:
    """The paths that `odradek log verify` complains about."""
    findings = Verification(["/data"], VerifyOptions(), files=files).findings()
    return [finding.path for finding in findings if finding.is_damage]


@pytest.fixture(scope="module")
def written() -> Written:
    made = Written()
    assert len(made.base_offsets) > 3
    assert len(made.epochs) > 2
    assert made.aborted
    assert verify(made.files) == []
    return made


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_wrong_index_entry_never_leads_to_a_wrong_answer(written, suffix: str) -> None:
    of_active_segment = written.path(f"{written.base_offsets[-1]:020d}{suffix}")
    for path in (written.of_closed_segment(suffix), of_active_segment):
        original = written.files.read_bytes(path)
        made_again = 0
        for files in written.flipped(path):
            written.check_answers(open_log(files))
            made_again += files.read_bytes(path) == original
        assert made_again > len(original) * 8 // 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_ends_inside_an_entry_is_made_again(written, suffix: str) -> None:
    path = written.of_closed_segment(suffix)
    original = written.files.read_bytes(path)
    for size in (1, len(original) - 1):
        files = written.files.copy()
        files.open(path).truncate(size)
        written.check_answers(open_log(files))
        assert files.read_bytes(path) == original


@pytest.mark.slow
def test_an_aborted_transaction_is_reported_whatever_bit_of_its_entry_is_wrong(written) -> None:
    names = [each for each in written.files.list_directory(FOLDER) if each.endswith(".txnindex")]
    for name in names:
        for files in written.flipped(written.path(name)):
            written.check_aborted(open_log(files))


@pytest.mark.slow
def test_a_wrong_bit_in_a_snapshot_costs_a_look_at_the_log(written) -> None:
    names = [each for each in written.files.list_directory(FOLDER) if each.endswith(".snapshot")]
    for files in written.flipped(written.path(names[-1])):
        written.check_producers(open_log(files))


def test_a_wrong_epoch_is_found_when_it_is_requested(written) -> None:
    path = written.path("leader-epoch-checkpoint")
    for files in written.flipped(path):
        log = open_log(files)
        ends = [start for _, start in written.epochs[1:]] + [written.end_offset]
        for (epoch, _), end in zip(written.epochs, ends, strict=True):
            assert log.end_offset_for_epoch(epoch) == (epoch, end)
        assert log.epochs.entries == written.epochs


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
    ],
)
def test_a_wrong_checkpoint_does_not_cost_a_record(written, name: str) -> None:
    path = f"/data/{name}"
    for files in written.flipped(path):
        for clean in (True, False):
            again = files.copy()
            if not clean:
                again.remove("/data/.kafka_cleanshutdown")
            log = open_manager(again).logs[ORDERS]
            assert log.log_end_offset == written.end_offset
            assert log.segments.first.base_offset == 0
            assert log.log_start_offset <= written.end_offset
            assert 0 <= log.recovery_point <= written.end_offset
            last = written.batches[-1]
            assert batch_bytes(first_batch(log, last.last_offset)) == batch_bytes(last)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"version=1\nnode.id=x\n", b"0\n"])
def test_a_damaged_meta_properties_is_refused_by_name(written, data: bytes) -> None:
    files = written.files.copy()
    files.write_atomically("/data/meta.properties", data)
    with pytest.raises(LogDirectoryError, match=r"/data/meta\.properties"):
        open_manager(files)


def test_a_damaged_partition_metadata_is_refused_by_name_or_is_of_another_topic(written) -> None:
    path = written.path("partition.metadata")
    sentences: set[str] = set()
    for files in written.flipped(path):
        try:
            manager = open_manager(files)
        except LogDirectoryError as refused_folder:
            sentences.add(str(refused_folder))
            continue
        if manager.logs[ORDERS].topic_id == TOPIC_ID:  # base64 leaves four bits unused
            continue
        with pytest.raises(KafkaError) as refused:
            manager.get_or_create_log(ORDERS, TOPIC_ID)
        assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    assert sentences
    assert all(path in sentence for sentence in sentences)


def test_a_damaged_batch_header_is_read_up_to_and_not_over(written) -> None:
    """As a client reads, which checks the checksum of what it gets."""
    segment = written.base_offsets[1]
    end = written.base_offsets[2]
    inside = [each for each in written.batches if segment <= each.base_offset < end]
    damaged = inside[len(inside) // 2]
    position = sum(each.size_in_bytes for each in inside[: len(inside) // 2])
    path = written.of_closed_segment(".log")
    before = [each for each in written.batches if each.last_offset < damaged.base_offset]
    outcomes: Counter[str] = Counter()
    for files in written.flipped(path, range(position * 8, position * 8 + HEADER_BITS)):
        log = open_log(files)
        for batch in before:
            found = first_batch(log, max(batch.base_offset, 2))
            assert batch_bytes(found) == batch_bytes(batch)
        outcomes[outcome_at(log, damaged)] += 1
        for batch in (inside[-1], written.batches[-1]):
            assert batch_bytes(first_batch(log, batch.base_offset)) == batch_bytes(batch)
    leader_epoch_bits, magics_without_support = 32, 1
    assert outcomes == {
        "harmless": leader_epoch_bits,  # no checksum covers them
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": magics_without_support,
        "CORRUPT_MESSAGE": HEADER_BITS - leader_epoch_bits - magics_without_support,
    }


def outcome_at(log: Log, damaged: RecordBatch) -> str:
    try:
        found = first_batch(log, damaged.base_offset)
    except KafkaError as error:
        return error.code.name
    assert list(iter_records(found)) == list(iter_records(damaged))
    return "harmless"


def test_a_damaged_payload_is_reported_to_who_begins_there_and_to_verify(written) -> None:
    path = written.of_closed_segment(".log")
    files = written.files.copy()
    files.flip_bit(path, 70 * 8)
    log = open_log(files)
    at = written.base_offsets[1]
    with pytest.raises(KafkaError) as refused:
        log.read(at, 1)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert path in verify(files)
    following = next(each for each in written.batches if each.base_offset > at)
    assert batch_bytes(first_batch(log, following.base_offset)) == batch_bytes(following)
