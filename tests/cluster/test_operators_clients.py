"""What operators' commands ask, on a cluster of three: each group at its own coordinator."""

from __future__ import annotations

import trio
from kafka import KafkaAdminClient
from support.broker_cluster import BROKER_IDS, BrokerCluster

from odradek.client import KafkaClient
from odradek.client.admin.admin import Admin, NewTopic
from odradek.client.admin.group_admin import GroupAdmin
from odradek.client.admin.transaction_admin import TransactionAdmin
from odradek.common.errors import ErrorCode

GROUPS = [f"group-{number}" for number in range(12)]
"""Enough that every broker coordinates some of them."""
CALL_MS_MAX = 120_000
ZOOKEEPER_SESSION_MS = 6_000
"""A broker that lost its session would coordinate other groups afterwards."""


async def commit_all(bootstrap: list[str]) -> dict[str, int]:
    """Make the topic and the groups; returns the coordinator of each."""
    async with KafkaClient(bootstrap) as client:
        await Admin(client).create_topics([NewTopic("t", 2, 3)])
        await client.wait_for_topic("t", 1)
        admin = GroupAdmin(client, CALL_MS_MAX)
        for number, group in enumerate(GROUPS):
            outcomes = await admin.commit(group, {("t", 0): 0, ("t", 1): number})
            assert set(outcomes.values()) == {ErrorCode.NONE}
        listed = await admin.list_groups()
        assert [each.group_id for each in listed] == sorted(GROUPS)
        return {each.group_id: each.coordinator for each in listed}


async def look(bootstrap: list[str]) -> tuple[dict[str, int], dict[str, int]]:
    """The coordinator of each group, and what it has committed in partition 1."""
    async with KafkaClient(bootstrap) as client:
        admin = GroupAdmin(client, CALL_MS_MAX)
        described = await admin.describe(GROUPS)
        committed = await admin.committed(GROUPS)
    coordinators = {name: group.coordinator for name, group in described.items() if group}
    return coordinators, {name: offsets["t", 1] for name, offsets in committed.items()}


async def delete_all(bootstrap: list[str]) -> None:
    async with KafkaClient(bootstrap) as client:
        admin = GroupAdmin(client, CALL_MS_MAX)
        assert set((await admin.delete_offsets(GROUPS[0], [("t", 1)])).values()) == {ErrorCode.NONE}
        assert (await admin.committed(GROUPS[:1]))[GROUPS[0]] == {("t", 0): 0}
        assert set((await admin.delete(GROUPS)).values()) == {ErrorCode.NONE}
        assert await admin.list_groups() == []
        assert set((await admin.delete(GROUPS)).values()) == {ErrorCode.GROUP_ID_NOT_FOUND}


def test_groups_are_found_at_their_coordinators_after_one_was_killed(
    cluster: BrokerCluster,
) -> None:
    cluster.agreed()
    coordinators = trio.run(commit_all, cluster.bootstrap)
    assert set(coordinators.values()) == set(BROKER_IDS)
    offsets = {group: number for number, group in enumerate(GROUPS)}
    assert trio.run(look, cluster.bootstrap) == (coordinators, offsets)
    victim = coordinators[GROUPS[0]]
    cluster.brokers[victim].kill()
    moved, kept = trio.run(look, cluster.bootstrap)
    assert kept == offsets
    assert set(moved.values()) == set(BROKER_IDS) - {victim}
    assert all(moved[each] == at for each, at in coordinators.items() if at != victim)
    cluster.agreed()  # who lists groups asks all brokers that it hears of
    trio.run(delete_all, cluster.bootstrap)


async def open_and_find(bootstrap: list[str]) -> dict[str, int]:
    """Transactional ids of all brokers, by their coordinators; each is ended at its own."""
    async with KafkaClient(bootstrap) as client:
        admin = TransactionAdmin(client, CALL_MS_MAX)
        for group in GROUPS:
            await admin.fence(group)  # also how a transactional id begins
        listed = await admin.list_transactions()
        described = await admin.describe([*GROUPS, "none"])
        assert described.pop("none") is None
        assert {each.transactional_id: each.coordinator for each in listed} == {
            name: each.coordinator for name, each in described.items() if each
        }
        assert {each.state for each in listed} == {"Empty"}
        return {each.transactional_id: each.coordinator for each in listed}


def test_transactional_ids_are_found_at_their_coordinators(cluster: BrokerCluster) -> None:
    cluster.agreed()
    found = trio.run(open_and_find, cluster.bootstrap)
    assert set(found) == set(GROUPS)
    assert set(found.values()) == set(BROKER_IDS)
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        listed = admin.list_transactions()
    assert found == {
        each.transactional_id: broker_id for broker_id, rows in listed.items() for each in rows
    }
