from typing import TYPE_CHECKING, Any

import trio

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.records import build_batch, iter_batches, iter_records

if TYPE_CHECKING:
    from conftest import Bench

NOW_MS = 1_700_000_000_000
Fetch = messages.FetchRequest
VERSION = 17


def fetch(
    topic_id: bytes,
    *offsets: int,
    session_id: int = 0,
    epoch: int = -1,
    forget: tuple[int, ...] = (),
    **changes: Any,
) -> Any:
    """A fetch of partitions 0, 1, ... from these offsets; -2 leaves a partition out."""
    partitions = [
        Fetch.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100_000)
        for index, offset in enumerate(offsets)
        if offset != -2
    ]
    topics = [Fetch.FetchTopic(topic_id=topic_id, partitions=partitions)] if partitions else []
    forgotten = [Fetch.ForgottenTopic(topic_id=topic_id, partitions=list(forget))] if forget else []
    fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, **changes}
    return Fetch(
        session_id=session_id,
        session_epoch=epoch,
        topics=topics,
        forgotten_topics_data=forgotten,
        **fields,
    )


async def produce(bench: "Bench", name: str, value: bytes, partition: int = 0) -> None:
    request = messages.ProduceRequest
    records = bytes(build_batch([(None, value, NOW_MS, ())]))
    data = request.PartitionProduceData(index=partition, records=records)
    topic = request.TopicProduceData(name=name, partition_data=[data])
    answer = await bench.another_client().call(
        request(acks=1, timeout_ms=1000, topic_data=[topic]), 9
    )
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def reported(answer: Any) -> dict[int, list[bytes | None]]:
    """Partition to the values it answered, of all partitions in the answer."""
    assert answer.error_code == ErrorCode.NONE
    return {
        partition.partition_index: [
            record.value
            for batch in iter_batches(partition.records or b"")
            for record in iter_records(batch)
        ]
        for topic in answer.responses
        for partition in topic.partitions
    }


async def test_a_session_tells_only_what_is_new(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t", 3)
    client = bench.client
    first = await client.call(fetch(topic_id, 0, 0, 0, epoch=0), VERSION)
    assert reported(first) == {0: [], 1: [], 2: []}
    assert first.session_id != 0
    session = {"session_id": first.session_id}
    assert reported(await client.call(fetch(topic_id, epoch=1, **session), VERSION)) == {}
    await produce(bench, "t", b"a", partition=1)
    assert reported(await client.call(fetch(topic_id, epoch=2, **session), VERSION)) == {1: [b"a"]}
    moved_on = fetch(topic_id, -2, 1, epoch=3, **session)
    assert reported(await client.call(moved_on, VERSION)) == {}
    forgotten = fetch(topic_id, epoch=4, forget=(1,), **session)
    await produce(bench, "t", b"b", partition=1)
    await produce(bench, "t", b"c", partition=2)
    assert reported(await client.call(forgotten, VERSION)) == {2: [b"c"]}


async def test_a_session_that_is_not_known_is_refused_and_begins_anew(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    refused = await bench.client.call(fetch(topic_id, 0, session_id=99, epoch=5), VERSION)
    assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused.session_id == 0
    again = await bench.client.call(fetch(topic_id, 0, epoch=0), VERSION)
    wrong = await bench.client.call(fetch(topic_id, session_id=again.session_id, epoch=7), VERSION)
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


async def test_the_last_fetch_of_a_session_closes_it(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    first = await bench.client.call(fetch(topic_id, 0, epoch=0), VERSION)
    assert len(bench.broker.fetch_sessions) == 1
    last = await bench.client.call(
        fetch(topic_id, 0, session_id=first.session_id, epoch=-1), VERSION
    )
    assert (reported(last), last.session_id) == ({0: []}, 0)
    assert len(bench.broker.fetch_sessions) == 0


async def test_unknown_topic_ids_and_partitions_fail_alone(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    await produce(bench, "t", b"a")
    request = fetch(topic_id, 0, 0)
    request.topics += fetch(b"\1" * 16, 0).topics
    answer = await bench.client.call(request, VERSION)
    errors = {
        (topic.topic_id, partition.partition_index): partition.error_code
        for topic in answer.responses
        for partition in topic.partitions
    }
    assert errors == {
        (topic_id, 0): ErrorCode.NONE,
        (topic_id, 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (b"\1" * 16, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


async def test_a_long_poll_wakes_for_an_append_and_its_connection_goes_on(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    client = bench.client
    client.send(fetch(topic_id, 0, max_wait_ms=60_000), VERSION)
    assert client.connection.output == []
    await produce(bench, "t", b"awake")
    with trio.fail_after(60):
        assert reported(await client.receive(1, VERSION)) == {0: [b"awake"]}
    assert reported(await client.call(fetch(topic_id, 1), VERSION)) == {0: []}


async def test_a_replica_that_is_not_assigned_is_refused(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    request = fetch(topic_id, 0)
    request.replica_state = Fetch.ReplicaState(replica_id=7, replica_epoch=1)
    bench.client.connection.is_broker = True
    answer = await bench.client.call(request, VERSION)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_an_unknown_partition_does_not_keep_the_others_from_waiting(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    bench.client.send(fetch(topic_id, 0, 0, max_wait_ms=60_000), VERSION)
    assert bench.client.connection.output == []
    await produce(bench, "t", b"here")
    answer = await bench.client.receive(1, VERSION)
    assert reported(answer) == {0: [b"here"], 1: []}
    errors = {p.partition_index: p.error_code for p in answer.responses[0].partitions}
    assert errors == {0: ErrorCode.NONE, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_a_partition_named_twice_is_answered_once_as_named_last(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    await produce(bench, "t", b"a")
    await produce(bench, "t", b"b")
    request = fetch(topic_id, 0)
    request.topics += fetch(topic_id, 1).topics
    answer = await bench.client.call(request, VERSION)
    assert [len(topic.partitions) for topic in answer.responses] == [1]
    assert reported(answer) == {0: [b"b"]}


async def test_a_session_without_partitions_left_ends(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    first = await bench.client.call(fetch(topic_id, 0, epoch=0), VERSION)
    emptied = fetch(topic_id, session_id=first.session_id, epoch=1, forget=(0,))
    answer = await bench.client.call(emptied, VERSION)
    assert (reported(answer), answer.session_id) == ({}, 0)
    again = await bench.client.call(fetch(topic_id, session_id=first.session_id, epoch=2), VERSION)
    assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_readers_of_committed_records_get_a_list_of_aborted_transactions(
    bench: "Bench",
) -> None:
    topic_id = await bench.create_topic("t")
    for level, expected in ((0, None), (1, [])):
        answer = await bench.client.call(fetch(topic_id, 0, isolation_level=level), VERSION)
        assert answer.responses[0].partitions[0].aborted_transactions == expected
