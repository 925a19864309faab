"""Captures said again to another broker: the same answers, or exactly what differs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from support.ports import nobody_listens
from support.scripted_upstream import ScriptedUpstream, framed

from odradek.protocol import encode_body
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_request_header, request_header, response_header
from odradek.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataResponse,
    ProduceRequest,
)
from odradek.protocol.records import RecordBatch, build_batch
from odradek.protocol.records.validation import has_valid_crc
from odradek.testing import Broker
from odradek.testing.comparison.normalisation import PRODUCER_ID, IdMapping
from odradek.testing.recorder.addresses import Address
from odradek.testing.recorder.assigned_numbers import AssignedNumbers
from odradek.testing.recorder.capture_file import CaptureReader, Entry
from odradek.testing.recorder.recording import (
    FrameKind,
    RecordedConnection,
    RecordedEnd,
    RecordedFrame,
)
from odradek.testing.recorder.replay import Mismatch, ReplayError, ReplaySummary, replay
from odradek.testing.recorder.running_recorder import Recorder

NOW = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000


def replayed(
    entries: CaptureReader | list[Entry], bootstrap: str, **options: float
) -> tuple[ReplaySummary, list[Mismatch]]:
    found: list[Mismatch] = []
    outcome = replay(entries, Address.parse(bootstrap), found.append, **options)
    assert outcome.mismatches_count == len(found)
    return outcome, found


def talk(bootstrap: str) -> None:
    """What applications do: topics and settings, records, a group, a transaction."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic("orders", 2, 1), NewTopic("unused", 1, 1)])
    admin.delete_topics(["unused"])
    admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "orders")])
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    for number in range(6):
        producer.send("orders", b"value %d" % number, partition=number % 2).get(30)
    producer.close()
    consume(bootstrap)
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments"})
    transactional.init_transactions(40)
    for _ in range(2):
        transactional.begin_transaction()
        transactional.produce("orders", b"in a transaction", partition=0)
        transactional.commit_transaction(40)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "audit", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    for _ in range(8):
        assert consumer.poll(40) is not None
    consumer.close()
    admin.close()


def consume(bootstrap: str) -> None:
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=40_000,
    )
    for _ in range(6):
        next(consumer)
    consumer.commit()
    consumer.close()


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("recorded") / "capture"
    with Broker() as broker, Recorder(broker.bootstrap_servers, capture=path) as recorder:
        talk(recorder.bootstrap_servers)
    return path


def test_another_broker_of_the_same_kind_answers_the_same(capture: Path) -> None:
    with Broker() as broker:
        outcome, found = replayed(CaptureReader(capture), broker.bootstrap_servers)
    assert not found, "\n".join(map(str, found))
    assert outcome.passed_over == {}
    frames = [entry for entry in CaptureReader(capture) if isinstance(entry, RecordedFrame)]
    requests = [frame for frame in frames if frame.kind is FrameKind.REQUEST]
    assert outcome.requests_count == len(requests)
    assert outcome.compared_count == len(frames) - len(requests)
    apis = {frame.api_key for frame in frames}
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.END_TXN} <= apis


def test_another_setting_is_exactly_what_differs(capture: Path) -> None:
    with Broker({"message.max.bytes": "77777"}) as broker:
        _, found = replayed(CaptureReader(capture), broker.bootstrap_servers)
    values = [each for each in found if each.path.endswith(".value")]
    assert {(each.expected, each.actual) for each in values} == {("1048588", "77777")}
    assert {each.request.split()[0] for each in values} == {"CreateTopics", "DescribeConfigs"}
    assert all("configs[max.message.bytes]." in each.path for each in found)


def test_what_the_broker_gives_takes_the_place_of_what_was_recorded(capture: Path) -> None:
    # This one has given producer ids and epochs before, and the groups have had generations.
    with Broker() as broker:
        address = broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=address)
        admin.create_topics([NewTopic("others", 2, 1)])
        producer = KafkaProducer(bootstrap_servers=address, enable_idempotence=True)
        producer.send("others", b"old").get(30)
        producer.close()
        for _ in range(2):
            transactional = Producer({"bootstrap.servers": address, "transactional.id": "payments"})
            transactional.init_transactions(40)
        for group in ("readers", "audit", "readers"):
            consumer = KafkaConsumer(
                "others",
                bootstrap_servers=address,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                consumer_timeout_ms=40_000,
            )
            assert next(consumer).value == b"old"
            consumer.close()
        admin.delete_topics(["others"])
        admin.close()
        _, found = replayed(CaptureReader(capture), address)
    assert not found, "\n".join(map(str, found))


# --- Captures made by hand -------------------------------------------------------------------


def conversation(
    *frames: tuple[FrameKind, int, int, int, bytes], end: RecordedEnd | None = None
) -> list[Entry]:
    """One connection; of each frame kind, API, version, milliseconds, content."""
    nobody = Address("127.0.0.1", 1)
    entries: list[Entry] = [RecordedConnection(1, NOW, nobody, nobody, nobody)]
    for kind, api_key, version, moment_ms, content in frames:
        time_ns = NOW + moment_ms * MILLISECOND
        entries.append(RecordedFrame(kind, 1, time_ns, api_key, version, 7, content))
    return [*entries, end or RecordedEnd(1, NOW, True)]


HEARTBEAT = request_header(ApiKey.HEARTBEAT, 4, 7, "app") + encode_body(HeartbeatRequest(), 4)
BEAT = response_header(ApiKey.HEARTBEAT, 4, 7) + encode_body(HeartbeatResponse(), 4)
ASKED = (FrameKind.REQUEST, ApiKey.HEARTBEAT, 4, 0, HEARTBEAT)
ANSWERED = (FrameKind.ANSWER, ApiKey.HEARTBEAT, 4, 1, BEAT)


def answering(answer: bytes | None) -> ScriptedUpstream:
    """A peer that knows Metadata, and for the rest has one answer."""

    def respond(frame: bytes) -> bytes | None:
        if frame[:2] == b"\0\3":
            return framed(response_header(3, 5, 1) + encode_body(MetadataResponse(), 5))
        return answer

    return ScriptedUpstream(respond)


def test_the_same_answer_is_no_difference() -> None:
    with answering(framed(BEAT)) as upstream:
        outcome, found = replayed(conversation(ASKED, ANSWERED), upstream.address)
        assert upstream.frames[1:] == [HEARTBEAT]
    assert (found, outcome.compared_count) == ([], 1)


def test_a_field_that_differs_is_reported_with_its_request() -> None:
    other = encode_body(HeartbeatResponse(error_code=27), 4)
    with answering(framed(response_header(ApiKey.HEARTBEAT, 4, 7) + other)) as upstream:
        _, found = replayed(conversation(ASKED, ANSWERED), upstream.address)
    request = "Heartbeat v4 #7"
    path = ("error_code", "NONE", "REBALANCE_IN_PROGRESS")
    assert found == [Mismatch(1, 1, NOW, request, *path)]


def test_a_request_that_is_not_answered_is_a_difference() -> None:
    with answering(b"") as upstream:
        _, found = replayed(conversation(ASKED, ANSWERED), upstream.address, answer_seconds_max=0.2)
    assert [(each.path, each.actual) for each in found] == [("", "no answer within 0 s")]


def test_a_connection_that_is_ended_in_place_of_an_answer_is_a_difference() -> None:
    with answering(None) as upstream:
        _, found = replayed(conversation(ASKED, ANSWERED), upstream.address)
    assert [each.actual for each in found] == ["the connection was ended"]


@pytest.mark.parametrize("answer", [None, framed(BEAT)], ids=["ends", "answers"])
def test_a_broker_that_ended_a_connection_is_expected_to_do_so_again(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer is not None:
        monkeypatch.setattr("odradek.testing.recorder.replay.END_SECONDS_MAX", 0.2)
    ended = RecordedEnd(1, NOW, False)
    with answering(answer) as upstream:
        _, found = replayed(conversation(ASKED, end=ended), upstream.address)
    reported = [(each.expected, each.actual) for each in found]
    assert reported == ([] if answer is None else [("the connection ended", "it goes on")])


def test_what_is_not_understood_is_compared_as_bytes() -> None:
    unknown = HEARTBEAT[:2] + b"\x00\x63" + HEARTBEAT[4:]
    frames = [(kind, ApiKey.HEARTBEAT, 99, 0, unknown) for kind in (FrameKind.REQUEST,)]
    for answer, differs in ((unknown, False), (unknown + b"x", True)):
        reply = HEARTBEAT[4:8] + answer
        entries = conversation(*frames, (FrameKind.ANSWER, 12, 99, 1, HEARTBEAT[4:8] + unknown))
        with answering(framed(reply)) as upstream:
            _, found = replayed(entries, upstream.address)
            assert upstream.frames[1:] == [unknown]
        assert bool(found) == differs


def test_secrets_that_are_not_there_are_not_replayed() -> None:
    login = request_header(ApiKey.SASL_AUTHENTICATE, 2, 7, "app") + b"\1\0"
    entries = conversation((FrameKind.REQUEST, ApiKey.SASL_AUTHENTICATE, 2, 0, login), ASKED)
    entries.insert(1, RecordedFrame(FrameKind.TOKEN, 1, NOW, -1, -1, -1, b"", True))
    with answering(framed(BEAT)) as upstream:
        outcome, found = replayed(entries, upstream.address)
        assert upstream.frames[1:] in ([HEARTBEAT], [])  # it may be on its way still
    assert not found, "\n".join(map(str, found))
    assert outcome.passed_over == {"authentication": 2}


def test_a_replay_at_the_recorded_speed_takes_as_long() -> None:
    later = (FrameKind.REQUEST, ApiKey.HEARTBEAT, 4, 400, HEARTBEAT)
    entries = conversation(ASKED, ANSWERED, later, (FrameKind.ANSWER, 12, 4, 401, BEAT))
    with answering(framed(BEAT)) as upstream:
        for speed, seconds in ((1.0, 0.4), (4.0, 0.1)):
            began = time.monotonic()
            _, found = replayed(entries, upstream.address, speed=speed)
            assert time.monotonic() - began >= seconds
            assert not found, "\n".join(map(str, found))


def test_nobody_to_replay_to_is_a_sentence() -> None:
    with (
        nobody_listens() as address,
        pytest.raises(ReplayError, match=f"no broker answers at {address}"),
    ):
        replayed([], address)
    with (
        ScriptedUpstream(lambda frame: None) as upstream,
        pytest.raises(ReplayError, match="does not answer as Kafka does"),
    ):
        replayed([], upstream.address)


@pytest.mark.parametrize("is_valid", [True, False])
def test_batches_get_the_producer_that_the_other_broker_knows(is_valid: bool) -> None:
    ids = IdMapping()
    assert ids.pair(PRODUCER_ID, 5, 900)
    batch = build_batch([(b"k", b"v", 0, [])], producer_id=5, producer_epoch=0, base_sequence=3)
    if not is_valid:
        batch[-1] ^= 1
    partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    message = ProduceRequest(topic_data=[topic])
    AssignedNumbers(ids).translate(message, "", with_ids=True)
    changed = RecordBatch(partition.records)
    assert (changed.producer_id, changed.producer_epoch, changed.base_sequence) == (900, 0, 3)
    assert has_valid_crc(changed) == is_valid
    assert read_request_header(HEARTBEAT)[0] == 7


def test_a_connection_leads_to_the_broker_with_the_same_id() -> None:
    def metadata(node_id: int, host: str, port: int, version: int) -> bytes:
        broker = MetadataResponse.MetadataResponseBroker(node_id=node_id, host=host, port=port)
        header = response_header(ApiKey.METADATA, version, 7)
        return header + encode_body(MetadataResponse(brokers=[broker]), version)

    def respond(frame: bytes) -> bytes:
        host, port = Address.parse(second.address)
        version = frame[3]
        return framed(frame[4:8] + metadata(2, host, port, version)[4:])

    nobody = Address("127.0.0.1", 1)
    recorded = Address("kafka-2.internal", 9092)
    requested = request_header(ApiKey.METADATA, 9, 7, "app") + b"\1\0\0\0\0"
    answer = metadata(2, *recorded, 9)
    entries = [
        RecordedConnection(1, NOW, nobody, nobody, nobody),
        RecordedFrame(FrameKind.REQUEST, 1, NOW, ApiKey.METADATA, 9, 7, requested),
        RecordedFrame(FrameKind.ANSWER, 1, NOW, ApiKey.METADATA, 9, 7, answer),
        RecordedConnection(2, NOW, nobody, nobody, recorded),
        *(
            RecordedFrame(kind, 2, NOW, ApiKey.HEARTBEAT, 4, 7, content)
            for kind, _, _, _, content in (ASKED, ANSWERED)
        ),
    ]
    with ScriptedUpstream(lambda frame: framed(BEAT)) as second, ScriptedUpstream(respond) as first:
        outcome, found = replayed(entries, first.address)
        assert second.frames == [HEARTBEAT]
    assert (found, outcome.compared_count) == ([], 2)
