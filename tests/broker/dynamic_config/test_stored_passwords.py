"""Secrets among a broker's settings: encrypted in the store, readable on the broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from support.unsynced_store import UnsyncedStore

from odradek.broker.dynamic_config.config_manager import (
    BROKERS,
    CLUSTER_DEFAULT,
    ConfigManager,
    load_broker_overrides,
)
from odradek.broker.dynamic_config.stored_passwords import NO_PASSWORDS, StoredPasswords
from odradek.common.errors import ErrorCode, KafkaError
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.metadata_store import znodes
from odradek.metadata_store.store import MetadataStore, ensure_paths
from odradek.runtime.clock import ManualClock

KEY = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
CUSTOM = "my.ssl.key.password"
SECRETS = {KEY: "hunter2", CUSTOM: "hunter3"}
SETTINGS = {**SECRETS, "log.retention.ms": "6"}
PATH = "/config/brokers/1"


def passwords(secret: str, old: str | None = None) -> StoredPasswords:
    texts = {"password.encoder.secret": secret, "password.encoder.iterations": "1024"}
    if old is not None:
        texts["password.encoder.old.secret"] = old
    return StoredPasswords.of(BrokerConfig.from_sources(texts))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MetadataStore]:
    store = UnsyncedStore(tmp_path / "metadata.sqlite", clock=ManualClock(0))
    await store.open()
    await ensure_paths(store, znodes.PERSISTENT_PATHS)
    yield store
    await store.close()


class Manager:
    """A broker's hand on the store, with a secret of its own."""

    def __init__(self, store: MetadataStore, kept: StoredPasswords) -> None:
        self.applied: list[dict[str, str]] = []
        self._kept, self._store = kept, store
        self._manager = ConfigManager(store, ManualClock(0), lambda task: None, kept)
        self._manager.on_change(BROKERS, lambda name, found: self.applied.append(dict(found)))

    async def set(self, settings: dict[str, str], broker: str = "1", **how: bool) -> None:
        await self._manager.alter(BROKERS, broker, lambda now: {**now, **settings}, **how)

    async def stored(self) -> dict[str, str]:
        return znodes.decode_config((await self._store.get(PATH)).data)

    async def loaded(self) -> dict[str, str]:
        """What a broker that starts now goes by."""
        config = DynamicConfig(BrokerConfig.from_sources({}))
        await load_broker_overrides(self._store, config, 1, self._kept)
        return dict(config.broker_overrides)


async def test_store_holds_no_secret_and_the_broker_reads_it(store: MetadataStore) -> None:
    manager = Manager(store, passwords("one"))
    await manager.set(SETTINGS)
    assert manager.applied == [SETTINGS]
    stored = await manager.stored()
    assert stored["log.retention.ms"] == "6"
    assert "hunter" not in str(stored)
    assert all(stored[name].startswith("keyFactoryAlgorithm:") for name in SECRETS)
    assert await manager.loaded() == SETTINGS


async def test_second_change_keeps_the_secrets(store: MetadataStore) -> None:
    manager = Manager(store, passwords("one"))
    await manager.set(SETTINGS)
    await manager.set({"log.retention.ms": "7"})
    assert manager.applied[-1] == {**SETTINGS, "log.retention.ms": "7"}
    assert "hunter" not in str(await manager.stored())


async def test_without_an_encoder_secret_none_is_taken(store: MetadataStore) -> None:
    manager = Manager(store, NO_PASSWORDS)
    with pytest.raises(KafkaError) as refusal:
        await manager.set(SETTINGS)
    assert (refusal.value.code, refusal.value.message) == (
        ErrorCode.INVALID_REQUEST,
        "Invalid config value for resource ConfigResource(type=BROKER, name='1'): "
        "Password encoder secret not configured",
    )
    assert await store.children("/config/brokers") == []
    await manager.set(SETTINGS, validate_only=True)  # as in Kafka, which only encodes to write
    await manager.set({"log.retention.ms": "6"})
    assert manager.applied == [{"log.retention.ms": "6"}]


async def test_no_secret_is_for_the_whole_cluster(store: MetadataStore) -> None:
    manager = Manager(store, passwords("one"))
    with pytest.raises(KafkaError, match="can be defined only at broker level"):
        await manager.set({CUSTOM: "hunter3"}, broker=CLUSTER_DEFAULT)
    assert await store.children("/config/brokers") == []


async def test_exchanged_secret_encodes_anew_at_the_start(store: MetadataStore) -> None:
    await Manager(store, passwords("one")).set(SETTINGS)
    rotated = Manager(store, passwords("two", old="one"))
    before = await rotated.stored()
    assert await rotated.loaded() == SETTINGS
    after = await rotated.stored()
    assert {name for name in before if before[name] != after[name]} == set(SECRETS)
    assert await rotated.loaded() == SETTINGS  # with the old secret still in its file
    assert await rotated.stored() == after
    assert await Manager(store, passwords("two")).loaded() == SETTINGS


async def test_secret_that_cannot_be_decoded_is_left_out(
    store: MetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    await Manager(store, passwords("one")).set(SETTINGS)
    for other in (passwords("two"), passwords("three", old="two"), NO_PASSWORDS):
        caplog.clear()
        assert await Manager(store, other).loaded() == {"log.retention.ms": "6"}
        assert f"Dynamic password config {KEY} could not be decoded, ignoring" in caplog.text
    assert await Manager(store, passwords("one")).loaded() == SETTINGS


async def test_long_derivation_leaves_the_loop_free(store: MetadataStore) -> None:
    """Derivations run in a thread: tasks of the loop have their turns meanwhile."""
    slow = passwords("one").encoder
    assert slow is not None
    manager = Manager(store, StoredPasswords(slow._replace(iterations=1_000_000)))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await manager.set({KEY: "hunter2"})
        nursery.cancel_scope.cancel()
    assert turns > 100
