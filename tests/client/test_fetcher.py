"""The plain fetcher against brokers that refuse, move and send what cannot be read."""

from __future__ import annotations

import struct

import pytest
import trio
from support.client_parts import partition, topic
from support.scripted_cluster import Received, ScriptedCluster

from odradek.client import (
    DisconnectedError,
    Fetcher,
    PeerProtocolError,
)
from odradek.client.consumer.fetched_records import read_records
from odradek.client.consumer.offsets import OffsetAndTimestamp
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import FetchResponse, ListOffsetsResponse
from odradek.protocol.records import build_batch

TOPIC_ID = bytes(15) + b"\7"
MARKER = struct.Struct(">hh")
END_OF_TRANSACTION = struct.Struct(">hi")
ABORT, COMMIT = 0, 1


def batch(base_offset: int, *values: bytes, **stamp) -> bytes:
    return bytes(
        build_batch(
            [(None, value, 1_000, ()) for value in values], base_offset=base_offset, **stamp
        )
    )


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    record = (MARKER.pack(0, kind), END_OF_TRANSACTION.pack(0, 1), 1_000, ())
    return bytes(
        build_batch(
            [record],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


def in_transaction(base_offset: int, producer_id: int, *values: bytes) -> bytes:
    return batch(
        base_offset,
        *values,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def aborted(producer_id: int, first_offset: int) -> FetchResponse.AbortedTransaction:
    return FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)


# --- Reading records ------------------------------------------------------------------------


def values_of(data: bytes, position: int = 0, transactions=()) -> tuple[list[bytes | None], int]:
    read = read_records("t", 0, position, data, transactions)
    return [record.value for record in read.records], read.next_offset


def test_records_before_the_position_are_left_out():
    data = batch(10, b"a", b"b", b"c") + batch(13, b"d")
    assert values_of(data, 11) == ([b"b", b"c", b"d"], 14)


def test_a_batch_that_is_cut_off_is_not_there_yet():
    data = batch(0, b"a") + batch(1, b"b")[:-1]
    assert values_of(data) == ([b"a"], 1)


def test_a_batch_larger_than_what_was_requested_is_said_to_be():
    with pytest.raises(KafkaError, match="the batch at offset 5 of partition 0") as raised:
        read_records("t", 0, 5, batch(5, b"a")[:-1])
    assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_nothing_leaves_the_position_where_it_is():
    assert values_of(b"", 7) == ([], 7)


def test_a_flipped_bit_is_found():
    data = bytearray(batch(0, b"value"))
    data[-3] ^= 1
    with pytest.raises(KafkaError) as raised:
        read_records("t", 0, 0, bytes(data))
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


def test_markers_are_no_records_but_are_passed_by():
    data = in_transaction(0, 7, b"a") + marker(1, 7, COMMIT)
    assert values_of(data) == ([b"a"], 2)


def test_records_of_aborted_transactions_are_left_out():
    data = (
        in_transaction(0, 7, b"aborted")
        + in_transaction(1, 8, b"kept")
        + batch(2, b"plain")
        + in_transaction(3, 7, b"aborted, too")
        + marker(4, 7, ABORT)
        + marker(5, 8, COMMIT)
        + in_transaction(6, 7, b"a later transaction")
        + marker(7, 7, COMMIT)
    )
    assert values_of(data, 0, [aborted(7, 0)]) == ([b"kept", b"plain", b"a later transaction"], 8)


def test_each_of_several_aborted_transactions_of_a_producer_is_left_out():
    data = (
        in_transaction(0, 7, b"one")
        + marker(1, 7, ABORT)
        + in_transaction(2, 7, b"two")
        + marker(3, 7, COMMIT)
        + in_transaction(4, 7, b"three")
        + marker(5, 7, ABORT)
    )
    assert values_of(data, 0, [aborted(7, 4), aborted(7, 0)]) == ([b"two"], 6)


# --- Fetching -------------------------------------------------------------------------------


class Log:
    """What partitions hold, as answers to Fetch and ListOffsets."""

    def __init__(self) -> None:
        self.errors: dict[int, int] = {}
        self.data: dict[int, bytes] = {}
        self.leaders: dict[int, tuple[int, int]] = {}
        self.aborted: dict[int, list[FetchResponse.AbortedTransaction]] = {}

    def fetch(self, received: Received) -> FetchResponse:
        topics = []
        for asked in received.body.topics:
            partitions = []
            for wanted in asked.partitions:
                index = wanted.partition
                leader = self.leaders.get(index, (-1, -1))
                partitions.append(
                    FetchResponse.PartitionData(
                        partition_index=index,
                        error_code=self.errors.get(index, 0),
                        high_watermark=99,
                        records=self.data.get(index, b"") if wanted.fetch_offset < 3 else b"",
                        aborted_transactions=self.aborted.get(index),
                        current_leader=FetchResponse.LeaderIdAndEpoch(
                            leader_id=leader[0], leader_epoch=leader[1]
                        ),
                    )
                )
            topics.append(
                FetchResponse.FetchableTopicResponse(
                    topic=asked.topic, topic_id=asked.topic_id, partitions=partitions
                )
            )
        return FetchResponse(responses=topics)


@pytest.fixture
def log() -> Log:
    log = Log()
    log.data = {0: batch(0, b"a", b"b", b"c"), 1: batch(0, b"x", b"y", b"z")}
    return log


@pytest.fixture
def cluster(nursery, log) -> ScriptedCluster:
    cluster = ScriptedCluster(nursery, 1, 2)
    cluster.topics["t"] = topic(
        "t", partition(0, leader=1, epoch=4), partition(1, leader=2), topic_id=TOPIC_ID
    )
    cluster.answer_all(ApiKey.FETCH, log.fetch)
    return cluster


async def poll_until_records(fetcher: Fetcher):
    with trio.fail_after(60):
        while True:
            records = await fetcher.poll()
            if records:
                return records


async def test_each_leader_is_queried_and_positions_move_on(make_client, cluster):
    async with make_client() as client:
        await client.wait_for_topic("t")
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 1, ("t", 1): 0})
        records = await fetcher.poll()
        assert sorted((r.partition, r.offset, r.value) for r in records) == [
            (0, 1, b"b"),
            (0, 2, b"c"),
            (1, 0, b"x"),
            (1, 1, b"y"),
            (1, 2, b"z"),
        ]
        assert fetcher.positions == {("t", 0): 3, ("t", 1): 3}
        assert fetcher.high_watermarks == {("t", 0): 99, ("t", 1): 99}
        assert await fetcher.poll() == []
    first = cluster.brokers[1].requests_of(ApiKey.FETCH)[0]
    assert first.topics[0].topic_id == TOPIC_ID
    assert first.topics[0].partitions[0].current_leader_epoch == 4
    assert first.session_epoch == -1


async def test_an_unknown_topic_is_learnt_of_by_polling(make_client):
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0})
        assert [r.value for r in await poll_until_records(fetcher)] == [b"a", b"b", b"c"]


async def test_a_fetcher_without_partitions_has_nothing(make_client):
    async with make_client() as client:
        assert await Fetcher(client).poll() == []


async def test_a_topic_without_an_id_is_named(make_client, cluster):
    cluster.topics["t"] = topic("t", partition(0, leader=1))
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0})
        await poll_until_records(fetcher)
    versions = {r.version for r in cluster.brokers[1].requests if r.api_key == ApiKey.FETCH}
    assert versions == {12}


async def test_a_partition_that_moved_is_fetched_from_its_new_leader(
    make_client, cluster, log, autojump_clock
):
    def moved(received):
        cluster.topics["t"] = topic("t", partition(0, leader=2, epoch=5), topic_id=TOPIC_ID)
        log.errors[0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer = log.fetch(received)
        log.errors.clear()
        return answer

    cluster.brokers[1].answers[ApiKey.FETCH] = moved
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0})
        await poll_until_records(fetcher)
    assert len(cluster.brokers[2].requests_of(ApiKey.FETCH)) == 1


async def test_a_leader_named_in_the_answer_is_fetched_from(
    make_client, cluster, log, autojump_clock
):
    def moved(received):
        log.errors[0], log.leaders[0] = ErrorCode.NOT_LEADER_OR_FOLLOWER, (2, 5)
        answer = log.fetch(received)
        log.errors.clear()
        return answer

    cluster.brokers[1].answers[ApiKey.FETCH] = moved
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0})
        await poll_until_records(fetcher)  # Metadata goes on to name the old leader.
    assert len(cluster.brokers[2].requests_of(ApiKey.FETCH)) == 1


async def test_a_leader_that_cannot_be_reached_keeps_no_other_back(
    make_client, cluster, autojump_clock
):
    cluster.refusing.add(2)
    async with make_client() as client:
        await client.wait_for_topic("t")
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0, ("t", 1): 0})
        records = await poll_until_records(fetcher)
        assert {r.partition for r in records} == {0}
        cluster.refusing.clear()
        assert {r.partition for r in await poll_until_records(fetcher)} == {1}


async def test_polling_in_vain_backs_off(make_client, cluster, log, autojump_clock):
    log.errors[0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0})
        await client.wait_for_topic("t")
        start = trio.current_time()
        for _ in range(6):
            assert await fetcher.poll() == []
        assert trio.current_time() - start == pytest.approx(0.1 + 0.2 + 0.4 + 0.8 + 1 + 1, abs=0.05)


@pytest.mark.parametrize(
    "code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
async def test_an_error_that_will_not_pass_is_raised_and_positions_stay(make_client, log, code):
    log.errors[0] = code
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 2, ("t", 1): 0})
        await client.wait_for_topic("t")
        with pytest.raises(KafkaError, match="partition 0 of topic 't' at offset 2") as raised:
            await fetcher.poll()
        assert raised.value.code == code
        assert fetcher.positions == {("t", 0): 2, ("t", 1): 0}


async def test_an_error_of_a_later_release_is_taken_for_one_that_passes(make_client, log):
    log.errors[0] = 999
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 2, ("t", 1): 0})
        await client.wait_for_topic("t")
        assert [r.partition for r in await fetcher.poll()] == [1] * 3


async def test_read_committed_leaves_out_what_was_aborted(make_client, log, cluster):
    log.data[0] = in_transaction(0, 7, b"aborted") + marker(1, 7, ABORT) + batch(2, b"kept")
    log.aborted[0] = [aborted(7, 0)]
    async with make_client() as client:
        committed = Fetcher(client, isolation_level=READ_COMMITTED)
        committed.assign({("t", 0): 0})
        assert [r.value for r in await poll_until_records(committed)] == [b"kept"]
        everything = Fetcher(client)
        everything.assign({("t", 0): 0})
        assert [r.value for r in await poll_until_records(everything)] == [b"aborted", b"kept"]
    levels = [request.isolation_level for request in cluster.brokers[1].requests_of(ApiKey.FETCH)]
    assert levels == [1, 0]


async def test_a_position_that_the_caller_changed_meanwhile_stays(make_client, cluster, log):
    async with make_client() as client:
        fetcher = Fetcher(client)
        fetcher.assign({("t", 0): 0})
        await client.wait_for_topic("t")

        def seek(received):
            fetcher.positions["t", 0] = 50
            return log.fetch(received)

        cluster.brokers[1].answers[ApiKey.FETCH] = seek
        await fetcher.poll()
        assert fetcher.positions == {("t", 0): 50}


# --- Offsets --------------------------------------------------------------------------------


def offsets(received: Received, error: int = 0) -> ListOffsetsResponse:
    """The offset of partition n is 10 n, plus 1 for the earliest and 2 for the latest."""
    extra = {EARLIEST_TIMESTAMP: 1, LATEST_TIMESTAMP: 2}
    topics = [
        ListOffsetsResponse.ListOffsetsTopicResponse(
            name=asked.name,
            partitions=[
                ListOffsetsResponse.ListOffsetsPartitionResponse(
                    partition_index=wanted.partition_index,
                    error_code=error,
                    offset=10 * wanted.partition_index + extra.get(wanted.timestamp, 0),
                    timestamp=-1,
                    leader_epoch=4,
                )
                for wanted in asked.partitions
            ],
        )
        for asked in received.body.topics
    ]
    return ListOffsetsResponse(topics=topics)


async def test_offsets_are_requested_of_each_leader(make_client, cluster):
    cluster.answer_all(ApiKey.LIST_OFFSETS, offsets)
    async with make_client() as client:
        found = await Fetcher(client).list_offsets(
            {("t", 0): EARLIEST_TIMESTAMP, ("t", 1): LATEST_TIMESTAMP}
        )
    assert found == {
        ("t", 0): OffsetAndTimestamp(1, -1, 4),
        ("t", 1): OffsetAndTimestamp(12, -1, 4),
    }
    assert [
        len(broker.requests_of(ApiKey.LIST_OFFSETS)) for broker in cluster.brokers.values()
    ] == [
        1,
        1,
    ]


async def test_offsets_that_cannot_be_reported_yet_are_requested_again(
    make_client, cluster, autojump_clock
):
    refusals = [ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    cluster.brokers[1].answers[ApiKey.LIST_OFFSETS] = lambda received: offsets(
        received, refusals.pop() if refusals else 0
    )
    async with make_client() as client:
        found = await Fetcher(client).list_offsets({("t", 0): LATEST_TIMESTAMP})
    assert found["t", 0].offset == 2


async def test_offsets_of_a_leader_that_stays_away_are_given_up(
    make_client, cluster, autojump_clock
):
    cluster.refusing.add(2)
    async with make_client() as client:
        with pytest.raises(DisconnectedError):
            await Fetcher(client).list_offsets({("t", 1): LATEST_TIMESTAMP}, timeout_ms=3_000)
        assert trio.current_time() <= 3.01


async def test_offsets_that_an_answer_leaves_out_are_not_requested_without_a_pause(
    make_client, cluster, autojump_clock
):
    cluster.answer_all(ApiKey.LIST_OFFSETS, lambda received: ListOffsetsResponse())
    async with make_client() as client:
        with pytest.raises(PeerProtocolError, match=r"not answered for \[\('t', 0\)\]"):
            await Fetcher(client).list_offsets({("t", 0): LATEST_TIMESTAMP}, timeout_ms=3_000)
    assert len(cluster.brokers[1].requests_of(ApiKey.LIST_OFFSETS)) < 10


async def test_offsets_that_are_refused_are_an_error(make_client, cluster):
    cluster.answer_all(
        ApiKey.LIST_OFFSETS,
        lambda received: offsets(received, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )
    async with make_client() as client:
        with pytest.raises(KafkaError, match="partition 0 of topic 't'"):
            await Fetcher(client).list_offsets({("t", 0): LATEST_TIMESTAMP})
