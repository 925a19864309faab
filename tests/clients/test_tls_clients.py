"""Real clients over TLS: with and without certificates, and what they see when it goes wrong."""

import asyncio
import os
import ssl
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError
from support.kafka_process import wait_for_text

from odradek.client import AuthenticationError, Fetcher, KafkaClient, open_connection
from odradek.client import BatchProducer as OwnProducer
from odradek.testing import Broker
from odradek.testing.certificates import CertificateAuthority, make_tls_files
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

SECONDS = 120
LARGE = 3_000_000
SETTINGS = {"message.max.bytes": "4000000"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def open_broker(files):
    """Speaks TLS with anybody."""
    with Broker(SETTINGS, tls=files) as broker:
        yield broker


@pytest.fixture(scope="module")
def closed_broker(files):
    """Wants to see certificates."""
    with Broker({**SETTINGS, "ssl.client.auth": "required"}, tls=files) as broker:
        yield broker


@pytest.fixture(params=["anonymous", "known"])
def settings_of(request, open_broker, closed_broker):
    """What a client is told, by its name: without a certificate, and with one."""
    is_known = request.param == "known"
    broker = closed_broker if is_known else open_broker
    return lambda client: broker.client_settings(client, certificate=is_known)


def values():
    """Small ones and large ones, no two alike: the large take many records of TLS."""
    small = [str(number).encode() for number in range(500)]
    return [*small, *(bytes([number]) * LARGE for number in range(1, 4))]


def fresh(name):
    return f"{name}-{uuid4().hex[:8]}"


def test_kafka_python_writes_and_reads(settings_of):
    topic, settings = fresh("kp"), settings_of("kafka-python")
    producer = KafkaProducer(max_request_size=4_000_000, **settings)
    for value in values():
        producer.send(topic, value)
    producer.flush(SECONDS)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        group_id=fresh("group"),
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=4_000_000,
        **settings,
    )
    received = []
    deadline = time.monotonic() + SECONDS
    while len(received) < len(values()) and time.monotonic() < deadline:
        for records in consumer.poll(500).values():
            received += [record.value for record in records]
    consumer.close()
    assert received == values()


def test_confluent_kafka_writes_and_reads(settings_of):
    topic, settings = fresh("ck"), settings_of("confluent-kafka")
    outcomes = []
    producer = Producer({**settings, "message.max.bytes": 4_000_000, "enable.idempotence": True})
    for value in values():
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    assert outcomes == [None] * len(values())
    consumer = Consumer({**settings, "group.id": fresh("group"), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received = []
    deadline = time.monotonic() + SECONDS
    while len(received) < len(values()) and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            received.append(message.value())
    consumer.close()
    assert received == values()


def test_aiokafka_writes_and_reads(settings_of):
    topic = fresh("aio")

    async def write_and_read():
        settings = settings_of("aiokafka")
        async with AIOKafkaProducer(max_request_size=4_000_000, **settings) as producer:
            await asyncio.gather(
                *[await producer.send(topic, value, partition=0) for value in values()]
            )
        async with AIOKafkaConsumer(
            topic,
            group_id=fresh("group"),
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=4_000_000,
            **settings,
        ) as consumer:
            return [(await consumer.getone()).value for _ in values()]

    assert asyncio.run(asyncio.wait_for(write_and_read(), SECONDS)) == values()


async def test_our_own_client_writes_and_reads(settings_of):
    topic = fresh("own")
    now_ms = int(time.time() * 1000)  # what is older than a week may be deleted at any moment
    async with KafkaClient(**settings_of("odradek")) as client:
        producer = OwnProducer(client)
        for value in values():
            await producer.send(topic, 0, [(None, value, now_ms, ())])
        fetcher = Fetcher(client)
        fetcher.assign({(topic, 0): 0})
        received = []
        with trio.fail_after(SECONDS):
            while len(received) < len(values()):
                received += [record.value for record in await fetcher.poll()]
    assert received == values()


# -- what goes wrong --------------------------------------------------------------------


def assert_confluent_is_told(settings, text):
    """librdkafka reports an error that holds the text, whatever else befalls one of its tries."""
    errors = []
    producer = Producer({**settings, "error_cb": errors.append})
    deadline = time.monotonic() + SECONDS
    while not any(text in error.str() for error in errors):
        assert time.monotonic() < deadline, errors
        producer.poll(0.1)


def wait_for_log(broker, text):
    """The broker logs why after the client has been told."""
    wait_for_text(broker.log_path, text, SECONDS)


def kafka_python_cannot_connect(settings):
    with pytest.raises(KafkaTimeoutError):
        KafkaProducer(bootstrap_timeout_ms=500, **settings)


def aiokafka_cannot_connect(settings):
    async def connect():
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaConnectionError):
        asyncio.run(asyncio.wait_for(connect(), SECONDS))


def test_client_without_a_certificate_gets_the_reason(closed_broker):
    plain = {"certificate": False}
    settings = closed_broker.client_settings("confluent-kafka", **plain)
    assert_confluent_is_told(settings, "certificate required")
    kafka_python_cannot_connect(closed_broker.client_settings("kafka-python", **plain))
    aiokafka_cannot_connect(closed_broker.client_settings("aiokafka", **plain))
    wait_for_log(closed_broker, "it shows no certificate, and ssl.client.auth=required")


async def test_our_own_client_says_why_it_is_refused(closed_broker):
    host, _, port = closed_broker.bootstrap_servers.partition(":")
    context = ssl.create_default_context(cafile=closed_broker.ssl_ca)
    with pytest.raises(AuthenticationError, match="certificate required"):
        async with open_connection(host, int(port), ssl_context=context):
            pass


def test_client_of_another_authority_gets_the_reason(closed_broker, tmp_path):
    stranger = CertificateAuthority(tmp_path).issue("client")
    settings = closed_broker.client_settings("confluent-kafka")
    settings["ssl.certificate.location"] = stranger.certificate
    settings["ssl.key.location"] = stranger.key
    assert_confluent_is_told(settings, "unknown ca")
    wait_for_log(closed_broker, "its certificate is not accepted: unable to get")


def test_client_with_an_expired_certificate_gets_the_reason(files, tmp_path):
    authority = CertificateAuthority(tmp_path)
    expired = authority.issue("client", not_after=datetime(2020, 1, 1, tzinfo=UTC))
    own = {
        "listener.name.out.ssl.client.auth": "required",
        "listener.name.out.ssl.truststore.location": authority.path,
    }
    with outside(files, own) as broker:
        settings = {
            **broker.client_settings("confluent-kafka", certificate=False),
            "ssl.certificate.location": expired.certificate,
            "ssl.key.location": expired.key,
        }
        assert_confluent_is_told(settings, "certificate expired")
        wait_for_log(broker, "its certificate is not accepted: certificate has expired")


def outside(files, settings):
    """A broker with a listener OUT besides the one that brokers use; clients are told of OUT."""
    return Broker(
        {
            "listeners": "OUT://127.0.0.1:0,SSL://127.0.0.1:0",
            "listener.security.protocol.map": "SSL:SSL,OUT:SSL",
            **settings,
        },
        tls=files,
    )


def test_clients_refuse_a_broker_of_another_authority(open_broker, tmp_path):
    path = CertificateAuthority(tmp_path).path
    settings = open_broker.client_settings("confluent-kafka")
    assert_confluent_is_told({**settings, "ssl.ca.location": path}, "certificate verify failed")
    settings = open_broker.client_settings()
    kafka_python_cannot_connect({**settings, "ssl_cafile": path})
    settings = open_broker.client_settings("aiokafka")
    context = ssl.create_default_context(cafile=path)
    aiokafka_cannot_connect({**settings, "ssl_context": context})
    wait_for_log(open_broker, "it does not trust this listener's certificate")


@pytest.mark.parametrize("wrong", ["expired", "for another host"])
def test_clients_refuse_a_broker_whose_certificate_is(wrong, tmp_path, files):
    authority = CertificateAuthority(tmp_path)
    if wrong == "expired":
        shown = authority.issue("127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC))
    else:
        shown = authority.issue("elsewhere.example", file_name="elsewhere")
    with outside(files, {"listener.name.out.ssl.keystore.location": shown.keystore}) as broker:
        address = broker.bootstrap_servers
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": authority.path,
        }
        assert_confluent_is_told(settings, "certificate verify failed")
        context = ssl.create_default_context(cafile=authority.path)
        settings = {"bootstrap_servers": address, "security_protocol": "SSL"}
        aiokafka_cannot_connect({**settings, "ssl_context": context})
        kafka_python_cannot_connect({**settings, "ssl_cafile": authority.path})


def test_plain_client_at_a_tls_port_is_distinguished(open_broker):
    address = {"bootstrap_servers": open_broker.bootstrap_servers}
    kafka_python_cannot_connect(address)
    aiokafka_cannot_connect(address)
    wait_for_log(open_broker, "it does not speak TLS")


def test_tls_client_at_a_plain_port_is_distinguished(files):
    with Broker() as broker:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": files.ca,
        }
        assert_confluent_is_told(settings, "SSL handshake failed")
        wait_for_log(broker, "closing the connection")


# -- what changes -----------------------------------------------------------------------


def test_keystore_is_replaced_by_an_operators_command(tmp_path):
    authority = CertificateAuthority(tmp_path)
    names = ("localhost", "127.0.0.1")
    first = authority.issue(*names, common_name="broker", file_name="first")
    second = authority.issue(*names, common_name="broker", file_name="second")
    other = authority.issue(*names, common_name="other", file_name="other")
    files = make_tls_files(tmp_path / "client")._replace(ca=authority.path, keystore=first.keystore)
    with Broker(tls=files) as broker:
        admin = AdminClient(broker.client_settings("confluent-kafka", certificate=False))
        host, _, port = broker.bootstrap_servers.partition(":")

        def shown():
            return ssl.get_server_certificate((host, int(port)), ca_certs=authority.path)

        def alter(path):
            entry = ConfigEntry(
                "listener.name.ssl.ssl.keystore.location",
                path,
                incremental_operation=AlterConfigOpType.SET,
            )
            resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
            (future,) = admin.incremental_alter_configs([resource]).values()
            future.result(SECONDS)

        before = shown()
        alter(second.keystore)
        assert shown() != before
        with open(second.certificate) as file:
            assert shown() == file.read()
        with pytest.raises(Exception, match=r"ssl\.allow\.dn\.changes"):
            alter(other.keystore)
        with open(second.certificate) as file:
            assert shown() == file.read()
        broker.restart()
        with open(second.certificate) as file:
            assert shown() == file.read()


def test_keystore_is_renewed_by_a_changed_file(tmp_path):
    """As tools for certificates do it: nobody tells the broker."""
    authority = CertificateAuthority(tmp_path)
    names = ("localhost", "127.0.0.1")
    first = authority.issue(*names, common_name="broker", file_name="first")
    second = authority.issue(*names, common_name="broker", file_name="second")
    files = make_tls_files(tmp_path / "client")._replace(ca=authority.path, keystore=first.keystore)
    with Broker(tls=files) as broker:
        producer = Producer(broker.client_settings("confluent-kafka", certificate=False))
        host, _, port = broker.bootstrap_servers.partition(":")

        def shown():
            return ssl.get_server_certificate((host, int(port)), ca_certs=authority.path)

        def produce():
            errors = []
            producer.produce("renewed", b"x", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(SECONDS) == 0
            assert errors == [None]

        produce()
        before = shown()
        with open(first.keystore, "rb") as file:
            good = file.read()
        with open(first.keystore, "wb") as file:
            file.write(good[: len(good) // 2])
        wait_for_text(broker.log_path, "stays as it is", SECONDS)
        assert shown() == before
        with open(second.certificate) as file:
            renewed = file.read()
        os.replace(second.keystore, first.keystore)
        wait_until(lambda: shown() == renewed, SECONDS)
        produce()
        assert broker.log.count("stays as it is") == 1
