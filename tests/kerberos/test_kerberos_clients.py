"""Real clients log in by Kerberos, and hear why where they may not.

librdkafka does so as Debian builds it, for kcat: its wheels, as confluent-kafka's, have no GSSAPI.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import KafkaException
from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError
from support.kafka_jars import command_of_java
from support.kdc import REALM, Kdc
from support.logins import DONE, REFUSED, Login, Plan, all_of, build_go_logins, reported

from odradek.testing import Broker

SECONDS = 60
NODE_PROGRAM = Path(__file__).parents[1] / "interop" / "node" / "logins.js"
NO_SUCH_KEY = "a login by GSSAPI failed: Cannot decrypt ticket for other/localhost@ODRADEK.TEST"


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


@pytest.mark.usefixtures("tickets")
def test_aiokafka_with_a_ticket_for_another_service(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs why, and raises that it reaches no broker, as with a wrong password."""
    before = broker.log.count(NO_SUCH_KEY)

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_service_name="other",
            sasl_kerberos_domain_name="localhost",
        )
        try:
            with pytest.raises(KafkaConnectionError):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(run())
    assert "SaslAuthenticationFailed" in caplog.text
    assert broker.log.count(NO_SUCH_KEY) > before


# --- Programs: each gets tickets for the broker, and for a service whose key that does not have ---


@pytest.fixture
def plan(kdc: Kdc, broker: Broker) -> Plan:
    alice = Login(
        "right",
        "GSSAPI",
        "alice",
        configuration=str(kdc.configuration),
        keytab=str(kdc.keytab("alice")),
        realm=REALM,
        service="kafka",
    )
    topic = f"gssapi-{uuid4().hex[:8]}"
    broker.create_topic(topic)
    logins = [alice, alice._replace(name="wrong", service="other")]
    return Plan(broker.bootstrap, "SASL_PLAINTEXT", topic, logins)


def expected(client: str, plan: Plan) -> dict[str, str]:
    right, wrong = plan.logins
    return all_of(DONE, client, [right]) | all_of(REFUSED, client, [wrong])


def run_to_end(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_java(kdc: Kdc, plan: Plan, tmp_path: Path) -> None:
    runtime, *others = command_of_java()
    program = (runtime, f"-Djava.security.krb5.conf={kdc.configuration}", *others)
    files = plan.as_java_files(tmp_path)
    output = run_to_end(*program, "odradek.interop.Logins", plan.topic, *files)
    assert reported(output) == expected("java", plan)


def test_franz_go_and_sarama(plan: Plan, tmp_path: Path) -> None:
    output = run_to_end(build_go_logins(tmp_path), plan.as_file(tmp_path / "plan"))
    assert reported(output) == expected("franz-go", plan) | expected("sarama", plan)


def test_kafkajs(kdc: Kdc, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a custom `authenticationProvider` with npm's package kerberos, which is MIT's library."""
    runtime = shutil.which("node")
    assert runtime is not None, "`node` is not installed: install Node.js, such as Debian's nodejs"
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.keytab("alice")))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    output = run_to_end(runtime, str(NODE_PROGRAM), plan.as_file(tmp_path / "plan"))
    assert reported(output) == expected("kafkajs", plan)


def by_kcat(
    plan: Plan, login: Login, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """What comes of Debian's librdkafka, which gets its tickets by kinit."""
    program = shutil.which("kcat")
    assert program is not None, "`kcat` is not installed: install it, such as Debian's kcat"
    settings = {
        "security.protocol": plan.protocol,
        "sasl.mechanism": login.mechanism,
        "sasl.kerberos.service.name": login.service,
        "sasl.kerberos.keytab": login.keytab,
        "sasl.kerberos.principal": f"{login.user}@{login.realm}",
        "message.timeout.ms": f"{SECONDS * 1000}",
    }
    options = [f"-X{name}={text}" for name, text in settings.items()]
    return subprocess.run(
        [program, "-b", plan.bootstrap, "-m", "60", *options, *arguments],
        input="kcat\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "KRB5CCNAME": f"FILE:{folder / login.name}"},
    )


def test_kcat(plan: Plan, tmp_path: Path) -> None:
    right, _ = plan.logins
    produced = by_kcat(plan, right, tmp_path, "-P", "-t", plan.topic)
    assert produced.returncode == 0, produced.stderr
    consumed = by_kcat(plan, right, tmp_path, "-C", "-t", plan.topic, "-e")
    assert (consumed.returncode, consumed.stdout) == (0, "kcat\n"), consumed.stderr


def test_kcat_with_a_ticket_for_another_service(broker: Broker, plan: Plan, tmp_path: Path) -> None:
    before = broker.log.count(NO_SUCH_KEY)
    listed = by_kcat(plan, plan.logins[1], tmp_path, "-L")
    assert listed.returncode != 0
    assert "SASL authentication error: " in listed.stderr
    assert broker.log.count(NO_SUCH_KEY) > before


def test_the_wheels_of_librdkafka_have_no_gssapi() -> None:
    """If this fails, they have it now: log in with them here, too."""
    with pytest.raises(KafkaException, match="No provider for SASL mechanism GSSAPI"):
        LibrdkafkaProducer({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"})
