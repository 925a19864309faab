"""Quotas on a whole broker: who is throttled, for how long, and that memos go on being used.

The clock stands still between requests, so that throttle times can be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.broker.metrics import readers
from odradek.broker.metrics.readers import quota_samples
from odradek.broker.start import metrics_context
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header
from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.security.quotas import kept_sensors
from odradek.security.quotas.client_quotas import Sharing
from odradek.security.quotas.kept_sensors import INACTIVE_MS

if TYPE_CHECKING:
    from conftest import Bench, Client

TOPIC = "t"
BATCH = bytes(build_batch([(None, b"v" * 1000, 1_700_000_000_000, [])]))
PRODUCE_VERSIONS, FETCH_VERSIONS = (3, 8, 9, 13), (4, 7, 12, 17)


def produce(topic_id: bytes, version: int, acks: int = 1) -> Any:
    request = messages.ProduceRequest
    data = [request.PartitionProduceData(index=0, records=memoryview(BATCH))]
    named = {"topic_id": topic_id} if version >= 13 else {"name": TOPIC}
    topic = request.TopicProduceData(partition_data=data, **named)
    return request(acks=acks, timeout_ms=1000, topic_data=[topic])


def fetch(topic_id: bytes, version: int, session: tuple[int, int] = (0, -1), **options: Any) -> Any:
    request = messages.FetchRequest
    part = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    named = {"topic_id": topic_id} if version >= 13 else {"topic": TOPIC}
    topic = request.FetchTopic(partitions=[part], **named)
    session_id, session_epoch = session
    return request(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[topic],
        session_id=session_id,
        session_epoch=session_epoch,
        **options,
    )


def frame_of(request: Any, version: int, correlation_id: int) -> memoryview:
    """The request as the client of the bench sends it."""
    schema = type(request)
    body = b"".join(bytes(part) for part in schema.encoder(version)(request))
    header = request_header(schema.api_key, version, correlation_id, "test")
    return memoryview(bytearray(header + body))


async def set_quotas(bench: Bench, path: str, **quotas: float) -> None:
    settings = {key: str(value) for key, value in quotas.items()}
    await bench.broker.config_manager.alter_quotas(path, lambda present: settings)


def sent(client: Client) -> None:
    client.connection.note_sent()


async def released(client: Client) -> None:
    with trio.fail_after(60):
        while client.connection.is_held:
            await client.woken()


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
async def test_a_producer_above_its_quota_is_answered_and_then_muted(
    bench: Bench, version: int
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await set_quotas(bench, "clients/test", producer_byte_rate=100_000)
    client, request = bench.client, produce(topic_id, version)
    for _ in range(3):  # the first is learnt, the others are known
        assert (await client.call(request, version)).throttle_time_ms == 0
        sent(client)
    memo = client.connection.memos[ApiKey.PRODUCE << 16 | version]
    assert memo.stage is not None
    assert len(memo) == 1
    stage = bench.broker.context.quotas.stage
    (sensor,) = stage.managers.produce.sensors.values()
    assert sensor.rate(bench.broker.clock.monotonic_ms()) > 300
    sensor.record(sensor.burst * 1.05, bench.broker.clock.monotonic_ms())
    answer = await client.call(request, version)
    (topic,) = answer.responses
    assert topic.partition_responses[0].error_code == ErrorCode.NONE
    assert topic.partition_responses[0].base_offset == 3
    assert 0 < answer.throttle_time_ms < 1000
    sent(client)
    assert client.connection.is_held
    client.send(request, version)
    assert client.connection.backlog
    await released(client)
    client.connection.process_backlog()
    bench.broker.server.finish_outside_work()
    answer = await client.receive(ApiKey.PRODUCE, version)
    assert answer.responses[0].partition_responses[0].base_offset == 4


async def test_behind_a_request_above_the_quota_those_that_came_with_it_wait(
    bench: Bench,
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await set_quotas(bench, "clients/test", producer_byte_rate=100_000)
    client, request = bench.client, produce(topic_id, 13)
    for _ in range(2):
        await client.call(request, 13)
        sent(client)
    (sensor,) = bench.broker.context.quotas.stage.managers.produce.sensors.values()
    sensor.record(sensor.burst, bench.broker.clock.monotonic_ms())
    client.connection.process([frame_of(request, 13, each) for each in (8, 9)])
    bench.broker.server.finish_outside_work()
    assert bench.log_end_offset(TOPIC) == 3
    assert len(client.connection.output) == 1
    client.connection.output.clear()
    sent(client)
    await released(client)
    client.connection.process_backlog()
    bench.broker.server.finish_outside_work()
    assert bench.log_end_offset(TOPIC) == 4


async def test_a_known_produce_that_fails_is_accounted_for_once(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await set_quotas(bench, "clients/test", producer_byte_rate=100_000)
    client, request = bench.client, produce(topic_id, 13)
    for _ in range(2):
        await client.call(request, 13)
        sent(client)
    (sensor,) = bench.broker.context.quotas.stage.managers.produce.sensors.values()
    now_ms = bench.broker.clock.monotonic_ms()
    counted = sensor.rate(now_ms)
    client.connection.process([frame_of(request, 13, 2)])
    client.connection.unanswered[0].fail_partition(
        bench.broker.replica_manager.get_partition(TopicPartition(TOPIC, 0)),
        ErrorCode.KAFKA_STORAGE_ERROR,
        "the disk is full",
    )
    bench.broker.server.finish_outside_work()
    answer = await client.receive(ApiKey.PRODUCE, 13)
    failure = answer.responses[0].partition_responses[0]
    assert failure.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert sensor.rate(now_ms) == pytest.approx(counted * 1.5)


async def test_whoever_has_no_quota_is_not_throttled(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await set_quotas(bench, "clients/other", producer_byte_rate=1)
    assert (await bench.client.call(produce(topic_id, 13), 13)).throttle_time_ms == 0
    assert (await bench.client.call(produce(topic_id, 13), 13)).throttle_time_ms == 0
    assert not bench.broker.context.quotas.stage.managers.produce.sensors


async def test_quotas_come_into_force_and_go_while_a_client_is_connected(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    client, request = bench.client, produce(topic_id, 13)
    for _ in range(3):
        assert (await client.call(request, 13)).throttle_time_ms == 0
        sent(client)
    await set_quotas(bench, "users/ANONYMOUS", producer_byte_rate=10)
    assert (await client.call(request, 13)).throttle_time_ms > 1000
    assert bench.broker.dispatcher.uses_memos
    await set_quotas(bench, "users/ANONYMOUS")
    assert bench.broker.dispatcher.is_plain
    assert bench.broker.context.quotas.stage is None
    another = bench.another_client()
    assert (await another.call(request, 13)).throttle_time_ms == 0


async def test_without_acks_a_producer_is_muted_too(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await set_quotas(bench, "clients/<default>", producer_byte_rate=10)
    bench.client.send(produce(topic_id, 13, acks=0), 13)
    assert bench.client.connection.is_held
    assert bench.log_end_offset(TOPIC) == 1


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("times", [1, 3])
async def test_a_consumer_above_its_quota_gets_an_empty_answer(
    bench: Bench, version: int, times: int
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await bench.client.call(produce(topic_id, 13), 13)
    await set_quotas(bench, "clients/another", consumer_byte_rate=100_000)
    client, request = bench.another_client(), fetch(topic_id, version)
    for _ in range(times):
        answer = await client.call(request, version)
        assert answer.throttle_time_ms == 0
        assert len(answer.responses[0].partitions[0].records) == len(BATCH)
        sent(client)
    stage = bench.broker.context.quotas.stage
    (sensor,) = stage.managers.fetch.sensors.values()
    now_ms = bench.broker.clock.monotonic_ms()
    counted = sensor.rate(now_ms)
    assert counted * 10 >= times * len(BATCH)
    sensor.record(sensor.burst * 2, now_ms)
    answer = await client.call(request, version)
    assert answer.responses == []
    assert answer.throttle_time_ms > 0
    assert client.connection.is_held
    sensor.unrecord(sensor.burst * 2)
    after = sensor.rate(now_ms)  # what was not sent is not counted
    assert after == pytest.approx(counted, rel=0.2)


async def test_a_session_goes_on_after_an_empty_answer(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await bench.client.call(produce(topic_id, 13), 13)
    await set_quotas(bench, "clients/another", consumer_byte_rate=100_000)
    client = bench.another_client()
    opened = await client.call(fetch(topic_id, 17, (0, 0)), 17)
    session_id = opened.session_id
    assert session_id
    sent(client)
    (sensor,) = bench.broker.context.quotas.stage.managers.fetch.sensors.values()
    sensor.record(sensor.burst * 1.05, bench.broker.clock.monotonic_ms())
    answer = await client.call(fetch(topic_id, 17, (session_id, 1)), 17)
    assert (answer.session_id, answer.responses) == (session_id, [])
    assert answer.throttle_time_ms > 0
    sensor.unrecord(sensor.burst * 1.05)
    sent(client)
    await released(client)
    for epoch in (2, 3, 4):
        answer = await client.call(fetch(topic_id, 17, (session_id, epoch)), 17)
        assert answer.error_code == ErrorCode.NONE
        assert len(answer.responses[0].partitions[0].records) == len(BATCH)
        sent(client)


async def test_a_new_session_is_not_opened_above_the_quota(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await bench.client.call(produce(topic_id, 13), 13)
    await set_quotas(bench, "clients/another", consumer_byte_rate=10)
    sessions = len(bench.broker.context.fetch_sessions)
    answer = await bench.another_client().call(fetch(topic_id, 17, (0, 0)), 17)
    assert (answer.session_id, answer.responses) == (0, [])
    assert answer.throttle_time_ms > 0
    assert len(bench.broker.context.fetch_sessions) == sessions


async def test_answers_are_no_longer_than_what_fits_into_the_windows(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    for _ in range(5):
        await bench.client.call(produce(topic_id, 13), 13)
        sent(bench.client)
    await set_quotas(bench, "clients/another", consumer_byte_rate=250)
    client = bench.another_client()
    answer = await client.call(fetch(topic_id, 17), 17)
    assert 0 < answer.throttle_time_ms <= 160  # the 40 bytes around the records are too many
    sent(client)
    await released(client)
    answer = await client.call(fetch(topic_id, 17), 17)
    assert len(answer.responses[0].partitions[0].records) == 2500  # ten windows of 250


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize(
    "request_of",
    [
        lambda topic_id: (messages.MetadataRequest(topics=None), 12),
        lambda topic_id: (produce(topic_id, 13), 13),
        lambda topic_id: (fetch(topic_id, 17), 17),
        lambda topic_id: (
            messages.ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    messages.ListOffsetsRequest.ListOffsetsTopic(
                        name=TOPIC,
                        partitions=[
                            messages.ListOffsetsRequest.ListOffsetsPartition(
                                partition_index=0, current_leader_epoch=-1, timestamp=-1
                            )
                        ],
                    )
                ],
            ),
            7,
        ),
        lambda topic_id: (messages.ListGroupsRequest(), 4),
    ],
    ids=["metadata", "produce", "fetch", "list_offsets", "list_groups"],
)
async def test_whoever_takes_too_much_time_waits_for_a_window_at_most(
    bench: Bench, request_of: Any, times: int
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await bench.client.call(produce(topic_id, 13), 13)
    await set_quotas(bench, "users/<default>/clients/another", request_percentage=100)
    client = bench.another_client()
    request, version = request_of(topic_id)
    for _ in range(times):
        assert (await client.call(request, version)).throttle_time_ms == 0
        sent(client)
    (sensor,) = bench.broker.context.quotas.stage.managers.request.sensors.values()
    assert sensor.rate(bench.broker.clock.monotonic_ms()) > 0
    sensor.record(sensor.burst * 10, bench.broker.clock.monotonic_ms())
    assert (await client.call(request, version)).throttle_time_ms == 1000
    assert client.connection.is_held


async def test_pipelined_requests_that_are_throttled_are_muted_for_the_longest(
    bench: Bench,
) -> None:
    connection = bench.client.connection
    connection.throttle(20)
    connection.throttle(60_000)
    with trio.fail_after(60):
        while connection.throttles > 1:
            await trio.lowlevel.checkpoint()
    assert connection.is_held


# -- metrics ---------------------------------------------------------------------------------


def exported(bench: Bench) -> dict[tuple[str, tuple[str, ...]], float]:
    """What a scrape shows of quotas."""
    source = metrics_context(bench.broker)
    return {(name, labels): value for name, labels, value in quota_samples(source)}


async def test_metrics_tell_of_each_kind_who_had_to_wait(bench: Bench) -> None:
    topic_id = await bench.create_topic(TOPIC)
    assert not exported(bench)
    await bench.client.call(produce(topic_id, 13), 13)
    every_kind = {
        "producer_byte_rate": (produce(topic_id, 13), 13),
        "consumer_byte_rate": (fetch(topic_id, 17), 17),
        "request_percentage": (messages.ListGroupsRequest(), 4),
    }
    for number, (quota, (request, version)) in enumerate(every_kind.items(), start=1):
        await set_quotas(bench, f"clients/{quota}", **{quota: 1})
        client = bench.another_client(quota)
        await client.call(request, version)
        manager = next(
            each
            for each in vars(bench.broker.context.quotas.stage.managers).values()
            if each.key == quota
        )
        (sensor,) = manager.sensors.values()
        sensor.record(sensor.burst * 2, bench.broker.clock.monotonic_ms())
        if not client.connection.is_held:
            sent(client)
            await client.call(request, version)
        shown = exported(bench)
        assert shown["odradek_quota_throttles_total", (quota,)] == 1
        assert shown["odradek_quota_throttle_milliseconds_total", (quota,)] > 0
        assert shown["odradek_connections_throttled", ()] == number
    assert shown["odradek_quota_throttles_total", ("controller_mutation_rate",)] == 0


async def test_metrics_show_those_that_used_their_quota_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "SENSORS_MAX", 3)
    await set_quotas(bench, "users/<default>/clients/<default>", producer_byte_rate=1000)
    manager = bench.broker.context.quotas.stage.managers.produce
    for number in range(10):
        sensor = manager.sensor_of("ANONYMOUS", f"client-{number}", 0)
        sensor.record(1, number * 10)
    shown = [labels for name, labels in exported(bench) if name == "kafka_server_produce_byte_rate"]
    assert {client for _, client in shown} == {"client-7", "client-8", "client-9"}


async def test_who_comes_again_after_an_hour_shares_its_quota_with_those_that_came_since(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka looks for a sensor at each request, and has forgotten one that was not used for an
    hour; here clients keep theirs, in memos too."""
    monkeypatch.setattr(kept_sensors, "LOOK_EVERY", 1)
    clock = ManualClock()
    monkeypatch.setattr(bench.broker.context.quotas, "_clock", clock)
    topic_id = await bench.create_topic(TOPIC)
    await set_quotas(bench, "users/ANONYMOUS", producer_byte_rate=100_000)
    await set_quotas(bench, "users/ANONYMOUS/clients/other", producer_byte_rate=100_000)
    request = produce(topic_id, 13)
    for _ in range(3):  # the first is learnt, the others are known
        await bench.client.call(request, 13)
        sent(bench.client)
    manager = bench.broker.context.quotas.stage.managers.produce
    shared = Sharing("ANONYMOUS", "")
    first = manager.sensors[shared]
    clock.advance(INACTIVE_MS)
    assert first.rate(clock.monotonic_ms()) == 0  # whoever looks at a rate does not use it
    await bench.another_client("other").call(request, 13)
    assert shared not in manager.sensors
    newcomer = bench.another_client("newcomer")
    await newcomer.call(request, 13)
    once = manager.sensors[shared].rate(clock.monotonic_ms())
    await bench.client.call(request, 13)
    assert manager.sensors[shared] is not first
    twice = manager.sensors[shared].rate(clock.monotonic_ms())
    assert twice == pytest.approx(2 * once, rel=0.05)  # the names of the clients differ in length
