"""Kafka's own tools, as the pages of docs/ have them: each command does its work."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from support.documented import PAGES, blocks_of, commands_of
from support.java_tools import JavaTools
from support.kafka_jars import KAFKA_3_9_FOLDER, command_of_java

from odradek.testing import Broker
from odradek.tools.zookeeper_process import ZooKeeperProcess

from .conftest import output_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CLASSES = {
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
COMMANDS = [
    command
    for page in PAGES
    for block in blocks_of(page, "console")
    for command, _ in commands_of(block)
    if command.startswith("kafka-")
]
ENTRY = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=wonderland;"


@pytest.mark.parametrize("command", [each for each in COMMANDS if "--zookeeper" not in each])
def test_a_tool_and_a_broker(command: str, java: Callable[..., str], tmp_path: Path) -> None:
    """A page's address and file of settings are those of the broker of the test."""
    is_of_tls = "listener.name.ssl." in command
    logins = {} if is_of_tls else {"sasl": "SCRAM-SHA-512", "acls": True}
    with Broker(tls=True, **logins) as broker:
        assert broker.tls is not None
        settings = tmp_path / "client.properties"
        settings.write_text(
            "".join(f"{key}={value}\n" for key, value in broker.client_settings("java").items())
        )
        command = command.replace("/etc/odradek/broker-2.pem", broker.tls.keystore)
        tool, *words = shlex.split(command)
        for option in ("--bootstrap-server", "--command-config"):
            if option in words:
                at = words.index(option)
                del words[at : at + 2]
        there = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(settings))
        said = java(CLASSES[tool], *there, *words)
    assert "Completed updating" in said or "Adding ACLs" in said, said


def test_the_tool_of_kafka_3_9_and_zookeeper(tmp_path: Path) -> None:
    (command,) = [each for each in COMMANDS if "--zookeeper" in each]
    (tmp_path / "secrets.properties").write_text(
        f"listener.name.x.plain.sasl.jaas.config={ENTRY}\npassword.encoder.secret=s3cret\n"
    )
    server = ZooKeeperProcess(tmp_path / "zookeeper")
    server.start()
    try:
        with JavaTools(command_of_java(KAFKA_3_9_FOLDER)) as tools:
            tool, *words = shlex.split(
                command.replace("localhost:2181", server.address).replace(
                    "secrets.properties", str(tmp_path / "secrets.properties")
                )
            )
            said = output_of(tools.run(CLASSES[tool], *words))
        assert "Completed updating config for entity: brokers '1'." in said
    finally:
        server.kill()
