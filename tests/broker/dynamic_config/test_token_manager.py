"""Delegation tokens in the store: Kafka's nodes, and changes that other brokers hear of."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from support.unsynced_store import UnsyncedStore
from support.work_per_turn import Work

from odradek.broker.dynamic_config.token_manager import TokenManager
from odradek.common.delegation_token import DelegationToken
from odradek.common.errors import ErrorCode, KafkaError
from odradek.metadata_store import znodes
from odradek.metadata_store.store import Create, MetadataStore, Operation, ensure_paths
from odradek.runtime import long_work
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.security.token.delegation_tokens import DelegationTokens

NOW = 1_700_000_000_000
RENEWERS = 9_000
ALICE, BOB = "User:alice", "User:CN=bob,O=a b~*"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MetadataStore]:
    store = UnsyncedStore(tmp_path / "metadata.sqlite", clock=ManualClock())
    await store.open()
    yield store
    await store.close()


class Side:
    """One broker's manager, and its clock."""

    def __init__(self, store: MetadataStore, nursery: trio.Nursery, seed: int = 1) -> None:
        self.clock = ManualClock(NOW)
        self.tokens = DelegationTokens("key", 10_000, 4_000, self.clock.now_ms)
        self.manager = TokenManager(
            store, self.tokens, self.clock, random.Random(seed), nursery.start_soon
        )

    async def wait_until(self, known: list[DelegationToken]) -> None:
        with trio.fail_after(20):
            while self.tokens.all != known:
                await trio.lowlevel.checkpoint()


async def test_nodes_are_those_of_kafka(store: MetadataStore, nursery: trio.Nursery) -> None:
    """Paths and fields of DelegationTokenManagerZk and ZkData; names as by its Sanitizer."""
    side = Side(store, nursery)
    await side.manager.start()
    token = await side.manager.create(BOB, ALICE, (ALICE, BOB), 3_000)
    node = await store.get(f"/delegation_token/tokens/{token.token_id}")
    bob = "User%3ACN%3Dbob%2CO%3Da%20b%7E%2A"
    assert json.loads(node.data) == {
        "version": 3,
        "owner": bob,
        "tokenRequester": "User%3Aalice",
        "renewers": ["User%3Aalice", bob],
        "issueTimestamp": NOW,
        "maxTimestamp": NOW + 3_000,
        "expiryTimestamp": NOW + 3_000,
        "tokenId": token.token_id,
    }
    (change,) = await store.children("/delegation_token/token_changes")
    assert change.startswith("token_change_")
    notified = await store.get(f"/delegation_token/token_changes/{change}")
    assert notified.data == token.token_id.encode()
    assert run_at_once(znodes.decode_delegation_token(node.data)) == token


async def test_a_change_by_one_broker_is_known_to_another(
    store: MetadataStore, nursery: trio.Nursery
) -> None:
    one, other = Side(store, nursery, 1), Side(store, nursery, 2)
    await one.manager.start()
    await other.manager.start()
    token = await one.manager.create(ALICE, ALICE, (), -1)
    await other.wait_until([token])
    secret = other.tokens.hmac(token.token_id)
    other.clock.advance(2_000)
    renewed = await other.manager.alter(
        secret, lambda present: other.tokens.renewed(present, ALICE, -1)
    )
    assert renewed is not None
    assert renewed.expiry_ms == NOW + 6_000
    await one.wait_until([renewed])
    assert await one.manager.alter(secret, lambda present: None) is None
    await other.wait_until([])
    with pytest.raises(KafkaError) as raised:
        await other.manager.alter(secret, lambda present: None)
    assert raised.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert await store.children("/delegation_token/tokens") == []


async def test_tokens_of_kafka_are_taken_up_and_broken_ones_are_not(
    store: MetadataStore, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    folder = "/delegation_token/tokens"
    await ensure_paths(store, [folder])
    times = {"issueTimestamp": NOW, "maxTimestamp": NOW + 9, "expiryTimestamp": NOW + 5}
    old = {"version": 1, "owner": "User%3Aalice", "renewers": [], "tokenId": "old", **times}
    for name, data in (
        ("old", json.dumps(old).encode()),
        ("no-json", b"{"),
        ("no-fields", b"{}"),
        ("another", json.dumps(old).encode()),
    ):
        await store.multi([Create(f"{folder}/{name}", data)])
    side = Side(store, nursery)
    await side.manager.start()
    assert side.tokens.all == [DelegationToken("old", ALICE, ALICE, (), NOW, NOW + 9, NOW + 5)]
    assert "delegation token no-json cannot be read" in caplog.text
    assert "delegation token no-fields cannot be read" in caplog.text


async def test_tokens_that_have_ended_are_removed(
    store: MetadataStore, nursery: trio.Nursery
) -> None:
    side, other = Side(store, nursery, 1), Side(store, nursery, 2)
    await side.manager.start()
    short = await side.manager.create(ALICE, ALICE, (), 1_000)
    long = await side.manager.create(ALICE, ALICE, (), -1)
    await other.manager.start()
    side.clock.advance(1_000)
    await side.manager.remove_expired()
    assert set(side.tokens.all) == {short, long}
    side.clock.advance(1)
    await side.manager.remove_expired()
    assert side.tokens.all == [long]
    await other.wait_until([long])
    assert await store.children("/delegation_token/tokens") == [long.token_id]


async def test_tokens_of_many_renewers_take_turns(
    store: MetadataStore, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    one, other = Side(store, nursery, 1), Side(store, nursery, 2)
    await one.manager.start()
    await other.manager.start()
    renewers = tuple(f"User:x{number}" for number in range(RENEWERS))
    work = Work()
    nursery.start_soon(work.run)
    with work.counted():
        token = await one.manager.create(ALICE, ALICE, renewers, -1)
        await other.wait_until([token])
        secret = one.tokens.hmac(token.token_id)
        renewed = await one.manager.alter(secret, lambda token: token._replace(expiry_ms=NOW + 1))
        assert renewed is not None
        await other.wait_until([renewed])
    await work.check(tasks=2)


async def test_a_token_is_not_read_while_it_is_changed(
    store: MetadataStore, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before would be taken up after: a token that is gone would be there again."""
    side = Side(store, nursery)
    await side.manager.start()
    token = await side.manager.create(ALICE, ALICE, (), -1)
    reads: list[list[str]] = []
    get_many, multi = store.get_many, store.multi

    async def noted_get(paths: list[str]) -> Any:
        reads.append(paths)
        return await get_many(paths)

    async def read_meanwhile(operations: list[Operation]) -> Any:
        nursery.start_soon(side.manager._load)
        await trio.testing.wait_all_tasks_blocked()
        assert len(reads) == 1
        return await multi(operations)

    monkeypatch.setattr(store, "get_many", noted_get)
    monkeypatch.setattr(store, "multi", read_meanwhile)
    await side.manager.alter(side.tokens.hmac(token.token_id), lambda present: None)
    await trio.testing.wait_all_tasks_blocked()
    assert len(reads) == 2
    assert side.tokens.all == []
