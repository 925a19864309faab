"""What every metadata store promises; each test runs against each store there is."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from support.store_process import RemoteStore, StoreProcess

from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import (
    BadVersion,
    MetadataStoreError,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
)
from odradek.metadata_store.store import (
    Change,
    Check,
    Create,
    Delete,
    MetadataStore,
    SessionState,
    SetData,
    WatchEvent,
    ensure_paths,
)
from odradek.metadata_store.zookeeper.zookeeper_store import ZooKeeperStore
from odradek.runtime.clock import SystemClock
from odradek.tools.zookeeper_process import ZooKeeperProcess

OpenSession = Callable[[str], Awaitable[MetadataStore]]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    server = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def store_process() -> Iterator[StoreProcess]:
    with StoreProcess() as process:
        yield process


@pytest.fixture(params=["embedded", "embedded in two processes", "zookeeper"])
async def open_session(
    request: pytest.FixtureRequest, tmp_path: Path, nursery: trio.Nursery
) -> AsyncIterator[OpenSession]:
    """Opens sessions on one and the same tree, each for an owner of its own."""
    make: Callable[[str], MetadataStore]
    path = tmp_path / "store.sqlite"
    if request.param == "embedded":

        def make(owner: str) -> MetadataStore:
            return EmbeddedStore(path, clock=SystemClock(), poll_interval_ms=5)

    elif request.param == "embedded in two processes":
        process: StoreProcess = request.getfixturevalue("store_process")

        def make(owner: str) -> MetadataStore:
            if owner == "broker-2":
                return EmbeddedStore(path, clock=SystemClock(), poll_interval_ms=5)
            return RemoteStore(process, nursery, path, poll_interval_ms=5)

    else:
        server: ZooKeeperProcess = request.getfixturevalue("zookeeper")
        chroot = f"/tests/{uuid.uuid4().hex}"

        def make(owner: str) -> MetadataStore:
            return ZooKeeperStore(f"{server.address}{chroot}", session_timeout_ms=30_000)

    async with AsyncExitStack() as sessions:

        async def open_one(owner: str) -> MetadataStore:
            store = make(owner)
            await store.open()
            sessions.push_async_callback(store.close)
            nursery.start_soon(store.run)
            return store

        yield open_one


@pytest.fixture
async def store(open_session: OpenSession) -> MetadataStore:
    return await open_session("broker-1")


@pytest.fixture
async def other(open_session: OpenSession) -> MetadataStore:
    return await open_session("broker-2")


async def test_created_node_is_read_back_in_version_zero(store: MetadataStore) -> None:
    assert await store.create("/a", b"hello") == "/a"
    node = await store.get("/a")
    assert (node.data, node.version) == (b"hello", 0)


async def test_nodes_are_seen_by_other_sessions(store: MetadataStore, other: MetadataStore) -> None:
    await store.create("/a", b"hello")
    assert (await other.get("/a")).data == b"hello"


async def test_create_refuses_what_exists(store: MetadataStore) -> None:
    await store.create("/a", b"first")
    with pytest.raises(NodeExists) as refusal:
        await store.create("/a", b"second")
    assert refusal.value.path == "/a"
    assert (await store.get("/a")).data == b"first"


async def test_create_needs_the_parent(store: MetadataStore) -> None:
    with pytest.raises(NoNode):
        await store.create("/a/b")


async def test_each_set_is_one_version_more(store: MetadataStore) -> None:
    await store.create("/a", b"0")
    assert await store.set("/a", b"1") == 1
    assert await store.set("/a", b"2", 1) == 2
    node = await store.get("/a")
    assert (node.data, node.version) == (b"2", 2)


async def test_set_of_another_version_changes_nothing(store: MetadataStore) -> None:
    await store.create("/a", b"0")
    await store.set("/a", b"1")
    with pytest.raises(BadVersion):
        await store.set("/a", b"lost", 0)
    assert (await store.get("/a")).data == b"1"


@pytest.mark.parametrize("verb", ["get", "set", "delete", "children"])
async def test_verbs_on_a_missing_node_say_so(store: MetadataStore, verb: str) -> None:
    calls = {
        "get": lambda: store.get("/missing"),
        "set": lambda: store.set("/missing", b""),
        "delete": lambda: store.delete("/missing"),
        "children": lambda: store.children("/missing"),
    }
    with pytest.raises(NoNode):
        await calls[verb]()


async def test_delete_checks_version_and_children(store: MetadataStore) -> None:
    await store.create("/a")
    await store.create("/a/b")
    with pytest.raises(NotEmpty):
        await store.delete("/a")
    await store.set("/a/b", b"1")
    with pytest.raises(BadVersion):
        await store.delete("/a/b", 0)
    await store.delete("/a/b", 1)
    await store.delete("/a")
    with pytest.raises(NoNode):
        await store.get("/a")


async def test_a_node_made_anew_has_a_larger_creation_id(store: MetadataStore) -> None:
    await store.create("/a")
    first = await store.get("/a")
    await store.delete("/a")
    await store.create("/a")
    second = await store.get("/a")
    assert second.version == 0
    assert second.creation_id > first.creation_id


async def test_children_that_come_and_go_are_counted(store: MetadataStore) -> None:
    await store.create("/a")
    assert (await store.get("/a")).child_version == 0
    await store.create("/a/b")
    await store.set("/a/b", b"x")
    await store.create("/a/b/c")
    assert (await store.get("/a")).child_version == 1
    await store.delete("/a/b/c")
    await store.delete("/a/b")
    assert (await store.get("/a")).child_version == 2


async def test_children_are_the_sorted_names_of_the_next_level(store: MetadataStore) -> None:
    for path in ["/a", "/a/c", "/a/b", "/a/b/deep", "/ab"]:
        await store.create(path)
    assert await store.children("/a") == ["b", "c"]
    assert await store.children("/ab") == []


async def test_get_many_gives_none_for_the_missing(store: MetadataStore) -> None:
    await store.create("/a", b"1")
    found = await store.get_many(["/missing", "/a"])
    assert found[0] is None
    assert found[1] is not None
    assert found[1].data == b"1"


async def test_sequential_names_grow_by_parent_and_are_never_used_again(
    store: MetadataStore,
) -> None:
    await store.create("/a")
    first = await store.create("/a/isr_change_", b"x", sequential=True)
    second = await store.create("/a/isr_change_", sequential=True)
    await store.delete(second)
    third = await store.create("/a/isr_change_", sequential=True)
    assert first == "/a/isr_change_0000000000"
    assert second == "/a/isr_change_0000000001"
    assert third > second
    assert (await store.get(first)).data == b"x"


async def test_ephemeral_nodes_go_with_their_session(
    open_session: OpenSession, store: MetadataStore
) -> None:
    await store.create("/ids")
    leaving = await open_session("broker-3")
    await leaving.create("/ids/3", b"here", ephemeral=True)
    await leaving.create("/ids/kept")
    assert await store.children("/ids") == ["3", "kept"]
    await leaving.close()
    assert await store.children("/ids") == ["kept"]
    assert leaving.session_state is SessionState.CLOSED


async def test_ephemeral_nodes_have_no_children(store: MetadataStore) -> None:
    await store.create("/e", ephemeral=True)
    with pytest.raises(NoChildrenForEphemerals):
        await store.create("/e/child")


async def test_verbs_after_the_end_of_the_session_are_refused(store: MetadataStore) -> None:
    await store.create("/a")
    await store.close()
    with pytest.raises(SessionExpired):
        await store.get("/a")
    with pytest.raises(SessionExpired):
        await store.set("/a", b"1")


async def test_a_store_can_be_opened_again_under_another_session(store: MetadataStore) -> None:
    first = store.session_id
    await store.close()
    await store.open()
    assert store.session_state is SessionState.CONNECTED
    assert store.session_id != first


async def test_session_listeners_hear_of_every_state(store: MetadataStore) -> None:
    states: list[SessionState] = []
    store.add_session_listener(states.append)
    await store.close()
    await store.open()
    assert states == [SessionState.CLOSED, SessionState.CONNECTED]


async def test_who_opens_another_session_gives_up_the_one_that_is_open(
    store: MetadataStore,
) -> None:
    """Its watches are gone: listeners that hear of nothing would never watch anew."""
    states: list[SessionState] = []
    first = store.session_id
    store.add_session_listener(states.append)
    await store.open()
    assert states == [SessionState.EXPIRED, SessionState.CONNECTED]
    assert store.session_id != first


async def test_multi_does_everything_in_order(store: MetadataStore) -> None:
    await store.create("/epoch", b"4")
    results = await store.multi(
        [
            Check("/epoch", 0),
            Create("/controller", b"1", ephemeral=True),
            SetData("/epoch", b"5", 0),
            Create("/a"),
            Create("/a/n-", sequential=True),
            Delete("/controller"),
        ]
    )
    assert results == [None, "/controller", 1, "/a", "/a/n-0000000000", None]
    assert (await store.get("/epoch")).data == b"5"
    assert await store.children("/a") == ["n-0000000000"]


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (Check("/a", 7), BadVersion),
        (Check("/missing"), NoNode),
        (Create("/a"), NodeExists),
        (SetData("/a", b"", 3), BadVersion),
        (Delete("/a", 3), BadVersion),
    ],
)
async def test_multi_does_nothing_when_one_cannot_be_done(
    store: MetadataStore, failing: Create | SetData | Delete | Check, error: type[Exception]
) -> None:
    await store.create("/a", b"before")
    with pytest.raises(error):
        await store.multi([SetData("/a", b"after", 0), Create("/new"), failing])
    assert (await store.get("/a")).data == b"before"
    with pytest.raises(NoNode):
        await store.get("/new")


async def test_of_two_racing_for_a_node_one_wins(
    store: MetadataStore, other: MetadataStore
) -> None:
    wins: list[str] = []

    async def race(contender: MetadataStore, name: str) -> None:
        try:
            await contender.create("/controller", name.encode(), ephemeral=True)
        except NodeExists:
            return
        wins.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(race, store, "one")
        nursery.start_soon(race, other, "two")
    assert len(wins) == 1
    assert (await other.get("/controller")).data == wins[0].encode()


class Events:
    """Collects a watch's events and waits for a number of them."""

    def __init__(self) -> None:
        self.seen: list[WatchEvent] = []
        self._changed = trio.Event()

    def __call__(self, event: WatchEvent) -> None:
        self.seen.append(event)
        self._changed.set()

    async def wait_for(self, count: int) -> list[WatchEvent]:
        with trio.fail_after(60):
            while len(self.seen) < count:
                self._changed = trio.Event()
                await self._changed.wait()
        return self.seen


@pytest.mark.parametrize("changing", ["store", "other"])
async def test_watch_tells_of_creation_change_and_deletion(
    store: MetadataStore, other: MetadataStore, changing: str
) -> None:
    changer = store if changing == "store" else other
    events = Events()
    await store.watch("/a", events)
    await changer.create("/a", b"0")
    assert await events.wait_for(1) == [WatchEvent("/a", Change.NODE)]
    await changer.set("/a", b"1")
    await events.wait_for(2)
    await changer.delete("/a")
    assert await events.wait_for(3) == [WatchEvent("/a", Change.NODE)] * 3


@pytest.mark.parametrize("changing", ["store", "other"])
async def test_watch_tells_of_children(
    store: MetadataStore, other: MetadataStore, changing: str
) -> None:
    changer = store if changing == "store" else other
    await store.create("/topics")
    events = Events()
    await store.watch("/topics", events)
    await changer.create("/topics/t")
    assert await events.wait_for(1) == [WatchEvent("/topics", Change.CHILDREN)]
    await changer.delete("/topics/t")
    assert await events.wait_for(2) == [WatchEvent("/topics", Change.CHILDREN)] * 2


async def test_a_read_after_an_event_sees_the_change(
    store: MetadataStore, other: MetadataStore
) -> None:
    await store.create("/a", b"0")
    events = Events()
    await store.watch("/a", events)
    await other.set("/a", b"1")
    await events.wait_for(1)
    assert (await store.get("/a")).data == b"1"


async def test_watch_tells_of_an_ephemeral_node_that_went(
    store: MetadataStore, other: MetadataStore
) -> None:
    await other.create("/controller", ephemeral=True)
    events = Events()
    await store.watch("/controller", events)
    await other.close()
    await events.wait_for(1)
    with pytest.raises(NoNode):
        await store.get("/controller")


async def test_a_cancelled_watch_is_silent(store: MetadataStore) -> None:
    cancelled, kept = Events(), Events()
    watch = await store.watch("/a", cancelled)
    await store.watch("/a", kept)
    watch.cancel()
    watch.cancel()
    await store.create("/a")
    await kept.wait_for(1)
    assert cancelled.seen == []


async def test_a_failed_change_is_not_reported(store: MetadataStore) -> None:
    events = Events()
    await store.watch("/a", events)
    with pytest.raises(MetadataStoreError):
        await store.multi([Create("/a"), Check("/missing")])
    await store.create("/a")
    assert await events.wait_for(1) == [WatchEvent("/a", Change.NODE)]


async def test_ensure_paths_makes_parents_and_leaves_what_is_there(store: MetadataStore) -> None:
    await store.create("/brokers", b"kept")
    await ensure_paths(store, ["/brokers/ids", "/admin/delete_topics"])
    await ensure_paths(store, ["/brokers/ids"])
    assert await store.children("/brokers") == ["ids"]
    assert await store.children("/admin") == ["delete_topics"]
    assert (await store.get("/brokers")).data == b"kept"


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a\0b"])
async def test_paths_that_are_none_are_refused(store: MetadataStore, path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        await store.create(path)
