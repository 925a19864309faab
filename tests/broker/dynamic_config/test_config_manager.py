"""Changed settings in the store: written with a notification, followed by every broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing
from support.unsynced_store import UnsyncedStore

from odradek.broker.dynamic_config.change_notifications import CHANGE_EXPIRATION_MS
from odradek.broker.dynamic_config.config_manager import (
    BROKERS,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    CONFIG_BYTES_MAX,
    GROUPS,
    TOPICS,
    ConfigManager,
    entity_path,
    load_broker_overrides,
)
from odradek.common.errors import ErrorCode, KafkaError
from odradek.config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.metadata_store import znodes
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import SessionExpired
from odradek.metadata_store.store import MetadataStore, ensure_paths
from odradek.runtime.clock import ManualClock

START_MS = 1_795_226_872_357
KINDS = (TOPICS, BROKERS, GROUPS, CLIENT_METRICS)


class Follower:
    """A manager that writes down what it puts in force."""

    def __init__(self, store: MetadataStore, clock: ManualClock, nursery: trio.Nursery) -> None:
        self.store = store
        self.applied: list[tuple[str, str, dict[str, str]]] = []
        self.manager = ConfigManager(store, clock, self._start)
        self._nursery = nursery
        for kind in KINDS:
            self.manager.on_change(kind, self._applier(kind))

    def _start(self, function: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(function)

    def _applier(self, kind: str) -> Callable[..., None]:
        return lambda name, overrides: self.applied.append((kind, name, dict(overrides)))

    async def set(self, kind: str, name: str, **overrides: str) -> None:
        texts = {key.replace("_", "."): text for key, text in overrides.items()}
        await self.manager.alter(kind, name, lambda present: {**present, **texts})

    async def notifications(self) -> list[bytes]:
        names = await self.store.children("/config/changes")
        nodes = await self.store.get_many([f"/config/changes/{name}" for name in names])
        return [node.data for node in nodes if node is not None]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[EmbeddedStore]:
    store = UnsyncedStore(tmp_path / "metadata.sqlite", clock=clock)
    await store.open()
    await ensure_paths(store, znodes.PERSISTENT_PATHS)
    yield store
    await store.close()


@pytest.fixture
async def other_store(
    tmp_path: Path, clock: ManualClock, store: EmbeddedStore
) -> AsyncIterator[EmbeddedStore]:
    other = UnsyncedStore(tmp_path / "metadata.sqlite", clock=clock)
    await other.open()
    yield other
    await other.close()


@pytest.fixture
async def follower(
    store: EmbeddedStore, clock: ManualClock, nursery: trio.Nursery
) -> AsyncIterator[Follower]:
    follower = Follower(store, clock, nursery)
    await follower.manager.start(1)
    follower.applied.clear()
    yield follower
    follower.manager.stop()


async def test_change_is_written_where_kafka_keeps_it_with_kafkas_notification(
    follower: Follower, store: EmbeddedStore
) -> None:
    await follower.set(TOPICS, "orders", retention_ms="5")
    await follower.set(BROKERS, "1", log_retention_ms="6")
    await follower.set(BROKERS, CLUSTER_DEFAULT, log_retention_ms="7")
    await follower.set(GROUPS, "readers", consumer_session_timeout_ms="50000")
    await follower.set(CLIENT_METRICS, "all", interval_ms="8")
    for path, data in (
        ("topics/orders", b'{"version":1,"config":{"retention.ms":"5"}}'),
        ("brokers/1", b'{"version":1,"config":{"log.retention.ms":"6"}}'),
        ("brokers/<default>", b'{"version":1,"config":{"log.retention.ms":"7"}}'),
        ("groups/readers", b'{"version":1,"config":{"consumer.session.timeout.ms":"50000"}}'),
        ("client-metrics/all", b'{"version":1,"config":{"interval.ms":"8"}}'),
    ):
        assert (await store.get(f"/config/{path}")).data == data
    assert await store.children("/config/changes") == [
        f"config_change_{number:010}" for number in range(5)
    ]
    assert (await follower.notifications())[:3] == [
        b'{"version":2,"entity_path":"topics/orders"}',
        b'{"version":2,"entity_path":"brokers/1"}',
        b'{"version":2,"entity_path":"brokers/<default>"}',
    ]


async def test_change_is_in_force_when_it_is_answered_and_once(follower: Follower) -> None:
    await follower.set(TOPICS, "orders", retention_ms="5")
    assert follower.applied == [(TOPICS, "orders", {"retention.ms": "5"})]
    await trio.testing.wait_all_tasks_blocked()
    assert len(follower.applied) == 1


async def test_other_brokers_follow(
    follower: Follower, other_store: EmbeddedStore, clock: ManualClock, nursery: trio.Nursery
) -> None:
    other = Follower(other_store, clock, nursery)
    await other.manager.start(2)
    other.applied.clear()
    await follower.set(TOPICS, "orders", retention_ms="5")
    await follower.set(GROUPS, "a/b ~*é", consumer_session_timeout_ms="50000")
    assert other.applied == []
    other_store.poll(clock.now_ms())
    await trio.testing.wait_all_tasks_blocked()
    assert other.applied == [
        (TOPICS, "orders", {"retention.ms": "5"}),
        (GROUPS, "a/b ~*é", {"consumer.session.timeout.ms": "50000"}),
    ]


async def test_changes_are_followed_after_the_session_was_another(
    follower: Follower, store: EmbeddedStore, other_store: EmbeddedStore, clock: ManualClock
) -> None:
    other = ConfigManager(other_store, clock, follower._start)
    await store.close()
    await other.alter(TOPICS, "missed", lambda _: {"retention.ms": "5"})
    await store.open()
    await trio.testing.wait_all_tasks_blocked()
    assert follower.applied == [(TOPICS, "missed", {"retention.ms": "5"})]
    await other.alter(TOPICS, "later", lambda _: {"retention.ms": "6"})
    store.poll(clock.now_ms())
    await trio.testing.wait_all_tasks_blocked()
    assert follower.applied[1:] == [(TOPICS, "later", {"retention.ms": "6"})]


async def test_notification_of_an_older_kafka_is_understood_and_of_none_passed_over(
    follower: Follower, store: EmbeddedStore
) -> None:
    await store.create("/config/topics/t", b'{"version":1,"config":{"retention.ms":"5"}}')
    for data in (
        b"what?",
        b'{"version":2}',
        b'{"version":2,"entity_path":"users/alice"}',
        b'{"version":2,"entity_path":"topics"}',
        b'{"version":2,"entity_path":"topics/a//b"}',
        b'{"version":2,"entity_path":"topics/a%2F%2Fb"}',
        b'{"version":2,"entity_path":"groups/%FF%00"}',
        b'{"version":1,"entity_type":"topics","entity_name":"t"}',
    ):
        await store.create("/config/changes/config_change_", data, sequential=True)
    await trio.testing.wait_all_tasks_blocked()
    assert follower.applied[-1] == (TOPICS, "t", {"retention.ms": "5"})


async def test_what_is_in_store_at_the_start_is_taken_up(
    follower: Follower, store: EmbeddedStore, clock: ManualClock, nursery: trio.Nursery
) -> None:
    await follower.set(BROKERS, "1", log_retention_ms="6")
    await follower.set(BROKERS, "2", log_retention_ms="9")
    await follower.set(BROKERS, CLUSTER_DEFAULT, log_retention_ms="7")
    await follower.set(GROUPS, "%2F", consumer_session_timeout_ms="50000")
    restarted = Follower(store, clock, nursery)
    await restarted.manager.start(1)
    assert restarted.applied == [
        (BROKERS, CLUSTER_DEFAULT, {"log.retention.ms": "7"}),
        (BROKERS, "1", {"log.retention.ms": "6"}),
        (GROUPS, "%2F", {"consumer.session.timeout.ms": "50000"}),
    ]
    await trio.testing.wait_all_tasks_blocked()
    assert len(restarted.applied) == 3  # notifications from before are history
    config = DynamicConfig(BrokerConfig.from_sources({}))
    await load_broker_overrides(store, config, 1)
    assert config.cluster_overrides == {"log.retention.ms": "7"}
    assert config["log.retention.ms"] == 6


async def test_write_that_another_broker_overtakes_begins_anew(
    follower: Follower, other_store: EmbeddedStore, clock: ManualClock, nursery: trio.Nursery
) -> None:
    other = Follower(other_store, clock, nursery)
    await follower.set(TOPICS, "orders", retention_ms="5")
    seen = []

    def change(present: dict[str, str]) -> dict[str, str]:
        seen.append(dict(present))
        return {**present, "segment.ms": str(len(seen))}

    async def overtake() -> None:
        await other.set(TOPICS, "orders", retention_ms="6")

    await _alter_overtaken(follower, change, overtake)
    assert seen == [{"retention.ms": "5"}, {"retention.ms": "6"}]
    node = await other_store.get("/config/topics/orders")
    assert znodes.decode_config(node.data) == {"retention.ms": "6", "segment.ms": "2"}


async def _alter_overtaken(
    follower: Follower,
    change: Callable[[dict[str, str]], dict[str, str]],
    overtake: Callable[[], Awaitable[None]],
) -> None:
    """Alter, with `overtake` done between the first reading and the first writing."""
    store = follower.store
    waiting = [overtake]

    class Overtaken:
        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def multi(self, operations: object) -> object:
            if waiting:
                await waiting.pop()()
            return await store.multi(operations)  # type: ignore[arg-type]  # handed on

    follower.manager._store = Overtaken()  # type: ignore[assignment]  # hands all else on
    await follower.manager.alter(TOPICS, "orders", change)


async def test_topic_that_goes_meanwhile_is_unknown(
    follower: Follower, store: EmbeddedStore
) -> None:
    with pytest.raises(KafkaError) as refusal:
        await follower.manager.alter(
            TOPICS, "orders", lambda present: {"retention.ms": "5"}, needs="/brokers/topics/orders"
        )
    assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await store.children("/config/topics") == []
    assert await store.children("/config/changes") == []


async def test_trying_out_writes_nothing(follower: Follower, store: EmbeddedStore) -> None:
    await follower.manager.alter(
        TOPICS, "orders", lambda present: {"retention.ms": "5"}, validate_only=True
    )
    assert await store.children("/config/topics") == []
    assert follower.applied == []


async def test_refused_change_writes_nothing(follower: Follower, store: EmbeddedStore) -> None:
    def refuse(present: object) -> dict[str, str]:
        raise KafkaError(ErrorCode.INVALID_CONFIG)

    with pytest.raises(KafkaError):
        await follower.manager.alter(TOPICS, "orders", refuse)
    assert await store.children("/config/changes") == []


async def test_same_settings_again_are_reported_for_brokers_only(follower: Follower) -> None:
    for _ in range(2):
        await follower.set(TOPICS, "orders", retention_ms="5")
        await follower.set(BROKERS, "1", log_retention_ms="5")
    assert [kind for kind, _, _ in follower.applied] == [TOPICS, BROKERS, BROKERS]


async def test_group_without_settings_leaves_no_node(
    follower: Follower, store: EmbeddedStore
) -> None:
    await follower.set(GROUPS, "g", consumer_session_timeout_ms="50000")
    assert await follower.manager.entity_names(GROUPS) == ["g"]
    await follower.manager.alter(GROUPS, "g", lambda present: {})
    assert await store.children("/config/groups") == []
    assert follower.applied[-1] == (GROUPS, "g", {})
    await follower.set(TOPICS, "t", retention_ms="5")
    await follower.manager.alter(TOPICS, "t", lambda present: {})
    assert await store.children("/config/topics") == ["t"]


async def test_old_notifications_are_removed(follower: Follower, clock: ManualClock) -> None:
    await follower.set(TOPICS, "orders", retention_ms="5")
    clock.advance(CHANGE_EXPIRATION_MS)
    await follower.set(TOPICS, "orders", retention_ms="6")
    await trio.testing.wait_all_tasks_blocked()
    assert len(await follower.notifications()) == 2
    clock.advance(1)
    await follower.set(TOPICS, "clicks", retention_ms="7")
    with trio.fail_after(60):  # the store works in a thread
        while len(await follower.notifications()) > 2:
            await trio.lowlevel.checkpoint()
    assert await follower.notifications() == [
        b'{"version":2,"entity_path":"topics/orders"}',
        b'{"version":2,"entity_path":"topics/clicks"}',
    ]


@pytest.mark.parametrize("data", [b"what?", b"{}", b'{"version":1,"config":[]}', b"\xff"])
async def test_settings_that_cannot_be_read_leave_what_is_in_force(
    follower: Follower, store: EmbeddedStore, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await store.create("/config/brokers/1", data)
    await follower.manager.apply_config_change(BROKERS, "1")
    config = DynamicConfig(BrokerConfig.from_sources({}))
    await load_broker_overrides(store, config, 1)
    assert follower.applied == []
    assert "brokers/1" in caplog.text
    with pytest.raises(KafkaError) as refusal:
        await follower.set(BROKERS, "1", log_retention_ms="5")
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


async def test_settings_of_one_entity_are_bounded(follower: Follower) -> None:
    room = CONFIG_BYTES_MAX - len('{"version":1,"config":{"metrics":""}}') - len("client-metrics/m")
    await follower.set(CLIENT_METRICS, "m", metrics="x" * room)
    with pytest.raises(KafkaError) as refusal:
        await follower.set(CLIENT_METRICS, "m", metrics="x" * (room + 1))
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


async def test_store_that_is_lost_is_reported(follower: Follower, store: EmbeddedStore) -> None:
    await store.close()
    with pytest.raises(SessionExpired):
        await follower.set(TOPICS, "orders", retention_ms="5")


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        (TOPICS, "a.b_c-d", "topics/a.b_c-d"),
        (GROUPS, "a/b", "groups/a%2Fb"),
        (GROUPS, ".", "groups/%2E"),
        (GROUPS, "..", "groups/%2E%2E"),
        (GROUPS, "a~*é ", "groups/a%7E%2A%C3%A9%20"),
        (CLIENT_METRICS, "<default>", "client-metrics/%3Cdefault%3E"),
    ],
)
def test_name_that_no_node_could_have_is_encoded(kind: str, name: str, path: str) -> None:
    assert entity_path(kind, name) == path


async def test_a_change_that_cannot_be_put_in_force_is_tried_again_and_holds_up_no_other(
    follower: Follower, other_store: EmbeddedStore, clock: ManualClock
) -> None:
    """As where a module that it needs cannot be imported, for want of descriptors."""
    started: list[Callable[[], Awaitable[None]]] = []
    manager = ConfigManager(other_store, clock, started.append)
    applied: list[str] = []
    failures = [OSError(24, "Too many open files")]

    def apply(name: str, _: object) -> None:
        if name == "orders" and failures:
            raise failures.pop()
        applied.append(name)

    manager.on_change(TOPICS, apply)
    await manager.start(2)
    await follower.set(TOPICS, "orders", retention_ms="5")
    await follower.set(TOPICS, "bills", retention_ms="5")
    other_store.poll(clock.now_ms())
    (follow,) = started
    with pytest.raises(ExceptionGroup):
        await follow()
    assert applied == ["bills"]
    await follow()
    assert applied == ["bills", "orders"]
    manager.stop()
