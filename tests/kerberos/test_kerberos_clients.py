"""Real clients log in by Kerberos, and hear why where they may not.

confluent-kafka is not among them: the wheels of librdkafka are built without GSSAPI.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaException
from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError
from support.kafka_jars import command_of_java
from support.kdc import Kdc

from odradek.testing import Broker

from .conftest import jaas

SECONDS = 60
NO_SUCH_KEY = "a login by GSSAPI failed: Cannot decrypt ticket for other/localhost@ODRADEK.TEST"
DONE, REFUSED = "produced and consumed", "authentication failed"


@pytest.mark.usefixtures("tickets")
def test_kafka_python(broker: Broker) -> None:
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_domain_name": "localhost",
    }
    topic = f"kp-{uuid4().hex[:8]}"
    with KafkaProducer(**settings) as producer:
        producer.send(topic, b"hello").get(SECONDS)
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=SECONDS * 1000, **settings
    )
    assert next(consumer).value == b"hello"
    consumer.close()


@pytest.mark.usefixtures("tickets")
def test_kafka_python_with_a_ticket_for_another_service(broker: Broker) -> None:
    """It reads the answer of some attempts, and of others only that the connection has ended."""
    before = broker.log.count(NO_SUCH_KEY)
    with pytest.raises(KafkaTimeoutError, match="bootstrap"):
        KafkaProducer(
            bootstrap_servers=broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_service_name="other",
            sasl_kerberos_domain_name="localhost",
            bootstrap_timeout_ms=5000,
        )
    assert broker.log.count(NO_SUCH_KEY) > before


@pytest.mark.usefixtures("tickets")
def test_aiokafka(broker: Broker) -> None:
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_domain_name": "localhost",
    }
    topic = f"aio-{uuid4().hex[:8]}"

    async def run() -> bytes | None:
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            message = await asyncio.wait_for(consumer.getone(), SECONDS)
            value: bytes | None = message.value
            return value

    assert asyncio.run(run()) == b"hello"


def of_java(kdc: Kdc, broker: Broker, folder: Path, name: str, service: str) -> str:
    """What comes of Java's client, with the keys of a principal and tickets for a service."""
    config = folder / "java.properties"
    entry = jaas(kdc, name).replace("\\", "\\\\")
    config.write_text(
        f"bootstrap.servers={broker.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\n"
        f"sasl.kerberos.service.name={service}\nsasl.jaas.config={entry}\n"
    )
    configuration = f"-Djava.security.krb5.conf={kdc.configuration}"
    runtime, *rest = command_of_java()
    arguments = ("odradek.interop.FileLogin", str(config), f"java-{uuid4().hex[:8]}")
    done = subprocess.run(
        [runtime, configuration, *rest, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_java(kdc: Kdc, broker: Broker, tmp_path: Path) -> None:
    assert of_java(kdc, broker, tmp_path, "alice", "kafka") == DONE


def test_java_with_a_ticket_for_another_service(kdc: Kdc, broker: Broker, tmp_path: Path) -> None:
    assert of_java(kdc, broker, tmp_path, "alice", "other") == REFUSED


def test_the_wheels_of_librdkafka_have_no_gssapi() -> None:
    """If this fails, they have it now: log in with them here, too."""
    with pytest.raises(KafkaException, match="No provider for SASL mechanism GSSAPI"):
        LibrdkafkaProducer({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"})
