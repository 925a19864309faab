"""The consumer with a real broker, ours or (ODRADEK_TEST_BOOTSTRAP) any other Kafka."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Set

import pytest
import trio

from odradek.client import (
    Admin,
    BatchProducer,
    ClientSettings,
    Consumer,
    ConsumerSettings,
    KafkaClient,
    OffsetAndMetadata,
    RebalanceListener,
)
from odradek.client.admin.admin import NewTopic
from odradek.common.errors import ErrorCode, KafkaError

pytestmark = pytest.mark.clients

TIMESTAMP_MS = int(time.time() * 1000)
PATIENT_SECONDS = 120
PROTOCOLS = ("consumer", "classic")
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


def numbered(first: int, count: int) -> list[tuple[None, bytes, int, tuple[()]]]:
    return [(None, b"%d" % n, TIMESTAMP_MS + n, ()) for n in range(first, first + count)]


def reading_all(**settings) -> ConsumerSettings:
    return ConsumerSettings(auto_offset_reset="earliest", heartbeat_interval_ms=100, **settings)


async def create(
    client: KafkaClient, topic: str, partitions: int = 1, records: int = 10, **configs
):
    """A topic with so many records in each partition, as two batches."""
    await Admin(client).create_topics([NewTopic(topic, partitions, 1, configs=configs)])
    producer = BatchProducer(client)
    for partition in range(partitions):
        for half in (0, 1):
            if records:
                count = records // 2
                await producer.send(topic, partition, numbered(half * count, count))


async def read(consumer: Consumer, count: int) -> list:
    records = []
    with trio.fail_after(PATIENT_SECONDS):
        while len(records) < count:
            records += await consumer.poll()
    return records


async def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    """Poll consumers in turns until a condition holds."""
    with trio.fail_after(PATIENT_SECONDS):
        while not condition():
            for consumer in consumers:
                await consumer.poll(timeout_ms=20)


class Listener(RebalanceListener):
    """Notes what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[int]]] = []
        self.before_revoked: Callable[[], Awaitable[None]] | None = None

    async def on_assigned(self, partitions: Set[tuple[str, int]]) -> None:
        self.calls.append(("assigned", {number for _, number in partitions}))

    async def on_revoked(self, partitions: Set[tuple[str, int]]) -> None:
        if self.before_revoked is not None:
            await self.before_revoked()
        self.calls.append(("revoked", {number for _, number in partitions}))

    async def on_lost(self, partitions: Set[tuple[str, int]]) -> None:
        self.calls.append(("lost", {number for _, number in partitions}))


# --- Without a group ------------------------------------------------------------------------


async def test_assigned_partitions_are_read_from_where_they_are_sought(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, partitions=2)
        async with Consumer(client) as consumer:
            consumer.assign([(topic, 0), (topic, 1)])
            consumer.seek((topic, 0), 7)
            consumer.seek((topic, 1), 3)
            records = await read(consumer, 10)
            assert sorted((r.partition, r.offset, r.value) for r in records) == [
                *((0, n, b"%d" % n) for n in range(7, 10)),
                *((1, n, b"%d" % n) for n in range(3, 10)),
            ]
            assert await consumer.position((topic, 0)) == 10
            await consumer.seek_to_beginning((topic, 0))
            assert [r.offset for r in await read(consumer, 10)] == list(range(10))
            assert await consumer.beginning_offsets([(topic, 1)]) == {(topic, 1): 0}
            assert await consumer.end_offsets([(topic, 1)]) == {(topic, 1): 10}
            found = await consumer.offsets_for_times({(topic, 0): TIMESTAMP_MS + 4})
            assert found[topic, 0].offset == 4


async def test_a_poll_hands_out_no_more_than_it_may_and_goes_on_there(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        async with Consumer(client) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 1)
            with trio.fail_after(PATIENT_SECONDS):
                polls = [[r.offset for r in await consumer.poll(3)] for _ in range(3)]
            assert polls == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
            assert await consumer.poll(timeout_ms=50) == []
            assert consumer.known_position((topic, 0)) == 10


async def test_batches_are_handed_out_undecoded_from_the_position_on(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        async with Consumer(client) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 0)
            with trio.fail_after(PATIENT_SECONDS):
                assert [r.offset for r in await consumer.poll(2)] == [0, 1]
                values = []
                while len(values) < 8:
                    for batch in await consumer.poll_batches():
                        values += batch.values()
                        assert [r.value for r in batch.records()] == values[-len(batch.records()) :]
            assert values == [b"%d" % n for n in range(2, 10)]


async def test_a_paused_partition_is_left_out_until_it_is_resumed(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, partitions=2)
        async with Consumer(client, settings=reading_all()) as consumer:
            consumer.assign([(topic, 0), (topic, 1)])
            consumer.pause((topic, 0))
            assert consumer.paused == {(topic, 0)}
            assert {r.partition for r in await read(consumer, 10)} == {1}
            assert await consumer.poll(timeout_ms=50) == []
            consumer.resume((topic, 0))
            assert {r.partition for r in await read(consumer, 10)} == {0}


async def test_a_record_larger_than_a_fetch_is_read(broker, topic):
    value = bytes(3_000_000)
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, records=0, **{"max.message.bytes": "4000000"})
        await BatchProducer(client).send(topic, 0, [(None, value, TIMESTAMP_MS, ())])
        await BatchProducer(client).send(topic, 0, numbered(1, 1))
        async with Consumer(client, settings=reading_all()) as consumer:
            consumer.assign([(topic, 0)])
            records = await read(consumer, 2)
    assert [r.value for r in records] == [value, b"1"]


@pytest.mark.parametrize(
    ("reset", "expected"),
    [("earliest", 0), ("latest", 10), ("by_duration:PT1H", 0), ("by_duration:PT0S", 10)],
)
async def test_without_an_offset_the_policy_says_where_to_begin(broker, topic, reset, expected):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        settings = ConsumerSettings(auto_offset_reset=reset)
        async with Consumer(client, group_id=f"g-{topic}", settings=settings) as consumer:
            consumer.assign([(topic, 0)])
            with trio.fail_after(PATIENT_SECONDS):
                assert await consumer.position((topic, 0)) == expected


async def test_beyond_the_end_the_policy_says_where_to_go_on(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        async with Consumer(client, settings=reading_all()) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 99)
            assert [r.offset for r in await read(consumer, 10)] == list(range(10))


async def test_without_a_policy_a_missing_offset_is_an_error_until_the_caller_seeks(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        settings = ConsumerSettings(auto_offset_reset="none")
        async with Consumer(client, group_id=f"g-{topic}", settings=settings) as consumer:
            consumer.assign([(topic, 0)])
            with trio.fail_after(PATIENT_SECONDS):
                with pytest.raises(KafkaError, match="auto_offset_reset is 'none'") as raised:
                    await consumer.poll()
                assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
                consumer.seek((topic, 0), 50)
                with pytest.raises(KafkaError, match="at offset 50"):
                    await consumer.poll()
            consumer.seek((topic, 0), 9)
            assert [r.offset for r in await read(consumer, 1)] == [9]


async def test_what_is_produced_later_is_handed_out(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, records=0)
        async with Consumer(client, settings=reading_all()) as consumer:
            consumer.assign([(topic, 0)])
            assert await consumer.position((topic, 0)) == 0
            for n in range(3):
                await BatchProducer(client).send(topic, 0, numbered(n, 1))
                assert [r.value for r in await read(consumer, 1)] == [b"%d" % n]


# --- Commits --------------------------------------------------------------------------------


async def test_offsets_are_committed_with_their_metadata_and_epoch(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        settings = reading_all(enable_auto_commit=False)
        async with Consumer(client, group_id=f"g-{topic}", settings=settings) as consumer:
            consumer.assign([(topic, 0)])
            assert await consumer.position((topic, 0)) == 0
            assert await consumer.committed([(topic, 0)]) == {}
            await consumer.commit({(topic, 0): OffsetAndMetadata(4, 0, "four")})
            assert await consumer.committed([(topic, 0)]) == {
                (topic, 0): OffsetAndMetadata(4, 0, "four")
            }
            await read(consumer, 10)
            await consumer.commit()
            found = await consumer.committed([(topic, 0)])
            assert found[topic, 0].offset == 10
            assert found[topic, 0].leader_epoch >= 0


async def test_the_record_at_hand_is_not_committed_before_the_next_is_requested(broker, topic):
    group = f"g-{topic}"
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)

        async def fail_at_the_seventh() -> None:
            async with Consumer(client, group_id=group, settings=reading_all()) as consumer:
                consumer.assign([(topic, 0)])
                async for record in consumer:
                    if record.offset == 6:
                        raise RuntimeError("cannot handle it")

        with pytest.raises(RuntimeError, match="cannot handle"), trio.fail_after(PATIENT_SECONDS):
            await fail_at_the_seventh()
        async with Consumer(client, group_id=group, settings=reading_all()) as consumer:
            assert (await consumer.committed([(topic, 0)]))[topic, 0].offset == 6


async def test_offsets_are_committed_every_interval(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        settings = reading_all(auto_commit_interval_ms=10)
        async with Consumer(client, group_id=f"g-{topic}", settings=settings) as consumer:
            consumer.assign([(topic, 0)])
            await read(consumer, 10)
            await consumer.poll(timeout_ms=1)
            with trio.fail_after(PATIENT_SECONDS):
                committed = {}
                while committed.get((topic, 0)) is None or committed[topic, 0].offset < 10:
                    committed = await consumer.committed([(topic, 0)])


async def test_who_has_no_group_cannot_commit(broker, topic):
    async with KafkaClient(broker.bootstrap) as client, Consumer(client) as consumer:
        with pytest.raises(ValueError, match="no group_id"):
            await consumer.commit({(topic, 0): 1})


# --- Groups ---------------------------------------------------------------------------------


@both_protocols
async def test_two_members_share_and_the_one_that_stays_gets_all(broker, topic, protocol):
    group = f"g-{topic}"
    settings = reading_all(group_protocol=protocol)
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, partitions=4)
        first, second = Listener(), Listener()
        one = Consumer(client, group_id=group, topics=[topic], listener=first, settings=settings)
        async with one:
            await poll_until(lambda: len(one.assignment) == 4, one)
            two = Consumer(
                client, group_id=group, topics=[topic], listener=second, settings=settings
            )
            async with two:
                await poll_until(lambda: len(one.assignment) == len(two.assignment) == 2, one, two)
                assert one.assignment | two.assignment == {(topic, n) for n in range(4)}
            await poll_until(lambda: len(one.assignment) == 4, one)
        assert first.calls[0] == ("assigned", {0, 1, 2, 3})
        assert first.calls[-1] == ("revoked", {0, 1, 2, 3})
        assert [name for name, _ in second.calls] == ["assigned", "revoked"]


@both_protocols
async def test_partitions_go_only_when_their_listener_is_done(broker, topic, protocol):
    group = f"g-{topic}"
    settings = reading_all(group_protocol=protocol, enable_auto_commit=False)
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, partitions=2)
        listener = Listener()
        one = Consumer(client, group_id=group, topics=[topic], listener=listener, settings=settings)
        two = Consumer(client, group_id=group, topics=[topic], settings=settings)

        async def commit_all() -> None:
            for _ in range(3):
                assert await two.poll(timeout_ms=100) == []
                assert not two.assignment
            await one.commit()

        async with one:
            await read(one, 20)
            listener.before_revoked = commit_all
            async with two:
                await poll_until(lambda: len(two.assignment) == 1, one, two)
                listener.before_revoked = None
                assert await two.poll(timeout_ms=50) == []
                ((_, number),) = two.assignment
                assert await two.position((topic, number)) == 10


@both_protocols
async def test_a_pattern_finds_topics_and_those_that_come_later(broker, topic, protocol):
    settings = reading_all(group_protocol=protocol)
    # How often a client looks for new topics is its metadata's age.
    async with KafkaClient(broker.bootstrap, ClientSettings(metadata_max_age_ms=500)) as client:
        await create(client, f"{topic}-a")
        await create(client, f"x-{topic}")
        async with Consumer(
            client, group_id=f"g-{topic}", topic_pattern=f"{topic}-.*", settings=settings
        ) as consumer:
            assert {r.topic for r in await read(consumer, 10)} == {f"{topic}-a"}
            await create(client, f"{topic}-b")
            assert {r.topic for r in await read(consumer, 10)} == {f"{topic}-b"}


@both_protocols
async def test_partitions_that_come_later_are_read(broker, topic, protocol):
    settings = reading_all(group_protocol=protocol)
    async with KafkaClient(broker.bootstrap, ClientSettings(metadata_max_age_ms=500)) as client:
        await create(client, topic)
        async with Consumer(
            client, group_id=f"g-{topic}", topics=[topic], settings=settings
        ) as consumer:
            await read(consumer, 10)
            await Admin(client).create_partitions(topic, 3)
            await poll_until(lambda: len(consumer.assignment) == 3, consumer)


@both_protocols
async def test_who_does_not_poll_loses_its_partitions_and_comes_back(broker, topic, protocol):
    group = f"g-{topic}"
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, partitions=2)
        listener = Listener()
        late = Consumer(
            client,
            group_id=group,
            topics=[topic],
            listener=listener,
            settings=reading_all(group_protocol=protocol, max_poll_interval_ms=1_000),
        )
        other = Consumer(
            client, group_id=group, topics=[topic], settings=reading_all(group_protocol=protocol)
        )
        async with late, other:
            await poll_until(
                lambda: len(late.assignment) == len(other.assignment) == 1, late, other
            )
            listener.calls.clear()
            await poll_until(lambda: len(other.assignment) == 2, other)
            await poll_until(
                lambda: len(late.assignment) == len(other.assignment) == 1, late, other
            )
            assert [name for name, _ in listener.calls] == ["lost", "assigned"]


@both_protocols
async def test_a_static_member_that_restarts_gets_what_it_had_and_nobody_else_notices(
    broker, topic, protocol
):
    group = f"g-{topic}"
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, partitions=4)

        def member(number: int, listener: Listener | None = None) -> Consumer:
            settings = reading_all(group_protocol=protocol, group_instance_id=f"i-{number}")
            return Consumer(
                client, group_id=group, topics=[topic], listener=listener, settings=settings
            )

        listener = Listener()
        async with member(0, listener) as stays:
            async with member(1) as before:
                await poll_until(
                    lambda: len(stays.assignment) == len(before.assignment) == 2, stays, before
                )
                owned = before.assignment
            calls = list(listener.calls)
            async with member(1) as after:
                await poll_until(lambda: bool(after.assignment), after, stays)
                assert after.assignment == owned
            assert listener.calls == calls


@both_protocols
async def test_an_instance_id_that_is_taken_is_an_error_for_one_of_the_two(broker, topic, protocol):
    settings = reading_all(group_protocol=protocol, group_instance_id="only")
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        one = Consumer(client, group_id=f"g-{topic}", topics=[topic], settings=settings)
        two = Consumer(client, group_id=f"g-{topic}", topics=[topic], settings=settings)
        async with one:
            await read(one, 10)
            async with two:
                with pytest.raises(KafkaError) as raised:
                    await poll_until(lambda: False, two, one)
    expected = {
        "consumer": ErrorCode.UNRELEASED_INSTANCE_ID,
        "classic": ErrorCode.FENCED_INSTANCE_ID,
    }
    assert raised.value.code == expected[protocol]


async def test_an_assignor_that_the_broker_has_not_is_an_error(broker, topic):
    settings = reading_all(group_remote_assignor="mine")
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        async with Consumer(
            client, group_id=f"g-{topic}", topics=[topic], settings=settings
        ) as consumer:
            with pytest.raises(KafkaError) as raised, trio.fail_after(PATIENT_SECONDS):
                await consumer.poll()
    assert raised.value.code == ErrorCode.UNSUPPORTED_ASSIGNOR


async def test_two_members_without_a_common_assignor_get_an_error(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        group = f"g-{topic}"
        one, two = (
            Consumer(
                client,
                group_id=group,
                topics=[topic],
                settings=reading_all(
                    group_protocol="classic", partition_assignment_strategy=(name,)
                ),
            )
            for name in ("range", "roundrobin")
        )
        async with one:
            await read(one, 10)
            async with two:
                with pytest.raises(KafkaError) as raised, trio.fail_after(PATIENT_SECONDS):
                    await two.poll()
    assert raised.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"group_protocol": "share"}, "group_protocol='share' is neither"),
        ({"auto_offset_reset": "first"}, "auto_offset_reset='first' is none of"),
        ({"isolation_level": 2}, "isolation_level=2"),
        ({"max_poll_interval_ms": 0}, "max_poll_interval_ms=0 is not possible"),
        ({"partition_assignment_strategy": ("sticky",)}, "'sticky' is none of"),
        ({"heartbeat_interval_ms": 50_000}, "must be less than session_timeout_ms=45000"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Consumer(KafkaClient("127.0.0.1:1"), settings=ConsumerSettings(**settings))


def test_topics_without_a_group_are_refused():
    with pytest.raises(ValueError, match="give a group_id"):
        Consumer(KafkaClient("127.0.0.1:1"), topics=["t"])
