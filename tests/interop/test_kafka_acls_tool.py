"""Kafka's own kafka-acls and kafka-configs --entity-type users, over SASL, against the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
LISTENER = "listener.name.sasl_plaintext"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    f"{LISTENER}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="root" password="root" user_root="root";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}


def login(tmp_path: Path, mechanism: str, user: str, password: str) -> str:
    """A file of client settings, as Java's clients read it."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    path = tmp_path / f"{user}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module}LoginModule required "
        f'username="{user}" password="{password}";\n'
    )
    return str(path)


def test_the_tools_make_a_user_and_what_it_may_do(java, start_broker, tmp_path: Path) -> None:
    broker = start_broker(settings=SETTINGS)
    root = login(tmp_path, "PLAIN", "root", "root")
    known = ("--bootstrap-server", broker.bootstrap, "--command-config", root)
    credential = "SCRAM-SHA-512=[iterations=4096,password=wonder]"
    alice = ("--entity-type", "users", "--entity-name", "alice")
    java(CONFIGS, *known, "--alter", "--add-config", credential, *alice)
    described = java(CONFIGS, *known, "--describe", *alice)
    assert "SCRAM-SHA-512=iterations=4096" in described

    pattern = ("--topic", "orders-", "--resource-pattern-type", "prefixed")
    allow = ("--allow-principal", "User:alice", "--operation", "Describe")
    added = java(ACLS, *known, "--add", *allow, *pattern)
    assert "patternType=PREFIXED" in added
    java(ACLS, *known, "--add", "--deny-principal", "User:bob", "--operation", "All", "--cluster")
    listed = java(ACLS, *known, "--list")
    assert "resourceType=TOPIC, name=orders-, patternType=PREFIXED" in listed
    entry = "principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW"
    assert entry in listed
    assert "resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL" in listed

    topics = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.bootstrap)
    java(*topics, "--command-config", root, "--create", "--topic", "orders-1")
    java(*topics, "--command-config", root, "--create", "--topic", "secret")
    mine = login(tmp_path, "SCRAM-SHA-512", "alice", "wonder")
    assert java(*topics, "--command-config", mine, "--list").split() == ["orders-1"]

    java(ACLS, *known, "--remove", *allow, *pattern, "--force")
    assert entry not in java(ACLS, *known, "--list")
    assert java(*topics, "--command-config", mine, "--list").split() == []
