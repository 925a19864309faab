"""What transactions write: records, offsets, the markers that end them, and who may see which.

Run against Apache Kafka 4.3.1 as well, where `ODRADEK_TEST_BOOTSTRAP` names one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import AbortTransactionSpec, ConfigResourceType
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from support.config_cases import SET
from support.config_requests import alter_configs
from support.raw_connection import build_batch
from support.transaction_peer import (
    GROUP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TransactionPeer,
    settled,
)

from odradek.common.errors import ErrorCode as E
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

READ_SECONDS_MAX = 60.0
OLD, NEW = 11, 12
"""Produce of clients that add partitions themselves, and of those that leave it to the broker."""


@pytest.fixture
def peer(broker: Any, made: str) -> Iterator[TransactionPeer]:
    """A producer that is initialized, named after the topic, whose partitions have leaders."""
    peer = TransactionPeer(broker.port, made).start()
    for partition in range(2):
        peer.end_offset(made, partition, isolation=READ_UNCOMMITTED)
    yield peer
    peer.close()


def values(broker: Any, topic: str, isolation: str, until: int) -> list[bytes]:
    """What a reader finds in partition 0 before it stands at an offset."""
    found: list[bytes] = []
    partition = KafkaTopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap, isolation_level=isolation) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        deadline = time.monotonic() + READ_SECONDS_MAX
        while consumer.position(partition) < until:
            assert time.monotonic() < deadline, f"at {consumer.position(partition)} of {until}"
            for records in consumer.poll(timeout_ms=200).values():
                found += [record.value for record in records]
    return found


# --- Records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [OLD, NEW])
def test_readers_of_committed_records_see_those_only(
    broker: Any, peer: TransactionPeer, made: str, version: int
) -> None:
    end_version = 5 if version == NEW else 4
    for value, committed in ((b"1", True), (b"2", False), (b"3", True)):
        if version == OLD:
            assert set(peer.add_partitions({made: [0]}).values()) == {E.NONE}
        assert settled(lambda value=value: (peer.write(made, 0, value, version=version),))
        assert peer.end(committed=committed, version=end_version).error == E.NONE
        peer.wait_state("CompleteCommit", "CompleteAbort")
    end = peer.wait_stable(made)
    assert values(broker, made, "read_committed", end) == [b"1", b"3"]
    assert values(broker, made, "read_uncommitted", end) == [b"1", b"2", b"3"]


def test_an_open_transaction_holds_back_readers_of_committed_records(
    peer: TransactionPeer, made: str
) -> None:
    assert peer.write(made, version=NEW) == E.NONE
    assert peer.end_offset(made, isolation=READ_COMMITTED) == 0
    assert peer.end_offset(made, isolation=READ_UNCOMMITTED) == 1
    assert peer.end(committed=True, version=5).error == E.NONE
    assert peer.wait_stable(made) == 2


def test_a_partition_joins_by_being_written_to(peer: TransactionPeer, made: str) -> None:
    assert peer.state == "Empty"
    assert peer.write(made, 1, version=NEW) == E.NONE
    described = peer.describe()
    assert described.transaction_state == "Ongoing"
    assert [(each.topic, list(each.partitions)) for each in described.topics] == [(made, [1])]


@pytest.mark.parametrize(
    ("version", "error"), [(10, E.INVALID_TXN_STATE), (OLD, E.TRANSACTION_ABORTABLE)]
)
def test_an_older_producer_writes_only_to_what_it_added(
    peer: TransactionPeer, made: str, version: int, error: E
) -> None:
    assert peer.write(made, version=version) == error
    assert set(peer.add_partitions({made: [1]}).values()) == {E.NONE}
    assert peer.write(made, version=version) == error
    assert peer.write(made, 1, version=version) == E.NONE
    assert peer.write(made, 1, version=version) == E.NONE
    assert peer.end_offset(made, isolation=READ_UNCOMMITTED) == 0


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_fenced_producer_writes_nothing(peer: TransactionPeer, made: str, version: int) -> None:
    former = peer.producer_epoch
    peer.start()
    answer = peer.write(made, version=version, producer_epoch=former)
    assert answer == E.INVALID_PRODUCER_EPOCH
    assert peer.end_offset(made, isolation=READ_UNCOMMITTED) == 0


def test_a_fenced_producer_does_not_go_on_in_its_transaction(
    peer: TransactionPeer, made: str
) -> None:
    assert peer.write(made, version=NEW) == E.NONE
    zombie_epoch = peer.producer_epoch
    peer.start()
    peer.wait_stable(made)
    answer = peer.write(made, version=NEW, producer_epoch=zombie_epoch)
    assert answer == E.INVALID_PRODUCER_EPOCH


def test_one_request_has_batches_of_one_producer(peer: TransactionPeer, made: str) -> None:
    assert set(peer.add_partitions({made: [0, 1]}).values()) == {E.NONE}
    answer = produce(peer, made, [peer.producer_id, peer.producer_id + 1], peer.transactional_id)
    assert answer == [E.INVALID_PRODUCER_ID_MAPPING] * 2


def test_transactional_batches_need_a_transactional_id(peer: TransactionPeer, made: str) -> None:
    assert peer.write(made, version=NEW) == E.NONE
    answer = produce(peer, made, [peer.producer_id], None, base_sequence=1)
    assert answer == [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    plain = produce(peer, made, [-1], None, base_sequence=-1, transactional=False)
    assert plain == [E.NONE]
    again = produce(peer, made, [peer.producer_id], None, base_sequence=1)
    assert again == [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert peer.end_offset(made, isolation=READ_UNCOMMITTED) == 2


def test_a_batch_outside_of_the_open_transaction_is_refused(
    peer: TransactionPeer, made: str
) -> None:
    assert peer.write(made, version=NEW) == E.NONE
    answer = produce(peer, made, [peer.producer_id], None, base_sequence=1, transactional=False)
    assert answer == [E.INVALID_TXN_STATE]


def produce(
    peer: TransactionPeer,
    topic: str,
    producer_ids: list[int],
    transactional_id: str | None,
    *,
    base_sequence: int = 0,
    transactional: bool = True,
) -> list[E]:
    """One Produce with a batch for each of the first partitions; their errors."""
    make = ProduceRequest.TopicProduceData
    partitions = []
    for index, producer_id in enumerate(producer_ids):
        batch = build_batch(
            [b"v"],
            timestamp_ms=int(time.time() * 1000),
            transactional=transactional,
            producer_id=producer_id,
            producer_epoch=peer.producer_epoch if producer_id >= 0 else -1,
            base_sequence=base_sequence,
        )
        partitions.append(make.PartitionProduceData(index=index, records=batch))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[make(name=topic, partition_data=partitions)],
    )
    (found,) = peer.connection.ask(request, ProduceResponse, OLD).responses
    return [E(each.error_code) for each in found.partition_responses]


# --- Offsets -------------------------------------------------------------------------------------


def committed(
    peer: TransactionPeer, group: str, topic: str, *, require_stable: bool
) -> tuple[E, int]:
    """What the group has committed for partition 0."""
    make = OffsetFetchRequest.OffsetFetchRequestTopic
    request = OffsetFetchRequest(
        group_id=group,
        topics=[make(name=topic, partition_indexes=[0])],
        require_stable=require_stable,
    )
    answer = peer.connection.ask(request, OffsetFetchResponse, 7)
    found = answer.topics[0].partitions[0]
    return E(found.error_code), found.committed_offset


@pytest.fixture
def group(peer: TransactionPeer, made: str) -> str:
    """A group's id, whose coordinator is there."""
    peer.find_coordinator(GROUP, made)
    return made


@pytest.mark.parametrize("version", [4, 5])
def test_offsets_count_once_their_transaction_is_committed(
    peer: TransactionPeer, made: str, group: str, version: int
) -> None:
    for offset, commits, after in ((5, True, 5), (7, False, 5), (8, True, 8)):
        before = committed(peer, group, made, require_stable=False)
        if version == 4:
            assert settled(lambda: (peer.add_offsets(group),))
        settled(
            lambda offset=offset: tuple(
                peer.commit_offsets(group, {(made, 0): offset}, version).values()
            )
        )
        assert committed(peer, group, made, require_stable=False) == before
        unstable = committed(peer, group, made, require_stable=True)
        assert unstable == (E.UNSTABLE_OFFSET_COMMIT, -1)
        assert peer.end(committed=commits, version=version).error == E.NONE
        peer.wait_state("CompleteCommit", "CompleteAbort")
        assert committed(peer, group, made, require_stable=True) == (E.NONE, after)


def test_pending_offsets_outlive_a_restart(start_broker: Callable[..., Any]) -> None:
    broker = start_broker(settings={"offsets.topic.num.partitions": "1"})
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        requested = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({"t": requested}, wait_for_metadata=True)
    peer = TransactionPeer(broker.port, "pending").start()
    peer.find_coordinator(GROUP, "g")
    assert peer.commit_offsets("g", {("t", 0): 5}, 5) == {("t", 0): E.NONE}
    peer.close()
    broker.kill()
    broker.start()
    after = TransactionPeer(broker.port, "pending")
    after.producer_id, after.producer_epoch = peer.producer_id, peer.producer_epoch
    after.find_coordinator()
    after.find_coordinator(GROUP, "g")

    def unstable() -> tuple[E, int]:
        answer = committed(after, "g", "t", require_stable=True)
        return (E.NONE if answer[0] == E.UNSTABLE_OFFSET_COMMIT else answer[0]), answer[1]

    assert settled(unstable) == (E.NONE, -1)
    settled(lambda: (after.end(committed=True, version=5).error,))
    after.wait_state("CompleteCommit")
    assert committed(after, "g", "t", require_stable=True) == (E.NONE, 5)
    after.close()


# --- Hanging transactions ------------------------------------------------------------------------


def test_an_administrator_finds_a_transaction_and_aborts_it(
    broker: Any, peer: TransactionPeer, made: str
) -> None:
    assert peer.write(made, 0, b"hangs", version=NEW) == E.NONE
    partition = KafkaTopicPartition(made, 0)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        (active,) = admin.describe_producers([partition])[partition].active_producers
        assert (active.producer_id, active.producer_epoch, active.last_sequence) == (
            peer.producer_id,
            peer.producer_epoch,
            0,
        )
        assert active.current_transaction_start_offset == 0
        admin.abort_transaction(
            AbortTransactionSpec(partition, active.producer_id, active.producer_epoch)
        )
        assert peer.wait_stable(made) == 2
        (active,) = admin.describe_producers([partition])[partition].active_producers
        assert active.current_transaction_start_offset == -1
    assert values(broker, made, "read_committed", 2) == []


def test_without_verification_older_producers_write_unverified(
    start_broker: Callable[..., Any],
) -> None:
    broker = start_broker(settings={"transaction.partition.verification.enable": "false"})
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics({"t": {"num_partitions": 1, "replication_factor": 1}})
    peer = TransactionPeer(broker.port, "unverified").start()
    settled(lambda: (peer.write("t", version=OLD),))
    assert peer.state == "Empty", "nobody told the coordinator"
    peer.close()


def test_a_silent_producer_is_forgotten_unless_in_a_transaction(
    start_broker: Callable[..., Any],
) -> None:
    broker = start_broker(settings={"producer.id.expiration.check.interval.ms": "100"})
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics({"t": {"num_partitions": 2, "replication_factor": 1}})
    peer = TransactionPeer(broker.port, "silent").start()
    settled(lambda: (peer.write("t", 0, version=NEW),))
    assert produce(peer, "t", [4711], None, transactional=False) == [E.NONE]

    def known() -> set[int]:
        return {each.producer_id for each in peer.describe_producers("t").active_producers}

    assert known() == {peer.producer_id, 4711}
    change = [("producer.id.expiration.ms", SET, "300")]
    assert alter_configs(peer.connection, ConfigResourceType.BROKER, "", change) == 0
    wait_until(lambda: known() == {peer.producer_id}, READ_SECONDS_MAX)
    # Of a producer that is not known any sequence number is taken.
    again = produce(peer, "t", [4711], None, base_sequence=7, transactional=False)
    assert again == [E.NONE]
    assert peer.end(committed=True, version=5).error == E.NONE
    wait_until(lambda: known() == set(), READ_SECONDS_MAX)
    peer.close()
