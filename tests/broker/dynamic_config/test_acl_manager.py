"""ACLs in the store: Kafka's nodes, both ways; changes by one broker in force on another."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
from support.unsynced_store import UnsyncedStore

from odradek.broker.dynamic_config.acl_manager import AclManager
from odradek.broker.dynamic_config.change_notifications import LISTED_PER_SECOND
from odradek.common.acl import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from odradek.metadata_store import znodes
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import Create, MetadataStore, StoredNode, ensure_paths
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.security.authorizer.acl_authorizer import AclAuthorizer

READ = AclEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
CONFIGS = AclEntry("User:bob", "10.0.0.1", Operation.DESCRIBE_CONFIGS, Permission.DENY)
LITERAL = ResourcePattern(ResourceType.TOPIC, PatternType.LITERAL, "orders")
CHANGES = 1_000
PREFIX = ResourcePattern(ResourceType.TRANSACTIONAL_ID, PatternType.PREFIXED, "tx-")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MetadataStore]:
    store = UnsyncedStore(tmp_path / "metadata.sqlite", clock=ManualClock())
    await store.open()
    yield store
    await store.close()


class Side:
    """One broker's manager, what it has been told, and an event for it."""

    def __init__(self, store: MetadataStore, nursery: trio.Nursery) -> None:
        self.authorizer = AclAuthorizer([], allows_without_acl=False)
        self.changed = trio.Event()
        self.manager = AclManager(
            store, self.authorizer, ManualClock(), nursery.start_soon, self._note
        )

    def _note(self) -> None:
        self.changed.set()

    def may_read(self) -> bool:
        return self.authorizer.decide("User:alice", "h", "READ", "TOPIC", "orders").is_allowed

    async def wait_until(self, may_read: bool) -> None:
        with trio.fail_after(20):
            while self.may_read() is not may_read:
                self.changed = trio.Event()
                if self.may_read() is not may_read:
                    await self.changed.wait()


async def test_nodes_are_those_of_kafkas_authorizer(
    store: MetadataStore, nursery: trio.Nursery
) -> None:
    """Paths and texts as in the comment of Kafka's ZkAclStore."""
    side = Side(store, nursery)
    await side.manager.start()
    await side.manager.add(LITERAL, [READ])
    await side.manager.add(LITERAL, [CONFIGS])
    await side.manager.add(PREFIX, [READ])
    node = await store.get("/kafka-acl/Topic/orders")
    found = json.loads(node.data)
    assert found["version"] == 1
    assert sorted(found["acls"], key=lambda each: str(each["principal"])) == [
        {"host": "*", "permissionType": "Allow", "operation": "Read", "principal": "User:alice"},
        {
            "host": "10.0.0.1",
            "permissionType": "Deny",
            "operation": "DescribeConfigs",
            "principal": "User:bob",
        },
    ]
    assert await store.get("/kafka-acl-extended/prefixed/TransactionalId/tx-")
    changes = await store.children("/kafka-acl-changes")
    assert [name.rpartition("_")[0] for name in changes] == ["acl_changes", "acl_changes"]
    first = await store.get(f"/kafka-acl-changes/{changes[0]}")
    assert first.data == b"TOPIC:orders"
    (extended,) = await store.children("/kafka-acl-extended-changes")
    told = json.loads((await store.get(f"/kafka-acl-extended-changes/{extended}")).data)
    assert told == {
        "version": 1,
        "resourceType": "TRANSACTIONAL_ID",
        "name": "tx-",
        "patternType": "PREFIXED",
    }
    await side.manager.remove(LITERAL, {READ, CONFIGS})
    assert await store.children("/kafka-acl/Topic") == []


async def test_a_change_is_in_force_here_at_once_and_there_soon(
    store: MetadataStore, nursery: trio.Nursery
) -> None:
    one, other = Side(store, nursery), Side(store, nursery)
    await one.manager.start()
    await other.manager.start()
    await one.manager.add(LITERAL, [READ])
    assert one.may_read()
    await other.wait_until(True)
    await other.manager.remove(LITERAL, {READ})
    assert not other.may_read()
    await one.wait_until(False)
    late = Side(store, nursery)
    await one.manager.add(PREFIX, [CONFIGS])
    await late.manager.start()
    assert dict(late.authorizer.acls) == {PREFIX: {CONFIGS}}


class CountingStore(UnsyncedStore):
    """Counts the names that were listed."""

    listed = 0

    async def children(self, path: str) -> list[str]:
        names = await super().children(path)
        self.listed += len(names)
        return names


async def test_many_changes_in_a_row_are_not_looked_through_after_each(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    store = CountingStore(tmp_path / "metadata.sqlite", clock=ManualClock())
    await store.open()
    side = Side(store, nursery)
    await side.manager.start()
    began = trio.current_time()
    for number in range(CHANGES):
        await side.manager.add(LITERAL._replace(name=f"t{number}"), [READ])
    looks_may_list = (trio.current_time() - began) * LISTED_PER_SECOND
    assert store.listed <= looks_may_list + 2 * CHANGES < CHANGES**2 / 4
    side.manager.stop()
    await store.close()


async def test_a_change_whose_acls_could_not_be_read_is_looked_at_again(
    store: MetadataStore, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Side(store, nursery), Side(store, nursery)
    await one.manager.start()
    await other.manager.start()
    real, failed = store.get_many, trio.Event()

    async def get_many(paths: Sequence[str]) -> list[StoredNode | None]:
        if trio.lowlevel.current_task() is not writer and not failed.is_set():
            failed.set()
            raise StoreUnreachable("metadata.sqlite", "it is locked")
        return await real(paths)

    writer = trio.lowlevel.current_task()
    monkeypatch.setattr(store, "get_many", get_many)
    await one.manager.add(LITERAL, [READ])
    await other.wait_until(may_read=True)
    assert failed.is_set()


def test_acls_are_read_however_their_json_is_written() -> None:
    """Kafka's own text, the same spread out, with its keys the other way round, and empty."""
    nodes = [
        znodes.AclNode("User:a,}]", "Allow", "Read", "*"),
        znodes.AclNode('User:\\"ü', "Deny", "DescribeConfigs", "10.0.0.1"),
    ]
    data = run_at_once(znodes.encode_acls(nodes))
    value = json.loads(data)
    backwards = dict(reversed(value.items()))
    for text in (data, json.dumps(value, indent=2).encode(), json.dumps(backwards).encode()):
        assert run_at_once(znodes.decode_acls(text)) == nodes
    for empty in (run_at_once(znodes.encode_acls([])), b'{"version": 1, "acls": [ ]}'):
        assert run_at_once(znodes.decode_acls(empty)) == []


@pytest.mark.parametrize("cut", range(1, 6))
def test_acls_that_end_early_or_late_are_corrupt(cut: int) -> None:
    data = run_at_once(znodes.encode_acls([znodes.AclNode("User:a", "Allow", "Read", "*")]))
    for text in (data[:-cut], data + b"]" * cut):
        with pytest.raises(znodes.CorruptNode):
            run_at_once(znodes.decode_acls(text))


@pytest.mark.parametrize("data", [b"no json", b'{"version":1,"acls":[{"principal":"User:a"}]}'])
async def test_acls_that_cannot_be_read_deny_their_resources(
    store: MetadataStore, nursery: trio.Nursery, data: bytes
) -> None:
    await ensure_paths(store, ["/kafka-acl/Topic", "/kafka-acl-changes"])
    await store.multi([Create("/kafka-acl/Topic/orders", data)])
    side = Side(store, nursery)
    await side.manager.start()
    wildcard = ResourcePattern(ResourceType.TOPIC, PatternType.LITERAL, "*")
    await side.manager.add(wildcard, [READ])
    assert not side.may_read()
    assert side.authorizer.decide("User:alice", "h", "READ", "TOPIC", "other").is_allowed


@pytest.mark.parametrize("name", ["with/slash", ".", "..", "plain", "*", "with%2Fpercent"])
async def test_any_name_finds_back_from_its_node(
    store: MetadataStore, nursery: trio.Nursery, name: str
) -> None:
    pattern = ResourcePattern(ResourceType.GROUP, PatternType.LITERAL, name)
    side = Side(store, nursery)
    await side.manager.start()
    await side.manager.add(pattern, [READ])
    again = Side(store, nursery)
    await again.manager.start()
    assert dict(again.authorizer.acls) == {pattern: {READ}}


def test_changes_that_name_nothing_are_corrupt() -> None:
    for data in (b"", b"TOPIC", b"TOPIC:", b"\xff:x"):
        with pytest.raises(znodes.CorruptNode):
            znodes.decode_acl_change(data)
