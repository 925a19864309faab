"""What is gone is gone from memory at once, without the garbage collector.

A broker's collector sets aside what has survived it (`runtime/collector.py`): what is left in a
cycle of references stays until as much again has come. So connections, topics, groups and
transactions leave no cycle behind, and nothing remembers them.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from support.one_broker import SECONDS_MAX, Client, make, run_with
from support.raw_connection import build_batch

from odradek.broker.broker import Broker
from odradek.common.topic_partition import TopicPartition
from odradek.controller.topics.planning import TopicCreation
from odradek.protocol import messages
from odradek.runtime.timers import Timer

TOPIC = "orders"
WARM_UP = 3
ROUNDS = 20
"""Half of them is more than a list of watchers keeps of completed operations
(`WATCHERS_KEPT_MIN`)."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
NOW_MS = 1_000
LOOK_SECONDS_MAX = 10.0
"""Connections are closed and logs deleted soon; the fetch of one that has gone waits to its end."""

Act = Callable[[Broker, int], Awaitable[None]]


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Whatever is in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# -- what comes and goes ------------------------------------------------------------------------


async def wait_until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(SECONDS_MAX):
        while not is_so():
            await trio.lowlevel.checkpoint()


def bootstrap(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": f"127.0.0.1:{broker.server.bound[0].port}"}


async def create(broker: Broker, name: str) -> bytes:
    """Make a topic and wait until it can be written to; returns its id."""
    creation = TopicCreation(name, assignments=[(0, (broker.broker_id,))])
    (created,) = await broker.controller.create_topics([creation])
    assert created.plan is not None
    partitions = broker.replica_manager.partitions
    await wait_until(lambda: TopicPartition(name, 0) in partitions)
    await wait_until(lambda: broker.metadata_cache.contains(name))
    return created.plan.topic_id


async def use(broker: Broker, topic: str) -> None:
    """A connection whose requests come again, so that memos know them."""
    produce, fetch = messages.ProduceRequest, messages.FetchRequest
    batch = build_batch([b"value"], timestamp_ms=NOW_MS)
    data = produce.PartitionProduceData(index=0, records=batch)
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    client = await Client.to(broker)
    for _ in range(3):
        written = await client.call(
            9,
            produce(
                acks=-1,
                timeout_ms=1000,
                topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])],
            ),
        )
        assert written.responses[0].partition_responses[0].error_code == 0
        read = await client.call(
            11,
            fetch(
                max_wait_ms=0,
                min_bytes=0,
                topics=[fetch.FetchTopic(topic=topic, partitions=[part])],
            ),
        )
        assert read.responses[0].partitions[0].records
        assert (await client.call(12, messages.MetadataRequest(topics=None))).topics
    await client.close()


async def a_connection(broker: Broker, _: int) -> None:
    await use(broker, TOPIC)


async def a_request_broken_off(broker: Broker, _: int) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", broker.server.bound[0].port)
    await stream.send_all(b"\0\0\0\x20\0\x12")
    await stream.aclose()


async def a_topic(broker: Broker, number: int) -> None:
    name = f"passing-{number}"
    topic_id = await create(broker, name)
    await use(broker, name)
    await broker.controller.delete_topics([topic_id], timeout_ms=SECONDS_MAX * 1000)
    await wait_until(lambda: not broker.metadata_cache.contains(name))


async def a_group(broker: Broker, number: int) -> None:
    """Of either protocol, by turns."""

    def live_and_die() -> None:
        name = f"passing-{number}"
        settings = {
            **bootstrap(broker),
            "group.id": name,
            "group.protocol": "consumer" if number % 2 else "classic",
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        assert consumer.consume(1, SECONDS_MAX)
        consumer.commit(asynchronous=False)
        consumer.close()
        admin = AdminClient(bootstrap(broker))
        for future in admin.delete_consumer_groups([name]).values():
            future.result(SECONDS_MAX)

    await trio.to_thread.run_sync(live_and_die)


async def a_transaction(broker: Broker, number: int) -> None:
    """Committed and aborted by turns, each by a successor of the last one's producer."""

    def begin_and_end() -> None:
        producer = Producer({**bootstrap(broker), "transactional.id": "x", "linger.ms": 0})
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce(TOPIC, b"value")
        assert producer.flush(SECONDS_MAX) == 0
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(SECONDS_MAX)

    await trio.to_thread.run_sync(begin_and_end)


# -- what stays ---------------------------------------------------------------------------------


def objects() -> Counter[str]:
    """How many objects of the broker's own classes there are, by class.

    But for timers: one that was cancelled stays, without its callback, until its time has come or
    there are too many.
    """
    # A class may have a descriptor called __module__, whose name is no class's of ours.
    kinds = (type(each) for each in gc.get_objects() if type(each) is not Timer)
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter(name for name in names if name.startswith("odradek."))


async def what_grew(before: Counter[str]) -> dict[str, int]:
    """What there is more of for every other round, once all that ends by itself has ended."""
    grown = {"not looked yet": 0}
    with trio.move_on_after(LOOK_SECONDS_MAX):
        while grown:
            await trio.lowlevel.checkpoint()
            more = objects() - before
            grown = {name: count for name, count in more.items() if count >= ROUNDS // 2}
    return grown


@pytest.mark.parametrize(
    "act",
    [a_connection, a_request_broken_off, a_topic, a_group, a_transaction],
    ids=lambda act: act.__name__,
)
@pytest.mark.usefixtures("uncollected")
async def test_nothing_stays_of(act: Act, tmp_path: Path) -> None:
    broker = await make(tmp_path, SETTINGS)

    async def compare() -> None:
        await create(broker, TOPIC)
        await use(broker, TOPIC)
        for number in range(WARM_UP):
            await act(broker, number)
        before = objects()
        for number in range(WARM_UP, WARM_UP + ROUNDS):
            await act(broker, number)
        assert await what_grew(before) == {}

    await run_with(broker, compare)
