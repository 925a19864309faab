"""Loading at the start: in threads, with word of how far it is, and to be stopped."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import LogManager, TopicPartition
from odradek.storage.file_names import CLEAN_SHUTDOWN_FILE
from odradek.storage.io.parallel import Workers, for_all
from odradek.storage.log_manager import log_loading as log_loading_module
from odradek.storage.log_manager.log_loading import LoadingStopped, LoadProgress
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FOLDER = "/data"
COUNT = 20
SECONDS_MAX = 120.0


class GatedFiles:
    """Files of which one partition's cannot be listed before a gate is open."""

    def __init__(self, files: MemoryFiles, partition: str) -> None:
        self._files = files
        self._partition = partition
        self.gate = threading.Event()

    def list_directory(self, path: str) -> list[str]:
        if path.endswith(self._partition):
            assert self.gate.wait(SECONDS_MAX)
        return self._files.list_directory(path)

    def __getattr__(self, name: str):
        return getattr(self._files, name)


@pytest.fixture
def files() -> MemoryFiles:
    """A folder with many logs, closed properly."""
    files = MemoryFiles()
    manager = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files)
    manager.load_logs()
    for number in range(COUNT):
        log = manager.get_or_create_log(TopicPartition("t", number), bytes(16))
        for _ in range(number):
            batch = build_batch([(b"key", b"value", NOW_MS, [])])
            log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        log.flush_appends()
    manager.close()
    return files


@pytest.fixture
def unclean(files: MemoryFiles) -> MemoryFiles:
    """The same after a crash: logs are recovered, by several threads."""
    files.remove(f"{FOLDER}/{CLEAN_SHUTDOWN_FILE}")
    return files


@pytest.mark.parametrize("threads", [1, 2, 50])
@pytest.mark.parametrize("left", ["files", "unclean"])
def test_any_number_of_threads_finds_the_same_logs_in_the_same_order(
    left: str, threads: int, request: pytest.FixtureRequest
) -> None:
    files = request.getfixturevalue(left)
    manager = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files, recovery_threads=threads)
    manager.load_logs()
    assert list(manager.logs) == sorted(manager.logs, key=lambda each: each.folder_name)
    ends = {each.partition: log.log_end_offset for each, log in manager.logs.items()}
    assert ends == {number: number for number in range(COUNT)}
    assert not any(segment.is_open for log in manager.logs.values() for segment in log.segments)
    manager.close()


@pytest.mark.parametrize(("left", "threads"), [("files", 1), ("unclean", 5)])
def test_logs_that_were_closed_properly_are_opened_by_one_thread(
    left: str, threads: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two would hand each other the interpreter, at each of many small calls to the system."""
    files = request.getfixturevalue(left)
    started: list[int] = []
    start = Workers.start

    def note(workers: Workers, items: Any, work: Any, threads: int) -> None:
        started.append(threads)
        start(workers, items, work, threads)

    monkeypatch.setattr(Workers, "start", note)
    manager = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files, recovery_threads=5)
    manager.load_logs()
    assert started == [threads]
    manager.close()


def test_progress_is_reported_while_the_loading_lasts(files, monkeypatch) -> None:
    monkeypatch.setattr(log_loading_module, "PROGRESS_INTERVAL_SECONDS", 0.01)
    gated = GatedFiles(files, "t-9")  # the last of all, as they are in the order of the folders
    manager = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=gated)
    reported: list[LoadProgress] = []

    def note(progress: LoadProgress) -> None:
        reported.append(progress)
        if progress.loaded == COUNT - 1:
            gated.gate.set()

    manager.load_logs(on_progress=note)
    assert reported[-1].total == COUNT
    assert not reported[-1].recovering
    assert [each.loaded for each in reported] == sorted(each.loaded for each in reported)
    manager.close()


def test_progress_says_how_many_of_how_many_and_how_fast() -> None:
    assert str(LoadProgress(300, 10_000, 1.5, recovering=False)) == (
        "loading logs: 300 of 10000, 200 a second"
    )
    assert str(LoadProgress(0, 10, 0.0, recovering=True)).startswith("recovering logs: 0 of 10")


def test_loading_stops_between_two_logs_on_request(files) -> None:
    gated = GatedFiles(files, "t-0")
    manager = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=gated, recovery_threads=1)
    outcome: list[BaseException] = []

    def load() -> None:
        try:
            manager.load_logs()
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    gated.gate.clear()
    while not manager.is_loading:
        thread.join(0.001)
    manager.stop_loading()
    gated.gate.set()
    thread.join(SECONDS_MAX)
    assert isinstance(outcome[0], LoadingStopped)
    assert manager.logs == {}
    manager.abandon()


def test_what_one_worker_raises_stops_the_others_and_is_raised() -> None:
    seen = []
    never = threading.Event()

    def work(item: int) -> None:
        seen.append(item)
        if item == 3:
            raise ValueError("three")
        never.wait(0.001)  # the others must not be done before that is told

    with pytest.raises(ValueError, match="three"):
        for_all(range(1000), work, 4, "test")
    assert len(seen) < 1000


def test_workers_that_have_nothing_to_do_are_done() -> None:
    workers = Workers("test")
    workers.start([], lambda item: None, 0)
    assert workers.wait()
    assert workers.done == 0
