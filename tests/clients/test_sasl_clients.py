"""Real clients that log in: by each mechanism, with right and wrong passwords, and by hand."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from odradek.client import (
    AuthenticationError,
    KafkaClient,
    connection_settings_of,
    open_connection,
)
from odradek.client import Producer as OwnProducer
from odradek.client.network.connection import Connection
from odradek.common.errors import ErrorCode
from odradek.protocol.messages import MetadataRequest, MetadataResponse
from odradek.testing import Broker
from odradek.testing.certificates import broker_settings, make_tls_files

pytestmark = pytest.mark.clients

SECONDS = 60
PASSWORD = 'pass "word"; =\\ü'
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENER = "listener.name.sasl_plaintext"
ESCAPED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "connection.failed.authentication.delay.ms": "20",
    f"{LISTENER}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="bob" password="builder" user_alice="{ESCAPED}" user_bob="builder";'
    ),
}
INVALID = "Authentication failed"


def administrator(broker: Broker) -> AdminClient:
    bob = {"sasl.username": "bob", "sasl.password": "builder"}
    return AdminClient({**settings(broker, "PLAIN"), **bob})


def add_user(broker: Broker, name: str, password: str, mechanism: str) -> None:
    info = ScramCredentialInfo(getattr(ScramMechanism, mechanism.replace("-", "_")), 4096)
    upsertion = UserScramCredentialUpsertion(name, info, password.encode())
    admin = administrator(broker)
    (done,) = admin.alter_user_scram_credentials([upsertion]).values()
    done.result(SECONDS)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        for mechanism in MECHANISMS[1:]:
            add_user(broker, "alice", PASSWORD, mechanism)
        yield broker


def settings(broker: Broker, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    """Of librdkafka, and of ours."""
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
    }


def python_settings(broker: Broker, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    """Of kafka-python, and of aiokafka."""
    return {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_librdkafka_writes_and_reads(broker: Broker, mechanism: str) -> None:
    topic = f"rd-{uuid4().hex[:8]}"
    producer = Producer(settings(broker, mechanism))
    producer.produce(topic, b"hello")
    assert producer.flush(SECONDS) == 0
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings(broker, mechanism), **group})
    consumer.subscribe([topic])
    (message,) = consumer.consume(1, SECONDS)
    consumer.close()
    assert message.value() == b"hello"


def test_librdkafka_hears_that_its_password_is_wrong(broker: Broker, mechanism: str) -> None:
    errors: list[KafkaError] = []
    client = Producer(
        {**settings(broker, mechanism, "wrong"), "error_cb": errors.append, "log_level": 0}
    )
    deadline = time.monotonic() + SECONDS
    while not errors and time.monotonic() < deadline:
        client.poll(0.1)
    first = next(each for each in errors if each.code() == KafkaError._AUTHENTICATION)
    assert INVALID in first.str()


def test_kafka_python_writes_and_reads(broker: Broker, mechanism: str) -> None:
    topic = f"kp-{uuid4().hex[:8]}"
    with KafkaProducer(**python_settings(broker, mechanism)) as producer:
        producer.send(topic, b"hello").get(SECONDS)
    consumer = KafkaConsumer(
        topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS * 1000,
        **python_settings(broker, mechanism),
    )
    assert next(consumer).value == b"hello"
    consumer.close()


def test_kafka_python_does_not_come_in_with_a_wrong_password(
    broker: Broker, mechanism: str
) -> None:
    with pytest.raises(KafkaTimeoutError, match="bootstrap"):
        KafkaProducer(bootstrap_timeout_ms=1000, **python_settings(broker, mechanism, "wrong"))


def test_aiokafka_writes_and_reads(broker: Broker, mechanism: str) -> None:
    topic = f"aio-{uuid4().hex[:8]}"
    known = python_settings(broker, mechanism)

    async def run() -> bytes | None:
        async with AIOKafkaProducer(**known) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **known) as consumer:
            message = await asyncio.wait_for(consumer.getone(), SECONDS)
            value: bytes | None = message.value
            return value

    assert asyncio.run(run()) == b"hello"


def test_aiokafka_does_not_come_in_with_a_wrong_password(broker: Broker, mechanism: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(**python_settings(broker, mechanism, "wrong"))
        try:
            with pytest.raises(KafkaConnectionError):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(run())


def own_client(given: dict[str, str]) -> KafkaClient:
    made = connection_settings_of(given, lambda path: b"")
    assert made.bootstrap is not None
    return KafkaClient(
        made.bootstrap,
        made.client,
        authenticate=made.authenticate,
        ssl_context=made.ssl_context,
    )


def test_our_client_writes(broker: Broker, mechanism: str) -> None:
    topic = f"own-{uuid4().hex[:8]}"

    async def run() -> int:
        with trio.fail_after(SECONDS):
            async with (
                own_client(settings(broker, mechanism)) as client,
                OwnProducer(client) as producer,
            ):
                return (await (await producer.send(topic, b"hello")).wait()).offset

    assert trio.run(run) == 0


def test_our_client_hears_that_its_password_is_wrong(broker: Broker, mechanism: str) -> None:
    async def run() -> None:
        with trio.fail_after(SECONDS):
            async with own_client(settings(broker, mechanism, "wrong")) as client:
                await client.refresh_metadata(1000)

    with pytest.raises(AuthenticationError, match=INVALID):
        trio.run(run)


def test_a_removed_credential_lets_nobody_in_any_more(broker: Broker) -> None:
    admin = administrator(broker)
    add_user(broker, "carol", "secret", "SCRAM-SHA-256")
    carol = settings(broker, "SCRAM-SHA-256", "secret") | {"sasl.username": "carol"}
    assert AdminClient(carol).list_topics(timeout=SECONDS).brokers
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(SECONDS)
    assert [each.iterations for each in described.scram_credential_infos] == [4096]
    deletion = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
    (done,) = admin.alter_user_scram_credentials([deletion]).values()
    done.result(SECONDS)
    with pytest.raises(KafkaException):
        AdminClient({**carol, "log_level": 0}).list_topics(timeout=2)


# --- By hand --------------------------------------------------------------------------------


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), SECONDS)


def send(sock: socket.socket, frame: bytes) -> None:
    sock.sendall(struct.pack(">i", len(frame)) + frame)


def answer(sock: socket.socket) -> bytes:
    """The next frame; empty where the broker has closed."""
    head = sock.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return b""
    return sock.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def request(api_key: int, version: int, body: bytes = b"") -> bytes:
    return struct.pack(">hhih", api_key, version, 7, -1) + body


METADATA, API_VERSIONS, HANDSHAKE, AUTHENTICATE = 3, 18, 17, 36
ALICE = f"\0alice\0{PASSWORD}".encode()


def test_after_version_0_of_the_handshake_tokens_come_without_headers(broker: Broker) -> None:
    with connect(broker) as sock:
        send(sock, request(HANDSHAKE, 0, text("PLAIN")))
        assert answer(sock)[4:6] == b"\0\0"
        send(sock, ALICE)
        assert answer(sock) == b""[:0]
        send(sock, request(METADATA, 0, struct.pack(">i", 0)))
        assert answer(sock)[:4] == struct.pack(">i", 7)


@pytest.mark.parametrize(
    "frames",
    [
        [request(METADATA, 0, struct.pack(">i", 0))],
        [request(AUTHENTICATE, 0, struct.pack(">i", len(ALICE)) + ALICE)],
        [request(API_VERSIONS, 0), request(API_VERSIONS, 0)],
        [request(API_VERSIONS, 0), request(METADATA, 0, struct.pack(">i", 0))],
        [request(HANDSHAKE, 1, text("PLAIN")), request(METADATA, 0, struct.pack(">i", 0))],
        [request(HANDSHAKE, 0, text("PLAIN")), b"\0alice\0wrong"],
        [request(HANDSHAKE, 1, text("GSSAPI"))],
        [b"\x60\x82\x01\x02"],
        [b""],
    ],
    ids=[
        "no login",
        "no handshake",
        "versions twice",
        "versions and no login",
        "another request in the login",
        "a wrong bare token",
        "a mechanism that is not enabled",
        "a token of Kerberos",
        "nothing",
    ],
)
def test_who_does_not_log_in_is_closed_and_served_nothing(
    broker: Broker, frames: list[bytes]
) -> None:
    with connect(broker) as sock:
        for frame in frames:
            send(sock, frame)
        last = received = answer(sock)
        while received:
            assert received[:4] == struct.pack(">i", 7)
            last, received = received, answer(sock)
        assert len(last) < 1000
        assert sock.recv(1) == b""


def test_another_request_in_place_of_a_token_is_answered_before_the_connection_ends(
    broker: Broker,
) -> None:
    """A client that did not notice that its login has failed hears so, as from Apache Kafka."""
    with connect(broker) as sock:
        send(sock, request(HANDSHAKE, 1, text("PLAIN")))
        answer(sock)
        send(sock, request(METADATA, 1, struct.pack(">i", 1) + text("t")))
        received = MetadataResponse.decoder(1)(answer(sock), 4)[0]
        assert [(each.name, each.error_code) for each in received.topics] == [
            ("t", ErrorCode.ILLEGAL_SASL_STATE)
        ]
        assert sock.recv(1) == b""
    assert "Unexpected Kafka request of type METADATA during SASL authentication." in broker.log
    with connect(broker) as sock:
        send(sock, request(HANDSHAKE, 1, text("PLAIN")))
        answer(sock)
        send(sock, request(METADATA, 1, b"\x7f"))
        assert sock.recv(1) == b""
    assert "Traceback" not in broker.log


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


SCRAM_FIRST = b"n,,n=alice,r=rOprNGfwEbeRWgbNEkqO"


@pytest.mark.parametrize(
    ("mechanism", "token"),
    [("PLAIN", ALICE), ("SCRAM-SHA-256", SCRAM_FIRST)],
    ids=["PLAIN", "SCRAM"],
)
def test_a_handshake_cut_at_any_byte_leaves_nothing_behind(
    broker: Broker, mechanism: str, token: bytes
) -> None:
    handshake = framed(request(HANDSHAKE, 1, text(mechanism)))
    login = framed(request(AUTHENTICATE, 0, struct.pack(">i", len(token)) + token))
    whole = handshake + login
    for cut in range(len(whole)):
        with connect(broker) as sock:
            sock.sendall(whole[:cut])
            sock.shutdown(socket.SHUT_WR)
            if cut >= len(handshake):
                assert answer(sock)[4:6] == b"\0\0"
            assert sock.recv(1) == b""
    assert "Traceback" not in broker.log
    assert administrator(broker).list_topics(timeout=SECONDS).brokers


IDLERS = 10_000
"""Connections that begin a login and never end it."""
REQUESTS = 500


def cpu_ticks(pid: int) -> int:
    """What a process has used of the processor, as the kernel counts it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def cost_of_requests(broker: Broker, sock: socket.socket) -> tuple[int, float]:
    """What the broker works for some requests, and how many seconds one waits for its answer."""
    before = cpu_ticks(broker.pid)
    waits = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        send(sock, request(API_VERSIONS, 0))
        assert answer(sock)
        waits.append(time.perf_counter() - began)
    return cpu_ticks(broker.pid) - before, median(waits)


@pytest.mark.slow
def test_ten_thousand_that_never_log_in_cost_a_good_client_nothing() -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    begun = framed(request(HANDSHAKE, 1, text("PLAIN")))[:-1]
    with Broker(SETTINGS) as broker, contextlib.ExitStack() as idlers:
        with connect(broker) as good:
            send(good, request(HANDSHAKE, 1, text("PLAIN")))
            answer(good)
            send(good, request(AUTHENTICATE, 0, struct.pack(">i", len(ALICE)) + ALICE))
            answer(good)
            alone = [cost_of_requests(broker, good) for _ in range(3)]
            for _ in range(IDLERS):
                idlers.enter_context(connect(broker)).sendall(begun)
            cost_of_requests(broker, good)  # takes up what the others have sent
            beside = [cost_of_requests(broker, good) for _ in range(3)]
        assert min(work for work, _ in beside) <= 2 * max(work for work, _ in alone) + 2
        assert min(wait_s for _, wait_s in beside) <= 2 * max(wait_s for _, wait_s in alone)
        assert administrator(broker).list_topics(timeout=SECONDS).brokers
        assert "Traceback" not in broker.log


def test_a_frame_before_the_login_is_short(broker: Broker) -> None:
    with connect(broker) as sock:
        sock.sendall(struct.pack(">i", 600_000))
        assert sock.recv(1) == b""
    assert "sasl.server.max.receive.size" in broker.log


def test_requests_sent_together_with_the_login_are_served_after_it(broker: Broker) -> None:
    with connect(broker) as sock:
        token = struct.pack(">i", len(ALICE)) + ALICE
        frames = (
            request(API_VERSIONS, 0),
            request(HANDSHAKE, 1, text("PLAIN")),
            request(AUTHENTICATE, 1, token),
            request(METADATA, 0, struct.pack(">i", 0)),
        )
        sock.sendall(b"".join(struct.pack(">i", len(each)) + each for each in frames))
        answers = [answer(sock) for _ in frames]
        assert [each[:4] for each in answers] == [struct.pack(">i", 7)] * 4
        assert answers[2][4:6] == b"\0\0"


def test_a_login_that_has_expired_ends_the_connection_unless_it_is_renewed() -> None:
    with Broker({**SETTINGS, "connections.max.reauth.ms": "1300"}) as broker, connect(broker) as s:
        token = struct.pack(">i", len(ALICE)) + ALICE
        metadata = request(METADATA, 0, struct.pack(">i", 0))
        for _ in range(2):
            send(s, request(HANDSHAKE, 1, text("PLAIN")))
            assert answer(s)[4:6] == b"\0\0"
            send(s, request(AUTHENTICATE, 1, token))
            assert answer(s)[-8:] == struct.pack(">q", 1300)
            send(s, metadata)
            assert answer(s)
            broker.advance_time(1.4)
        send(s, metadata)
        assert answer(s) == b""
        assert "the login of User:alice has expired" in broker.log


def test_a_later_login_by_another_mechanism_ends_the_connection_without_an_answer() -> None:
    with Broker({**SETTINGS, "connections.max.reauth.ms": "60000"}) as broker:
        with connect(broker) as sock:
            send(sock, request(HANDSHAKE, 1, text("PLAIN")))
            assert answer(sock)[4:6] == b"\0\0"
            send(sock, request(AUTHENTICATE, 1, struct.pack(">i", len(ALICE)) + ALICE))
            assert answer(sock)[4:6] == b"\0\0"
            send(sock, request(HANDSHAKE, 1, text("SCRAM-SHA-256")))
            assert answer(sock)[4:6] == b"\0\0"
            send(sock, request(AUTHENTICATE, 1, struct.pack(">i", len(SCRAM_FIRST)) + SCRAM_FIRST))
            assert answer(sock) == b""
        assert "Cannot change SASL mechanism for re-authentication from PLAIN" in broker.log
        assert "Traceback" not in broker.log


def test_our_client_logs_in_again_and_stays_connected() -> None:
    with Broker({**SETTINGS, "connections.max.reauth.ms": "1400"}) as broker:
        made = connection_settings_of(settings(broker, "SCRAM-SHA-256"), lambda path: b"")
        add_user(broker, "alice", PASSWORD, "SCRAM-SHA-256")
        assert made.authenticate is not None
        logins: list[trio.Event] = [trio.Event(), trio.Event()]

        async def authenticate(connection: Connection) -> None:
            assert made.authenticate is not None
            await made.authenticate(connection)
            next(each for each in logins if not each.is_set()).set()

        async def run() -> None:
            with trio.fail_after(SECONDS):
                async with open_connection(
                    "127.0.0.1", broker.port, authenticate=authenticate
                ) as connection:
                    broker.advance_time(0.5)  # still within the session
                    await connection.request(MetadataRequest(topics=[]))
                    await logins[1].wait()
                    broker.advance_time(1)  # beyond the first session
                    await connection.request(MetadataRequest(topics=[]))

        trio.run(run)
        assert "has expired" not in broker.log


def test_sasl_over_tls(tmp_path_factory: pytest.TempPathFactory) -> None:
    files = make_tls_files(tmp_path_factory.mktemp("tls"))
    mine = {key.replace("sasl_plaintext", "sasl_ssl"): each for key, each in SETTINGS.items()}
    mine |= {"listeners": "SASL_SSL://127.0.0.1:0", "security.inter.broker.protocol": "SASL_SSL"}
    tls = broker_settings(files)
    with Broker({**tls, **mine}) as broker:
        known = settings(broker, "PLAIN")
        known |= {"security.protocol": "SASL_SSL", "ssl.ca.location": str(files.ca)}
        assert AdminClient(known).list_topics(timeout=SECONDS).brokers
        wrong = AdminClient({**known, "sasl.password": "wrong", "log_level": 0})
        with pytest.raises(KafkaException):
            wrong.list_topics(timeout=2)
