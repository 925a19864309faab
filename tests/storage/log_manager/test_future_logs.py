"""Copies of logs that are to take their place in another directory, and crashes on the way."""

from __future__ import annotations

import errno
import itertools
import random
from contextlib import suppress

import pytest
from support.transactions import TransactionalProducer

from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.runtime.clock import ManualClock
from odradek.storage import Log, LogConfig, LogManager, StorageError, TopicPartition
from odradek.storage.log_manager.deferred_deletion import delete_due
from odradek.tools.simulation.disks.memory_files import MemoryFiles, PowerCut

NOW_MS = 1_700_000_000_000
SOURCE, TARGET = "/first", "/second"
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
SEEDS = 5
"""Of so many file systems that one power cut may leave."""

CUT_IN_RECOVERY = 0.4

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)


class Disks:
    """Two log directories, and a log manager on them that a crash may end."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        for path in (SOURCE, TARGET):
            self.files.make_directory(path)
        self.files.sync_directory("/")
        self.clock = ManualClock(NOW_MS)
        self.manager: LogManager
        self.start()

    def start(self) -> None:
        self.manager = LogManager(
            [SOURCE, TARGET],
            clock=self.clock,
            default_config=CONFIG,
            files=self.files,
            rng=random.Random(7),
        )
        self.manager.load_logs()

    def log(self) -> Log:
        return self.manager.get_or_create_log(ORDERS, TOPIC_ID, CONFIG, is_new=False)

    def source(self) -> Log:
        """A log in the first directory."""
        self.manager.prefer_directory(ORDERS, self.directory(SOURCE))
        return self.log()

    def directory(self, path: str):
        return next(each for each in self.manager.directories if each.path == path)

    def future(self, path: str = TARGET) -> Log:
        return self.manager.create_future_log(ORDERS, self.directory(path), TOPIC_ID, CONFIG)

    def remove_due(self) -> None:
        self.clock.advance(CONFIG.file_delete_delay_ms)
        assert not delete_due(self.manager.deletions.take_due(self.clock.monotonic_ms()))

    def folders(self, path: str) -> list[str]:
        names = self.files.list_directory(path)
        return [name for name in names if self.files.is_directory(f"{path}/{name}")]


def append(log: Log, *values: str, epoch: int = 0) -> None:
    for value in values:
        batch = build_batch([(None, value.encode(), NOW_MS, ())])
        log.append_as_leader(memoryview(bytearray(batch)), leader_epoch=epoch, now_ms=NOW_MS)
        log.flush_appends()


def copy(source: Log, future: Log, up_to: int | None = None) -> None:
    """What a fetcher does, a segment at a time."""
    end = source.log_end_offset if up_to is None else up_to
    while future.log_end_offset < end:
        read = source.read(future.log_end_offset, 1 << 20, upper_offset=end)
        future.append_as_follower(read.records.read())
        future.flush_appends()


def values_of(log: Log) -> list[str]:
    values: list[str] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        for batch in iter_batches(log.read(offset, 1 << 20).records.read()):
            values += [each.value.decode() for each in iter_records(batch)]
            offset = batch.next_offset
    return values


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"value-{number}" for number in range(first, first + count)]


@pytest.fixture
def disks() -> Disks:
    return Disks()


def test_a_copy_takes_the_place_of_the_log(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(30))
    assert len(source.segments) > 2
    future = disks.future()
    copy(source, future)
    future.flush_to_disk()
    assert disks.manager.replace_current_with_future_log(ORDERS) is future
    assert disks.manager.get_log(ORDERS) is future
    assert disks.manager.directory_of(ORDERS) is disks.directory(TARGET)
    assert disks.folders(TARGET) == ["orders-0"]
    append(future, *numbered(30, 30))
    assert values_of(future) == numbered(60)
    disks.remove_due()
    assert disks.folders(SOURCE) == []
    disks.manager.close()
    disks.start()
    assert values_of(disks.log()) == numbered(60)


def test_a_slice_of_the_old_log_stays_readable(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(3))
    found = source.read(0, 1 << 20).records
    before = found.read()
    future = disks.future()
    copy(source, future)
    disks.manager.replace_current_with_future_log(ORDERS)
    disks.remove_due()
    assert found.read() == before


def test_deleted_records_stay_deleted_where_a_crash_ends_the_swap() -> None:
    was_between = 0
    for operations in itertools.count():
        disks = Disks()
        source = disks.source()
        append(source, *numbered(20))
        future = disks.future()
        copy(source, future)
        source.advance_log_start_offset(7)
        future.flush_to_disk()
        disks.files.cut_power_after(operations)
        try:
            disks.manager.replace_current_with_future_log(ORDERS)
        except PowerCut:
            disks.files = disks.files.after_kill()
            was_between += not any("orders-0" in disks.folders(each) for each in (SOURCE, TARGET))
            disks.start()
            log = disks.log()
            assert log.log_end_offset == 20
            assert log.directory == f"{SOURCE}/orders-0" or log.log_start_offset == 7
        else:
            break
    assert was_between, "no crash came between the two names"


@pytest.mark.parametrize("commit", [False, True])
def test_transactions_are_known_after_the_swap(disks: Disks, commit: bool) -> None:
    source = disks.source()
    first, second = TransactionalProducer(source, 7), TransactionalProducer(source, 8)
    first.write(b"one")
    second.write(b"open")
    first.end(commit=commit)
    source.high_watermark_moved(source.log_end_offset)
    future = disks.future()
    copy(source, future)
    future.flush_to_disk()
    stable, aborted = source.last_stable_offset, source.aborted_transactions(0, 10)
    assert (stable, len(aborted)) == (1, 0 if commit else 1)
    disks.manager.replace_current_with_future_log(ORDERS)
    future.high_watermark_moved(future.log_end_offset)
    assert future.last_stable_offset == stable
    assert future.aborted_transactions(0, 10) == aborted
    disks.manager.close()
    disks.start()
    assert disks.log().aborted_transactions(0, 10) == aborted


def test_epochs_and_start_are_those_of_the_log(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(10))
    append(source, *numbered(10, 10), epoch=3)
    source.assign_epoch_start(5, source.log_end_offset)  # a leader that wrote nothing yet
    future = disks.future()
    copy(source, future)
    source.advance_log_start_offset(4)
    future.flush_to_disk()
    disks.manager.replace_current_with_future_log(ORDERS)
    assert future.log_start_offset == 4
    assert future.epochs.entries == source.epochs.entries == [(0, 4), (3, 10), (5, 20)]
    disks.files = disks.files.after_power_cut(random.Random(1))
    disks.start()
    log = disks.log()
    assert log.directory == f"{TARGET}/orders-0"
    assert log.log_start_offset == 4, "deleted records may not come back"


def test_producers_are_known_after_the_swap(disks: Disks) -> None:
    source = disks.source()
    batch = build_batch(
        [(None, b"once", NOW_MS, ())], producer_id=7, producer_epoch=0, base_sequence=0
    )
    info = source.append_as_leader(memoryview(bytearray(batch)), leader_epoch=0, now_ms=NOW_MS)
    source.flush_appends()
    future = disks.future()
    copy(source, future)
    disks.manager.replace_current_with_future_log(ORDERS)
    again = future.append_as_leader(memoryview(bytearray(batch)), leader_epoch=0, now_ms=NOW_MS)
    assert again.first_offset == info.first_offset
    assert future.log_end_offset == 1


def test_a_copy_that_is_found_goes_on_where_it_was(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(20))
    copy(source, disks.future(), up_to=12)
    disks.manager.close()
    disks.start()
    assert values_of(disks.log()) == numbered(20)
    future = disks.manager.future_logs[ORDERS]
    assert values_of(future) == numbered(12)
    assert disks.manager.future_directory_of(ORDERS) is disks.directory(TARGET)
    copy(disks.log(), future)
    future.flush_to_disk()
    disks.manager.replace_current_with_future_log(ORDERS)
    assert values_of(disks.log()) == numbered(20)


def test_a_copy_is_deleted_with_its_log(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(5))
    copy(source, disks.future())
    disks.manager.delete_log(ORDERS)
    assert disks.manager.future_logs == {}
    disks.remove_due()
    assert disks.folders(SOURCE) == disks.folders(TARGET) == []


def test_a_copy_without_a_log_is_not_another_topics(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(5))
    copy(source, disks.future())
    disks.files.rename(source.directory, f"{SOURCE}/gone")
    disks.files = disks.files.after_kill()
    disks.start()
    log = disks.manager.get_or_create_log(ORDERS, bytes(16), CONFIG)
    assert log.log_end_offset == 0
    assert disks.manager.future_logs == {}


def test_a_copy_is_no_log_while_the_log_may_be_offline(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(5))
    copy(source, disks.future(), up_to=2)
    disks.manager.disk_failed(SOURCE, OSError(errno.EIO, "broken"))
    (failed,) = disks.manager.take_failed_directories()
    assert failed.partitions == [ORDERS]
    with pytest.raises(StorageError, match="offline"):
        disks.log()


def test_copies_go_with_their_directory_and_logs_stay(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(5))
    copy(source, disks.future())
    disks.manager.disk_failed(TARGET, OSError(errno.EIO, "broken"))
    (failed,) = disks.manager.take_failed_directories()
    assert failed.partitions == []
    assert disks.manager.future_logs == {}
    assert values_of(disks.log()) == numbered(5)
    with pytest.raises(StorageError, match="offline"):
        disks.future()


@pytest.mark.parametrize("failing", [SOURCE, TARGET])
@pytest.mark.parametrize("operation", ["rename", "sync"])
def test_a_swap_that_a_disk_refuses_leaves_the_log_where_it_was(
    disks: Disks, failing: str, operation: str
) -> None:
    source = disks.source()
    append(source, *numbered(8))
    future = disks.future()
    copy(source, future)
    future.flush_to_disk()
    disks.manager.checkpoint_offsets()
    disks.files.fail(errno.EIO, failing, {operation}, times=1)
    with pytest.raises(StorageError):
        disks.manager.replace_current_with_future_log(ORDERS)
    assert [each.path for each, _ in disks.manager.directories.take_failures()] == [failing]
    assert disks.manager.get_log(ORDERS) is source
    assert disks.folders(SOURCE) == ["orders-0"]
    assert values_of(source) == numbered(8)
    append(source, "one more")
    disks.manager.close()
    disks.start()
    assert values_of(disks.log()) == [*numbered(8), "one more"]


def life(cut_at: int, seed: int, *, is_kill: bool) -> bool:
    """Copy, flush, swap and append, and crash at an operation; whether it came so far.

    What a flush has promised is there, in one log and in order, and what is left of the move
    can be brought to its end.
    """
    disks = Disks()
    history = numbered(24)
    promised = published = 0
    manager = disks.manager
    disks.files.cut_power_after(cut_at)
    is_cut = False
    try:
        source = disks.source()
        append(source, *history[:16])
        published = 16
        source.flush_to_disk()
        promised = 16
        manager.checkpoint_offsets()
        future = disks.future()
        copy(source, future, up_to=9)
        manager.checkpoint_offsets()
        append(source, *history[16:18])
        copy(source, future)
        future.flush_to_disk()
        append(source, *history[18:20])
        published = 20
        copy(source, future)
        manager.replace_current_with_future_log(ORDERS)
        append(future, *history[20:22])
        published = 22
        future.flush_to_disk()
        promised = 22
        manager.checkpoint_offsets()
        append(future, *history[22:])
        published = 24
        disks.remove_due()
    except PowerCut:
        is_cut = True
    rng = random.Random(seed)
    disks.files = disks.files.after_kill() if is_kill else disks.files.after_power_cut(rng)
    while not is_kill and rng.random() < CUT_IN_RECOVERY:
        disks.files.cut_power_after(rng.randint(0, 80))
        with suppress(PowerCut):
            disks.start()
            disks.log()
        disks.files = disks.files.after_power_cut(rng)
    disks.start()
    assert not disks.manager.directories.has_trouble
    log = disks.log()
    found = values_of(log)
    assert promised <= len(found)
    assert not is_kill or len(found) >= published
    assert found == history[: len(found)]
    if is_cut and disks.manager.future_logs:
        future = disks.manager.future_logs[ORDERS]
        assert log.directory == f"{SOURCE}/orders-0"
        end, epoch_end = future.log_end_offset, log.log_end_offset
        future.truncate_to(min(end, epoch_end))
        copy(log, future)
        future.flush_to_disk()
        if future.recovery_point >= log.recovery_point:
            disks.manager.replace_current_with_future_log(ORDERS)
            assert values_of(disks.log()) == found
            assert disks.folders(TARGET) == ["orders-0"]
    assert sum("orders-0" in disks.folders(path) for path in (SOURCE, TARGET)) == 1
    return is_cut


@pytest.mark.parametrize(
    ("is_kill", "seeds"),
    [
        pytest.param(False, 2, id="power cut"),
        pytest.param(False, SEEDS, id="power cuts", marks=pytest.mark.slow),
        pytest.param(True, 1, id="killed"),
    ],
)
def test_a_crash_at_any_moment_leaves_one_whole_log(is_kill: bool, seeds: int) -> None:
    cut_at = 0
    while life(cut_at, 0, is_kill=is_kill):
        for seed in range(1, seeds):
            life(cut_at, seed, is_kill=is_kill)
        cut_at += 1
    assert cut_at > 100, "the life has as many operations, and each was the last of one"


def test_the_copy_of_the_longest_way_is_kept(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(9))
    future = disks.future()
    copy(source, future, up_to=3)
    shorter = future.directory.replace("orders-0.", "orders-0.0")
    disks.manager.close()
    copy_folder(disks.files, future.directory, shorter)
    segment = f"{shorter}/{0:020d}.log"
    file = disks.files.open(segment)
    file.truncate(file.size() - 1)
    disks.files.remove(f"{TARGET}/.kafka_cleanshutdown")
    disks.start()
    assert disks.manager.future_logs[ORDERS].log_end_offset == 3
    disks.remove_due()
    assert len(disks.folders(TARGET)) == 1


def copy_folder(files: MemoryFiles, source: str, target: str) -> None:
    files.make_directory(target)
    for name in files.list_directory(source):
        data = files.read_bytes(f"{source}/{name}")
        files.open(f"{target}/{name}", create=True).append([data], len(data))


def test_a_copy_that_makes_no_sense_goes_while_there_is_the_log(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(9))
    future = disks.future()
    copy(source, future)
    disks.manager.close()
    disks.files.write_atomically(f"{future.directory}/partition.metadata", b"nonsense")
    disks.start()
    assert disks.manager.future_logs == {}
    assert not disks.manager.directories.has_trouble
    assert values_of(disks.log()) == numbered(9)
    disks.remove_due()
    assert disks.folders(TARGET) == []


def test_a_copy_that_cannot_be_read_takes_its_directory_offline(disks: Disks) -> None:
    source = disks.source()
    append(source, *numbered(9))
    future = disks.future()
    copy(source, future)
    disks.manager.close()
    disks.files.fail(errno.EIO, future.directory)
    disks.start()
    assert [each.path for each in disks.manager.take_failed_directories()] == [TARGET]
    assert values_of(disks.log()) == numbered(9)


def test_a_log_is_made_in_the_preferred_directory(disks: Disks) -> None:
    disks.manager.prefer_directory(ORDERS, disks.directory(TARGET))
    disks.manager.prefer_directory(ORDERS, disks.directory(SOURCE))
    disks.log()
    assert disks.manager.directory_of(ORDERS) is disks.directory(SOURCE)
    disks.manager.delete_log(ORDERS)
    for number in range(3):
        disks.manager.get_or_create_log(TopicPartition("others", number), TOPIC_ID, CONFIG)
    with_fewest = min(disks.manager.directories, key=lambda each: len(each.logs))
    disks.log()
    assert disks.manager.directory_of(ORDERS) is with_fewest


def test_preferences_of_partitions_without_logs_are_bounded(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.storage.log_manager.log_manager.PREFERENCES_MAX", 3)
    manager, target = disks.manager, disks.directory(TARGET)
    partitions = [TopicPartition("never", number) for number in range(4)]
    for partition in partitions:
        manager.prefer_directory(partition, target)
    remembered = [manager.candidates(each) == [target] for each in partitions]
    assert remembered == [False, True, True, True]
