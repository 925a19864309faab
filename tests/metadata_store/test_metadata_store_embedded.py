"""The embedded store's sessions, durability, and life beside other processes."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from odradek.metadata_store.embedded.embedded_store import (
    LOOK_FOR_DEAD_MS,
    POLL_INTERVAL_MS,
    EmbeddedStore,
)
from odradek.metadata_store.errors import NoNode, SessionExpired, StoreUnreachable
from odradek.metadata_store.store import (
    Change,
    Create,
    SessionState,
    SetData,
    WatchEvent,
    ensure_paths,
)
from odradek.runtime.clock import ManualClock
from odradek.storage.io.files import REAL_FILES, RealFile, RealFiles, StorageFile

TIMEOUT_MS = 6_000
HOUR_MS = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "metadata.sqlite"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@asynccontextmanager
async def session(path: Path, clock: ManualClock) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore(path, clock=clock, session_timeout_ms=TIMEOUT_MS)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def pass_time(clock: ManualClock, milliseconds: int, *awake: EmbeddedStore) -> None:
    """Let time pass in which only some are awake."""
    for _ in range(0, milliseconds, POLL_INTERVAL_MS):
        clock.advance(POLL_INTERVAL_MS)
        for store in awake:
            store.poll(clock.monotonic_ms())


async def test_a_silent_session_ends_when_its_timeout_is_over(
    path: Path, clock: ManualClock
) -> None:
    async with session(path, clock) as one, session(path, clock) as two:
        await one.create("/one", ephemeral=True)
        pass_time(clock, TIMEOUT_MS - POLL_INTERVAL_MS, two)
        assert (await two.get("/one")).data == b""
        pass_time(clock, 2 * LOOK_FOR_DEAD_MS, two)
        with pytest.raises(NoNode):
            await two.get("/one")
        assert two.session_state is SessionState.CONNECTED


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
async def test_a_wall_clock_that_is_set_ends_no_session_and_spares_none(
    path: Path, clock: ManualClock, step_ms: int
) -> None:
    async with session(path, clock) as one, session(path, clock) as two:
        await one.create("/one", ephemeral=True)
        pass_time(clock, TIMEOUT_MS, one, two)
        clock.set_wall_clock(clock.now_ms() + step_ms)
        pass_time(clock, 2 * TIMEOUT_MS, one, two)
        assert (await two.get("/one")).data == b""
        one.abandon()
        pass_time(clock, 2 * LOOK_FOR_DEAD_MS, two)
        with pytest.raises(NoNode):
            await two.get("/one")


async def test_a_machine_that_was_suspended_loses_no_session(
    path: Path, clock: ManualClock
) -> None:
    """Whoever wakes up first does not take the others for frozen."""
    async with session(path, clock) as one, session(path, clock) as two:
        await one.create("/one", ephemeral=True)
        pass_time(clock, TIMEOUT_MS, one, two)
        clock.advance(HOUR_MS)
        two.poll(clock.monotonic_ms())
        pass_time(clock, TIMEOUT_MS, two, one)
        assert (await two.get("/one")).data == b""
        assert one.session_state is SessionState.CONNECTED


async def test_a_store_that_was_copied_takes_no_session_of_it_for_a_live_one(
    tmp_path: Path, path: Path, clock: ManualClock
) -> None:
    """The processes that held them run beside it, on the folder that it was copied from."""
    async with session(path, clock) as original:
        await original.create("/ids")
        await original.create("/ids/1", b"original", ephemeral=True)
        copy = tmp_path / "copy"
        shutil.copytree(path.parent, copy)
        async with session(copy / path.name, clock) as copied:
            assert await copied.children("/ids") == []
            await copied.create("/ids/1", b"copy", ephemeral=True)
        assert (await original.get("/ids/1")).data == b"original"


async def test_the_sessions_of_a_machine_that_crashed_are_gone_at_once(
    path: Path, clock: ManualClock
) -> None:
    killed = [EmbeddedStore(path, clock=clock) for _ in range(3)]
    await open_all(killed)
    await killed[0].create("/ids")
    for number, store in enumerate(killed):
        await store.create(f"/ids/{number}", ephemeral=True)
    for store in killed:
        store.abandon()
    async with session(path, clock) as first:
        assert await first.children("/ids") == []
    assert not list(path.parent.glob("*.session-*"))


async def open_all(stores: Sequence[EmbeddedStore]) -> None:
    for store in stores:
        await store.open()


async def test_a_node_that_came_and_went_between_two_looks_is_reported(
    path: Path, clock: ManualClock
) -> None:
    """Whoever has read it in between waits to hear that it went: the next controller does."""
    async with session(path, clock) as one, session(path, clock) as two:
        await one.create("/dir")
        events: list[WatchEvent] = []
        await two.watch("/dir/a", events.append)
        two.poll(clock.monotonic_ms())
        assert events == []
        await one.create("/dir/a")
        assert (await two.get("/dir/a")).data == b""
        await one.delete("/dir/a")
        two.poll(clock.monotonic_ms())
        assert events == [WatchEvent("/dir/a", Change.NODE)]
        two.poll(clock.monotonic_ms())
        assert len(events) == 1


async def test_a_session_that_is_renewed_lives_on(path: Path, clock: ManualClock) -> None:
    async with session(path, clock) as one, session(path, clock) as two:
        await one.create("/one", ephemeral=True)
        pass_time(clock, 10 * TIMEOUT_MS, two, one)
        assert (await two.get("/one")).data == b""


async def test_a_session_that_was_ended_writes_nothing_more(path: Path, clock: ManualClock) -> None:
    """What fences a controller that was stopped for a while and goes on as if nothing was."""
    async with session(path, clock) as one, session(path, clock) as two:
        await one.create("/a", b"by one")
        pass_time(clock, 2 * TIMEOUT_MS, two)
        states: list[SessionState] = []
        one.add_session_listener(states.append)
        with pytest.raises(SessionExpired):
            await one.set("/a", b"too late")
        assert states == [SessionState.EXPIRED]
        assert (await two.get("/a")).data == b"by one"
        with pytest.raises(SessionExpired):
            await one.get("/a")


async def test_an_expired_session_is_noticed_while_idle(path: Path, clock: ManualClock) -> None:
    async with session(path, clock) as one, session(path, clock) as two:
        pass_time(clock, 2 * TIMEOUT_MS, two)
        one.poll(clock.monotonic_ms())
        assert one.session_state is SessionState.EXPIRED


async def test_a_broker_that_was_killed_finds_its_registration_gone(
    path: Path, clock: ManualClock
) -> None:
    """And another's there, whoever looked first whether its holder lives."""
    killed = EmbeddedStore(path, clock=clock)
    await killed.open()
    await killed.create("/ids")
    await killed.create("/ids/1", ephemeral=True)
    async with session(path, clock) as other:
        await other.create("/ids/2", ephemeral=True)
        killed.abandon()
        async with session(path, clock) as restarted:
            assert await restarted.children("/ids") == ["2"]
            await restarted.create("/ids/1", ephemeral=True)
            with pytest.raises(SessionExpired):
                await killed.create("/x")
            assert await restarted.children("/ids") == ["1", "2"]


async def test_run_renews_the_session_without_anyone_asking(
    path: Path, autojump_clock: MockClock
) -> None:
    class TrioClock(ManualClock):
        def monotonic_ms(self) -> int:
            return int(trio.current_time() * 1000)

    clock = TrioClock()
    async with (
        session(path, clock) as one,
        session(path, clock) as two,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(one.run)
        nursery.start_soon(two.run)
        await one.create("/one", ephemeral=True)
        await trio.sleep(10 * TIMEOUT_MS / 1000)
        assert (await two.get("/one")).data == b""
        await one.close()
        await two.close()


WRITER = """
import sys, trio
from odradek.metadata_store.embedded.embedded_store import (
    LOOK_FOR_DEAD_MS,
    POLL_INTERVAL_MS,
    EmbeddedStore,
)
from odradek.runtime.clock import SystemClock

async def write():
    store = EmbeddedStore(sys.argv[1], clock=SystemClock())
    await store.open()
    await store.create("/n", b"0")
    await store.create("/e", ephemeral=True)
    number = 0
    while True:
        number += 1
        await store.set("/n", str(number).encode())
        print(number, flush=True)

trio.run(write)
"""


async def test_what_was_acknowledged_survives_sigkill(path: Path, clock: ManualClock) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        while acknowledged < 200:
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
    acknowledged = int(rest[-1]) if rest else acknowledged
    async with session(path, clock) as store:
        assert int((await store.get("/n")).data) >= acknowledged
        with pytest.raises(NoNode):
            await store.get("/e")


async def test_changes_of_another_process_reach_a_watch(path: Path, clock: ManualClock) -> None:
    async with session(path, clock) as store:
        events: list[WatchEvent] = []
        await store.watch("/n", events.append)
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "1\n"
            store.poll(clock.monotonic_ms())
            writer.kill()
        assert [event.path for event in events] == ["/n"]


async def test_a_verb_waits_for_the_lock_of_another_process(
    path: Path, clock: ManualClock, autojump_clock: MockClock
) -> None:
    async with session(path, clock) as store, trio.open_nursery() as nursery:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        async def let_go() -> None:
            await trio.sleep(1)
            other.execute("ROLLBACK")

        nursery.start_soon(let_go)
        await store.create("/a")
        assert trio.current_time() >= 1
        other.close()


async def test_a_lock_that_is_never_let_go_makes_the_store_unreachable(
    path: Path, clock: ManualClock, autojump_clock: MockClock
) -> None:
    async with session(path, clock) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnreachable):
            await store.create("/a")
        assert store.session_state is SessionState.LOST
        other.execute("ROLLBACK")
        other.close()
        store.poll(clock.monotonic_ms())
        assert store.session_state is SessionState.CONNECTED
        await store.create("/a")


async def test_a_file_that_is_no_store_is_refused(path: Path, clock: ManualClock) -> None:
    path.write_bytes(b"these are not the nodes you are looking for" * 100)
    with pytest.raises(StoreUnreachable):
        async with session(path, clock):
            pass


async def test_a_store_of_a_later_format_is_refused(path: Path, clock: ManualClock) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreUnreachable, match="99"):
        async with session(path, clock):
            pass


class SyncedFiles(RealFiles):
    """The operating system's, which notes how long a file was when it was synced last."""

    def __init__(self) -> None:
        self.synced: dict[str, int] = {}
        self.fails = False

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        files = self

        class SyncedFile(RealFile):
            def sync(self) -> None:
                if files.fails:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                length = os.path.getsize(path)
                super().sync()
                files.synced[path] = length

        return SyncedFile(path, os.O_RDWR | os.O_APPEND)


async def test_what_must_outlive_a_crash_of_power_is_synced_and_no_more(
    path: Path, clock: ManualClock
) -> None:
    files = SyncedFiles()
    log = f"{path}-wal"
    store = EmbeddedStore(path, clock=clock, session_timeout_ms=TIMEOUT_MS, files=files)
    await store.open()
    await store.create("/topics")
    assert files.synced[log] == os.path.getsize(log)
    await store.multi([Create("/topics/t", b"id", ephemeral=False), SetData("/topics", b"1")])
    assert files.synced[log] == os.path.getsize(log)
    lasting = files.synced[log]
    await store.create("/here", ephemeral=True)
    pass_time(clock, 2 * TIMEOUT_MS, store)
    assert files.synced[log] == lasting < os.path.getsize(log)
    await store.delete("/topics/t")
    assert files.synced[log] == os.path.getsize(log)
    lasting = files.synced[log]
    await ensure_paths(store, ["/acls/kinds"])  # whoever misses them makes them again
    assert files.synced[log] == lasting < os.path.getsize(log)
    await store.create("/acls/kinds/one")  # and lasts with those that it needs
    assert files.synced[log] == os.path.getsize(log)
    await store.close()


async def test_a_change_that_cannot_be_synced_is_not_acknowledged(
    path: Path, clock: ManualClock
) -> None:
    files = SyncedFiles()
    store = EmbeddedStore(path, clock=clock, session_timeout_ms=TIMEOUT_MS, files=files)
    await store.open()
    files.fails = True
    with pytest.raises(StoreUnreachable, match="cannot be synced"):
        await store.create("/topics")
    assert store.session_state is SessionState.LOST
    files.fails = False
    await store.create("/acls")
    await store.close()


FORMAT_1 = """
CREATE TABLE nodes (
    parent TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
    creation_id INTEGER NOT NULL, child_version INTEGER NOT NULL,
    children_created INTEGER NOT NULL, session INTEGER, PRIMARY KEY (parent, name)
) WITHOUT ROWID;
CREATE INDEX ephemeral_nodes ON nodes (session) WHERE session IS NOT NULL;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, expires_at_ms INTEGER NOT NULL
);
CREATE TABLE changes (last_id INTEGER NOT NULL);
INSERT INTO changes VALUES (3);
INSERT INTO nodes VALUES ('', '/', x'', 0, 0, 2, 2, NULL);
INSERT INTO nodes VALUES ('/', 'topic', x'61', 0, 2, 0, 0, NULL);
INSERT INTO nodes VALUES ('/', 'broker', x'62', 0, 3, 0, 0, 1);
INSERT INTO sessions VALUES (1, 'a broker', 9000000000000);
PRAGMA user_version = 1;
"""
"""As 0.1.0 wrote it before sessions went without wall time: a broker was killed on it."""


async def test_a_store_of_the_first_format_is_taken_over(path: Path, clock: ManualClock) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FORMAT_1)
    async with session(path, clock) as store:
        assert await store.children("/") == ["topic"]
        assert (await store.get("/topic")).data == b"a"
        await store.create("/broker", ephemeral=True)


async def test_a_store_that_an_earlier_release_uses_is_left_alone(
    path: Path, clock: ManualClock
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FORMAT_1)
    lock = REAL_FILES.lock(f"{path}.session-1")
    assert lock is not None
    with pytest.raises(StoreUnreachable, match="stop all of them first"):
        async with session(path, clock):
            pass
    lock.release()
