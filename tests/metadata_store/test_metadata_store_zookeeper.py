"""What only ZooKeeper has: sessions that outlive connections and servers, ACLs, TLS."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
import trio
from kazoo.client import KazooClient
from kazoo.loggingsupport import BLATHER
from kazoo.security import make_digest_acl
from support.cuttable_proxy import CuttableProxy

from odradek.config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.metadata_store.choice import make_store
from odradek.metadata_store.errors import NotAllowed, SessionExpired, StoreUnreachable
from odradek.metadata_store.store import (
    Change,
    MetadataStore,
    SessionState,
    WatchEvent,
    ensure_paths,
)
from odradek.metadata_store.zookeeper.zookeeper_store import ZooKeeperStore
from odradek.runtime.clock import SystemClock
from odradek.testing.process.broker_process import BrokerProcess, BrokerStartError
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

TLS = Path(__file__).parent / "data" / "zookeeper_tls"
SESSION_TIMEOUT_MS = 60_000
HOUR_SECONDS = 3_600
SOON_MS = 8_000
"""A session that soon misses its server, and runs out."""
pytestmark = pytest.mark.slow

SECONDS_MAX = 120
CONNECTION_TIMEOUT_MS = "6000"
"""Enough to see why no connection comes about."""
DIGEST = "broker:secret"

Open = Callable[..., Awaitable[MetadataStore]]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    server = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"), tls=TLS)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def chroot() -> str:
    return f"/{uuid4().hex}"


@pytest.fixture
async def open_store(
    zookeeper: ZooKeeperProcess, chroot: str, nursery: trio.Nursery, tmp_path: Path
) -> AsyncIterator[Open]:
    """Open the store that a broker with such settings has."""
    async with AsyncExitStack() as stores:

        async def open_one(connect: str = zookeeper.address, **settings: str) -> MetadataStore:
            store = make_store(config_of(connect + chroot, settings), tmp_path, clock=SystemClock())
            await store.open()
            stores.push_async_callback(store.close)
            nursery.start_soon(store.run)
            return store

        yield open_one


def config_of(connect: str, settings: dict[str, str]) -> BrokerConfig:
    sources = {
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        **{f"zookeeper.{name.replace('_', '.')}": value for name, value in settings.items()},
    }
    return BrokerConfig.from_sources(sources)


class Awaited:
    """Collects what is told, and waits for something among it."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self._changed = trio.Event()

    def __call__(self, reported: object) -> None:
        self.seen.append(reported)
        self._changed.set()

    async def wait_for(self, what: object) -> None:
        with trio.fail_after(SECONDS_MAX):
            while what not in self.seen:
                self._changed = trio.Event()
                await self._changed.wait()


# --- Sessions -----------------------------------------------------------------------------------


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeperProcess]:
    """A server that a test may kill."""
    server = ZooKeeperProcess(tmp_path / "server")
    server.start()
    yield server
    server.kill()


class Pings(logging.Handler):
    """Counts the pings that kazoo logs, from its threads."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "Ping" in record.getMessage()


@pytest.mark.slow
@pytest.mark.parametrize("step_seconds", [HOUR_SECONDS, -HOUR_SECONDS])
async def test_a_session_is_kept_alive_whatever_the_wall_clock_is_set_to(
    zookeeper: ZooKeeperProcess,
    chroot: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    step_seconds: int,
) -> None:
    store = ZooKeeperStore(zookeeper.address + chroot, session_timeout_ms=SOON_MS)
    await store.open()
    pings = Pings()
    logger = logging.getLogger("odradek.zookeeper")
    caplog.set_level(BLATHER, logger.name)
    logger.addHandler(pings)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + step_seconds)
    try:
        await trio.to_thread.run_sync(
            lambda: wait_until(
                lambda: pings.count > 2, SECONDS_MAX, "nothing is sent to the server"
            )
        )
        assert store.session_state is SessionState.CONNECTED
    finally:
        logger.removeHandler(pings)
        monkeypatch.undo()
        await store.close()


async def test_a_session_goes_on_when_the_server_is_killed_and_started_again(
    own_zookeeper: ZooKeeperProcess, nursery: trio.Nursery
) -> None:
    states, events = Awaited(), Awaited()
    with CuttableProxy(own_zookeeper.port) as link:
        store = ZooKeeperStore(link.address, session_timeout_ms=SESSION_TIMEOUT_MS)
        await store.open()
        nursery.start_soon(store.run)
        store.add_session_listener(states)
        await store.create("/ids")
        await store.create("/ids/1", b"here", ephemeral=True)
        registered = await store.get("/ids/1")
        former = store.session_id
        await store.watch("/n", events)
        own_zookeeper.kill()
        await states.wait_for(SessionState.LOST)
        link.cut()  # a server that is but starting may leave a client without an answer
        async with trio.open_nursery() as meanwhile:
            meanwhile.start_soon(store.create, "/asked-meanwhile")
            await trio.to_thread.run_sync(own_zookeeper.start)
            link.mend()
        await states.wait_for(SessionState.CONNECTED)
        assert states.seen == [SessionState.LOST, SessionState.CONNECTED]
        assert store.session_id == former
        assert await store.get("/ids/1") == registered
        await events.wait_for(WatchEvent("/n", Change.NODE))
        events.seen.clear()
        await store.create("/n")
        await events.wait_for(WatchEvent("/n", Change.NODE))
        await store.close()


async def test_what_is_made_after_the_opening_has_a_larger_creation_id(open_store: Open) -> None:
    store = await open_store()
    await store.create("/a")
    before = (await store.get("/a")).creation_id
    other = await open_store()
    await store.create("/b")
    assert other.opened_at is not None
    assert before < other.opened_at < (await store.get("/b")).creation_id


async def test_a_read_waits_for_the_server_to_return(
    zookeeper: ZooKeeperProcess, open_store: Open
) -> None:
    with CuttableProxy(zookeeper.port) as link:
        store = await open_store(link.address, session_timeout_ms=str(SOON_MS))
        await store.create("/a", b"1")
        states = Awaited()
        store.add_session_listener(states)
        link.cut()
        await states.wait_for(SessionState.LOST)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_one, store)
            link.mend()


async def read_one(store: MetadataStore) -> None:
    assert (await store.get("/a")).data == b"1"
    assert await store.children("/") == ["a"]
    assert (await store.get_many(["/a", "/missing"]))[1] is None


async def test_a_session_that_was_cut_off_for_too_long_expires_and_another_begins(
    zookeeper: ZooKeeperProcess, open_store: Open
) -> None:
    observer = await open_store()
    with CuttableProxy(zookeeper.port) as link:
        store = await open_store(link.address, session_timeout_ms=str(SOON_MS))
        await store.create("/1", ephemeral=True)
        registered = await observer.get("/1")
        states, gone = Awaited(), Awaited()
        store.add_session_listener(states)
        await observer.watch("/1", gone)
        link.cut()
        await gone.wait_for(WatchEvent("/1", Change.NODE))
        assert store.session_state is SessionState.LOST, "nobody could tell it so far"
        link.mend()
        await states.wait_for(SessionState.EXPIRED)
        with pytest.raises(SessionExpired):
            await store.get("/1")
        await store.open()
        await store.create("/1", ephemeral=True)
        assert (await observer.get("/1")).creation_id > registered.creation_id


async def test_a_session_that_another_client_ended_is_over_at_once(
    zookeeper: ZooKeeperProcess, chroot: str, nursery: trio.Nursery
) -> None:
    store = ZooKeeperStore(zookeeper.address + chroot, session_timeout_ms=SESSION_TIMEOUT_MS)
    await store.open()
    states, silent = Awaited(), Awaited()
    store.add_session_listener(states)
    await store.watch("/n", silent)
    former = store.session_id
    # Who has a session's id and password is its holder to ZooKeeper.
    usurper = KazooClient(zookeeper.address, client_id=store._client.client_id)
    await trio.to_thread.run_sync(usurper.start)
    await trio.to_thread.run_sync(usurper.stop)
    usurper.close()
    with trio.fail_after(SECONDS_MAX):
        await store.run()
    assert states.seen[-1] is SessionState.EXPIRED
    await store.open()
    assert store.session_id != former
    await store.create("/n")
    assert silent.seen == [], "a watch goes with its session"
    await store.close()


# --- Who may do what ----------------------------------------------------------------------------


async def test_nodes_under_acl_are_read_by_all_and_changed_by_their_maker_only(
    open_store: Open,
) -> None:
    ours = await open_store(digest=DIGEST, set_acl="true")
    await ours.create("/a", b"ours")
    for stranger in (await open_store(), await open_store(digest="broker:guessed")):
        assert (await stranger.get("/a")).data == b"ours"
        for change in (
            lambda store=stranger: store.set("/a", b"theirs"),
            lambda store=stranger: store.create("/a/b"),
            lambda store=stranger: store.delete("/a"),
        ):
            with pytest.raises(NotAllowed):
                await change()
    again = await open_store(digest=DIGEST, set_acl="true")
    await again.set("/a", b"ours again")


async def test_what_holds_passwords_is_read_by_brokers_only(open_store: Open) -> None:
    ours = await open_store(digest=DIGEST, set_acl="true")
    stranger = await open_store()
    await ensure_paths(ours, ["/config/users", "/config/brokers", "/config/topics"])
    await ours.create("/config/users/alice", b"a hash")
    assert (await ours.get("/config/users/alice")).data == b"a hash"
    with trio.fail_after(SECONDS_MAX):
        for path in ("/config/users/alice", "/config/brokers"):
            with pytest.raises(NotAllowed):
                await stranger.get(path)
        with pytest.raises(NotAllowed):
            await stranger.children("/config/users")
        assert await stranger.children("/config/topics") == []


async def test_acls_are_those_that_kafka_gives(
    zookeeper: ZooKeeperProcess, chroot: str, open_store: Open
) -> None:
    ours = await open_store(digest=DIGEST, set_acl="true")
    await ensure_paths(ours, ["/consumers", "/config/users", "/brokers/ids"])
    await ours.create("/brokers/ids/1", ephemeral=True)
    other = await open_store()
    await other.create("/consumers/open")

    def acls() -> dict[str, list[tuple[str, str]]]:
        client = KazooClient(zookeeper.address + chroot, auth_data=[("digest", DIGEST)])
        client.start()
        try:
            return {
                path: sorted(
                    (acl.id.scheme, "+".join(sorted(acl.acl_list)))
                    for acl in client.get_acls(path)[0]
                )
                for path in ("/", "/brokers/ids/1", "/config/users", "/consumers")
            }
        finally:
            client.stop()
            client.close()

    brokers_change = [("digest", "ALL"), ("world", "READ")]
    assert await trio.to_thread.run_sync(acls) == {
        "/": brokers_change,
        "/brokers/ids/1": brokers_change,
        "/config/users": [("digest", "ALL")],
        "/consumers": [("world", "ALL")],
    }


async def test_a_tree_that_is_closed_to_others_is_open_to_the_digest_it_was_given_to(
    zookeeper: ZooKeeperProcess, chroot: str, open_store: Open, tmp_path: Path
) -> None:
    def close_tree() -> None:
        client = KazooClient(zookeeper.address)
        client.start()
        client.create(chroot, acl=[make_digest_acl(*DIGEST.split(":"), all=True)])
        client.stop()
        client.close()

    await trio.to_thread.run_sync(close_tree)
    ours = await open_store(digest=DIGEST)
    await ensure_paths(ours, ["/brokers/ids"])
    with pytest.raises(NotAllowed):
        await open_store()
    settings = {"zookeeper.connect": zookeeper.address + chroot}

    def start_brokers() -> None:
        with pytest.raises(BrokerStartError, match=f"{chroot} .*see zookeeper.digest"):
            BrokerProcess(tmp_path / "stranger", settings=settings)
        ours = {**settings, "zookeeper.digest": DIGEST}
        with BrokerProcess(tmp_path / "ours", settings=ours) as broker:
            assert broker.stop() == 0

    await trio.to_thread.run_sync(start_brokers)


def test_acls_without_anybody_to_own_them_are_refused(tmp_path: Path) -> None:
    config = config_of("127.0.0.1:1", {"set_acl": "true"})
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true needs .* zookeeper\.digest"):
        make_store(config, tmp_path, clock=SystemClock())


# --- TLS ----------------------------------------------------------------------------------------

OURS = {
    "ssl_client_enable": "true",
    "ssl_truststore_location": str(TLS / "authority.pem"),
    "ssl_truststore_type": "PEM",
    "ssl_keystore_location": str(TLS / "broker.pem"),
    "ssl_keystore_type": "PEM",
    "ssl_keystore_password": "not-secret",
}


@pytest.mark.parametrize("protocols", [{}, {"ssl_enabled_protocols": "TLSv1.3"}])
async def test_a_store_is_reached_over_tls(
    zookeeper: ZooKeeperProcess, open_store: Open, protocols: dict[str, str]
) -> None:
    ours = await open_store(f"localhost:{zookeeper.tls_port}", **OURS, **protocols)
    plain = await open_store()
    data = bytes(range(256)) * 1_000  # many TLS records
    await ours.create("/a", data)
    assert (await plain.get("/a")).data == data
    assert (await ours.get("/a")).data == data


async def test_a_certificate_owns_the_nodes_that_are_made_with_it(
    zookeeper: ZooKeeperProcess, open_store: Open
) -> None:
    ours = await open_store(f"localhost:{zookeeper.tls_port}", **OURS, set_acl="true")
    plain = await open_store()
    await ours.create("/a", b"ours")
    await ours.set("/a", b"ours, too")
    with pytest.raises(NotAllowed):
        await plain.set("/a", b"theirs")


async def test_a_server_under_another_name_than_its_certificate_s_is_not_spoken_to(
    zookeeper: ZooKeeperProcess, open_store: Open
) -> None:
    by_number = f"127.0.0.1:{zookeeper.tls_port}"
    with pytest.raises(StoreUnreachable, match="IP address mismatch"):
        await open_store(by_number, **OURS, connection_timeout_ms=CONNECTION_TIMEOUT_MS)
    unchecked = await open_store(by_number, **OURS, ssl_endpoint_identification_algorithm="")
    await unchecked.create("/a")


async def test_without_trust_on_either_side_there_is_no_session(
    zookeeper: ZooKeeperProcess, open_store: Open
) -> None:
    async def refused(changed: dict[str, str], reported: str) -> None:
        settings = {**OURS, **changed, "connection_timeout_ms": CONNECTION_TIMEOUT_MS}
        with pytest.raises(StoreUnreachable, match=reported):
            await open_store(f"localhost:{zookeeper.tls_port}", **settings)

    async with trio.open_nursery() as trials:  # each waits for as long as it may
        for changed, reported in (
            ({"ssl_truststore_location": str(TLS / "another-authority.pem")}, "verify failed"),
            ({"ssl_truststore_location": ""}, "verify failed"),
            ({"ssl_keystore_location": ""}, "no ZooKeeper answered"),
            ({"ssl_client_enable": "false"}, "no ZooKeeper answered"),
            ({"ssl_enabled_protocols": "TLSv1.2"}, "protocol version"),
        ):
            trials.start_soon(refused, changed, reported)


@pytest.mark.parametrize(
    ("changed", "reported"),
    [
        ({"ssl_keystore_password": "wrong"}, r"zookeeper\.ssl\.keystore\.location=.*broker\.pem"),
        ({"ssl_keystore_location": "/no/such"}, r"keystore\.location=/no/such .*No such file"),
        ({"ssl_truststore_location": "/no/such"}, r"truststore\.location=/no/such .*No such file"),
        ({"ssl_truststore_location": __file__}, r"zookeeper\.ssl\.truststore\.location="),
        ({"ssl_keystore_type": "JKS"}, r"zookeeper\.ssl\.keystore\.type=JKS cannot be read"),
        ({"ssl_truststore_type": "PKCS12"}, r"truststore\.type=PKCS12 cannot be read"),
        ({"ssl_enabled_protocols": "SSLv3"}, r"enabled\.protocols .* know no 'SSLv3'"),
    ],
)
def test_tls_settings_that_cannot_be_used_say_so(
    changed: dict[str, str], reported: str, tmp_path: Path
) -> None:
    config = config_of("localhost:1", {**OURS, **changed})
    with pytest.raises(ConfigError, match=reported):
        make_store(config, tmp_path, clock=SystemClock())
