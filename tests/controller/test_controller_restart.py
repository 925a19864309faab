"""Starts of the controller: the first, after a stop, and after a crash at any point."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
import trio
from support.cluster import START_MS, Cluster, live_broker
from support.unsynced_store import UnsyncedStore

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import PartitionState, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.controller.controller import Controller
from odradek.controller.registration import BrokerIdTaken, get_or_create_cluster_id, register_broker
from odradek.controller.topics.planning import NewPartitions, TopicCreation
from odradek.metadata_store.store import Operation, Result


def led(cluster: Cluster) -> dict[str, list[PartitionState]]:
    """What broker 1 was told to lead in the one LeaderAndIsr that was sent."""
    by_topic: dict[str, list[PartitionState]] = {}
    for request in cluster.channel.leader_and_isr():
        for state in request.partition_states:
            by_topic.setdefault(state.topic, []).append(state)
    return by_topic


async def test_the_first_start_makes_kafkas_tree(cluster: Cluster) -> None:
    async with cluster.running() as controller, cluster.store() as reader:
        assert controller.is_active
        assert (await reader.get("/controller_epoch")).data == b"1"
        assert (await reader.get("/controller_epoch")).version == 1
        assert (await reader.get("/controller")).data == (
            b'{"version":2,"brokerid":1,"timestamp":"1795226872357","kraftControllerEpoch":-1}'
        )
        broker = json.loads((await reader.get("/brokers/ids/1")).data)
        assert broker["endpoints"] == ["PLAINTEXT://127.0.0.1:9091", "INTERNAL://10.0.0.1:19091"]
        for path in ["/brokers/topics", "/config/topics", "/admin/delete_topics", "/consumers"]:
            assert await reader.children(path) == []
    assert cluster.channel.cache.controller_id == 1
    (node,) = cluster.channel.cache.get_alive_brokers("INTERNAL")
    assert (node.host, node.port) == ("10.0.0.1", 19091)


async def test_a_stop_in_good_order_leaves_no_registration(cluster: Cluster) -> None:
    async with cluster.running():
        pass
    async with cluster.store() as reader:
        assert await reader.children("/brokers/ids") == []
        assert "controller" not in await reader.children("/")


async def test_the_first_brokers_cluster_id_is_everyones(cluster: Cluster) -> None:
    async with cluster.store() as one, cluster.store() as two:
        assert await get_or_create_cluster_id(one, "first") == "first"
        assert await get_or_create_cluster_id(two, "second") == "first"
        assert (await two.get("/cluster/id")).data == b'{"version":"1","id":"first"}'


async def test_a_broker_id_in_use_is_refused(cluster: Cluster) -> None:
    async with cluster.store() as other:
        await cluster.register(other, 1)
        async with cluster.store() as store:
            with pytest.raises(BrokerIdTaken, match=r"broker\.id=1"):
                await cluster.controller(store).start()


async def test_each_registration_has_a_larger_epoch(cluster: Cluster) -> None:
    epochs = []
    for _ in range(2):
        async with cluster.store() as store:
            await cluster.register(store)
            broker = await register_broker(store, live_broker(1), START_MS)
            epochs.append(broker.epoch)
    assert epochs[0] < epochs[1]


async def test_a_restart_leads_every_partition_again_in_the_next_epoch(cluster: Cluster) -> None:
    async with cluster.running() as controller:
        await controller.create_topics(
            [
                TopicCreation("orders", 3, 1, configs=[("retention.ms", "5")]),
                TopicCreation("clicks", 1, 1),
            ]
        )
        ids = {topic.name: topic.topic_id for topic in controller.active.context.topics()}
    async with cluster.running() as controller, cluster.store() as reader:
        assert controller.active.context.epoch == 2
        states = led(cluster)
        assert [state.partition for state in states["orders"]] == [0, 1, 2]
        assert [state.partition for state in states["clicks"]] == [0]
        for state in [*states["orders"], *states["clicks"]]:
            assert (state.leader, state.leader_epoch, state.controller_epoch) == (1, 1, 2)
            assert (state.partition_epoch, state.is_new) == (1, False)
            assert state.topic_id == ids[state.topic]
        assert states["orders"][0].config == {"retention.ms": "5"}
        node = await reader.get("/brokers/topics/orders/partitions/0/state")
        assert node.version == 1
        assert json.loads(node.data)["leader_epoch"] == 1
    cache = cluster.channel.cache
    assert cache.partition_count("orders") == 3
    assert cache.topic_config("orders") == {"retention.ms": "5"}


async def test_partitions_led_by_others_stay_theirs_and_who_restarted_leaves_the_isr(
    cluster: Cluster,
) -> None:
    async with cluster.store() as others:
        await cluster.register(others, 2)
        async with cluster.running() as controller:
            await controller.create_topics([TopicCreation("t", assignments=[(0, [2, 1])])])
        async with cluster.running():
            (state,) = led(cluster)["t"][:1]
            assert (state.leader, state.leader_epoch, state.isr) == (2, 1, (2,))


async def test_partitions_of_who_is_gone_are_led_by_who_is_there(cluster: Cluster) -> None:
    async with cluster.store() as others:
        await cluster.register(others, 2)
        async with cluster.running() as controller:
            await controller.create_topics([TopicCreation("t", assignments=[(0, [2, 1])])])
    async with cluster.running():
        (state,) = led(cluster)["t"]
        assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1,))


async def test_others_lead_for_a_broker_that_restarted_while_there_was_no_controller(
    cluster: Cluster,
) -> None:
    """Its log may have lost all that it had, and it would lead in the epoch in which it had it."""

    async def state_of(partition: str) -> tuple[int, int, list[int]]:
        path = f"/brokers/topics/{partition}/state"
        async with cluster.store() as reader:
            (node,) = await reader.get_many([path])
        state = {} if node is None else json.loads(node.data)
        return state.get("leader", -1), state.get("leader_epoch", -1), state.get("isr", [])

    async def wait_for(partition: str, *state: object) -> None:
        with trio.fail_after(30):
            while await state_of(partition) != state:
                await trio.lowlevel.checkpoint()

    async with cluster.store() as third:
        await cluster.register(third, 3)
        async with cluster.store() as second:
            await cluster.register(second, 2)
            async with cluster.running() as controller:
                created = await controller.create_topics(
                    [
                        TopicCreation("both", assignments=[(0, [2, 3]), (1, [3, 2])]),
                        TopicCreation("alone", assignments=[(0, [2])]),
                    ]
                )
                assert [each.error for each in created] == [None, None]
                await wait_for("both/partitions/0", 2, 0, [2, 3])
                await wait_for("alone/partitions/0", 2, 0, [2])
        async with cluster.store() as second:
            await cluster.register(second, 2)
            async with cluster.running():
                await wait_for("both/partitions/0", 3, 1, [3])
                await wait_for("both/partitions/1", 3, 1, [3])
                await wait_for("alone/partitions/0", 2, 2, [2])  # nobody else has it


async def test_a_partition_without_a_live_replica_in_sync_stays_without_a_leader(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.store() as others:
        await cluster.register(others, 2)
        async with cluster.running() as controller:
            await controller.create_topics([TopicCreation("t", assignments=[(0, [2])])])
    async with cluster.running():
        assert led(cluster) == {}
        assert cluster.channel.cache.contains("t")
    assert "no leader, as no replica in sync is alive: t-0" in caplog.text


class Crash(BaseException):
    """The process ends here; nobody may catch it and go on."""


class CrashingStore(UnsyncedStore):
    """Ends the process before the nth write."""

    writes_left = 1_000_000

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise Crash
        return await super().multi(operations)


async def crash_at_each_write(cluster: Cluster, verb: str) -> int:
    """Cut a verb off before its first, second, ... write until it gets through."""
    writes = 0
    while await crashes(cluster, verb, writes):
        writes += 1
    return writes


async def crashes(cluster: Cluster, verb: str, writes: int) -> bool:
    """Do a verb with so many writes left, in a process of its own; whether that was too few."""
    store = CrashingStore(cluster.path, clock=cluster.clock)
    await store.open()
    controller = cluster.controller(store)
    await controller.start()
    has_crashed = False
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller.run)
            name = f"t{writes}"
            if verb != "create":
                await controller.create_topics([TopicCreation(name, 60, 1)])
            store.writes_left = writes
            await do(controller, verb, name)
            nursery.cancel_scope.cancel()
    except* Crash:
        has_crashed = True
    store.abandon()  # what SIGKILL leaves: no goodbye
    return has_crashed


async def do(controller: Controller, verb: str, name: str) -> None:
    if verb == "create":
        (outcome,) = await controller.create_topics([TopicCreation(name, 120, 1)])
        assert outcome.error is None
    elif verb == "add":
        await controller.create_partitions([NewPartitions(name, 180)])
    else:
        topic = controller.active.context.topic(name)
        assert topic is not None
        await controller.delete_topics([topic.topic_id])


@pytest.mark.parametrize("verb", ["create", "add", "delete"])
async def test_a_crash_at_any_write_is_finished_or_undone_at_the_next_start(
    cluster: Cluster, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.controller.topics.topic_nodes.DELETIONS_PER_TRANSACTION", 40)
    writer = "odradek.controller.partitions.leadership_writer"
    monkeypatch.setattr(f"{writer}.PARTITIONS_PER_TRANSACTION", 50)
    writes = await crash_at_each_write(cluster, verb)
    assert writes >= 3
    async with cluster.running() as controller, cluster.store() as reader:
        await trio.testing.wait_all_tasks_blocked()
        counts = {
            topic.name: len(topic.leaderships) for topic in controller.active.context.topics()
        }
        for topic in controller.active.context.topics():
            assert sorted(topic.leaderships) == sorted(topic.assignment)
            children = await reader.children(f"/brokers/topics/{topic.name}/partitions")
            assert len(children) == len(topic.assignment)
        assert await reader.children("/admin/delete_topics") == []
        assert await reader.children("/config/topics") == sorted(counts)
        cache = cluster.channel.cache
        assert {name: cache.partition_count(name) for name in cache.get_all_topics()} == counts
        last = f"t{writes}"
        if verb == "create":  # cut off before its first write, it was never made
            assert counts == {f"t{n}": 120 for n in range(1, writes + 1)}
        elif verb == "add":
            assert counts == {"t0": 60} | {f"t{n}": 180 for n in range(1, writes + 1)}
        else:  # before the mark was written, the topic is still wanted
            assert counts == {"t0": 60}
            assert last not in counts


async def test_a_deletion_that_was_cut_off_deletes_the_logs_at_the_next_start(
    cluster: Cluster,
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
    async with cluster.store() as store:
        await store.create("/admin/delete_topics/t")
        await store.create("/admin/delete_topics/never-was")
    async with cluster.running() as controller:
        assert led(cluster) == {}
        (stopped,) = cluster.channel.stop_replica()
        assert list(stopped.partitions) == [
            StoppedReplica(TopicPartition("t", partition), -2, delete=True) for partition in (0, 1)
        ]
        await trio.testing.wait_all_tasks_blocked()
        assert await cluster.controller_store.children("/admin/delete_topics") == []
        assert controller.active.context.topic("t") is None
        outcomes = await controller.create_topics([TopicCreation("t", 1, 1)])
        assert outcomes[0].error is None


async def test_a_deletion_that_fails_again_is_left_for_the_start_after(cluster: Cluster) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 1, 1)])
    async with cluster.store() as store:
        await store.create("/admin/delete_topics/t")
        controller = cluster.controller(store)
        refused = TopicPartition("t", 0)
        cluster.channel.refusals[refused] = ErrorCode.KAFKA_STORAGE_ERROR
        async with trio.open_nursery() as nursery:
            await controller.start()
            nursery.start_soon(controller.run)
            await trio.testing.wait_all_tasks_blocked()
            assert await store.children("/admin/delete_topics") == ["t"]
            await controller.stop()
            nursery.cancel_scope.cancel()
    async with cluster.running() as controller:
        await trio.testing.wait_all_tasks_blocked()
        assert not controller.active.context.has_name("t")


async def test_producer_ids_are_never_given_out_twice(cluster: Cluster) -> None:
    async with cluster.running() as controller:
        assert controller.producer_ids.take_nowait() is None
        given = [await controller.producer_ids.take() for _ in range(3)]
        given.append(controller.producer_ids.take_nowait() or -1)
    assert given == [0, 1, 2, 3]
    async with cluster.running() as controller, cluster.store() as reader:
        given += [await controller.producer_ids.take() for _ in range(1_001)]
        assert len(set(given)) == len(given)
        assert given[4] == 1_000
        assert given[-1] == 2_000
        assert (await reader.get("/latest_producer_id_block")).data == (
            b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}'
        )


async def test_two_brokers_take_different_blocks(cluster: Cluster) -> None:
    from odradek.controller.producer_ids import ProducerIdManager

    async with cluster.store() as one, cluster.store() as two:
        first, second = ProducerIdManager(1, one), ProducerIdManager(2, two)
        assert [await first.take(), await second.take(), await first.take()] == [0, 1_000, 1]
