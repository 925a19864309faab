"""The commands against a broker that speaks TLS, told how by a file of Kafka's client settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.testing import Broker
from odradek.testing.certificates import CertificateAuthority

from .conftest import Odradek

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """In place of the plain one: wants to see certificates."""
    with Broker({"ssl.client.auth": "required"}, tls=True) as broker:
        yield broker


def written(folder: Path, settings: dict[str, str]) -> str:
    """A file of client settings."""
    path = folder / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


@pytest.fixture
def impatience(on_broker: Odradek, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that cannot connect say so soon, unlike others of `on_broker`."""
    monkeypatch.setattr("odradek.cli.common.connection.CONNECT_TIMEOUT_MS", 500)
    # Why that is, they find out by a connection of their own.
    monkeypatch.setattr("odradek.cli.common.client_settings.PROBE_SECONDS", 60)


@pytest.fixture(params=["java", "confluent-kafka"])
def config(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> str:
    """The settings that Kafka's own tools take, and those of clients on librdkafka."""
    return written(tmp_path, broker.client_settings(request.param))


def test_each_kind_of_command_reaches_a_tls_broker(on_broker: Odradek, config: str) -> None:
    how = ("--command-config", config)
    on_broker("topics", "create", "events", *how)
    on_broker("produce", "events", *how, stdin=b"hello\nworld\n")
    consumed = on_broker("consume", "events", "--from-beginning", "--until-end", *how)
    assert consumed.lines == ["hello", "world"]
    assert json.loads(on_broker("topics", "list", "--json", *how).out)["topic"] == "events"
    on_broker("groups", "list", *how)
    on_broker("transactions", "list", *how)
    assert json.loads(on_broker("cluster", "--once", "--json", *how).out)["leaders"] == 1
    on_broker("topics", "delete", "events", *how)


def test_file_may_be_named_in_the_environment_and_name_the_brokers(
    on_broker: Odradek, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODRADEK_COMMAND_CONFIG", config)
    monkeypatch.delenv("ODRADEK_BOOTSTRAP_SERVER")
    on_broker("groups", "list")


@pytest.mark.usefixtures("impatience")
def test_plain_command_at_a_tls_broker_says_what_to_do(on_broker: Odradek) -> None:
    assert "if it speaks TLS, say how in a file" in on_broker("groups", "list", code=1).err


@pytest.mark.usefixtures("impatience")
def test_command_without_a_certificate_gets_the_reason(
    on_broker: Odradek, broker: Broker, tmp_path: Path
) -> None:
    config = written(tmp_path, broker.client_settings("java", certificate=False))
    told = on_broker("groups", "list", "--command-config", config, code=1)
    assert "certificate required" in told.err


@pytest.mark.usefixtures("impatience")
def test_command_that_does_not_trust_the_broker_says_so(
    on_broker: Odradek, broker: Broker, tmp_path: Path
) -> None:
    settings = broker.client_settings("java")
    settings["ssl.truststore.location"] = CertificateAuthority(tmp_path).path
    config = written(tmp_path, settings)
    for command in (("groups", "list"), ("cluster", "--once")):
        told = on_broker(*command, "--command-config", config, code=1)
        assert f"the certificate of {broker.bootstrap_servers} was refused" in told.err


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is GSSAPI by default"),
        (
            {"security.protocol": "SSL", "ssl.trustore.type": "PEM"},
            "client.properties, line 2: ssl.trustore.type is not a setting of Kafka's clients; did"
            " you mean ssl.truststore.type?",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "trust.jks"},
            "ssl.truststore.type=JKS cannot be read, only PEM can",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "/nowhere.pem",
            },
            "/nowhere.pem cannot be read",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_reported_in_a_sentence(
    odradek: Odradek, tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    for command in (("topics", "list"), ("cluster", "--once"), ("bench", "-b", "localhost:1")):
        told = odradek(*command, "--command-config", written(tmp_path, settings))
        assert told.code == 1
        assert sentence in told.err


def test_file_that_is_not_there_is_named(odradek: Odradek) -> None:
    told = odradek("topics", "list", "--command-config", "/nowhere")
    assert told.code == 1
    assert "/nowhere: No such file" in told.err
