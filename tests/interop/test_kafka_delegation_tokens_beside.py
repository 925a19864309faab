"""Kafka's own `kafka-delegation-tokens.sh`, side by side with Apache Kafka."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.side_by_side import Both

from odradek.tools.conformance.brokers import (
    ALICE,
    AUTHORIZER_SETTINGS,
    start_kafka,
    start_odradek,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
MADE_UP = (
    (r"[A-Za-z0-9+/]{86}==", "HMAC"),
    (r"(?<![\w-])[\w-]{22}(?![\w-])", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME"),
    (r"(?<=: )[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d [\d:]{8} \w+ \d{4}", "TIME"),
    (r" +|\t+", " "),
)


def test_tokens_are_made_described_renewed_and_expired(
    kafka_libs: Path, java_command: list[str], tmp_path: Path
) -> None:
    login = tmp_path / "alice.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{ALICE.name}" password="{ALICE.password}";\n'
    )
    with (
        start_kafka(tmp_path / "kafka", kafka_libs, AUTHORIZER_SETTINGS) as kafka,
        start_odradek(tmp_path / "odradek", AUTHORIZER_SETTINGS) as odradek,
    ):
        tool = (TOKENS, "--command-config", str(login))
        both = Both(java_command, (kafka.bootstrap, odradek.bootstrap), tool, MADE_UP)
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
