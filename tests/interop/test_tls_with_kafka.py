"""Apache Kafka with the TLS settings of our brokers: what we make and say is Kafka's, both ways."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from support.kafka_process import KafkaProcess

from odradek.testing import Broker
from odradek.testing.certificates import CertificateAuthority, broker_settings, make_tls_files
from odradek.testing.client_settings import TlsFiles, client_settings
from odradek.testing.process.held_port import HeldPort

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SECONDS = 120
UNHURRIED = {"broker.session.timeout.ms": "120000"}
"""Kafka's controller does not give up its broker on a busy machine."""


class KafkaWithTls(KafkaProcess):
    """Kafka with a listener SSL, besides the plain one by which it is asked whether it is ready."""

    tls_port = 0

    def _format(self) -> None:
        self._tls_held = HeldPort()
        self.tls_port = self._tls_held.port
        tls = f"SSL://127.0.0.1:{self.tls_port}"
        plain = f"PLAINTEXT://{self.bootstrap}"
        controller = f"CONTROLLER://127.0.0.1:{self._controller_port}"
        self.settings |= {
            "listeners": f"{plain},{tls},{controller}",
            "advertised.listeners": f"{plain},{tls}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        }
        super()._format()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def addresses(
    kafka_libs: Path, files: TlsFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Of Kafka and of odradek, each with the same settings of TLS."""
    settings = {**broker_settings(files), "ssl.client.auth": "required"}
    folder = tmp_path_factory.mktemp("kafka")
    with (
        KafkaWithTls(kafka_libs, folder / "data", settings=settings | UNHURRIED) as kafka,
        Broker(settings, tls=files) as broker,
    ):
        yield {"kafka": f"127.0.0.1:{kafka.tls_port}", "odradek": broker.bootstrap_servers}


def odradek(*arguments: str, stdin: str = "") -> str:
    """Run one of our commands; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_our_commands_reach_kafka_over_tls(
    addresses: dict[str, str], files: TlsFiles, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    settings = client_settings(addresses["kafka"], files, "java")
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    there = ("--bootstrap-server", addresses["kafka"], "--command-config", str(config))

    odradek("topics", "create", "lines", *there)
    odradek("produce", "lines", *there, stdin="one\ntwo\n")
    assert odradek("consume", "lines", "--from-beginning", "--until-end", *there) == "one\ntwo\n"
    odradek("groups", "list", *there)


def alert(settings: dict[str, object]) -> KafkaError:
    """What librdkafka says of the alert that it is sent.

    It tries again and again: where its request was there before the alert was read, the
    connection is reset, and that is all it hears.
    """
    errors: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": errors.append, "log_level": 0})
    for _ in range(10 * SECONDS):
        producer.poll(0.1)
        for error in errors:
            if "SSL alert number" in error.str():
                return error
    raise AssertionError(f"librdkafka reports no alert: {errors}")


@pytest.mark.parametrize("shown", ["nothing", "a stranger's certificate"])
def test_clients_are_refused_by_both_in_the_same_way(
    addresses: dict[str, str], files: TlsFiles, tmp_path: Path, shown: str
) -> None:
    """By an alert after the handshake, as TLSv1.3 has it; which one is the TLS library's choice."""
    reported = {}
    for name, address in addresses.items():
        settings = client_settings(address, files, "confluent-kafka", certificate=False)
        if shown != "nothing":
            stranger = CertificateAuthority(tmp_path / name).issue("client")
            settings["ssl.certificate.location"] = stranger.certificate
            settings["ssl.key.location"] = stranger.key
        reported[name] = alert(settings)
    assert reported["odradek"].code() == reported["kafka"].code()
    for error in reported.values():
        assert "Receive failed" in error.str()
