"""A start with logs and a metadata store that do not agree: the table of `store_comparison.py`."""

import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from support.one_broker import SECONDS_MAX, Client, make, run_with
from support.raw_connection import build_batch

from odradek.broker.broker import Broker
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from odradek.metadata_store import znodes
from odradek.metadata_store.choice import METADATA_FILE
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import Delete
from odradek.protocol import messages
from odradek.storage.checkpoint.meta_properties import read_meta_properties, write_meta_properties
from odradek.storage.checkpoint.partition_metadata import read_topic_id, write_topic_id
from odradek.storage.checkpoint.store_reference import (
    StoreReference,
    read_store_reference,
    write_store_reference,
)
from odradek.storage.errors import LogDirectoryError
from odradek.storage.io.files import REAL_FILES
from odradek.tools.zookeeper_process import ZooKeeperProcess

TOPIC = "orders"
NOW_MS = 1_000
"""Of records: long past any retention."""

Lose = Callable[[Path], None]


def files_of(store: Path) -> list[Path]:
    return sorted(store.parent.glob(f"{store.name}*"))


def delete(store: Path) -> None:
    for path in files_of(store):
        path.unlink()


def empty(store: Path) -> None:
    delete(store)
    store.touch()


def damage_the_head(store: Path) -> None:
    delete(store)
    store.write_bytes(b"no database" * 1000)


def damage_a_page(store: Path) -> None:
    checkpointed(store)
    data = bytearray(store.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    store.write_bytes(data)


def checkpointed(store: Path) -> Path:
    """The store with everything in its one file."""
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return store


async def create(broker: Broker, name: str = TOPIC, partitions: int = 2, **configs: str) -> bytes:
    """Make a topic and write a record into each partition; returns its id."""
    assignments = [(partition, (broker.broker_id,)) for partition in range(partitions)]
    (created,) = await broker.controller.create_topics(
        [TopicCreation(name, assignments=assignments, configs=tuple(configs.items()))]
    )
    assert created.plan is not None, created.error
    for partition in range(partitions):
        await produce(broker, name, partition)
    # A leader may take records before its broker has heard of the topic as a whole.
    is_led = partitions_are_led([(name, partitions)])
    assert await wait_for_metadata(broker.metadata_cache, is_led, SECONDS_MAX * 1000)
    return created.plan.topic_id


async def produce(broker: Broker, topic: str, partition: int = 0) -> None:
    request = messages.ProduceRequest(
        acks=-1,
        timeout_ms=SECONDS_MAX * 1000,
        topic_data=[
            messages.ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    messages.ProduceRequest.PartitionProduceData(
                        index=partition, records=build_batch([b"value"], timestamp_ms=NOW_MS)
                    )
                ],
            )
        ],
    )
    client = await Client.to(broker)
    with trio.fail_after(SECONDS_MAX):
        while True:
            answer = await client.call(9, request)
            code = answer.responses[0].partition_responses[0].error_code
            if code == ErrorCode.NONE:
                break
            # The leadership follows the creation.
            assert code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            await trio.lowlevel.checkpoint()
    await client.close()


async def new_producer_id(broker: Broker) -> int:
    client = await Client.to(broker)
    answer = await client.call(
        4, messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    )
    await client.close()
    assert answer.error_code == 0
    return int(answer.producer_id)


async def once(
    folder: Path, act: Callable[[Broker], Awaitable[Any]], settings: dict[str, str] | None = None
) -> Any:
    """Start a broker, have something done with it, and stop it in good order."""
    broker = await make(folder, settings)
    results = []

    async def do() -> None:
        results.append(await act(broker))

    await run_with(broker, do)
    return results[0]


async def look(broker: Broker) -> dict[str, tuple[bytes, list[int]]]:
    """By topic: its id, and the end of each partition's log."""
    cache = broker.metadata_cache
    return {
        topic: (
            cache.snapshot.topic_ids[topic],
            [
                broker.log_manager.logs[TopicPartition(topic, partition)].log_end_offset
                for partition in states
            ],
        )
        for topic, states in cache.snapshot.partition_states.items()
    }


async def refusal(folder: Path, settings: dict[str, str] | None = None) -> str:
    """Why a broker does not start, said twice: another attempt does not get through."""
    reasons = []
    for _ in range(2):
        with pytest.raises(LogDirectoryError) as why:
            await make(folder, settings)
        reasons.append(str(why.value))
    assert reasons[0] == reasons[1]
    assert "\n" not in reasons[0]
    assert reasons[0].endswith(".")
    return reasons[0]


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """The data folder of a broker that was stopped."""
    await once(tmp_path, create)
    return tmp_path


# -- a broker that was alone --------------------------------------------------------------------


@pytest.mark.parametrize("lose", [delete, empty])
async def test_a_store_that_was_lost_gets_its_topics_back_from_the_logs(
    tmp_path: Path, lose: Lose, caplog: pytest.LogCaptureFixture
) -> None:
    topic_id = await once(tmp_path, create)
    before = await once(tmp_path, epochs)
    lose(tmp_path / METADATA_FILE)

    async def act(broker: Broker) -> None:
        assert await look(broker) == {TOPIC: (topic_id, [1, 1])}
        assert all(now > then for now, then in zip(await epochs(broker), before, strict=True))
        await produce(broker, TOPIC, 1)

    await once(tmp_path, act)
    (said,) = [each for each in caplog.messages if "adopting" in each]
    assert "adopting 1 topics with 2 partitions" in said
    assert str(tmp_path / METADATA_FILE) in said
    caplog.clear()
    assert await once(tmp_path, look) == {TOPIC: (topic_id, [1, 2])}
    assert "adopting" not in caplog.text


async def epochs(broker: Broker) -> list[int]:
    states = broker.metadata_cache.snapshot.partition_states[TOPIC]
    return [state.leader_epoch for state in states.values()]


async def test_what_is_adopted_keeps_its_records(folder: Path) -> None:
    """Whatever retention a topic had, its settings are lost with the store."""
    delete(folder / METADATA_FILE)

    async def act(broker: Broker) -> Any:
        assert broker.log_manager.logs[TopicPartition(TOPIC, 0)].config.retention_ms == -1
        return broker.metadata_cache.topic_config(TOPIC)

    settings = {"log.retention.ms": "1"}
    assert await once(folder, act, settings) == {"retention.ms": "-1", "retention.bytes": "-1"}


async def test_producer_ids_are_not_given_out_again(folder: Path) -> None:
    before = await once(folder, new_producer_id)
    delete(folder / METADATA_FILE)
    first = await once(folder, new_producer_id)
    delete(folder / METADATA_FILE)
    assert before < first < await once(folder, new_producer_id)


@pytest.mark.parametrize("lose", [delete, empty])
async def test_committed_offsets_and_transactional_ids_come_back(folder: Path, lose: Lose) -> None:
    settings = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "2"}
    await once(folder, commit_offset, settings)
    producer_id, epoch = await once(folder, begin_transactional, settings)
    lose(folder / METADATA_FILE)
    assert await once(folder, committed_offset, settings) == 1
    assert await once(folder, begin_transactional, settings) == (producer_id, epoch + 1)

    async def act(broker: Broker) -> Any:
        config = broker.metadata_cache.topic_config("__consumer_offsets")
        return config["cleanup.policy"], len(await look(broker))

    assert await once(folder, act, settings) == ("compact", 3)


async def commit_offset(broker: Broker) -> None:
    request = messages.OffsetCommitRequest
    answer = await coordinator(
        broker,
        8,
        request(
            group_id="group",
            topics=[
                request.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                    ],
                )
            ],
        ),
        lambda answer: answer.topics[0].partitions[0].error_code,
    )
    assert answer.topics[0].name == TOPIC


async def committed_offset(broker: Broker) -> int:
    answer = await coordinator(
        broker,
        7,
        messages.OffsetFetchRequest(group_id="group", topics=None),
        lambda answer: answer.error_code,
    )
    return int(answer.topics[0].partitions[0].committed_offset)


async def begin_transactional(broker: Broker) -> tuple[int, int]:
    answer = await coordinator(
        broker,
        4,
        messages.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000),
        lambda answer: answer.error_code,
    )
    return answer.producer_id, answer.producer_epoch


async def coordinator(
    broker: Broker, version: int, request: Any, error_of: Callable[[Any], int]
) -> Any:
    """Send a request to a coordinator until it has its topic, and has loaded it."""
    client = await Client.to(broker)
    for key_type in (0, 1):
        find = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
        await client.call(4, find)
    with trio.fail_after(SECONDS_MAX):
        while True:
            answer = await client.call(version, request)
            if not error_of(answer):
                await client.close()
                return answer
            await trio.lowlevel.checkpoint()


async def test_a_folder_without_a_note_goes_by_whether_the_store_has_topics(folder: Path) -> None:
    """As of an earlier release, or of a Kafka broker."""
    (folder / "odradek-store.properties").unlink()
    known = await once(folder, look)
    (folder / "odradek-store.properties").unlink()
    delete(folder / METADATA_FILE)
    assert await once(folder, look) == known


@pytest.mark.parametrize("lose", [damage_the_head, damage_a_page])
async def test_a_damaged_store_is_refused_until_it_is_moved_away(folder: Path, lose: Lose) -> None:
    known = await once(folder, look)
    store = folder / METADATA_FILE
    lose(store)
    with pytest.raises(StoreUnreachable, match=r"damaged.*Put back a copy of it, or move it"):
        await make(folder)
    delete(store)
    assert await once(folder, look) == known


async def test_an_older_copy_learns_of_the_topics_made_since(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = checkpointed(folder / METADATA_FILE)
    copy = shutil.copy(store, tmp_path_factory.mktemp("copy"))
    later_id = await once(folder, lambda broker: create(broker, "later"))
    known = await once(folder, look)
    former = await once(folder, epochs)
    delete(store)
    shutil.copy(copy, store)

    async def act(broker: Broker) -> Any:
        assert await epochs(broker) > former
        return await look(broker)

    assert await once(folder, act) == known
    assert known["later"][0] == later_id


async def test_a_copy_made_while_the_broker_ran_is_an_older_one_all_the_same(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("copy") / "store"

    async def act(broker: Broker) -> Any:
        source = sqlite3.connect(folder / METADATA_FILE)
        with sqlite3.connect(copy) as target:
            source.backup(target)
        source.close()
        await create(broker, "later")
        return await look(broker)

    known = await once(folder, act)
    store = folder / METADATA_FILE
    delete(store)
    shutil.copy(copy, store)
    assert await once(folder, look) == known


async def test_a_log_of_a_topic_deleted_meanwhile_does_not_come_back(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The store is newer than the logs: what it does not know was deleted."""
    await once(folder, lambda broker: create(broker, "kept"))
    broker = await make(folder)
    await broker.metadata_store.multi(
        [
            Delete(path)
            for partition in ("0", "1")
            for path in (
                znodes.partition_state_path(TOPIC, int(partition)),
                znodes.partition_path(TOPIC, int(partition)),
            )
        ]
        + [Delete(znodes.partitions_path(TOPIC)), Delete(znodes.topic_path(TOPIC))]
    )
    await broker.metadata_store.close()
    broker.log_manager.abandon()
    assert set(await once(folder, look)) == {"kept"}
    assert "deleted while this broker was down" in caplog.text
    strays = [path.name for path in folder.iterdir() if path.name.endswith("-stray")]
    assert sorted(name.split(".")[0] for name in strays) == ["orders-0", "orders-1"]
    assert not list(folder.glob("orders-[01]"))

    async def make_again(broker: Broker) -> Any:
        await broker.metadata_store.delete(znodes.topic_config_path(TOPIC))
        await create(broker)
        return await look(broker)

    assert (await once(folder, make_again))[TOPIC][1] == [1, 1]
    assert (await once(folder, look))[TOPIC][1] == [1, 1]


async def test_the_store_of_another_cluster_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    await once(other, create)
    said = await refusal(folder, {"metadata.log.dir": str(other)})
    assert "is of cluster" in said
    assert "name the metadata store of its own cluster" in said


# -- several log directories --------------------------------------------------------------------


async def with_two_directories(tmp_path: Path) -> tuple[dict[str, str], Any]:
    settings = {
        "log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}",
        "metadata.log.dir": str(tmp_path / "metadata"),
    }
    await once(tmp_path, lambda broker: create(broker, partitions=4), settings)
    return settings, await once(tmp_path, look, settings)


async def test_a_lost_store_gets_topics_back_from_all_log_directories(tmp_path: Path) -> None:
    settings, known = await with_two_directories(tmp_path)
    delete(tmp_path / "metadata" / METADATA_FILE)
    assert await once(tmp_path, look, settings) == known


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_store_that_was_lost_with_a_log_directory_is_refused(
    tmp_path: Path, made_anew: bool
) -> None:
    settings, _ = await with_two_directories(tmp_path)
    delete(tmp_path / "metadata" / METADATA_FILE)
    shutil.rmtree(tmp_path / "two")
    if not made_anew:
        settings["log.dirs"] = str(tmp_path / "one")
    said = await refusal(tmp_path, settings)
    assert "had other log directories" in said
    assert "name all of them in log.dirs" in said


async def test_a_log_directory_lost_alone_begins_anew_as_with_kafka(tmp_path: Path) -> None:
    settings, known = await with_two_directories(tmp_path)
    shutil.rmtree(tmp_path / "two")
    found = await once(tmp_path, look, settings)
    assert found[TOPIC][0] == known[TOPIC][0]
    assert sorted(found[TOPIC][1]) == [0, 0, 1, 1]


# -- several brokers ----------------------------------------------------------------------------


class Pair:
    """Two brokers of one cluster, in one process, each started and stopped by itself."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.folder = folder
        self._nursery = nursery
        self._stops: dict[int, tuple[trio.CancelScope, trio.Event]] = {}

    @property
    def store(self) -> Path:
        return self.folder / METADATA_FILE

    def settings(self, broker_id: int) -> dict[str, str]:
        return {
            "broker.id": str(broker_id),
            "log.dirs": str(self.folder / str(broker_id)),
            "metadata.log.dir": str(self.folder),
        }

    async def start(self, broker_id: int) -> Broker:
        broker = await make(self.folder, self.settings(broker_id))
        scope, over = trio.CancelScope(), trio.Event()
        self._stops[broker_id] = scope, over

        async def run(task_status: trio.TaskStatus[None]) -> None:
            with scope:
                await broker.run(lambda _: task_status.started())
            over.set()

        await self._nursery.start(run)
        return broker

    async def stop(self, broker_id: int) -> None:
        scope, over = self._stops.pop(broker_id)
        scope.cancel()
        await over.wait()


async def shown(broker: Broker, is_shown: Callable[[Any], bool]) -> None:
    assert await wait_for_metadata(broker.metadata_cache, is_shown, SECONDS_MAX * 1000)


async def test_a_topic_deleted_while_a_broker_was_down_does_not_come_back_with_it(
    tmp_path: Path,
) -> None:
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            pair = Pair(tmp_path, nursery)
            first = await pair.start(1)
            second = await pair.start(2)
            await shown(first, lambda now: len(now.alive_brokers) == 2)
            (created,) = await first.controller.create_topics(
                [TopicCreation(TOPIC, assignments=[(0, (1, 2))])]
            )
            assert created.plan is not None
            await shown(second, lambda now: TOPIC in now.partition_states)
            assert (tmp_path / "2" / f"{TOPIC}-0").exists()
            await pair.stop(2)
            await first.controller.delete_topics([created.plan.topic_id], timeout_ms=1)
            second = await pair.start(2)
            await shown(first, lambda now: 2 in now.alive_brokers)
            for broker in (first, second):
                await shown(broker, lambda now: TOPIC not in now.partition_states)
            while TopicPartition(TOPIC, 0) in second.log_manager.logs:
                await trio.lowlevel.checkpoint()
            await pair.stop(2)
            await pair.stop(1)
    assert not (tmp_path / "2" / f"{TOPIC}-0").exists()


@pytest.mark.parametrize("lose", [delete, "an older copy"])
async def test_a_broker_that_was_not_alone_refuses_a_store_that_has_lost_topics(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, lose: Any
) -> None:
    copy = tmp_path_factory.mktemp("copy") / "store"
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            pair = Pair(tmp_path, nursery)
            broker = await pair.start(1)
            await pair.start(2)
            await shown(broker, lambda now: len(now.alive_brokers) == 2)
            source = sqlite3.connect(pair.store)
            with sqlite3.connect(copy) as target:
                source.backup(target)
            source.close()
            await create(broker)
            for broker_id in (1, 2):
                await pair.stop(broker_id)
    delete(pair.store)
    if lose is not delete:
        shutil.copy(copy, pair.store)
    said = await refusal(tmp_path, pair.settings(1))
    assert "the cluster has other brokers (2)" in said
    assert "Put back a copy of the store that knows these logs (orders)" in said


async def test_an_older_store_that_knows_all_topics_is_used_by_several_brokers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A power failure may take a store's last changes, such as registrations."""
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            pair = Pair(tmp_path, nursery)
            broker = await pair.start(1)
            await pair.start(2)
            await shown(broker, lambda now: len(now.alive_brokers) == 2)
            topic_id = await create(broker)
            for broker_id in (2, 1):
                await pair.stop(broker_id)
            note = str(tmp_path / "1")
            reference = read_store_reference(REAL_FILES, note)
            assert reference is not None
            assert reference.broker_ids == {1, 2}
            write_store_reference(REAL_FILES, note, reference._replace(position=10**6))
            broker = await pair.start(1)
            assert await look(broker) == {TOPIC: (topic_id, [1, 1])}
            await pair.stop(1)
    assert "knows all of their topics" in caplog.text


# -- ZooKeeper ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("counts_on", [False, True])
async def test_a_zookeeper_restored_from_a_backup_learns_of_the_topics_made_since(
    tmp_path: Path, counts_on: bool
) -> None:
    """An ensemble begins an epoch of its own, so what it counts may be past what was noted."""
    server = ZooKeeperProcess(tmp_path / "zookeeper")
    data, backup = server.folder / "data", tmp_path / "backup"
    folder, settings = tmp_path / "logs", {"zookeeper.connect": server.address}

    def start_with(files: Path) -> None:
        server.kill()
        if files != data:
            shutil.rmtree(data)
            shutil.copytree(files, data)
        server.start()

    server.start()
    try:
        await once(folder, create, settings)
        server.kill()
        shutil.copytree(data, backup)
        start_with(data)
        later_id = await once(folder, lambda broker: create(broker, "later"), settings)
        known = await once(folder, look, settings)
        start_with(backup)
        if counts_on:
            reference = read_store_reference(REAL_FILES, str(folder))
            assert reference is not None
            write_store_reference(REAL_FILES, str(folder), reference._replace(position=0))
        assert await once(folder, look, settings) == known
        assert known["later"][0] == later_id
        assert await once(folder, look, settings) == known
    finally:
        server.kill()


# -- what contradicts ---------------------------------------------------------------------------


def give_another_id(folder: Path) -> None:
    write_topic_id(REAL_FILES, str(folder / "orders-1"), bytes(range(16)))


def give_all_another_id(folder: Path) -> None:
    for partition in (0, 1):
        write_topic_id(REAL_FILES, str(folder / f"orders-{partition}"), bytes(range(16)))


def leave_a_gap(folder: Path) -> None:
    (folder / "orders-1").rename(folder / "orders-3")


def copy_the_folder(folder: Path) -> None:
    shutil.copytree(folder / "orders-0", folder / "copied-0")


def add_a_partition(folder: Path) -> None:
    shutil.copytree(folder / "orders-1", folder / "orders-2")


@pytest.mark.parametrize(
    ("contradict", "loses", "expected"),
    [
        (give_another_id, True, "the topic orders has two topic ids"),
        (leave_a_gap, True, "no folder of partition 1, but one of partition 3"),
        (copy_the_folder, True, "the topics copied and orders have the same topic id"),
        (add_a_partition, False, "a partition that the metadata store"),
    ],
)
async def test_what_contradicts_is_refused_with_what_to_do(
    folder: Path, contradict: Callable[[Path], None], loses: bool, expected: str
) -> None:
    contradict(folder)
    if loses:
        delete(folder / METADATA_FILE)
    said = await refusal(folder)
    assert expected in said
    assert "Put back a copy of the store" in said
    assert " away." in said


async def test_an_older_store_that_knows_another_topic_of_the_name_is_refused(
    folder: Path,
) -> None:
    reference = read_store_reference(REAL_FILES, str(folder))
    assert reference is not None
    write_store_reference(REAL_FILES, str(folder), reference._replace(position=10**6))
    give_all_another_id(folder)
    said = await refusal(folder)
    assert "AAECAwQFBgcICQoLDA0ODw" in said
    assert "in the store" in said


async def test_a_newer_store_that_knows_another_topic_of_the_name_is_right(folder: Path) -> None:
    give_all_another_id(folder)
    found = await once(folder, look)
    assert found[TOPIC][1] == [0, 0]
    assert read_topic_id(REAL_FILES, str(folder / "orders-0")) == found[TOPIC][0]
    assert len(list(folder.glob("orders-*-stray"))) == 2


async def test_a_folder_without_a_topic_id_beyond_the_partitions_is_of_a_deleted_topic(
    folder: Path,
) -> None:
    """A crash tore the id, and the topic was made anew with fewer partitions meanwhile."""
    known = await once(folder, look)
    add_a_partition(folder)
    (folder / "orders-2" / "partition.metadata").unlink()
    assert await once(folder, look) == known
    assert len(list(folder.glob("orders-2.*-stray"))) == 1
    # A store that has lost something may have lost the partition, too.
    add_a_partition(folder)
    (folder / "orders-2" / "partition.metadata").unlink()
    reference = read_store_reference(REAL_FILES, str(folder))
    assert reference is not None
    write_store_reference(REAL_FILES, str(folder), reference._replace(position=10**6))
    assert "a partition that the metadata store" in await refusal(folder)


async def test_folders_without_topic_ids_are_adopted_under_a_new_one(folder: Path) -> None:
    """Of a Kafka before 2.8."""
    for partition in (0, 1):
        (folder / f"orders-{partition}" / "partition.metadata").unlink()
    delete(folder / METADATA_FILE)
    topic_id, ends = (await once(folder, look))[TOPIC]
    assert ends == [1, 1]
    assert topic_id != bytes(16)


async def test_a_folder_of_another_broker_is_refused(folder: Path) -> None:
    found = read_meta_properties(REAL_FILES, str(folder))
    assert found is not None
    assert found.cluster_id is not None
    assert found.directory_id is not None
    write_meta_properties(
        REAL_FILES,
        str(folder),
        node_id=7,
        cluster_id=found.cluster_id,
        directory_id=found.directory_id,
    )
    assert "is of broker 7, not 1: set broker.id" in await refusal(folder)


# -- the note -----------------------------------------------------------------------------------


async def test_the_note_names_store_position_brokers_and_directories(folder: Path) -> None:
    found = read_meta_properties(REAL_FILES, str(folder))
    reference = read_store_reference(REAL_FILES, str(folder))
    assert found is not None
    assert found.directory_id is not None
    assert reference is not None
    assert reference.position > 0
    assert reference.broker_ids == {1}
    assert reference.directory_ids == {found.directory_id}


@pytest.mark.parametrize("text", ["", "version=1\n", "version=0\nincarnation=x\n", "\xff"])
def test_a_damaged_note_counts_as_none(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "odradek-store.properties").write_text(text)
    assert read_store_reference(REAL_FILES, str(tmp_path)) is None
    assert "which is damaged" in caplog.text


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    for reference in (
        StoreReference("a", 7, frozenset({1, 2}), frozenset({"x", "y"}), 5, 3),
        StoreReference("b", 0),
    ):
        write_store_reference(REAL_FILES, str(tmp_path), reference)
        assert read_store_reference(REAL_FILES, str(tmp_path)) == reference
