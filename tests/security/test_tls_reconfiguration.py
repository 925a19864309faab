"""What of TLS changes while a broker runs: stores, as Kafka's SslFactory allows, and no more."""

import os
import shutil
from pathlib import Path

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from support.tls_server import HELLO, tls_server

from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.security.tls.listeners import TlsListeners
from odradek.testing.certificates import CertificateAuthority, broker_settings, make_tls_files

NAMES = ("localhost", "127.0.0.1", "::1")
LOCATION = "listener.name.ssl.ssl.keystore.location"


@pytest.fixture
def authority(tmp_path):
    return CertificateAuthority(tmp_path)


@pytest.fixture
def files(authority, tmp_path):
    """As `make_tls_files`, by an authority that can issue more."""
    made = make_tls_files(tmp_path / "unused")
    broker = authority.issue(*NAMES, common_name="broker", file_name="broker")
    return made._replace(ca=authority.path, keystore=broker.keystore)


async def shown_serial(server):
    """The serial number of the certificate that a new connection is shown."""
    stream = trio.SSLStream(await server.connect(), server.client(), server_hostname="127.0.0.1")
    await stream.do_handshake()
    serial = stream.getpeercert()["serialNumber"]
    await trio.aclose_forcefully(stream)
    return int(serial, 16)


def serial_of(certificate):
    pem = Path(certificate.certificate).read_bytes()
    return x509.load_pem_x509_certificate(pem).serial_number


def change(server, overrides):
    """What a broker does with AlterConfigs of its own settings."""
    server.config.validate(overrides, per_broker=True)
    server.config.change(overrides, per_broker=True)


async def test_new_connections_get_the_new_certificate(files, authority):
    async with tls_server(files) as server:
        before = await shown_serial(server)
        later = authority.issue(*NAMES, common_name="broker", file_name="later")
        change(server, {LOCATION: later.keystore})
        assert await shown_serial(server) == serial_of(later) != before
        change(server, {})
        assert await shown_serial(server) == before


async def test_file_that_was_replaced_is_read_again(files, authority):
    async with tls_server(files) as server:
        change(server, {LOCATION: files.keystore})
        later = authority.issue(*NAMES, common_name="broker", file_name="later")
        os.replace(later.keystore, files.keystore)
        assert await shown_serial(server) != serial_of(later)
        change(server, {LOCATION: files.keystore})
        assert await shown_serial(server) == serial_of(later)


async def test_replaced_file_is_taken_up_though_nobody_says_so(files, authority, caplog):
    async with tls_server(files) as server:
        await server.tls.look_at_files()
        before = await shown_serial(server)
        stream = trio.SSLStream(
            await server.connect(), server.client(), server_hostname="127.0.0.1"
        )
        await stream.do_handshake()
        later = authority.issue(*NAMES, common_name="broker", file_name="later")
        times = os.stat(files.keystore)
        os.utime(later.keystore, ns=(times.st_atime_ns, times.st_mtime_ns))  # as `cp -p` may
        os.replace(later.keystore, files.keystore)
        await server.tls.look_at_files()
        assert await shown_serial(server) == serial_of(later) != before
        await stream.send_all(HELLO)
        assert b"hello" in await stream.receive_some()
        await trio.aclose_forcefully(stream)
    assert "stays as it is" not in caplog.text


async def test_broken_file_is_told_once_and_tried_again_when_it_changes(files, authority, caplog):
    good = Path(files.keystore).read_bytes()
    later = authority.issue(*NAMES, common_name="broker", file_name="later")
    another = authority.issue(*NAMES, common_name="somebody", file_name="another")
    async with tls_server(files) as server:
        before = await shown_serial(server)
        for broken in (good[:200], good[:300], b"", good[:200]):
            Path(files.keystore).write_bytes(broken)
            for _ in range(3):
                await server.tls.look_at_files()
        assert await shown_serial(server) == before
        lines = [line for line in caplog.messages if "stays as it is" in line]
        assert len(lines) == 1, lines
        assert f"ssl.keystore.location={files.keystore} holds no certificate" in lines[0]
        os.replace(another.keystore, files.keystore)
        await server.tls.look_at_files()
        assert "ssl.allow.dn.changes" in caplog.messages[-1]
        server.config.change({"log.retention.ms": "5"}, per_broker=False)  # not by the way, either
        assert await shown_serial(server) == before
        os.remove(files.keystore)
        await server.tls.look_at_files()
        assert "No such file" in caplog.messages[-1]
        os.replace(later.keystore, files.keystore)
        await server.tls.look_at_files()
        assert await shown_serial(server) == serial_of(later)


async def test_replaced_truststore_of_one_listener_is_taken_up(files, authority, tmp_path):
    other = CertificateAuthority(tmp_path / "clients")
    shown = other.issue("c", common_name="billing")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(authority.path, trusted)
    setting = {"listener__name__ssl__ssl__truststore__location": str(trusted)}
    async with tls_server(files, ssl__client__auth="requested", **setting) as server:
        with pytest.raises(trio.BrokenResourceError):
            await server.ask(server.client(shown))
        both = Path(authority.path).read_bytes() + Path(other.path).read_bytes()
        trusted.write_bytes(both)
        await server.tls.look_at_files()
        assert "CN=billing" in await server.ask(server.client(shown))


async def test_key_that_is_encrypted_comes_with_its_password(files, authority):
    """As an operator gives both with `password.encoder.secret` set: in one change."""
    later = authority.issue(*NAMES, common_name="broker", file_name="later")
    pem = Path(later.keystore).read_bytes()
    encrypted = serialization.load_pem_private_key(pem, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    )
    Path(later.keystore).write_bytes(encrypted + pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    password = "listener.name.ssl.ssl.key.password"
    async with tls_server(files) as server:
        for wrong in ({}, {password: "hunter3"}):
            with pytest.raises(ConfigError, match="Listener SSL cannot speak TLS") as raised:
                change(server, {LOCATION: later.keystore, **wrong})
            assert "hunter" not in str(raised.value)
        change(server, {LOCATION: later.keystore, password: "hunter2"})
        assert await shown_serial(server) == serial_of(later)


async def test_connections_that_are_there_stay(files, authority):
    async with tls_server(files) as server:
        stream = trio.SSLStream(
            await server.connect(), server.client(), server_hostname="127.0.0.1"
        )
        await stream.do_handshake()
        later = authority.issue(*NAMES, common_name="broker", file_name="later")
        change(server, {LOCATION: later.keystore})
        await stream.send_all(HELLO)
        assert b"hello" in await stream.receive_some()
        await trio.aclose_forcefully(stream)


async def test_another_name_is_refused_unless_allowed(files, authority):
    other = authority.issue(*NAMES, common_name="somebody", file_name="other")
    async with tls_server(files) as server:
        before = await shown_serial(server)
        with pytest.raises(ConfigError, match=r"ssl\.allow\.dn\.changes"):
            change(server, {LOCATION: other.keystore})
        assert await shown_serial(server) == before
    async with tls_server(files, ssl__allow__dn__changes="true") as server:
        change(server, {LOCATION: other.keystore})
        assert await shown_serial(server) == serial_of(other)


async def test_fewer_alternative_names_are_refused_unless_allowed(files, authority):
    fewer = authority.issue(*NAMES[:2], common_name="broker", file_name="fewer")
    more = authority.issue(*NAMES, "example.com", common_name="broker", file_name="more")
    async with tls_server(files) as server:
        with pytest.raises(ConfigError, match=r"ssl\.allow\.san\.changes"):
            change(server, {LOCATION: fewer.keystore})
        change(server, {LOCATION: more.keystore})
    async with tls_server(files, ssl__allow__san__changes="true") as server:
        change(server, {LOCATION: fewer.keystore})
        assert await shown_serial(server) == serial_of(fewer)


async def test_store_that_brokers_would_not_trust_is_refused(files, tmp_path):
    stranger = CertificateAuthority(tmp_path / "stranger").issue(*NAMES, common_name="broker")
    async with tls_server(files, ssl__allow__dn__changes="true") as server:
        with pytest.raises(ConfigError, match="cannot connect"):
            change(server, {LOCATION: stranger.keystore})


async def test_store_that_cannot_be_read_is_refused(files, tmp_path):
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    async with tls_server(files) as server:
        with pytest.raises(ConfigError, match="Listener SSL cannot speak TLS"):
            change(server, {LOCATION: str(nothing)})
        with pytest.raises(ConfigError, match="No such file"):
            change(server, {LOCATION: str(tmp_path / "missing.pem")})
        with pytest.raises(ConfigError, match="only PEM can"):
            change(server, {LOCATION: files.keystore, "listener.name.ssl.ssl.keystore.type": "JKS"})


async def test_file_that_is_gone_leaves_what_is_in_use(files, tmp_path, caplog):
    async with tls_server(files) as server:
        before = await shown_serial(server)
        gone = tmp_path / "gone.pem"
        server.config.change({LOCATION: str(gone)}, per_broker=True)  # as another broker wrote it
        assert await shown_serial(server) == before
    assert "stays as it is" in caplog.text


async def test_truststore_of_a_listener_can_be_replaced(files, authority, tmp_path):
    other = CertificateAuthority(tmp_path / "clients")
    shown = other.issue("c", common_name="billing")
    both = tmp_path / "both.pem"
    with both.open("wb") as target:
        for path in (authority.path, other.path):
            with open(path, "rb") as source:
                shutil.copyfileobj(source, target)
    setting = "listener.name.ssl.ssl.truststore.location"
    async with tls_server(files, ssl__client__auth="requested") as server:
        with pytest.raises(trio.BrokenResourceError):
            await server.ask(server.client(shown))
        change(server, {setting: str(both)})
        assert "CN=billing" in await server.ask(server.client(shown))


def test_setting_of_one_listener_stands_before_that_of_all(files, authority):
    other = authority.issue(*NAMES, common_name="outside", file_name="outside")
    config = BrokerConfig.from_sources(
        {
            **broker_settings(files),
            "listeners": "SSL://127.0.0.1:0,OUT://127.0.0.1:0,PLAIN://127.0.0.1:0",
            "listener.security.protocol.map": "SSL:SSL,OUT:SSL,PLAIN:PLAINTEXT",
            LOCATION.replace(".ssl.", ".out.", 1): other.keystore,
            "listener.name.out.ssl.client.auth": "required",
        }
    )
    listeners = TlsListeners(config)
    assert listeners.of("SSL").names.subject.startswith("CN=broker")
    assert listeners.of("OUT").names.subject.startswith("CN=outside")
    assert listeners.of("SSL").client_authentication == "none"
    assert listeners.of("OUT").client_authentication == "required"
    assert not listeners.has("PLAIN")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ssl.keystore.location": None}, "it has no certificate; set ssl.keystore.type=PEM"),
        ({"ssl.truststore.location": None}, "cannot connect to another"),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type=JKS cannot be read"),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols has SSLv3"),
    ],
)
def test_broker_does_not_start_with_what_cannot_be_used(files, settings, sentence):
    texts = {"listeners": "SSL://127.0.0.1:0", **broker_settings(files), **settings}
    config = BrokerConfig.from_sources({k: v for k, v in texts.items() if v is not None})
    with pytest.raises(ConfigError) as refusal:
        TlsListeners(config)
    assert sentence in str(refusal.value)
