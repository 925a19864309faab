"""A secret that is set while a broker runs: it acts, it stays, and the store does not tell it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from odradek.client import AuthenticationError, KafkaClient, connection_settings_of
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.clients

SECONDS = 60
KEY = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def entry(password: str) -> str:
    admin = 'username="admin" password="adm1n" user_admin="adm1n"'
    return f'{MODULE} {admin} user_alice="{password}";'


def settings(**encoder: str) -> dict[str, str]:
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "20",
        KEY: entry("in-the-file"),
        **{f"password.encoder.{name.replace('_', '.')}": text for name, text in encoder.items()},
    }


def login(broker: BrokerProcess, name: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": password,
    }


def change(broker: BrokerProcess, key: str, text: str) -> None:
    """Set a setting of the broker. Raises: KafkaException."""
    admin = AdminClient(login(broker, "admin", "adm1n"))
    setting = ConfigEntry(key, text, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[setting])
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(SECONDS)


def described(broker: BrokerProcess) -> dict[str, ConfigEntry]:
    admin = AdminClient(login(broker, "admin", "adm1n"))
    (done,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    found: dict[str, ConfigEntry] = done.result(SECONDS)
    return found


def alice_logs_in(broker: BrokerProcess, password: str) -> bool:
    async def ask() -> None:
        made = connection_settings_of(login(broker, "alice", password), lambda path: b"")
        async with KafkaClient(
            made.bootstrap, made.client, authenticate=made.authenticate
        ) as client:
            await client.refresh_metadata(SECONDS * 1000)

    try:
        trio.run(ask)
    except AuthenticationError:
        return False
    return True


def test_password_of_a_running_broker(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def start(**encoder: str) -> BrokerProcess:
        return BrokerProcess(data, settings=settings(**encoder), log_path=tmp_path / "log")

    with start(secret="one") as broker:
        assert alice_logs_in(broker, "in-the-file")
        change(broker, KEY, entry("set-later"))
        assert alice_logs_in(broker, "set-later")
        assert not alice_logs_in(broker, "in-the-file")
        found = described(broker)
        assert (found[KEY].is_sensitive, found[KEY].value) == (True, None)
        assert "set-later" not in repr([(each.value, each.synonyms) for each in found.values()])
    stored = b"".join(path.read_bytes() for path in data.glob("odradek-metadata*"))
    assert b"keyFactoryAlgorithm:PBKDF2WithHmacSHA512" in stored
    assert b"set-later" not in stored
    with start(secret="two", old_secret="one") as broker:
        assert alice_logs_in(broker, "set-later")
    with start(secret="two") as broker:
        assert alice_logs_in(broker, "set-later")
    with start(secret="three") as broker:
        assert alice_logs_in(broker, "in-the-file")
        assert f"Dynamic password config {KEY} could not be decoded" in broker.log
        assert "set-later" not in broker.log


def test_without_a_secret_to_encode_it_is_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", settings=settings()) as broker:
        with pytest.raises(KafkaException, match="Password encoder secret not configured"):
            change(broker, KEY, entry("set-later"))
        change(broker, "log.retention.ms", "5")
        assert alice_logs_in(broker, "in-the-file")
        assert not alice_logs_in(broker, "set-later")
