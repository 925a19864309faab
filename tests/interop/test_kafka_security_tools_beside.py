"""Kafka's own `kafka-acls.sh` and `kafka-delegation-tokens.sh`, side by side with Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.java_tools import JavaTools
from support.side_by_side import Both

from odradek.tools.conformance.brokers import (
    ADMIN,
    ALICE,
    AUTHORIZER_SETTINGS,
    Login,
    start_kafka,
    start_odradek,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ACLS = "org.apache.kafka.tools.AclCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
MADE_UP = (
    (r"[A-Za-z0-9+/]{86}==", "HMAC"),
    (r"(?<![\w-])[\w-]{22}(?![\w-])", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME"),
    (r"(?<=: )[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d [\d:]{8} \w+ \d{4}", "TIME"),
    (r" +|\t+", " "),
)


@pytest.fixture(scope="module")
def addresses(
    kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Apache Kafka's and ours, where ACLs say who may do what."""
    folder = tmp_path_factory.mktemp("security")
    with (
        start_kafka(folder / "kafka", kafka_libs, AUTHORIZER_SETTINGS) as kafka,
        start_odradek(folder / "odradek", AUTHORIZER_SETTINGS) as odradek,
    ):
        yield kafka.bootstrap, odradek.bootstrap


def login(folder: Path, user: Login) -> str:
    """The path of a file of client settings."""
    path = folder / f"{user.name}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user.name}" password="{user.password}";\n'
    )
    return str(path)


def test_acls_are_added_listed_and_removed(
    addresses: tuple[str, str], tools: JavaTools, tmp_path: Path
) -> None:
    tool = (ACLS, "--command-config", login(tmp_path, ADMIN))
    both = Both(tools, addresses, tool)
    orders = ("--topic", "orders-", "--resource-pattern-type", "prefixed")
    bob = ("--allow-principal", "User:bob")
    added = (
        (
            *bob,
            "--operation",
            "Read",
            "--operation",
            "Describe",
            "--allow-host",
            "10.0.0.7",
            *orders,
        ),
        ("--deny-principal", "User:eve", "--operation", "All", "--cluster"),
        (*bob, "--producer", "--idempotent", "--topic", "orders", "--transactional-id", "t"),
        (*bob, "--consumer", "--topic", "*", "--group", "readers"),
        (*bob, "--operation", "DescribeTokens", "--user-principal", "User:eve"),
    )
    for acl in added:
        of_kafka, ours = both.run("--add", *acl)
        # Behind it stand those that are there now, which Kafka's broker learns a moment later.
        said = [outcome.text.partition("Current ACLs")[0] for outcome in (of_kafka, ours)]
        assert sorted(said[1].split()) == sorted(said[0].split())
        assert "Adding ACLs for resource" in said[1]
        assert of_kafka.code == ours.code == 0
    both.settled("--list", holds="principal=User:bob, host=*, operation=DESCRIBE_TOKENS")
    both.same("--list", *orders)
    both.same("--list", "--topic", "orders-1", "--resource-pattern-type", "match")
    both.same("--list", "--principal", "User:eve")
    both.refused("--add", "--allow-principal", "bob", "--operation", "Read", "--topic", "a")
    both.run("--remove", "--topic", "*", "--force")
    both.settled("--list", holds="name=readers", gone="name=*")

    alice = (ACLS, "--command-config", login(tmp_path, ALICE))
    # Kafka's sentence has its own request in it, as Java prints objects: docs/differences.md.
    sentence = (r"(?<=ClusterAuthorizationException: ).*", "SENTENCE")
    of_alice = both._replace(tool=alice, made_up=(sentence,))
    of_alice.refused("--list")
    of_alice.refused("--add", *bob, "--operation", "Read", "--topic", "a")


def test_tokens_are_made_described_renewed_and_expired(
    addresses: tuple[str, str], tools: JavaTools, tmp_path: Path
) -> None:
    tool = (TOKENS, "--command-config", login(tmp_path, ALICE))
    both = Both(tools, addresses, tool, MADE_UP)
    lifetime = ("--max-life-time-period", "-1")
    made = both.same("--create", *lifetime, "--renewer-principal", "User:bob")
    hmacs = tuple(re.findall(r"[A-Za-z0-9+/]{86}==", text)[0] for text in made)
    describe = ("--describe", "--owner-principal", f"User:{ALICE.name}")
    both.settled(*describe, holds="User:bob")
    both.settled("--describe", "--owner-principal", "User:nobody", holds="tokens : 0")
    both.refused("--create", *lifetime, "--owner-principal", "User:another")
    both.refused("--renew", "--renew-time-period", "60000", "--hmac", "bm9uZQ==")
    both.same("--renew", "--renew-time-period", "60000", "--hmac", each=hmacs)
    both.same("--expire", "--expiry-time-period", "-1", "--hmac", each=hmacs)
    both.settled(*describe, holds="tokens : 0")
