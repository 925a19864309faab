"""The loads that are profiled. Each repeats one exchange with the broker for some seconds.

They are as plain as can be, so that the client, which shares the machine, takes little of it:
requests are made before, and of the answers of a kind that was decoded once only every
hundredth is decoded again.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ....bench.loads.wire import Wire, frame_of
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.headers import read_response_header
from ..measure import batch_of

PRODUCE_VERSION, FETCH_VERSION, CREATE_TOPICS_VERSION = 9, 12, 7
SMALL_VALUE_BYTES = 100
BULK_BYTES = 16_384
BULK_CONNECTIONS, BULK_DEPTH = 4, 4
STORED_BATCHES = 4096
FETCH_BYTES = 1 << 20
LOOK_AT_EVERY = 100
WAIT_MS_MAX = 10_000


class BrokerAddress(NamedTuple):
    """Where it is."""

    host: str
    port: int


class ProfiledLoad(NamedTuple):
    """One load.

    Attributes:
        name: of its files and rows.
        title: for people.
        prepare: makes topics and records; gets the broker.
        run: repeats the exchange until that moment (`time.monotonic`); returns how often.
    """

    name: str
    title: str
    prepare: Callable[[BrokerAddress], None]
    run: Callable[[BrokerAddress, float], int]


def produce_request(topic: str, batch: bytes) -> Any:
    """A Produce of one batch to partition 0."""
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(index=0, records=memoryview(batch))
    data = request.TopicProduceData(name=topic, partition_data=[partition])
    return request(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=[data])


def fetch_request(topic: str, offset: int, max_wait_ms: int, max_bytes: int) -> Any:
    """A Fetch of partition 0, without a session."""
    request = messages.FetchRequest
    partition = request.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return request(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[request.FetchTopic(topic=topic, partitions=[partition])],
        rack_id="",
    )


def make_topic(broker: BrokerAddress, name: str) -> None:
    """Create a topic of one partition."""
    request = messages.CreateTopicsRequest
    wire = Wire(*broker)
    topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (made,) = wire.ask(request(topics=[topic]), CREATE_TOPICS_VERSION).topics
    wire.close()
    if made.error_code:
        raise SystemExit(f"the topic {name} could not be made: error {made.error_code}")


def small_batch() -> bytes:
    """One record of 100 bytes."""
    return bytes(batch_of(1, SMALL_VALUE_BYTES, time.time_ns() // 1_000_000))


def bulk_batch() -> bytes:
    """A batch of 16 KB, of records of 100 bytes."""
    return bytes(batch_of(BULK_BYTES, SMALL_VALUE_BYTES, time.time_ns() // 1_000_000))


def decode_answer(answer: memoryview, api_key: ApiKey, version: int) -> Any:
    """The message of an answer without its length."""
    _, position = read_response_header(answer, api_key, version)
    return messages.response_message(api_key).decoder(version)(answer, position)[0]


def offset_of_produce(frame: memoryview) -> int:
    """The base offset of a Produce's answer; the program ends if it tells of an error."""
    (topic,) = decode_answer(frame, ApiKey.PRODUCE, PRODUCE_VERSION).responses
    (partition,) = topic.partition_responses
    if partition.error_code:
        raise SystemExit(f"a Produce was answered with error {partition.error_code}")
    return int(partition.base_offset)


def bytes_of_fetch(frame: memoryview) -> int:
    """How many bytes of records a Fetch's answer has; the program ends if it is an error."""
    answer = decode_answer(frame, ApiKey.FETCH, FETCH_VERSION)
    (topic,) = answer.responses
    (partition,) = topic.partitions
    if answer.error_code or partition.error_code:
        raise SystemExit(f"a Fetch was answered with error {partition.error_code}")
    return len(partition.records)


def produce_load(connections: int, depth: int, batch: Callable[[], bytes]) -> Any:
    """Repeats a Produce on some connections, with so many in flight on each."""

    def run(broker: BrokerAddress, topic: str, until: float) -> int:
        frame = frame_of(produce_request(topic, batch()), PRODUCE_VERSION)
        wires = [Wire(*broker) for _ in range(connections)]
        answered = 0

        def take(wire: Wire) -> None:
            nonlocal answered
            answer = wire.receive()
            if answered % LOOK_AT_EVERY == 0:
                offset_of_produce(answer)
            answered += 1

        for wire in wires:
            wire.send(frame * depth)
        for ready in each_ready(wires):
            for wire in ready:
                take(wire)
            if time.monotonic() >= until:
                break
            for wire in ready:
                wire.send(frame)
        for wire in wires:
            wire.close()
        return answered

    return run


def each_ready(wires: list[Wire]) -> Iterable[list[Wire]]:
    """The connections that have something to read, again and again; one alone just blocks."""
    if len(wires) == 1:
        while True:
            yield wires
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            selector.register(wire.socket, selectors.EVENT_READ, wire)
        while True:
            yield [key.data for key, _ in selector.select()]


def on_topic(
    name: str, title: str, run: Callable[[BrokerAddress, str, float], int]
) -> ProfiledLoad:
    """A load with a topic of its own, named after it."""
    return ProfiledLoad(
        name,
        title,
        lambda broker: make_topic(broker, name),
        lambda broker, until: run(broker, name, until),
    )


def fill(broker: BrokerAddress) -> None:
    """Store some 60 MB for `fetch_bulk`."""
    make_topic(broker, "fetch_bulk")
    wire, frame = Wire(*broker), frame_of(produce_request("fetch_bulk", bulk_batch()), 9)
    for _ in range(STORED_BATCHES):
        wire.send(frame)
        answer = wire.receive()
    offset_of_produce(answer)
    wire.close()


def fetch_bulk(broker: BrokerAddress, until: float) -> int:
    """Read what is stored, 1 MB at a time, from its beginning again and again."""
    records = len_of_records(bulk_batch())
    batches = FETCH_BYTES // len(bulk_batch())
    starts = range(0, (STORED_BATCHES - batches) * records, batches * records)
    frames = [
        frame_of(fetch_request("fetch_bulk", start, 0, FETCH_BYTES), FETCH_VERSION)
        for start in starts
    ]
    wire, answered = Wire(*broker), 0
    while time.monotonic() < until:
        wire.send(frames[answered % len(frames)])
        answer = wire.receive()
        if answered % LOOK_AT_EVERY == 0 and bytes_of_fetch(answer) < FETCH_BYTES // 2:
            raise SystemExit("a Fetch brought less than was stored")
        answered += 1
    wire.close()
    return answered


def len_of_records(batch: bytes) -> int:
    """How many records a batch has, by its header."""
    return int.from_bytes(batch[57:61], "big")


def fetch_woken(broker: BrokerAddress, topic: str, until: float) -> int:
    """A Fetch that waits, and a Produce that wakes it."""
    frame = frame_of(produce_request(topic, small_batch()), PRODUCE_VERSION)
    reader, writer, answered, offset = Wire(*broker), Wire(*broker), 0, 0
    while time.monotonic() < until:
        reader.send(frame_of(fetch_request(topic, offset, WAIT_MS_MAX, FETCH_BYTES), FETCH_VERSION))
        writer.send(frame)
        produced = writer.receive()
        if answered % LOOK_AT_EVERY == 0:
            offset = offset_of_produce(produced)
        if answered % LOOK_AT_EVERY == 0 and not bytes_of_fetch(reader.receive()):
            raise SystemExit("a Fetch was woken and brought nothing")
        if answered % LOOK_AT_EVERY:
            reader.receive()
        answered += 1
        offset += 1
    reader.close()
    writer.close()
    return answered


LOADS: tuple[ProfiledLoad, ...] = (
    on_topic("produce_1", "small Produce, 1 connection", produce_load(1, 1, small_batch)),
    on_topic("produce_16", "small Produce, 16 connections", produce_load(16, 1, small_batch)),
    on_topic(
        "produce_bulk",
        "bulk Produce: batches of 16 KB, 4 connections with 4 in flight",
        produce_load(BULK_CONNECTIONS, BULK_DEPTH, bulk_batch),
    ),
    ProfiledLoad("fetch_bulk", "bulk Fetch: 1 MB at a time, 1 connection", fill, fetch_bulk),
    on_topic("fetch_woken", "a Fetch that waits and the Produce that wakes it", fetch_woken),
)
"""In the page's order."""
