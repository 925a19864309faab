"""Requests that a connection repeats: answered as by the handler, in its order, and no longer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from odradek.broker.request.fast_path.list_offsets import REQUEST_BYTES_MAX, ListOffsetsMemo
from odradek.broker.request.fast_path.memo import LAYOUTS_MAX
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.metadata.metadata_waiting import topics_are_gone, wait_for_metadata
from odradek.protocol import messages
from odradek.protocol.headers import request_header
from odradek.protocol.records import build_batch
from odradek.storage.log.append_origin import AppendOrigin

if TYPE_CHECKING:
    from conftest import Bench, Client

Request = messages.ListOffsetsRequest
VERSIONS = range(1, 12)
LATEST, EARLIEST = -1, -2
NOW_MS = 1_700_000_000_000


def request(
    timestamp: int, *, topic: str = "t", index: int = 0, isolation: int = 0, epoch: int = -1
) -> Any:
    asked = Request.ListOffsetsPartition(
        partition_index=index, current_leader_epoch=epoch, timestamp=timestamp
    )
    named = Request.ListOffsetsTopic(name=topic, partitions=[asked])
    return Request(replica_id=-1, isolation_level=isolation, topics=[named], timeout_ms=1000)


def found_in(answer: Any) -> Any:
    ((found,),) = [topic.partitions for topic in answer.topics]
    return found


def handled(bench: Bench) -> list[int]:
    """The API keys of requests that take the slow path from now on."""
    keys: list[int] = []
    dispatcher = bench.broker.dispatcher
    general = dispatcher._handle
    dispatcher._handle = lambda request: (  # type: ignore[method-assign]  # looked at, no more
        keys.append(request.api_key),
        general(request),
    )[1]
    return keys


def append(bench: Bench, count: int, *, index: int = 0) -> None:
    partition = bench.broker.replica_manager.partition_or_error(TopicPartition("t", index))
    records = memoryview(build_batch([(b"k", b"v", NOW_MS, [])] * count))
    partition.append_records_to_leader(records, AppendOrigin.CLIENT, 1, NOW_MS)
    bench.broker.replica_manager._touched[partition] = None
    partition.log.flush_appends()
    partition.maybe_increment_high_watermark()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST])
async def test_what_is_asked_again_is_answered_as_by_the_handler(
    bench: Bench, version: int, timestamp: int
) -> None:
    await bench.create_topic("t")
    append(bench, 3)
    first = await bench.client.call(request(timestamp), version)
    keys = handled(bench)
    second = await bench.client.call(request(timestamp), version)
    assert keys == []
    assert second == first
    assert found_in(second).offset == (3 if timestamp == LATEST else 0)
    append(bench, 4)
    third = await bench.client.call(request(timestamp), version)
    assert keys == []
    assert third == await bench.another_client().call(request(timestamp), version)
    assert found_in(third).offset == (7 if timestamp == LATEST else 0)


async def test_any_history_has_the_answers_of_the_slow_path(bench: Bench) -> None:
    await bench.create_topic("t", partitions=2)
    chance = random.Random(11)
    log = bench.broker.replica_manager.partition_or_error(TopicPartition("t", 0)).log
    for _ in range(300):
        step = chance.randrange(8)
        if step == 0:
            append(bench, chance.randint(1, 5), index=chance.randrange(2))
        elif step == 1:
            end = log.log_end_offset
            log.advance_log_start_offset(chance.randint(log.log_start_offset, end))
        else:
            asked = request(
                chance.choice([LATEST, EARLIEST, -3, NOW_MS]),
                index=chance.randrange(3),  # the third is unknown
                isolation=chance.choice([0, 1]),
                epoch=chance.choice([-1, 0, 7]),
            )
            known = await bench.client.call(asked, 10)
            assert known == await bench.another_client().call(asked, 10)


async def test_a_leader_that_stepped_down_is_not_asked_any_more(bench: Bench) -> None:
    await bench.create_topic("t")
    for _ in range(2):
        await bench.client.call(request(LATEST), 10)
    partition = bench.broker.replica_manager.partition_or_error(TopicPartition("t", 0))
    partition.is_leader = False
    refused = found_in(await bench.client.call(request(LATEST), 10))
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_topic_made_anew_is_the_one_that_is_asked(bench: Bench) -> None:
    topic_id = await bench.create_topic("t")
    append(bench, 3)
    for _ in range(2):
        assert found_in(await bench.client.call(request(LATEST), 10)).offset == 3
    await bench.broker.controller.delete_topics([topic_id])
    gone = topics_are_gone(["t"])
    assert await wait_for_metadata(bench.broker.metadata_cache, gone, 10_000)
    await bench.create_topic("t")
    assert found_in(await bench.client.call(request(LATEST), 10)).offset == 0


async def test_it_comes_behind_what_waits_on_its_connection(bench: Bench) -> None:
    """A Produce in the same pass is staged only: the lookup must see it, and come after it."""
    await bench.create_topic("t")
    for _ in range(2):
        await bench.client.call(request(LATEST), 4)
    produce = messages.ProduceRequest
    records = memoryview(build_batch([(None, b"v", NOW_MS, [])]))
    data = produce.PartitionProduceData(index=0, records=records)
    wanted = produce(
        acks=1,
        timeout_ms=1000,
        topic_data=[produce.TopicProduceData(name="t", partition_data=[data])],
    )
    client = bench.client
    client.connection.process([framed(client, wanted, 3, 1), framed(client, request(LATEST), 4, 2)])
    bench.broker.server.finish_outside_work()
    data = b"".join(bytes(part) for part in client.connection.output)
    size = int.from_bytes(data[:4], "big")
    assert int.from_bytes(data[4:8], "big") == 1
    answer, _ = messages.ListOffsetsResponse.decoder(4)(data[4 + size + 8 :], 0)
    assert found_in(answer).offset == 1


async def test_a_hook_sees_every_request(bench: Bench) -> None:
    await bench.create_topic("t")
    for _ in range(2):
        await bench.client.call(request(LATEST), 10)
    seen: list[int] = []
    bench.broker.dispatcher.use_hooks(on_request=lambda asked: bool(seen.append(asked.api_key)))
    await bench.client.call(request(LATEST), 10)
    assert seen == [2]


async def test_only_so_many_and_so_long_requests_are_remembered(bench: Bench) -> None:
    await bench.create_topic("t", partitions=LAYOUTS_MAX + 3)
    for index in range(LAYOUTS_MAX + 3):
        await bench.client.call(request(LATEST, index=index), 10)
    (memo,) = bench.client.connection.memos.values()
    assert isinstance(memo, ListOffsetsMemo)
    assert len(memo) == LAYOUTS_MAX
    wordy = bench.another_client("x" * REQUEST_BYTES_MAX)
    await wordy.call(request(LATEST), 10)
    (memo,) = wordy.connection.memos.values()
    assert isinstance(memo, ListOffsetsMemo)
    assert len(memo) == 0


def framed(client: Client, message: Any, version: int, correlation_id: int) -> memoryview:
    header = request_header(type(message).api_key, version, correlation_id, client.client_id)
    body = b"".join(bytes(part) for part in type(message).encoder(version)(message))
    return memoryview(bytearray(header + body))
