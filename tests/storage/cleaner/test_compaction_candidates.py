"""Which log is cleaned, from where to where, and what is remembered of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compaction import ROOMY, clean, make_manager, read_records, write_checkpoints

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import Log, LogConfig, TopicPartition, load_log
from odradek.storage.cleaner.log_cleaner_manager import LogCleanerManager
from odradek.storage.cleaner.throttler import CleanerThrottler, CleaningCancelled

TABLE = TopicPartition("table", 0)
NOW_MS = 1_700_000_000_000
COMPACT = frozenset({"compact"})
CONFIG = LogConfig(cleanup_policy=COMPACT, min_cleanable_dirty_ratio=0.0)


def open_log(folder: Path, config: LogConfig = CONFIG, topic: str = "table", **arguments) -> Log:
    topic_partition = TopicPartition(topic, 0)
    path = str(folder / topic_partition.folder_name)
    return load_log(path, topic_partition, config, now_ms=NOW_MS, **arguments)


def fill(log: Log, segments: int, timestamp: int = NOW_MS, size: int = 10) -> None:
    """Closed segments of two batches with the same key, and an active one with another."""
    for number in range(segments * 2 + 1):
        batch = build_batch([(b"a", b"%d" % number + bytes(size), timestamp, [])])
        log.append_as_leader(batch, leader_epoch=0, now_ms=timestamp)
        log.flush_appends()
        if number % 2:
            log.roll(timestamp)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Segments at 0, 2 and 4, the active one at 6."""
    made = open_log(tmp_path)
    fill(made, 3)
    return made


def pace(clock: ManualClock) -> CleanerThrottler:
    return CleanerThrottler(clock, lambda seconds: None)


def test_all_but_the_active_segment_can_be_cleaned(log: Log, clock: ManualClock) -> None:
    found = run_at_once(make_manager(log, clock).find_filthiest())
    assert found is not None
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 6)
    assert found.clean_bytes == 0
    assert found.cleanable_bytes == sum(segment.size for segment in list(log.segments)[:3])


@pytest.mark.parametrize(
    ("stable", "uncleanable"), [(6, 6), (5, 4), (4, 4), (3, 2), (2, 2), (1, None)]
)
def test_nothing_is_cleaned_from_the_segment_of_the_last_stable_offset_on(
    log: Log, clock: ManualClock, stable: int, uncleanable: int | None
) -> None:
    manager = make_manager(log, clock, last_stable_offset=lambda: stable)
    found = run_at_once(manager.find_filthiest())
    assert (found and found.first_uncleanable_offset) == uncleanable


def test_a_log_without_a_replica_here_is_left_alone(log: Log, clock: ManualClock) -> None:
    manager = LogCleanerManager({TABLE: log}, list, lambda _: None, clock)
    assert run_at_once(manager.find_filthiest()) is None


def test_records_younger_than_min_compaction_lag_ms_are_left_alone(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = open_log(tmp_path, CONFIG._replace(min_compaction_lag_ms=100))
    fill(log, 1, NOW_MS - 300)
    log.roll(NOW_MS)
    fill(log, 1, NOW_MS - 100)
    log.roll(NOW_MS)
    fill(log, 1, NOW_MS - 99)
    manager = make_manager(log, clock)
    young = run_at_once(manager.find_filthiest())
    assert young is not None
    first_young = next(each for each in log.segments if each.largest_timestamp() == NOW_MS - 99)
    assert young.first_uncleanable_offset == first_young.base_offset
    clock.advance(1)
    old = run_at_once(manager.find_filthiest())
    assert old is not None
    assert old.first_uncleanable_offset == log.segments.active.base_offset


def test_a_log_is_cleaned_when_its_dirty_part_exceeds_the_ratio(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = open_log(tmp_path)
    fill(log, 2)
    manager = make_manager(log, clock)
    assert clean(manager, clock) is not None
    fill(log, 1)
    ratio = run_at_once(manager.find_filthiest()).dirty_ratio
    assert 0.3 < ratio < 0.9
    log.configure(log.config._replace(min_cleanable_dirty_ratio=ratio))
    assert run_at_once(manager.find_filthiest()) is None
    assert manager.dirty_ratio_max == ratio
    log.configure(log.config._replace(min_cleanable_dirty_ratio=ratio - 0.01))
    assert run_at_once(manager.find_filthiest()) is not None


def test_max_compaction_lag_ms_has_a_log_cleaned_that_is_not_dirty_enough(
    tmp_path: Path, clock: ManualClock
) -> None:
    config = CONFIG._replace(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    log = open_log(tmp_path, config)
    fill(log, 1)
    log.close()
    log = open_log(tmp_path, config, clean_shutdown=True)
    manager = make_manager(log, clock)
    clock.advance(1000)
    assert run_at_once(manager.find_filthiest()) is None
    clock.advance(1)
    found = run_at_once(manager.find_filthiest())
    assert found is not None
    assert found.is_overdue


def test_the_filthiest_log_comes_first(tmp_path: Path, clock: ManualClock) -> None:
    logs = {}
    for topic in ("one", "three", "two"):
        log = open_log(tmp_path, topic=topic)
        fill(log, 2)
        logs[log.topic_partition] = log
    manager = LogCleanerManager(
        logs, lambda: [str(tmp_path)], lambda tp: logs[tp].log_end_offset, clock
    )
    for _ in logs:
        assert clean(manager, clock) is not None
    assert run_at_once(manager.find_filthiest()) is None
    for topic, new in (("one", 1), ("three", 3), ("two", 2)):
        fill(logs[TopicPartition(topic, 0)], new)
    order = [clean(manager, clock).log.topic_partition.topic for _ in logs]
    assert order == ["three", "two", "one"]


@pytest.mark.parametrize(
    ("policy", "is_cleaned"), [("compact", True), ("delete", False), ("compact,delete", True)]
)
def test_the_cleanup_policy_decides(
    tmp_path: Path, clock: ManualClock, policy: str, is_cleaned: bool
) -> None:
    log = open_log(tmp_path, CONFIG._replace(cleanup_policy=frozenset(policy.split(","))))
    fill(log, 2)
    assert (clean(make_manager(log, clock), clock) is not None) == is_cleaned


def test_a_log_is_cleaned_from_the_moment_its_policy_says_so(log: Log, clock: ManualClock) -> None:
    manager = make_manager(log, clock)
    log.configure(CONFIG._replace(cleanup_policy=frozenset({"delete"})))
    assert clean(manager, clock) is None
    log.configure(CONFIG)
    assert clean(manager, clock) is not None
    log.configure(CONFIG._replace(cleanup_policy=frozenset({"delete"})))
    fill(log, 2)
    assert clean(manager, clock) is None


def test_compacted_logs_lose_old_segments_if_their_policy_has_delete(
    tmp_path: Path, clock: ManualClock
) -> None:
    config = CONFIG._replace(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=1000)
    log = open_log(tmp_path, config)
    fill(log, 2, NOW_MS - 5000)
    log.roll(NOW_MS)
    fill(log, 1, NOW_MS)
    manager = make_manager(log, clock)
    clean(manager, clock)
    log.delete_old_segments(NOW_MS, log.log_end_offset)
    assert {record.timestamp for record in read_records(log)} <= {NOW_MS, NOW_MS - 5000}
    clock.advance(5000)
    log.delete_old_segments(clock.now_ms(), log.log_end_offset)
    assert read_records(log) == []
    assert run_at_once(manager.find_filthiest()) is None


# --- checkpoints ---------------------------------------------------------------------------


def checkpoint_file(folder: Path) -> Path:
    return folder / "cleaner-offset-checkpoint"


@pytest.fixture
def loaded_log(log: Log, tmp_path: Path) -> Log:
    """The same after a restart, of which a checkpoint can tell."""
    log.close()
    return open_log(tmp_path, clean_shutdown=True)


def test_what_is_clean_is_noted_in_kafkas_format(
    log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    clean(make_manager(log, clock), clock)
    assert checkpoint_file(tmp_path).read_text() == "0\n1\ntable 0 6\n"
    again = make_manager(open_log(tmp_path), clock)
    assert run_at_once(again.find_filthiest()) is None


@pytest.mark.parametrize("text", ["0\n1\ntable 0 8\n", "nonsense", "0\n1\ntable 0 x\n"])
def test_a_checkpoint_that_cannot_be_makes_the_whole_log_dirty(
    loaded_log: Log, clock: ManualClock, tmp_path: Path, text: str
) -> None:
    checkpoint_file(tmp_path).write_text(text)
    assert loaded_log.log_end_offset == 7
    manager = make_manager(loaded_log, clock)
    found = run_at_once(manager.find_filthiest())
    assert found is not None
    assert found.first_dirty_offset == 0
    write_checkpoints(manager)
    assert checkpoint_file(tmp_path).read_text() == "0\n1\ntable 0 0\n"


def test_a_checkpoint_within_the_log_counts(
    loaded_log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    checkpoint_file(tmp_path).write_text("0\n1\ntable 0 4\n")
    found = run_at_once(make_manager(loaded_log, clock).find_filthiest())
    assert found is not None
    assert found.first_dirty_offset == 4


def test_a_checkpoint_before_the_start_of_the_log_moves_there(
    loaded_log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    checkpoint_file(tmp_path).write_text("0\n1\ntable 0 1\n")
    loaded_log.advance_log_start_offset(2)
    found = run_at_once(make_manager(loaded_log, clock).find_filthiest())
    assert found is not None
    assert found.first_dirty_offset == 2


def test_a_cut_moves_the_checkpoint_back_on_the_disk_too(
    log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    manager = make_manager(log, clock)
    clean(manager, clock)
    fill(log, 2)
    clean(manager, clock)
    assert checkpoint_file(tmp_path).read_text() == "0\n1\ntable 0 11\n"
    log.truncate_to(10)
    assert log.log_end_offset < 10
    end = log.log_end_offset
    assert checkpoint_file(tmp_path).read_text() == f"0\n1\ntable 0 {end}\n"
    fill(log, 5)
    found = run_at_once(manager.find_filthiest())
    assert found is not None
    assert found.first_dirty_offset == end


def test_a_log_cut_and_grown_before_the_first_look_is_dirty(
    loaded_log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    checkpoint_file(tmp_path).write_text("0\n1\ntable 0 6\n")
    loaded_log.truncate_to(3)
    fill(loaded_log, 3)
    found = run_at_once(make_manager(loaded_log, clock).find_filthiest())
    assert found is not None
    assert found.first_dirty_offset == 0


def test_another_log_of_that_name_begins_dirty(
    log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    logs = {TABLE: log}
    manager = LogCleanerManager(
        logs, lambda: [str(tmp_path)], lambda tp: logs[tp].log_end_offset, clock
    )
    clean(manager, clock)
    log.move_folder(f"{log.directory}.gone-delete")
    assert checkpoint_file(tmp_path).read_text() == "0\n1\ntable 0 0\n"
    logs[TABLE] = open_log(tmp_path)
    fill(logs[TABLE], 4)
    found = run_at_once(manager.find_filthiest())
    assert found is not None
    assert found.first_dirty_offset == 0


def test_checkpoints_of_logs_that_are_gone_are_forgotten(
    loaded_log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    checkpoint_file(tmp_path).write_text("0\n2\ntable 0 6\ngone 1 5\n")
    manager = make_manager(loaded_log, clock)
    run_at_once(manager.find_filthiest())
    write_checkpoints(manager)
    assert checkpoint_file(tmp_path).read_text() == "0\n1\ntable 0 6\n"


# --- what happens while the thread works -----------------------------------------------------


@pytest.mark.parametrize("meanwhile", ["cut", "deleted records", "retention", "gone"])
def test_what_was_made_of_a_log_that_is_another_now_is_thrown_away(
    log: Log, clock: ManualClock, tmp_path: Path, meanwhile: str
) -> None:
    logs = {TABLE: log}
    manager = LogCleanerManager(
        logs, lambda: [str(tmp_path)], lambda tp: logs[tp].log_end_offset, clock
    )
    cleaning = manager.begin(run_at_once(manager.find_filthiest()), ROOMY, pace(clock))
    (group,) = cleaning.round.prepare()
    cleaned = cleaning.round.clean(group)
    if meanwhile == "cut":
        log.truncate_to(5)
    elif meanwhile == "deleted records":
        log.advance_log_start_offset(3)
        log.delete_old_segments(NOW_MS, log.log_end_offset)
    elif meanwhile == "retention":
        log.configure(CONFIG._replace(cleanup_policy=frozenset({"delete"}), retention_bytes=1))
        log.delete_old_segments(NOW_MS, log.log_end_offset)
    else:
        del logs[TABLE]
    records = read_records(log)
    with pytest.raises(CleaningCancelled):
        manager.swap_in(cleaning, cleaned)
    assert read_records(log) == records
    assert not list((tmp_path / "table-0").glob("*.cleaned"))
    assert not list((tmp_path / "table-0").glob("*.swap"))
    manager.failed(cleaning, OSError("what it read was being deleted"))
    assert manager.uncleanable == {}


def test_appends_rolls_and_deleted_records_meanwhile_do_no_harm(
    log: Log, clock: ManualClock
) -> None:
    manager = make_manager(log, clock)
    cleaning = manager.begin(run_at_once(manager.find_filthiest()), ROOMY, pace(clock))
    (group,) = cleaning.round.prepare()
    cleaned = cleaning.round.clean(group)
    log.advance_log_start_offset(1)
    fill(log, 2)
    manager.swap_in(cleaning, cleaned)
    manager.finished(cleaning)
    assert [record.offset for record in read_records(log)] == list(range(5, 12))
    assert run_at_once(manager.find_filthiest()).first_dirty_offset == 6


def test_a_cancelled_cleaning_leaves_nothing_behind(
    log: Log, clock: ManualClock, tmp_path: Path
) -> None:
    manager = make_manager(log, clock)
    its_pace = pace(clock)
    cleaning = manager.begin(run_at_once(manager.find_filthiest()), ROOMY, its_pace)
    (group,) = cleaning.round.prepare()
    its_pace.cancel()
    with pytest.raises(CleaningCancelled):
        cleaning.round.clean(group)
    assert not list((tmp_path / "table-0").glob("*.cleaned"))
    assert len(read_records(log)) == 7


def test_the_thread_rests_so_that_it_stays_below_the_limit(clock: ManualClock) -> None:
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        clock.advance(round(seconds * 1000))

    slow = CleanerThrottler(clock, rest, bytes_per_second=1000)
    for _ in range(10):
        slow.maybe_throttle(500)
    assert 4000 <= clock.monotonic_ms() <= 5100
    assert max(rests) <= 0.1
    slow.bytes_per_second = float("inf")
    before = clock.monotonic_ms()
    for _ in range(10):
        slow.maybe_throttle(10**9)
    assert clock.monotonic_ms() == before


def test_the_thread_lets_others_run_after_each_millisecond(clock: ManualClock) -> None:
    rests: list[float] = []
    eager = CleanerThrottler(clock, rests.append)
    for _ in range(50):
        eager.yield_interpreter()
    assert rests == []
    for _ in range(5):
        clock.advance(1)
        eager.yield_interpreter()
        eager.yield_interpreter()
    assert len(rests) == 5
