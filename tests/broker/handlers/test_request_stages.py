"""Every request goes through every stage, however often it was sent before.

The same requests are sent first and again and again, with their connection's memos and with
these taken away, under an authorizer, a throttle and hooks; answers, bytes and exported counters
are those of the slow path.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.broker.metrics.readers import request_samples
from odradek.broker.start import metrics_context
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench, Client

TOPIC, PARTITIONS = "t", 3
TIMES = 4
BATCH = bytes(build_batch([(None, b"v" * 100, 1_700_000_000_000, [])]))
REPEATED = {
    ApiKey.PRODUCE: range(3, 14),
    ApiKey.FETCH: range(4, 19),
    ApiKey.LIST_OFFSETS: range(1, 12),
}
OTHERS = sorted(set(REGISTRATIONS) - set(REPEATED))


def produce(topic_id: bytes, version: int, partitions: Sequence[int], acks: int = 1) -> Any:
    request = messages.ProduceRequest
    data = [
        request.PartitionProduceData(index=each, records=memoryview(BATCH)) for each in partitions
    ]
    named = {"topic_id": topic_id} if version >= 13 else {"name": TOPIC}
    topic = request.TopicProduceData(partition_data=data, **named)
    return request(acks=acks, timeout_ms=1000, topic_data=[topic])


def fetch(topic_id: bytes, version: int, partitions: Sequence[int]) -> Any:
    request = messages.FetchRequest
    requested = [
        request.FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1 << 20)
        for each in partitions
    ]
    named = {"topic_id": topic_id} if version >= 13 else {"topic": TOPIC}
    return request(max_wait_ms=0, topics=[request.FetchTopic(partitions=requested, **named)])


def list_offsets(topic_id: bytes, version: int, partitions: Sequence[int]) -> Any:
    request = messages.ListOffsetsRequest
    requested = [
        request.ListOffsetsPartition(partition_index=each, timestamp=-1) for each in partitions
    ]
    topic = request.ListOffsetsTopic(name=TOPIC, partitions=requested)
    return request(replica_id=-1, topics=[topic])


MAKE = {ApiKey.PRODUCE: produce, ApiKey.FETCH: fetch, ApiKey.LIST_OFFSETS: list_offsets}


def sent(client: Client) -> bytes:
    """What has been answered, as bytes."""
    output = client.connection.output
    data = b"".join(part.read() if hasattr(part, "read") else bytes(part) for part in output)
    output.clear()
    client.connection.note_sent()
    return data


def errors_in(answer: Any) -> list[int]:
    """The error codes of an answer's partitions."""
    topics = getattr(answer, "responses", None) or getattr(answer, "topics", ())
    return [
        part.error_code
        for topic in topics
        for part in getattr(topic, "partition_responses", None) or topic.partitions
    ]


def exported(bench: Bench) -> Counter[tuple[str, tuple[str, ...]]]:
    """The counters of requests that a scrape of the metrics shows."""
    source = metrics_context(bench.broker)
    return Counter(
        {
            (name, labels): value
            for name, labels, value in request_samples(source)
            if name.endswith("_total")
        }
    )


def stats(bench: Bench) -> Counter[str]:
    """What the broker has counted of the topic."""
    found = bench.broker.replica_manager.topic_stats.find(TOPIC)
    assert found is not None
    names = (
        "total_produce_requests",
        "total_fetch_requests",
        "messages_in",
        "bytes_in",
        "bytes_out",
    )
    return Counter({name: getattr(found, name) for name in names})


def known(client: Client) -> int:
    """How many requests the connection remembers."""
    return sum(map(len, client.connection.memos.values()))


async def filled(bench: Bench) -> bytes:
    """A topic with a record in each partition; its id."""
    topic_id = await bench.create_topic(TOPIC, PARTITIONS)
    writer = bench.another_client("writer")
    await writer.call(produce(topic_id, 13, range(PARTITIONS)), 13)
    return topic_id


def without_offsets(answer: Any) -> Any:
    """A Produce answer but for its offsets, of which each request gets its own."""
    if isinstance(answer, messages.ProduceResponse):
        for topic in answer.responses:
            for part in topic.partition_responses:
                assert part.base_offset >= 0
                part.base_offset = 0
    if isinstance(answer, messages.ListOffsetsResponse):
        assert all(part.offset >= 0 for topic in answer.topics for part in topic.partitions)
    return answer


# -- the APIs that are remembered ------------------------------------------------------------


@pytest.mark.parametrize("api_key", REPEATED)
@pytest.mark.parametrize("partitions", [(0,), (2, 0, 1)], ids=["one", "several"])
async def test_a_repeated_request_is_answered_and_counted_as_on_the_slow_path(
    bench: Bench, api_key: ApiKey, partitions: Sequence[int]
) -> None:
    topic_id = await filled(bench)
    for version in REPEATED[api_key]:
        await require_equal_to_slow_path(bench, topic_id, api_key, version, partitions)


async def require_equal_to_slow_path(
    bench: Bench, topic_id: bytes, api_key: ApiKey, version: int, partitions: Sequence[int]
) -> None:
    """New connections send the request several times, one with and one without its memos."""
    fast, slow = bench.another_client("test"), bench.another_client("test")
    counted: dict[Client, list[Any]] = {fast: [], slow: []}
    answers: dict[Client, list[Any]] = {fast: [], slow: []}
    for _ in range(TIMES):
        for client in (fast, slow):
            slow.connection.memos.clear()
            before = exported(bench), stats(bench)
            client.send(MAKE[api_key](topic_id, version, partitions), version)
            frame = sent(client)
            client.connection.output.append(frame)
            answers[client].append(without_offsets(await client.receive(api_key, version)))
            client.connection.output.clear()
            counted[client].append((exported(bench) - before[0], stats(bench) - before[1]))
            assert len(frame) == int.from_bytes(frame[:4], "big") + 4
    if api_key is not ApiKey.FETCH or version >= 7:
        assert known(fast) == 1, f"version {version}"
    assert answers[fast] == answers[slow], f"version {version}"
    assert counted[fast] == counted[slow], f"version {version}"
    (errors,) = {tuple(errors_in(answer)) for answer in answers[fast]}
    assert errors == (ErrorCode.NONE,) * len(partitions), f"version {version}"
    none = [
        count
        for delta, _ in counted[fast]
        for (name, labels), count in delta.items()
        if "errors_total" in name and labels[1] == "NONE"
    ]
    whole = 1 if api_key is ApiKey.FETCH and version >= 7 else 0
    assert none == [len(partitions) + whole] * TIMES, f"version {version}"


@pytest.mark.parametrize("api_key", REPEATED)
async def test_a_repeated_request_is_authorized_as_the_first_one(
    bench: Bench, api_key: ApiKey
) -> None:
    topic_id = await filled(bench)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    async def errors(client: Client, version: int, times: int) -> list[int]:
        request = MAKE[api_key](topic_id, version, (0,))
        found: list[int] = []
        for _ in range(times):
            found += errors_in(await client.call(request, version))
            sent(client)
        return found

    for version in REPEATED[api_key]:
        client = bench.another_client("test")
        bench.authorize_by(lambda request, operation, kind, name: name != TOPIC)
        assert await errors(client, version, 3) == [refused] * 3, f"version {version}"
        assert not known(client), f"version {version}"
        bench.authorize_by(lambda request, operation, kind, name: True)
        assert await errors(client, version, 3) == [ErrorCode.NONE] * 3, f"version {version}"
        bench.authorize_by(lambda request, operation, kind, name: name != TOPIC)
        assert await errors(client, version, 3) == [refused] * 3, f"version {version}"


@pytest.mark.parametrize("api_key", REPEATED)
async def test_what_changes_between_two_equal_requests_is_seen(
    bench: Bench, api_key: ApiKey
) -> None:
    topic_id = await filled(bench)
    version = REPEATED[api_key][-1]
    broker = bench.broker
    partition = broker.replica_manager.partition_or_error(TopicPartition(TOPIC, 0))

    async def only_error() -> int:
        request = MAKE[api_key](topic_id, version, (0,))
        (error,) = errors_in(await bench.client.call(request, version))
        sent(bench.client)
        return error

    assert [await only_error() for _ in range(3)] == [ErrorCode.NONE] * 3
    assert known(bench.client) == 1
    epoch = broker.admission.epoch
    broker.replica_manager.take_offline([partition.topic_partition])
    assert broker.admission.epoch > epoch
    assert await only_error() == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("hook", ["on_request", "on_answer", "on_framed", "throttle"])
@pytest.mark.parametrize("api_key", REPEATED)
async def test_a_hook_and_a_throttle_see_what_was_remembered_before(
    bench: Bench, api_key: ApiKey, hook: str
) -> None:
    topic_id = await filled(bench)
    version = REPEATED[api_key][-1]
    request = MAKE[api_key](topic_id, version, (0,))
    for _ in range(2):
        await bench.client.call(request, version)
        sent(bench.client)
    assert known(bench.client) == 1
    seen = Watch()
    bench.broker.dispatcher.use_hooks(**{hook: getattr(seen, hook)})
    for _ in range(3):
        assert errors_in(await bench.client.call(request, version)) == [ErrorCode.NONE]
        sent(bench.client)
    assert seen.seen == [api_key] * 3
    bench.broker.dispatcher.use_hooks()
    assert errors_in(await bench.client.call(request, version)) == [ErrorCode.NONE]
    assert seen.seen == [api_key] * 3


@pytest.mark.parametrize("api_key", REPEATED)
async def test_a_throttled_connection_is_answered_and_then_muted(
    bench: Bench, api_key: ApiKey
) -> None:
    topic_id = await filled(bench)
    version = REPEATED[api_key][-1]
    client, request = bench.client, MAKE[api_key](topic_id, version, (0,))
    await client.call(request, version)
    sent(client)
    bench.broker.dispatcher.use_hooks(throttle=lambda request, response: 30)
    assert (await client.call(request, version)).throttle_time_ms == 30
    sent(client)
    client.send(request, version)
    assert client.connection.is_muted
    assert client.connection.backlog
    assert not client.connection.output
    with trio.fail_after(60):
        await client.woken()
    assert not client.connection.is_held
    client.connection.process_backlog()
    bench.broker.server.finish_outside_work()
    assert (await client.receive(api_key, version)).throttle_time_ms == 30
    assert not client.connection.backlog


async def test_a_throttled_client_is_served_on_after_the_time(bench: Bench) -> None:
    """Over TCP: what it sends meanwhile is neither lost nor handled."""
    await filled(bench)
    broker, handled_at = bench.broker, []

    def throttle(request: Any, response: Any) -> int:
        handled_at.append(broker.clock.monotonic_ms())
        return 20

    broker.dispatcher.use_hooks(throttle=throttle)
    (bound,) = broker.server.bound
    stream = await trio.open_tcp_stream("127.0.0.1", bound.port)
    request = list_offsets(b"", 5, (0,))
    body = b"".join(messages.ListOffsetsRequest.encoder(5)(request))
    async with stream:
        for correlation_id in range(3):
            frame = request_header(ApiKey.LIST_OFFSETS, 5, correlation_id, "test") + body
            await stream.send_all(struct.pack(">i", len(frame)) + frame)
        received = b""
        answered: list[int] = []
        with trio.fail_after(60):
            while len(answered) < 3:
                received += await stream.receive_some()
                while len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4]):
                    answered.append(int.from_bytes(received[4:8]))
                    received = received[4 + int.from_bytes(received[:4]) :]
    assert answered == [0, 1, 2]
    assert len(handled_at) == 3
    assert all(later - earlier >= 20 for earlier, later in itertools.pairwise(handled_at))


class Watch:
    """Hooks that look and change nothing."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_request(self, request: Any) -> bool:
        self.seen.append(request.api_key)
        return False

    def on_answer(self, request: Any, response: Any) -> Any:
        self.seen.append(request.api_key)
        return response

    def on_framed(self, request: Any, buffers: list[Any]) -> bool:
        self.seen.append(request.api_key)
        return False

    def throttle(self, request: Any, response: Any) -> int:
        self.seen.append(request.api_key)
        return 0


@pytest.mark.parametrize("partitions", [(0,), (2, 0, 1)], ids=["one", "several"])
@pytest.mark.parametrize("version_of", [0, -1], ids=["oldest", "newest"])
@pytest.mark.parametrize("api_key", REPEATED)
async def test_a_request_that_differs_in_a_byte_is_answered_as_on_the_slow_path(
    bench: Bench, api_key: ApiKey, version_of: int, partitions: Sequence[int]
) -> None:
    """Whatever the byte is: an answer, a connection that is closed, or one that waits."""
    topic_id = await filled(bench)
    version = REPEATED[api_key][version_of]
    request = MAKE[api_key](topic_id, version, partitions)
    for _ in range(3):
        await bench.client.call(request, version)
        sent(bench.client)
    rng = random.Random(api_key * 100 + version)
    body = b"".join(bytes(part) for part in type(request).encoder(version)(request))
    frame = request_header(api_key, version, 77, "test") + body
    knew = known(bench.client)
    outcomes: Counter[str] = Counter()
    for at in range(len(frame)):
        for value in (frame[at] ^ 1, rng.randrange(256)):
            mutated = bytearray(frame)
            mutated[at] = value
            seen = []
            for memos in (dict(bench.client.connection.memos), {}):
                client = bench.another_client("test")
                client.connection.memos = memos
                ends = [bench.log_end_offset(TOPIC, each) for each in range(PARTITIONS)]
                client.connection.process([memoryview(bytearray(mutated))])
                bench.broker.server.finish_outside_work()
                seen.append(
                    (
                        comparable(sent(client), mutated, ends),
                        client.connection.is_closing,
                        client.connection.is_parked,
                    )
                )
                client.connection.closed()
            assert seen[0] == seen[1], f"byte {at} of {bytes(mutated)!r}"
            _, is_closing, is_parked = seen[0]
            outcomes["closed" if is_closing else "parked" if is_parked else "answered"] += 1
    assert outcomes["answered"] > len(frame)
    assert outcomes["closed"]
    assert known(bench.client) >= knew


@pytest.mark.parametrize("version", [7, 12, 18])
async def test_a_fetch_of_an_implicit_session_that_differs_in_a_byte_is_answered_as_by_none(
    bench: Bench, version: int
) -> None:
    """The session goes on, with what it takes over of each: the next fetch is as it was before."""
    topic_id = await filled(bench)
    request = fetch(topic_id, version, (2, 0, 1))
    for requested in request.topics[0].partitions[:2]:
        requested.fetch_offset = 1  # its end, so that it is idle
    header = request_header(ApiKey.FETCH, version, 77, "test")
    frame = header + b"".join(bytes(part) for part in type(request).encoder(version)(request))

    def reader() -> Client:
        client = bench.another_client("test")
        for _ in range(2):
            outcome_of(bench, client, frame)
        assert len(client.connection.implicit_session.idle) == 2
        return client

    fast, kept = reader(), 0
    for at in range(len(header), len(frame)):
        mutated = bytearray(frame)
        mutated[at] ^= 1
        for sent_now in (bytes(mutated), frame, frame):
            slow = bench.another_client("test")
            seen = [outcome_of(bench, client, sent_now) for client in (fast, slow)]
            assert seen[0] == seen[1], f"byte {at} of {sent_now!r}"
            slow.connection.closed()
            if fast.connection.is_closing or fast.connection.is_parked:
                fast.connection.closed()
                fast = reader()
                break
        else:
            session = fast.connection.implicit_session
            kept += session is not None and len(session.idle) == 2
    assert kept > len(frame) // 2


def outcome_of(bench: Bench, client: Client, frame: bytes) -> object:
    """What a request is answered without a memo, what it counts, and what becomes of the
    connection."""
    client.connection.memos.clear()
    before = exported(bench), stats(bench)
    client.connection.process([memoryview(bytearray(frame))])
    bench.broker.server.finish_outside_work()
    counted = exported(bench) - before[0], stats(bench) - before[1]
    return sent(client), counted, client.connection.is_closing, client.connection.is_parked


def comparable(frame: bytes, request: bytes, ends: Sequence[int]) -> object:
    """An answer, in which a Produce's offsets are told from where the logs ended before it."""
    api_key, version = struct.unpack_from(">hh", request)
    if not frame or api_key != ApiKey.PRODUCE:
        return frame
    position = 9 if version >= 9 else 8
    answer, end = messages.ProduceResponse.decoder(version)(frame, position)
    assert end == len(frame)
    for topic in answer.responses:
        for part in topic.partition_responses:
            if part.base_offset >= 0:
                part.base_offset -= ends[part.index]
    return frame[:position], answer


# -- every API -------------------------------------------------------------------------------


async def test_every_api_goes_through_every_stage(bench: Bench) -> None:
    """Nobody may do anything, so that no request changes the broker."""
    asked: list[tuple[str, ...]] = []
    bench.authorize_by(lambda request, *what: bool(asked.append(what)))
    for api_key in OTHERS:
        version = REGISTRATIONS[api_key].versions[-1]
        request = messages.request_message(api_key)()
        if api_key == ApiKey.DESCRIBE_ACLS:  # 0 is no type at all, and closes the connection
            request.resource_type_filter = request.operation = request.permission_type = 1
        watch = {name: Watch() for name in ("on_request", "on_answer", "on_framed", "throttle")}
        hooks = {name: getattr(each, name) for name, each in watch.items()}
        bench.broker.dispatcher.use_hooks(**hooks)
        client = bench.another_client("test")
        answers, counted, authorized = [], [], []
        for _ in range(3):
            before = exported(bench)
            asked.clear()
            answers.append(await client.call(request, version))
            if api_key == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:  # who has no id gets a new one
                assert len(answers[-1].client_instance_id) == 16
                answers[-1].client_instance_id, answers[-1].subscription_id = b"", 0
            sent(client)
            authorized.append(sorted(asked))
            counted.append(exported(bench) - before)
        name = ApiKey(api_key).name
        assert [each.seen for each in watch.values()] == [[api_key] * 3] * len(watch), name
        assert authorized[0] == authorized[1] == authorized[2], name
        assert counted[0] == counted[1] == counted[2], name
        requests = sum(n for (each, _), n in counted[0].items() if each.endswith("requests_total"))
        assert requests == 1, name
        assert answers[0] == answers[1] == answers[2], name
