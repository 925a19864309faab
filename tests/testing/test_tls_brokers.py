"""`Broker(tls=True)`: certificates of its own, and clients that are told of them."""

import socket
import ssl
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives import serialization

from odradek.testing import Broker, Cluster
from odradek.testing.certificates import CertificateAuthority, make_tls_files
from odradek.testing.client_settings import CLIENTS, client_settings
from odradek.testing.process.broker_process import BrokerProcess, BrokerStartError

SECONDS = 60


@pytest.fixture(scope="module")
def broker():
    with Broker(tls=True) as broker:
        yield broker


def produce(broker):
    """The outcome of one record."""
    settings = broker.client_settings("confluent-kafka")
    producer = Producer({**settings, "request.timeout.ms": 20_000, "log_level": 0})
    outcomes = []
    producer.produce("t", b"x" * 5000, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(SECONDS) == 0
    return outcomes


def test_requests_are_seen_over_tls_too(broker):
    before = broker.requests.of("Produce").count()
    produce(broker)
    assert broker.requests.of("Produce").count() > before


def test_certificates_outlive_a_restart_and_go_with_the_broker():
    with Broker(tls=True) as broker:
        folder, address = broker.folder, broker.bootstrap_servers
        host, _, port = address.partition(":")
        shown = ssl.get_server_certificate((host, int(port)), ca_certs=broker.ssl_ca)
        broker.restart()
        assert broker.bootstrap_servers == address
        again = ssl.get_server_certificate((host, int(port)), ca_certs=broker.ssl_ca)
        assert again == shown
    assert not folder.exists()


def test_brokers_of_a_cluster_trust_each_other_and_their_clients():
    with Cluster(2, tls=True) as cluster:
        assert produce(cluster) == [None]
        assert {broker.tls for broker in cluster.brokers} == {cluster.tls}
        assert cluster.tls is not None


def test_plain_broker_has_no_certificate_to_trust():
    with Broker() as broker:
        assert broker.tls is None
        assert broker.client_settings("java") == {"bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(ValueError, match="tls=True"):
            _ = broker.ssl_ca


def test_every_client_gets_the_address_and_no_other_client_is_known(tmp_path):
    files = make_tls_files(tmp_path)
    for client in CLIENTS:
        assert "h:1" in client_settings("h:1", None, client).values()
        reported = client_settings("h:1", files, client)
        alone = client_settings("h:1", files, client, certificate=False)
        assert "h:1" in reported.values()
        assert (
            client in ("aiokafka", "odradek") or reported != alone
        )  # those two have it in a context
    with pytest.raises(ValueError, match="kafka-python"):
        client_settings("h:1", None, "kafkajs")


def test_private_keys_are_for_their_owner_only(tmp_path):
    certificate = CertificateAuthority(tmp_path / "new").issue("localhost")
    for path in (certificate.key, certificate.keystore):
        mode = (tmp_path / "new" / path).stat().st_mode
        assert mode & 0o077 == 0


def test_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(RuntimeError, match=r"pip install odradek\[tls\]"):
        CertificateAuthority(tmp_path)


def test_plain_bytes_at_a_tls_broker_do_it_no_harm(broker):
    host, _, port = broker.bootstrap_servers.partition(":")
    with socket.create_connection((host, int(port)), SECONDS) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        plain.settimeout(SECONDS)
        while plain.recv(1000):
            pass
    assert produce(broker) == [None]


def test_a_keys_password_reaches_the_broker_and_is_on_no_command_line(tmp_path):
    tls = make_tls_files(tmp_path)
    password = "a password of the test"
    pem = Path(tls.keystore).read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    kind = serialization.BestAvailableEncryption(password.encode())
    encrypted = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, kind
    )
    keystore = tmp_path / "encrypted.pem"
    keystore.write_bytes(encrypted + pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    settings = {"ssl.keystore.location": str(keystore), "ssl.key.password": password}
    with Broker(settings, tls=tls) as broker:
        assert produce(broker) == [None]
        command_line = Path(f"/proc/{broker.pid}/cmdline").read_bytes()
        assert b"ssl.keystore.location" in command_line
        assert password.encode() not in command_line
        assert password not in broker.log
    with pytest.raises(BrokerStartError) as failed:
        Broker({**settings, "ssl.key.password": "another"}, tls=tls)
    assert "another" not in str(failed.value)


def test_what_a_broker_that_does_not_start_was_given_is_shown_without_secrets() -> None:
    settings = {
        "listener.name.in.plain.sasl.jaas.config": 'Login required user_a="hunter2";',
        "ssl.key.password": "hunter3",
        "num.partition": "3",
    }
    with pytest.raises(BrokerStartError, match=r"num\.partition=3") as failed:
        BrokerProcess(settings=settings)
    shown = str(failed.value)
    assert "ssl.key.password=[hidden]" in shown
    assert "hunter" not in shown
