"""The recorder between real clients and brokers, and between peers that do as they like."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from support.ports import nobody_listens
from support.scripted_upstream import (
    SECONDS_MAX,
    ScriptedUpstream,
    framed,
    receive_frame,
)

from odradek.common.errors import ErrorCode
from odradek.protocol import encode_body
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_response_header, request_header, response_header
from odradek.protocol.messages import (
    FetchResponse,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    response_message,
)
from odradek.testing import Cluster
from odradek.testing.recorder import proxied_connection, proxy
from odradek.testing.recorder.addresses import Address
from odradek.testing.recorder.capture_file import CaptureReader
from odradek.testing.recorder.recording import (
    FrameKind,
    RecordedConnection,
    RecordedEnd,
    RecordedFrame,
    RecordedNote,
)
from odradek.testing.recorder.running_recorder import Recorder

PARTITIONS = 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as made:
        yield made


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "capture"


def frames_of(capture: Path) -> list[RecordedFrame]:
    return [entry for entry in CaptureReader(capture) if isinstance(entry, RecordedFrame)]


def ends_of(capture: Path) -> list[RecordedEnd]:
    return [entry for entry in CaptureReader(capture) if isinstance(entry, RecordedEnd)]


def notes_of(capture: Path) -> list[str]:
    return [entry.text for entry in CaptureReader(capture) if isinstance(entry, RecordedNote)]


def brokers_reached(capture: Path) -> dict[str, set[int]]:
    """The brokers that clients spoke to, each with the APIs that they used there."""
    names = {}
    reached: dict[str, set[int]] = {}
    for entry in CaptureReader(capture):
        if isinstance(entry, RecordedConnection):
            names[entry.number] = str(entry.broker_name)
        elif isinstance(entry, RecordedFrame) and entry.kind is FrameKind.REQUEST:
            reached.setdefault(names[entry.connection], set()).add(entry.api_key)
    return reached


def ports_of(cluster: Cluster) -> set[int]:
    return {broker.port for broker in cluster.brokers}


def create_topic(bootstrap: str, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])
    admin.close()


def test_kafka_python_reaches_every_broker_through_the_recorder_only(
    cluster: Cluster, capture: Path, topic: str
) -> None:
    with Recorder(cluster.brokers[0].bootstrap, capture=capture) as recorder:
        create_topic(recorder.bootstrap_servers, topic)
        producer = KafkaProducer(bootstrap_servers=recorder.bootstrap_servers)
        for partition in range(PARTITIONS):
            producer.send(topic, b"%d" % partition, partition=partition).get(30)
        known = {broker.port for broker in producer._metadata.brokers()}
        producer.close()
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=recorder.bootstrap_servers,
            group_id=f"{topic}-group",
            auto_offset_reset="earliest",
            consumer_timeout_ms=40_000,
        )
        values = {next(consumer).value for _ in range(PARTITIONS)}
        consumer.commit()
        known |= {broker.port for broker in consumer._client.cluster.brokers()}
        consumer.close()
        admin = KafkaAdminClient(bootstrap_servers=recorder.bootstrap_servers)
        known |= {broker["port"] for broker in admin.describe_cluster()["brokers"]}
        admin.close()
    assert values == {b"%d" % partition for partition in range(PARTITIONS)}
    assert len(known) == 3
    assert known.isdisjoint(ports_of(cluster))
    reached = brokers_reached(capture)
    assert set(reached) == {broker.bootstrap for broker in cluster.brokers}
    assert all({ApiKey.PRODUCE, ApiKey.FETCH} <= apis for apis in reached.values())
    all_apis = set.union(*reached.values())
    assert {ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_COMMIT, ApiKey.DESCRIBE_CLUSTER} <= all_apis


def test_confluent_kafka_reaches_every_broker_through_the_recorder_only(
    cluster: Cluster, capture: Path, topic: str
) -> None:
    with Recorder(cluster.brokers[2].bootstrap, capture=capture) as recorder:
        settings = {"bootstrap.servers": recorder.bootstrap_servers, "log_level": 0}
        create_topic(recorder.bootstrap_servers, topic)
        producer = Producer({**settings, "transactional.id": f"{topic}-id"})
        producer.init_transactions(40)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % partition, partition=partition)
        producer.commit_transaction(40)
        group = {"group.id": f"{topic}-group", "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **group})
        consumer.subscribe([topic])
        messages = [consumer.poll(40) for _ in range(PARTITIONS)]
        assert None not in messages
        consumer.close()
        admin = AdminClient(settings)
        known = {broker.port for broker in admin.list_topics(timeout=30).brokers.values()}
        described = admin.describe_cluster(request_timeout=30).result(30)
        known |= {node.port for node in described.nodes}
    assert {each.value() for each in messages} == {b"%d" % each for each in range(PARTITIONS)}
    assert len(known) == 3
    assert known.isdisjoint(ports_of(cluster))
    reached = brokers_reached(capture)
    assert set(reached) == {broker.bootstrap for broker in cluster.brokers}
    assert ApiKey.ADD_PARTITIONS_TO_TXN in set.union(*reached.values())
    assert not [frame for frame in frames_of(capture) if frame.kind is FrameKind.UNASKED]


# --- Peers that do as they like ----------------------------------------------------------------


def connected(recorder: Recorder) -> socket.socket:
    return socket.create_connection(Address.parse(recorder.bootstrap_servers), SECONDS_MAX)


def assert_closed(connection: socket.socket) -> None:
    try:
        assert connection.recv(100) == b""
    except ConnectionResetError:
        return


def echo(frame: bytes) -> bytes:
    """An answer with the request's correlation id, and all that was asked."""
    return framed(frame[4:8] + frame)


def test_a_leader_that_a_fetch_tells_of_is_reached_through_the_recorder(capture: Path) -> None:
    # KIP-951: behind the records stands where the leader is.
    partition = FetchResponse.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, records=bytes(300_000)
    )
    topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
    message = FetchResponse(responses=[topic])
    requested = request_header(ApiKey.FETCH, 17, 5, "c") + b"\xff"

    def tell_of_leader(frame: bytes) -> bytes:
        host, port = Address.parse(leader.address)
        message.node_endpoints = [FetchResponse.NodeEndpoint(node_id=2, host=host, port=port)]
        return framed(response_header(ApiKey.FETCH, 17, 5) + encode_body(message, 17))

    with (
        ScriptedUpstream(echo) as leader,
        ScriptedUpstream(tell_of_leader) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        connection.sendall(framed(requested))
        answer = receive_frame(connection)
        _, position = read_response_header(answer, ApiKey.FETCH, 17)
        decoded, end = FetchResponse.decoder(17)(answer, position)
        (reported,) = decoded.node_endpoints
        assert bytes(decoded.responses[0].partitions[0].records) == bytes(300_000)
        assert (end, reported.node_id) == (len(answer), 2)
        assert str(Address(reported.host, reported.port)) != leader.address
        with socket.create_connection((reported.host, reported.port), SECONDS_MAX) as to_leader:
            frame = struct.pack(">hhi", 999, 7, 1)
            to_leader.sendall(framed(frame))
            assert receive_frame(to_leader) == frame[4:8] + frame
        assert leader.frames == [frame]


def test_frames_that_nobody_knows_pass_untouched(capture: Path) -> None:
    requested = [
        struct.pack(">hhi", 999, 7, 1) + b"whatever \xff\x00",
        struct.pack(">hhi", ApiKey.METADATA, 99, 2) + b"a later version",
        struct.pack(">hhi", ApiKey.METADATA, 12, 3) + b"\xff" * 30,
        b"shrt",
    ]
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        for frame in requested[:3]:
            connection.sendall(framed(frame))
            assert receive_frame(connection) == frame[4:8] + frame
        connection.sendall(framed(requested[3]))
        assert receive_frame(connection) == b"shrt"
        assert upstream.frames == requested
    frames = frames_of(capture)
    assert [bytes(each.content) for each in frames if each.kind.is_from_client] == requested
    kinds = [each.kind for each in frames if not each.kind.is_from_client]
    assert kinds == [FrameKind.ANSWER] * 3 + [FrameKind.UNASKED]
    left = [note for note in notes_of(capture) if "addresses in an answer were left" in note]
    assert len(left) == 2


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not Kafka's: a frame announces"),
        (b"\xff\xff\xff\xfe", "not Kafka's: a frame announces a negative length"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "the client speaks TLS"),
    ],
)
def test_who_does_not_speak_kafka_is_sent_away_and_others_stay(
    capture: Path, sent: bytes, reason: str
) -> None:
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as other,
    ):
        with connected(recorder) as connection:
            connection.sendall(sent)
            assert_closed(connection)
        frame = struct.pack(">hhi", 999, 7, 1)
        other.sendall(framed(frame))
        assert receive_frame(other) == frame[4:8] + frame
    assert [reason in end.reason for end in ends_of(capture)] == [True, False]


def test_a_broker_that_does_not_speak_kafka_is_left(capture: Path) -> None:
    with (
        ScriptedUpstream(lambda frame: b"HTTP/1.1 400 Bad Request\r\n\r\n") as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        connection.sendall(framed(struct.pack(">hhi", 999, 7, 1)))
        assert_closed(connection)
    (end,) = ends_of(capture)
    assert "what the broker sends is not Kafka's" in end.reason


def test_a_connection_that_the_broker_ends_is_reported(capture: Path) -> None:
    with (
        ScriptedUpstream(lambda frame: None) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        connection.sendall(framed(struct.pack(">hhi", 999, 7, 1)))
        assert_closed(connection)
    (end,) = ends_of(capture)
    assert (end.is_by_client, end.reason) == (False, "")


def test_who_has_sent_all_requests_gets_the_answers_still(capture: Path) -> None:
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        frame = struct.pack(">hhi", 999, 7, 1) + bytes(100_000)
        connection.sendall(framed(frame) * 5)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(5):
            assert receive_frame(connection) == frame[4:8] + frame
        assert_closed(connection)
    (end,) = ends_of(capture)
    assert end.is_by_client


def test_a_broker_that_is_not_there_is_reported(capture: Path) -> None:
    with (
        nobody_listens() as address,
        Recorder(address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        assert_closed(connection)
    assert any(f"broker {address} cannot be reached" in note for note in notes_of(capture))


def test_more_brokers_than_there_can_be_are_not_reported_to_a_client(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "BROKERS_MAX", 4)
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=n, host="secret.internal", port=1 + n)
        for n in range(5)
    ]
    body = encode_body(MetadataResponse(brokers=brokers), 9)

    def answer(frame: bytes) -> bytes:
        return framed(response_header(ApiKey.METADATA, 9, 1) + body)

    with (
        ScriptedUpstream(answer) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        connection.sendall(framed(request_header(ApiKey.METADATA, 9, 1, "c") + b"\0\0\0\0\0"))
        assert_closed(connection)
    (end,) = ends_of(capture)
    assert end.reason == "answers name more than 4 brokers"


def test_a_frame_that_is_too_large_ends_the_connection(capture: Path) -> None:
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, capture=capture, frame_bytes_max=100) as recorder,
    ):
        with connected(recorder) as connection:
            frame = struct.pack(">hhi", 999, 7, 1) + bytes(92)
            connection.sendall(framed(frame))  # the answer is larger
            assert_closed(connection)
        with connected(recorder) as connection:
            connection.sendall(framed(frame + b"x"))
            assert_closed(connection)
    reasons = [end.reason for end in ends_of(capture)]
    assert ["answer announces 104 bytes" in reasons[0], "announces 101 bytes" in reasons[1]] == [
        True,
        True,
    ]


def test_no_more_connections_are_taken_than_there_may_be(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "CONNECTIONS_MAX", 1)
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as first,
    ):
        frame = struct.pack(">hhi", 999, 7, 1)
        first.sendall(framed(frame))
        assert receive_frame(first) == frame[4:8] + frame
        with connected(recorder) as second:
            assert_closed(second)
        first.sendall(framed(frame))
        assert receive_frame(first) == frame[4:8] + frame


PASSWORD = b"correct-horse-battery"


def sasl_broker(frame: bytes) -> bytes:
    """Agrees to whatever is proposed, and to tokens with and without a header."""
    if frame[:2] == struct.pack(">h", ApiKey.SASL_HANDSHAKE):
        api_key, version = ApiKey.SASL_HANDSHAKE, frame[3]
    elif frame[:2] == struct.pack(">h", ApiKey.SASL_AUTHENTICATE):
        api_key, version = ApiKey.SASL_AUTHENTICATE, frame[3]
    else:
        return framed(b"token of " + PASSWORD)
    message = response_message(api_key)()
    if api_key == ApiKey.SASL_AUTHENTICATE:
        message.auth_bytes = PASSWORD
    header = response_header(api_key, version, struct.unpack(">i", frame[4:8])[0])
    return framed(header + encode_body(message, version))


@pytest.mark.parametrize("handshake_version", [0, 1])
def test_passwords_pass_and_are_not_kept(
    capture: Path, tmp_path: Path, handshake_version: int
) -> None:
    token = b"\0alice\0" + PASSWORD
    handshake = request_header(ApiKey.SASL_HANDSHAKE, handshake_version, 1, "c")
    handshake += encode_body(SaslHandshakeRequest(mechanism="PLAIN"), handshake_version)
    login = token
    if handshake_version:
        login = request_header(ApiKey.SASL_AUTHENTICATE, 2, 2, "c")
        login += encode_body(SaslAuthenticateRequest(auth_bytes=token), 2)
    packets = tmp_path / "packets"
    with (
        ScriptedUpstream(sasl_broker) as upstream,
        Recorder(upstream.address, capture=capture, pcap=packets) as recorder,
        connected(recorder) as connection,
    ):
        for frame in (handshake, login):
            connection.sendall(framed(frame))
            answer = receive_frame(connection)
        assert PASSWORD in answer
        assert upstream.frames == [handshake, login]
    assert len(frames_of(capture)) == 4
    for path in (capture, packets):
        assert PASSWORD not in path.read_bytes()
        assert b"alice" not in path.read_bytes()


def test_connections_that_are_open_at_the_end_are_ended_in_the_capture(capture: Path) -> None:
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        frame = struct.pack(">hhi", 999, 7, 1)
        connection.sendall(framed(frame))
        receive_frame(connection)
        recorder.close()
        assert_closed(connection)
    (end,) = ends_of(capture)
    assert end.reason == "the recorder was stopped"


def test_who_only_sends_and_never_reads_is_bounded(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.testing.recorder.conversation.UNDER_WAY_MAX", 5)
    monkeypatch.setattr(proxied_connection, "PROXY_RECEIVE_BYTES", 4096)
    with (
        ScriptedUpstream(lambda frame: b"") as upstream,
        Recorder(upstream.address, capture=capture) as recorder,
        connected(recorder) as connection,
    ):
        connection.sendall(framed(struct.pack(">hhi", 999, 7, 1)) * 6)
        assert_closed(connection)
    (end,) = ends_of(capture)
    assert "5 requests of the connection are unanswered" in end.reason
