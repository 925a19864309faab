"""One embedded store and several processes: one dies, freezes, or writes when another does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from support.store_process import RemoteStore, StoreProcess

from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import BadVersion, NodeExists, SessionExpired, StoreUnreachable
from odradek.metadata_store.store import (
    Check,
    Create,
    MetadataStore,
    SessionState,
    SetData,
    WatchEvent,
)
from odradek.runtime.clock import SystemClock

LONG_MS = 60_000
"""A lease that does not run out while a test lasts."""
SHORT_MS = 6_000
SECONDS_MAX = 60
INCREMENTS = 150
WRITES = 8_000
"""So many that a process is killed long before the last one."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


@pytest.fixture
async def store(path: Path, nursery: trio.Nursery) -> AsyncIterator[EmbeddedStore]:
    """A session that this process holds."""
    here = EmbeddedStore(path, clock=SystemClock(), session_timeout_ms=LONG_MS, poll_interval_ms=5)
    await here.open()
    nursery.start_soon(here.run)
    yield here
    await here.close()


@pytest.fixture
def open_there(path: Path, nursery: trio.Nursery) -> Callable[..., Awaitable[RemoteStore]]:
    """Open a session in another process."""

    async def open_one(process: StoreProcess, session_timeout_ms: int = LONG_MS) -> RemoteStore:
        there = RemoteStore(process, nursery, path, session_timeout_ms=session_timeout_ms)
        await there.open()
        nursery.start_soon(ends_with_its_process, there.run)
        return there

    return open_one


async def ends_with_its_process(run: Callable[[], Awaitable[None]]) -> None:
    with suppress(StoreUnreachable):
        await run()


class Told:
    """Waits for a watch to tell that something holds."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def __call__(self, event: WatchEvent) -> None:
        self._event.set()

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        with trio.fail_after(SECONDS_MAX):
            while not await holds():
                await self._event.wait()
                self._event = trio.Event()


async def exists(store: MetadataStore, path: str) -> bool:
    return (await store.get_many([path])) != [None]


async def has_children(store: MetadataStore, path: str, names: list[str]) -> bool:
    return await store.children(path) == names


async def test_ephemeral_nodes_of_a_killed_process_go_long_before_its_lease(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    reported = Told()
    await store.create("/ids")
    await store.watch("/ids", reported)
    with StoreProcess() as process:
        there = await open_there(process)
        await there.create("/ids/1", ephemeral=True)
        await there.create("/ids/kept")
        await reported.until(lambda: has_children(store, "/ids", ["1", "kept"]))
        process.kill()
        await reported.until(lambda: has_children(store, "/ids", ["kept"]))


async def test_a_frozen_process_loses_its_session_when_its_lease_runs_out(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    reported = Told()
    await store.create("/ids")
    await store.watch("/ids", reported)
    with StoreProcess() as process:
        there = await open_there(process, SHORT_MS)
        former = there.session_id
        await there.create("/ids/1", b"first", ephemeral=True)
        process.pause()
        await reported.until(lambda: has_children(store, "/ids", []))
        process.resume()
        with pytest.raises(SessionExpired):
            await there.set("/ids", b"as if nothing had been")
        assert there.session_state is SessionState.EXPIRED
        assert (await store.get("/ids")).data == b""
        await there.open()
        await there.create("/ids/1", b"second", ephemeral=True)
        assert there.session_id != former
        assert (await store.get("/ids/1")).data == b"second"


async def test_a_process_frozen_for_less_than_its_lease_keeps_its_session(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    with StoreProcess() as process:
        there = await open_there(process)
        await there.create("/1", b"here", ephemeral=True)
        process.pause()
        reported = Told()
        await store.watch("/n", reported)
        await store.create("/n")  # others go on meanwhile
        await reported.until(lambda: exists(store, "/n"))
        process.resume()
        await there.set("/1", b"still here")
        assert (await store.get("/1")).data == b"still here"


async def test_a_registration_passes_from_a_killed_process_to_its_next_life(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    with StoreProcess() as first:
        there = await open_there(first)
        await there.create("/1", ephemeral=True)
        epoch = (await store.get("/1")).creation_id
        first.kill()
    with StoreProcess() as second:
        again = await open_there(second)
        await again.create("/1", ephemeral=True)
        assert (await store.get("/1")).creation_id > epoch


async def count_up(contender: MetadataStore) -> None:
    """Add one, again and again, each time to what the last writer left."""
    for _ in range(INCREMENTS):
        while True:
            node = await contender.get("/count")
            following = str(int(node.data) + 1).encode()
            try:
                await contender.multi(
                    [
                        Check("/fence", 0),
                        Create(f"/taken/{following.decode()}"),
                        SetData("/count", following, node.version),
                    ]
                )
            except (BadVersion, NodeExists):
                continue
            break


async def test_processes_that_count_together_lose_and_double_nothing(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    await store.multi([Create("/fence"), Create("/taken"), Create("/count", b"0")])
    with StoreProcess() as second, StoreProcess() as third:
        contenders = [store, await open_there(second), await open_there(third)]
        with trio.fail_after(240):
            async with trio.open_nursery() as nursery:
                for contender in contenders:
                    nursery.start_soon(count_up, contender)
    whole = INCREMENTS * len(contenders)
    count = await store.get("/count")
    assert (count.data, count.version) == (str(whole).encode(), whole)
    assert sorted(map(int, await store.children("/taken"))) == list(range(1, whole + 1))


async def test_a_check_fences_another_process_from_the_change_on(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    """As a controller that was replaced is kept from writing."""
    await store.multi([Create("/epoch"), Create("/state", b"of the first")])
    with StoreProcess() as process:
        there = await open_there(process)
        await there.multi([Check("/epoch", 0), SetData("/state", b"of the first, too")])
        await store.set("/epoch", b"2", 0)
        with pytest.raises(BadVersion):
            await there.multi([Check("/epoch", 0), SetData("/state", b"lost"), Create("/lost")])
    assert (await store.get("/state")).data == b"of the first, too"
    assert not await exists(store, "/lost")


async def test_a_process_killed_in_the_middle_of_its_writes_leaves_each_whole(
    store: EmbeddedStore, open_there: Callable[..., Awaitable[RemoteStore]]
) -> None:
    await store.multi([Create("/left", b"0"), Create("/right", b"0")])
    reported = Told()
    await store.watch("/left", reported)
    with StoreProcess() as process:
        there = await open_there(process)

        async def write(number: int) -> None:
            data = str(number).encode()
            with suppress(StoreUnreachable):
                await there.multi([SetData("/left", data), SetData("/right", data)])

        async def is_under_way() -> bool:
            return (await store.get("/left")).version > 20

        async with trio.open_nursery() as nursery:
            for number in range(1, WRITES):
                nursery.start_soon(write, number)
            await reported.until(is_under_way)
            process.kill()
    left, right = await store.get("/left"), await store.get("/right")
    assert 20 < left.version < WRITES - 1, "it was not killed in the middle"
    assert (left.data, left.version) == (right.data, right.version)
    await store.set("/left", b"others go on")
