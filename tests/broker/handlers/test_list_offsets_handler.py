"""ListOffsets, against what Apache Kafka 4.3.1 answers.

The tables hold answers of a real Kafka 4.3.1 (one KRaft node, no remote storage) to the same
requests on partitions that were filled with the same bytes: error, timestamp, offset, leader epoch.
"""

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

if TYPE_CHECKING:
    from conftest import Bench

Request = messages.ListOffsetsRequest
VERSIONS = range(1, 12)

NOTHING = (0, -1, -1, -1)
UNSUPPORTED = (35, -1, -1, -1)
FENCED = (74, -1, -1, -1)
UNKNOWN_EPOCH = (75, -1, -1, -1)
FIRST_VERSION = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
"""Which versions know a special timestamp; all others answered `UNSUPPORTED`, to each."""


async def ask(
    bench: "Bench",
    timestamp: int,
    version: int = 11,
    *,
    topic: str = "t",
    partition: int = 0,
    isolation: int = 0,
    epoch: int = -1,
    replica_id: int = -1,
) -> tuple[int, int, int, int]:
    requested = Request.ListOffsetsPartition(
        partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
    )
    request = Request(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=[Request.ListOffsetsTopic(name=topic, partitions=[requested])],
        timeout_ms=1000,
    )
    answer = await bench.client.call(request, version)
    ((found,),) = [each.partitions for each in answer.topics]
    assert found.partition_index == partition
    return (found.error_code, found.timestamp, found.offset, found.leader_epoch)


def append(
    bench: "Bench",
    times: list[int],
    compression: Compression = Compression.NONE,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    **header: Any,
) -> None:
    records = [(b"k", b"v", time, ()) for time in times]
    answers: list[Any] = []
    bench.broker.replica_manager.append_records(
        timeout_ms=1000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=origin,
        entries={
            TopicPartition("t", 0): memoryview(
                build_batch(records, compression=compression, **header)
            )
        },
        on_complete=answers.append,
        guards={TopicPartition("t", 0): NOT_REQUIRED},
    )
    bench.broker.replica_manager.flush()
    assert [each.error for each in answers[0].values()] == [ErrorCode.NONE]


async def fill(bench: "Bench") -> None:
    """Offsets 0 to 6, times out of order, the second batch compressed."""
    await bench.create_topic("t", retention_ms="-1")
    append(bench, [1000, 3000, 2000])
    append(bench, [5000, 4000, 5000], Compression.GZIP)
    append(bench, [2500])


async def delete_records(bench: "Bench", offset: int) -> None:
    deleted: list[dict[TopicPartition, tuple[ErrorCode, int]]] = []
    bench.broker.replica_manager.delete_records({TopicPartition("t", 0): offset}, 0, deleted.append)
    assert deleted == [{TopicPartition("t", 0): (ErrorCode.NONE, offset)}]


async def check_specials(
    bench: "Bench", expected: dict[int, tuple[int, int, int, int]], isolation: int = 0
) -> None:
    """Every version answers every special timestamp, known or not, as Kafka does."""
    for version in VERSIONS:
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100):
            answer = UNSUPPORTED
            if version >= FIRST_VERSION.get(timestamp, 12):
                answer = expected[timestamp]
                if version < 4:  # leader epochs came with version 4
                    answer = (*answer[:3], -1)
            found = await ask(bench, timestamp, version, isolation=isolation if version > 1 else 0)
            assert found == answer, (version, timestamp)


async def check_times(bench: "Bench", expected: dict[int, tuple[int, int, int, int]]) -> None:
    for timestamp, answer in expected.items():
        assert await ask(bench, timestamp) == answer, timestamp
        assert await ask(bench, timestamp, 1) == (*answer[:3], -1), timestamp


async def test_an_empty_partition(bench: "Bench") -> None:
    await bench.create_topic("t")
    await check_specials(
        bench,
        {
            -1: (0, -1, 0, 0),
            -2: (0, -1, 0, 0),
            -3: NOTHING,
            -4: (0, -1, 0, 0),
            -5: NOTHING,
            -6: NOTHING,
        },
    )
    await check_times(bench, {0: NOTHING, 1000: NOTHING})


@pytest.mark.parametrize("isolation", [0, 1])
async def test_ends_of_a_partition(bench: "Bench", isolation: int) -> None:
    await fill(bench)
    await check_specials(
        bench,
        {
            -1: (0, -1, 7, 0),
            -2: (0, -1, 0, 0),
            -3: (0, 5000, 3, 0),
            -4: (0, -1, 0, 0),
            -5: NOTHING,
            -6: NOTHING,
        },
        isolation,
    )


async def test_times_in_and_out_of_order(bench: "Bench") -> None:
    await fill(bench)
    await check_times(
        bench,
        {
            0: (0, 1000, 0, 0),
            1000: (0, 1000, 0, 0),
            1001: (0, 3000, 1, 0),
            2000: (0, 3000, 1, 0),
            2001: (0, 3000, 1, 0),
            2500: (0, 3000, 1, 0),
            3000: (0, 3000, 1, 0),
            3001: (0, 5000, 3, 0),
            4000: (0, 5000, 3, 0),
            4500: (0, 5000, 3, 0),
            5000: (0, 5000, 3, 0),
            5001: NOTHING,
        },
    )


async def test_after_records_were_deleted_within_a_batch(bench: "Bench") -> None:
    await fill(bench)
    await delete_records(bench, 4)
    await check_specials(
        bench,
        {
            -1: (0, -1, 7, 0),
            -2: (0, -1, 4, 0),
            -3: (0, 5000, 3, 0),  # deleted, and still answered
            -4: (0, -1, 4, 0),
            -5: NOTHING,
            -6: NOTHING,
        },
    )
    await check_times(
        bench,
        {
            0: (0, 4000, 4, 0),
            2500: (0, 4000, 4, 0),
            4001: (0, 5000, 5, 0),
            5000: (0, 5000, 5, 0),
            5001: NOTHING,
        },
    )


async def test_after_all_records_were_deleted(bench: "Bench") -> None:
    await fill(bench)
    await delete_records(bench, 7)
    await check_specials(
        bench,
        {
            -1: (0, -1, 7, 0),
            -2: (0, -1, 7, 0),
            -3: (0, 5000, 3, 0),
            -4: (0, -1, 7, 0),
            -5: NOTHING,
            -6: NOTHING,
        },
    )
    await check_times(bench, {0: NOTHING, 2500: NOTHING, 5000: NOTHING})


async def test_records_without_timestamps(bench: "Bench") -> None:
    await bench.create_topic("t")
    append(bench, [-1, -1])
    await check_specials(
        bench,
        {
            -1: (0, -1, 2, 0),
            -2: (0, -1, 0, 0),
            -3: (0, -1, 0, 0),
            -4: (0, -1, 0, 0),
            -5: NOTHING,
            -6: NOTHING,
        },
    )
    await check_times(bench, {0: NOTHING, 1000: NOTHING})


async def test_log_append_time(bench: "Bench") -> None:
    """Kafka found the first record of each batch, with the batch's time."""
    await bench.create_topic("t", message_timestamp_type="LogAppendTime")
    append(bench, [1000, 3000, 2000])
    _, first_ms, *_ = await ask(bench, -3)
    while bench.broker.clock.now_ms() <= first_ms:
        pass
    append(bench, [5, 6, 7], Compression.LZ4)
    _, second_ms, *_ = await ask(bench, -3)
    await check_times(
        bench,
        {
            0: (0, first_ms, 0, 0),
            first_ms: (0, first_ms, 0, 0),
            first_ms + 1: (0, second_ms, 3, 0),
            second_ms: (0, second_ms, 3, 0),
            second_ms + 1: NOTHING,
        },
    )
    assert await ask(bench, -3) == (0, second_ms, 3, 0)
    assert await ask(bench, -1) == (0, -1, 6, 0)


@pytest.mark.parametrize(
    ("epoch", "timestamp", "version", "expected"),
    [
        (-2, -1, 4, FENCED),
        (-2, -2, 4, FENCED),
        (-2, -3, 4, UNSUPPORTED),
        (-2, -7, 11, UNSUPPORTED),
        (-2, -3, 11, FENCED),
        (-2, -5, 11, FENCED),
        (-2, 1000, 11, FENCED),
        (0, -1, 4, (0, -1, 7, 0)),
        (0, -3, 11, (0, 5000, 3, 0)),
        (0, 1000, 11, (0, 1000, 0, 0)),
        (1, -1, 4, UNKNOWN_EPOCH),
        (1, -3, 4, UNSUPPORTED),
        (1, -3, 11, UNKNOWN_EPOCH),
        (1, -5, 11, UNKNOWN_EPOCH),
        (1, 1000, 11, UNKNOWN_EPOCH),
    ],
)
async def test_leader_epochs_are_checked_after_versions(
    bench: "Bench", epoch: int, timestamp: int, version: int, expected: tuple[int, ...]
) -> None:
    await fill(bench)
    assert await ask(bench, timestamp, version, epoch=epoch) == expected


@pytest.mark.parametrize("replica_id", [-3, -2, 0, 1, 5])
async def test_replicas_may_ask_too(bench: "Bench", replica_id: int) -> None:
    await fill(bench)
    for timestamp, expected in {
        -1: (0, -1, 7, 0),
        -2: (0, -1, 0, 0),
        -3: (0, 5000, 3, 0),
        -5: NOTHING,
        1000: (0, 1000, 0, 0),
    }.items():
        assert await ask(bench, timestamp, replica_id=replica_id) == expected


async def test_partitions_that_are_not_there(bench: "Bench") -> None:
    await fill(bench)
    assert await ask(bench, -1, partition=1) == (3, -1, -1, -1)
    assert await ask(bench, -1, topic="nope") == (3, -1, -1, -1)
    assert await ask(bench, -7, partition=1) == UNSUPPORTED


async def test_a_partition_named_twice_is_refused_once(bench: "Bench") -> None:
    await fill(bench)
    requested = [
        Request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        for timestamp in (-1, -2, -7)
    ]
    answer = await bench.client.call(
        Request(
            replica_id=-1,
            isolation_level=0,
            topics=[Request.ListOffsetsTopic(name="t", partitions=requested)],
            timeout_ms=1000,
        ),
        11,
    )
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.timestamp, found.offset, found.leader_epoch) == (
        ErrorCode.INVALID_REQUEST,
        -1,
        -1,
        -1,
    )


async def test_committed_and_uncommitted_ends(bench: "Bench") -> None:
    """0 plain, 1 and 2 aborted by 3, 4 open, 5 plain: offsets as Kafka answered them.

    A marker has a time of its own and is found by it.
    """
    await bench.create_topic("t", retention_ms="-1")
    transactional = {"transactional": True, "producer_epoch": 0}
    append(bench, [1000])
    append(bench, [2000], producer_id=0, base_sequence=0, **transactional)
    append(bench, [3000], producer_id=0, base_sequence=1, **transactional)
    end = build_batch(
        [(b"\0\0\0\0", bytes(6), 9000, [])], producer_id=0, control=True, **transactional
    )
    bench.broker.replica_manager.append_records(
        timeout_ms=1000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.COORDINATOR,
        entries={TopicPartition("t", 0): memoryview(end)},
        on_complete=lambda answers: None,
    )
    append(bench, [4000], producer_id=1, base_sequence=0, **transactional)
    append(bench, [5000])
    for isolation, expected in {
        0: {-1: (0, -1, 6, 0), -3: (0, 9000, 3, 0), 1001: (0, 2000, 1, 0), 5001: (0, 9000, 3, 0)},
        1: {-1: (0, -1, 4, 0), -3: (0, 9000, 3, 0), 1001: (0, 2000, 1, 0), 5001: (0, 9000, 3, 0)},
    }.items():
        for timestamp, answer in expected.items():
            assert await ask(bench, timestamp, isolation=isolation) == answer
    append(bench, [10_000])
    assert await ask(bench, -3, isolation=0) == (0, 10_000, 6, 0)
    assert await ask(bench, -3, isolation=1) == NOTHING
    assert await ask(bench, 9001, isolation=1) == NOTHING


async def test_an_end_that_is_not_known_yet_has_an_error_of_its_own_from_version_5(
    bench: "Bench",
) -> None:
    """KIP-207: a leader whose high watermark lies before the start of its epoch."""
    await fill(bench)
    partition = bench.broker.replica_manager.partition_or_error(TopicPartition("t", 0))
    partition.leader_epoch_start_offset = 8
    for version in VERSIONS:
        error = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
        assert await ask(bench, -1, version) == (error, -1, -1, -1)
        assert (await ask(bench, -2, version))[:3] == (0, -1, 0)
