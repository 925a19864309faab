"""The embedded store's leases, durability, and life beside other processes."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import NoNode, SessionExpired, StoreUnreachable
from odradek.metadata_store.store import Change, SessionState, WatchEvent
from odradek.runtime.clock import ManualClock

TIMEOUT_MS = 6_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@asynccontextmanager
async def session(path: Path, clock: ManualClock, owner: str) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore(path, clock=clock, owner=owner, session_timeout_ms=TIMEOUT_MS)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_a_silent_session_ends_when_its_lease_runs_out(
    path: Path, clock: ManualClock
) -> None:
    async with session(path, clock, "one") as one, session(path, clock, "two") as two:
        await one.create("/one", ephemeral=True)
        clock.advance(TIMEOUT_MS - 1)
        two.poll(clock.now_ms())
        assert (await two.get("/one")).data == b""
        clock.advance(TIMEOUT_MS)
        two.poll(clock.now_ms())
        with pytest.raises(NoNode):
            await two.get("/one")
        assert two.session_state is SessionState.CONNECTED


async def test_a_node_that_came_and_went_between_two_looks_is_told_of(
    path: Path, clock: ManualClock
) -> None:
    """Whoever has read it in between waits to hear that it went: the next controller does."""
    async with session(path, clock, "one") as one, session(path, clock, "two") as two:
        await one.create("/dir")
        events: list[WatchEvent] = []
        await two.watch("/dir/a", events.append)
        two.poll(clock.now_ms())
        assert events == []
        await one.create("/dir/a")
        assert (await two.get("/dir/a")).data == b""
        await one.delete("/dir/a")
        two.poll(clock.now_ms())
        assert events == [WatchEvent("/dir/a", Change.NODE)]
        two.poll(clock.now_ms())
        assert len(events) == 1


async def test_a_session_that_renews_its_lease_lives_on(path: Path, clock: ManualClock) -> None:
    async with session(path, clock, "one") as one, session(path, clock, "two") as two:
        await one.create("/one", ephemeral=True)
        for _ in range(10):
            clock.advance(TIMEOUT_MS // 2)
            one.poll(clock.now_ms())
            two.poll(clock.now_ms())
        assert (await two.get("/one")).data == b""


async def test_a_session_whose_lease_was_ended_writes_nothing_more(
    path: Path, clock: ManualClock
) -> None:
    """What fences a controller that was stopped for a while and goes on as if nothing was."""
    async with session(path, clock, "one") as one, session(path, clock, "two") as two:
        await one.create("/a", b"by one")
        clock.advance(TIMEOUT_MS)
        two.poll(clock.now_ms())
        states: list[SessionState] = []
        one.add_session_listener(states.append)
        with pytest.raises(SessionExpired):
            await one.set("/a", b"too late")
        assert states == [SessionState.EXPIRED]
        assert (await two.get("/a")).data == b"by one"
        with pytest.raises(SessionExpired):
            await one.get("/a")


async def test_an_expired_session_is_noticed_while_idle(path: Path, clock: ManualClock) -> None:
    async with session(path, clock, "one") as one, session(path, clock, "two") as two:
        clock.advance(TIMEOUT_MS)
        two.poll(clock.now_ms())
        one.poll(clock.now_ms())
        assert one.session_state is SessionState.EXPIRED


async def test_a_new_session_ends_the_former_one_of_its_owner(
    path: Path, clock: ManualClock
) -> None:
    """A broker that was killed and comes back at once finds its own registration gone."""
    killed = EmbeddedStore(path, clock=clock, owner="broker-1")
    await killed.open()
    await killed.create("/ids")
    await killed.create("/ids/1", ephemeral=True)
    async with session(path, clock, "broker-2") as other:
        await other.create("/ids/2", ephemeral=True)
        async with session(path, clock, "broker-1") as restarted:
            assert await restarted.children("/ids") == ["2"]
            await restarted.create("/ids/1", ephemeral=True)
            with pytest.raises(SessionExpired):
                await killed.create("/x")
            await killed.close()
            assert await restarted.children("/ids") == ["1", "2"]


async def test_run_renews_the_lease_without_anyone_asking(
    path: Path, autojump_clock: MockClock
) -> None:
    class TrioClock(ManualClock):
        def now_ms(self) -> int:
            return int(trio.current_time() * 1000)

    clock = TrioClock()
    async with (
        session(path, clock, "one") as one,
        session(path, clock, "two") as two,
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
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.runtime.clock import SystemClock

async def write():
    store = EmbeddedStore(sys.argv[1], clock=SystemClock(), owner="writer")
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
    async with session(path, clock, "writer") as store:
        assert int((await store.get("/n")).data) >= acknowledged
        with pytest.raises(NoNode):
            await store.get("/e")


async def test_changes_of_another_process_reach_a_watch(path: Path, clock: ManualClock) -> None:
    async with session(path, clock, "reader") as store:
        events: list[WatchEvent] = []
        await store.watch("/n", events.append)
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "1\n"
            store.poll(clock.now_ms())
            writer.kill()
        assert [event.path for event in events] == ["/n"]


async def test_a_verb_waits_for_the_lock_of_another_process(
    path: Path, clock: ManualClock, autojump_clock: MockClock
) -> None:
    async with session(path, clock, "one") as store, trio.open_nursery() as nursery:
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
    async with session(path, clock, "one") as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnreachable):
            await store.create("/a")
        assert store.session_state is SessionState.LOST
        other.execute("ROLLBACK")
        other.close()
        store.poll(clock.now_ms())
        assert store.session_state is SessionState.CONNECTED
        await store.create("/a")


async def test_a_file_that_is_no_store_is_refused(path: Path, clock: ManualClock) -> None:
    path.write_bytes(b"these are not the nodes you are looking for" * 100)
    with pytest.raises(StoreUnreachable):
        async with session(path, clock, "one"):
            pass


async def test_a_store_of_a_later_format_is_refused(path: Path, clock: ManualClock) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreUnreachable, match="99"):
        async with session(path, clock, "one"):
            pass
