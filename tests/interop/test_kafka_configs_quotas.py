"""Kafka's own `kafka-configs.sh` for quotas and SCRAM users, side by side with Apache Kafka.

Each command goes to both brokers, and says the same of both: its lines, its fault, its exit code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.java_tools import JavaTools
from support.side_by_side import Both

from odradek.tools.conformance.brokers import start_kafka, start_odradek

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CONFIGS = "kafka.admin.ConfigCommand"

ALICE = ("--entity-type", "users", "--entity-name", "alice")
USERS = ("--entity-type", "users", "--entity-default")
READER = ("--entity-type", "clients", "--entity-name", "reader")
CLIENTS = ("--entity-type", "clients", "--entity-default")
ADDRESS = ("--entity-type", "ips", "--entity-name", "10.0.0.1")
ADDRESSES = ("--entity-type", "ips", "--entity-default")
ENTITIES = (ALICE, USERS, READER, CLIENTS, (*ALICE, *READER), (*ALICE, *CLIENTS))
LISTS = (
    ("--entity-type", "users"),
    ("--entity-type", "clients"),
    ("--entity-type", "users", "--entity-type", "clients"),
    ("--entity-type", "ips"),
)


@pytest.fixture(scope="module")
def both(
    kafka_libs: Path, tools: JavaTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("quotas")
    with (
        start_kafka(folder / "kafka", kafka_libs) as kafka,
        start_odradek(folder / "odradek") as odradek,
    ):
        yield Both(tools, (kafka.bootstrap, odradek.bootstrap), (CONFIGS,))


def test_quotas_of_users_and_clients(both: Both) -> None:
    for number, entity in enumerate(ENTITIES, start=1):
        quotas = f"producer_byte_rate={number}000,request_percentage={number}.5"
        both.same("--alter", *entity, "--add-config", quotas)
    both.same(
        "--alter", *ALICE, "--add-config", "consumer_byte_rate=7,controller_mutation_rate=0.25"
    )
    both.settled("--describe", *ALICE, *CLIENTS, holds="producer_byte_rate=6000")
    both.settled("--describe", *ALICE, holds="controller_mutation_rate=0.25")
    both.settled("--describe", *USERS, holds="producer_byte_rate=2000")
    for entities in LISTS[:2]:
        both.settled("--describe", *entities, holds="producer_byte_rate")
    both.settled("--describe", *LISTS[2], holds="'reader'")
    both.same("--alter", *ALICE, "--delete-config", "producer_byte_rate,request_percentage")
    both.same("--alter", *CLIENTS, "--delete-config", "producer_byte_rate,request_percentage")
    both.settled("--describe", *ALICE, holds="consumer_byte_rate=7.0", gone="producer_byte_rate")
    both.settled("--describe", *CLIENTS, holds="", gone="producer_byte_rate")
    for wrong in ("no_such_quota=1", "producer_byte_rate=much", "producer_byte_rate=0"):
        both.refused("--alter", *ALICE, "--add-config", wrong)
    both.refused("--alter", *ALICE, "--delete-config", "request_percentage")


def test_quotas_of_addresses(both: Both) -> None:
    both.same("--alter", *ADDRESS, "--add-config", "connection_creation_rate=5")
    both.same("--alter", *ADDRESSES, "--add-config", "connection_creation_rate=50")
    both.settled("--describe", *ADDRESSES, holds="connection_creation_rate=50.0")
    both.settled("--describe", *ADDRESS, holds="connection_creation_rate=5.0")
    both.settled("--describe", *LISTS[3], holds="10.0.0.1")
    both.same("--alter", *ADDRESS, "--delete-config", "connection_creation_rate")
    both.settled("--describe", *LISTS[3], holds="50.0", gone="10.0.0.1")
    nowhere = ("--entity-type", "ips", "--entity-name", "no such host")
    for entity, quota in (
        (ADDRESS, "connection_creation_rate=0.5"),
        (ADDRESS, "producer_byte_rate=1"),
        (nowhere, "connection_creation_rate=5"),
    ):
        both.refused("--alter", *entity, "--add-config", quota)


def test_users_of_scram(both: Both) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        both.same(
            "--alter", *ALICE, "--add-config", f"{mechanism}=[iterations=8192,password=wonder]"
        )
    both.same("--alter", *ALICE, "--add-config", "producer_byte_rate=1000")
    both.settled("--describe", *ALICE, holds="SCRAM-SHA-512")
    both.settled("--describe", "--entity-type", "users", holds="SCRAM-SHA-256")
    both.same("--alter", *ALICE, "--delete-config", "SCRAM-SHA-256")
    both.settled("--describe", *ALICE, holds="SCRAM-SHA-512", gone="SCRAM-SHA-256")
    few = "SCRAM-SHA-256=[iterations=100,password=wonder]"
    for verb, what in (
        ("--add-config", few),
        ("--add-config", "SCRAM-SHA-256=[password=]"),
        ("--delete-config", "SCRAM-SHA-256"),
    ):
        both.refused("--alter", *ALICE, verb, what)
    for entity in (USERS, (*ALICE, *READER)):
        both.refused("--alter", *entity, "--add-config", few)
