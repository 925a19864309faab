"""Every client logs in by every mechanism: with the right password it produces and consumes, with a
wrong one it says that authentication failed, at once and in its own words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from odradek.testing import Broker
from odradek.testing.certificates import broker_settings, make_tls_files
from odradek.testing.client_settings import TlsFiles

from .conftest import BUILD_SECONDS_MAX, HERE, Run, need, run_to_end

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "alice-secret"
TOPIC = "logins"
SECONDS = 60
REFUSED_SECONDS_MAX = 30
"""A client that waits for its time-out needs longer."""
BOOTSTRAP_MS_MAX = 10_000
"""kafka-python tries again for so long, whatever it hears."""
DONE, REFUSED = "produced and consumed", "authentication failed"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="broker" password="broker" user_broker="broker" user_{USER}="{PASSWORD}";'
)


class Listener(NamedTuple):
    """Where clients log in, and the authority's certificate; empty without TLS."""

    protocol: str
    bootstrap: str
    authority: str


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def listener(request: pytest.FixtureRequest, tls_files: TlsFiles) -> Iterator[Listener]:
    protocol = str(request.param)
    is_secure = protocol == "SASL_SSL"
    settings = {
        **(broker_settings(tls_files) if is_secure else {}),
        "listeners": f"{protocol}://127.0.0.1:0",
        "security.inter.broker.protocol": protocol,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": JAAS,
    }
    with Broker(settings) as broker:
        found = Listener(protocol, broker.bootstrap, str(tls_files.ca) if is_secure else "")
        admin = AdminClient(librdkafka_settings(found, "PLAIN", PASSWORD))
        for mechanism in MECHANISMS[1:]:  # a request alters a user once
            info = ScramCredentialInfo(getattr(ScramMechanism, mechanism.replace("-", "_")), 4096)
            made = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
            (done,) = admin.alter_user_scram_credentials([made]).values()
            done.result(SECONDS)
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(SECONDS)
        yield found


def librdkafka_settings(
    listener: Listener, mechanism: str, password: str
) -> dict[str, str | int | float | bool]:
    trusted = {"ssl.ca.location": listener.authority} if listener.authority else {}
    return {
        "bootstrap.servers": listener.bootstrap,
        "security.protocol": listener.protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
        "log_level": 0,
        **trusted,
    }


def by_librdkafka(listener: Listener, mechanism: str, password: str) -> str:
    settings = librdkafka_settings(listener, mechanism, password)
    errors: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": errors.append})
    producer.produce(TOPIC, b"librdkafka")
    deadline = time.monotonic() + SECONDS
    while producer.flush(0.1) and time.monotonic() < deadline:
        if any(error.code() == KafkaError._AUTHENTICATION for error in errors):
            return REFUSED
    group = {"group.id": f"librdkafka-{mechanism}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **group})
    try:
        consumer.subscribe([TOPIC])
        message = consumer.poll(SECONDS)
        return DONE if message is not None and message.error() is None else str(errors)
    finally:
        consumer.close()


def by_kafka_python(listener: Listener, mechanism: str, password: str) -> str:
    settings: dict[str, Any] = {
        "bootstrap_servers": listener.bootstrap,
        "security_protocol": listener.protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
        "ssl_cafile": listener.authority or None,
    }
    producer = KafkaProducer(**settings, bootstrap_timeout_ms=BOOTSTRAP_MS_MAX)
    try:
        producer.send(TOPIC, b"kafka-python").get(SECONDS)
    finally:
        producer.close()
    consumer = KafkaConsumer(
        TOPIC, **settings, auto_offset_reset="earliest", consumer_timeout_ms=SECONDS * 1000
    )
    try:
        return DONE if next(consumer).value else ""
    finally:
        consumer.close()


def by_aiokafka(listener: Listener, mechanism: str, password: str) -> str:
    context = create_ssl_context(cafile=listener.authority) if listener.authority else None
    settings: dict[str, Any] = {
        "bootstrap_servers": listener.bootstrap,
        "security_protocol": listener.protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
        "ssl_context": context,
    }

    async def produce_and_consume() -> str:
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"aiokafka")
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(TOPIC, **settings, auto_offset_reset="earliest")
        await consumer.start()
        try:
            return DONE if (await asyncio.wait_for(consumer.getone(), SECONDS)).value else ""
        finally:
            await consumer.stop()

    return asyncio.run(produce_and_consume())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(listener: Listener, mechanism: str) -> None:
    assert by_librdkafka(listener, mechanism, PASSWORD) == DONE
    began = time.monotonic()
    assert by_librdkafka(listener, mechanism, PASSWORD + "x") == REFUSED
    assert time.monotonic() - began < REFUSED_SECONDS_MAX


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("client", "error", "log_line"),
    [
        (by_kafka_python, KafkaTimeoutError, "Bootstrap connection to bootstrap-0 failed"),
        (by_aiokafka, KafkaConnectionError, "SaslAuthenticationFailed"),
    ],
)
def test_python_clients(
    listener: Listener,
    client: Callable[[Listener, str, str], str],
    error: type[Exception],
    log_line: str,
    mechanism: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both log at once why they are refused, and raise that they reach no broker. kafka-python
    reads the answer of some attempts, and of others only that the connection has ended."""
    assert client(listener, mechanism, PASSWORD) == DONE
    assert log_line not in caplog.text
    began = time.monotonic()
    with pytest.raises(error):
        client(listener, mechanism, PASSWORD + "x")
    assert time.monotonic() - began < REFUSED_SECONDS_MAX
    assert log_line in caplog.text


def expected(*clients: str) -> set[str]:
    outcomes = {"right": DONE, "wrong": REFUSED}
    return {
        f"{client} {mechanism} {password}: {outcome}"
        for client in clients
        for mechanism in MECHANISMS
        for password, outcome in outcomes.items()
    }


def arguments(listener: Listener) -> tuple[str, ...]:
    return listener.bootstrap, listener.authority, TOPIC, USER, PASSWORD


def test_java_clients(java: Run, listener: Listener) -> None:
    reported = java("odradek.interop.Logins", *arguments(listener))
    assert set(reported.splitlines()) == expected("java")


@pytest.fixture(scope="module")
def go_logins(tmp_path_factory: pytest.TempPathFactory) -> str:
    go = need(
        "go", "install Go, of the version that tests/interop/go_logins/go.mod names or later."
    )
    program = tmp_path_factory.mktemp("go") / "logins"
    build = (go, "build", "-o", str(program), ".")
    run_to_end(*build, cwd=HERE / "go_logins", seconds_max=BUILD_SECONDS_MAX)
    return str(program)


def test_go_clients(run: Run, go_logins: str, listener: Listener) -> None:
    reported = run(go_logins, *arguments(listener))
    assert set(reported.splitlines()) == expected("franz-go", "sarama")


def test_node_clients(node: Run, listener: Listener) -> None:
    reported = node("logins.js", *arguments(listener))
    assert set(reported.splitlines()) == expected("kafkajs")
