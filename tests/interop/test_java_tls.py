"""Kafka's own clients and tools over TLS, with the settings file that our commands take, too."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.java_tools import JavaTools

from odradek.testing import Broker, Cluster
from odradek.testing.certificates import CertificateAuthority, make_tls_files
from odradek.testing.client_settings import TlsFiles
from odradek.testing.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOLS = "org.apache.kafka.tools"
PATIENTLY = ("--request-timeout-ms", "60000")
"""The console producer gives up a record after four requests of a second and a half each."""
LINES = "".join(f"line {number}\n" for number in range(200))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Whose brokers want to see certificates."""
    with Cluster(3, {"ssl.client.auth": "required"}, tls=True) as cluster:
        yield cluster


def written(path: Path, settings: dict[str, str]) -> str:
    """A file of client settings."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


def test_java_clients_write_and_read_over_tls(java, cluster: Cluster, tmp_path: Path) -> None:
    config = written(tmp_path / "client.properties", cluster.client_settings("java"))
    there = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", config)

    created = ("--create", "--topic", "lines", "--partitions", "3", "--replication-factor", "3")
    java(f"{TOOLS}.TopicCommand", *there, *created)
    java(f"{TOOLS}.ConsoleProducer", *there, *PATIENTLY, "--topic", "lines", input=LINES)
    consumed = java(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *there,
        *("--topic", "lines", "--from-beginning", "--max-messages", "200", "--group", "readers"),
    )
    assert sorted(consumed.splitlines()) == sorted(LINES.splitlines())
    listed = java(f"{TOOLS}.consumer.group.ConsumerGroupCommand", *there, "--list")
    assert listed.split() == ["readers"]


def test_java_client_without_a_certificate_is_refused(
    tools: JavaTools, cluster: Cluster, tmp_path: Path
) -> None:
    settings = cluster.client_settings("java", certificate=False)
    config = written(tmp_path / "client.properties", settings)
    there = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", config)
    done = tools.run(f"{TOOLS}.TopicCommand", *there, "--list")
    assert done.returncode != 0
    assert "SslAuthenticationException" in done.stdout + done.stderr


def test_configs_tool_replaces_a_keystore(java, tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    first, second = (
        authority.issue("localhost", "127.0.0.1", common_name="broker", file_name=name)
        for name in ("first", "second")
    )
    made = make_tls_files(tmp_path / "unused")
    files: TlsFiles = made._replace(ca=authority.path, keystore=first.keystore)
    with Broker(tls=files) as broker:
        config = written(
            tmp_path / "client.properties", broker.client_settings("java", certificate=False)
        )
        java(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", broker.bootstrap_servers, "--command-config", config),
            *("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config"),
            f"listener.name.ssl.ssl.keystore.location={second.keystore}",
        )
        host, _, port = broker.bootstrap_servers.partition(":")

        def is_shown() -> bool:
            shown = ssl.get_server_certificate((host, int(port)), ca_certs=authority.path)
            return shown == Path(second.certificate).read_text()

        wait_until(is_shown, 60, "the first certificate is still shown")
