"""Kafka's own `kafka-configs.sh` for quotas and SCRAM users, side by side with Apache Kafka.

Each command goes to both brokers, and says the same of both: its lines, its fault, its exit code.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.tools.conformance.brokers import start_kafka, start_odradek

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CONFIGS = "kafka.admin.ConfigCommand"
SECONDS_MAX = 300
SETTLED_SECONDS = 60.0

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


class Outcome(NamedTuple):
    """What a command says."""

    code: int
    lines: list[str]
    fault: str


def in_order(line: str) -> str:
    """A line with its settings sorted: Kafka says them in another order in each of its runs."""
    of, are, settings = line.partition(" are ")
    return of + are + ", ".join(sorted(settings.split(", ")))


class Both(NamedTuple):
    """The two brokers."""

    java_command: list[str]
    addresses: tuple[str, str]

    def run(self, *arguments: str) -> tuple[Outcome, Outcome]:
        def run_one(address: str) -> Outcome:
            command = [*self.java_command, CONFIGS, "--bootstrap-server", address, *arguments]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
            )
            # A fault is an exception with its stack: what it says is in its first lines.
            fault = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
            text = "\n".join(fault).replace(address, "BROKER")
            lines = sorted(map(in_order, done.stdout.splitlines()))
            return Outcome(done.returncode, lines, text)

        with ThreadPoolExecutor(2) as pool:
            of_kafka, of_odradek = pool.map(run_one, self.addresses)
        return of_kafka, of_odradek

    def same(self, *arguments: str) -> Outcome:
        """Run a command that says the same of both; returns what."""
        of_kafka, of_odradek = self.run(*arguments)
        assert of_odradek == of_kafka
        return of_kafka

    def alter(self, entity: tuple[str, ...], verb: str, what: str) -> None:
        """A command that succeeds on both."""
        assert self.same("--alter", *entity, verb, what).code == 0

    def described(self, *entity: str, holds: str, gone: str = "\0") -> None:
        """A description is the same, once what was altered is there, or gone, on both."""
        ends = time.monotonic() + SETTLED_SECONDS
        while True:
            both = self.run("--describe", *entity)
            texts = ["\n".join(each.lines) for each in both]
            if all(holds in text and gone not in text for text in texts):
                assert both[1] == both[0]
                return
            assert time.monotonic() < ends, both


@pytest.fixture
def both(kafka_libs: Path, java_command: list[str], tmp_path: Path) -> Iterator[Both]:
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(tmp_path / "kafka", kafka_libs))
        odradek = stack.enter_context(start_odradek(tmp_path / "odradek"))
        yield Both(java_command, (kafka.bootstrap, odradek.bootstrap))


def test_quotas_of_users_and_clients(both: Both) -> None:
    for number, entity in enumerate(ENTITIES, start=1):
        quotas = f"producer_byte_rate={number}000,request_percentage={number}.5"
        both.alter(entity, "--add-config", quotas)
    both.alter(ALICE, "--add-config", "consumer_byte_rate=7,controller_mutation_rate=0.25")
    both.described(*ALICE, *CLIENTS, holds="producer_byte_rate=6000")
    both.described(*ALICE, holds="controller_mutation_rate=0.25")
    both.described(*USERS, holds="producer_byte_rate=2000")
    for entities in LISTS[:2]:
        both.described(*entities, holds="producer_byte_rate")
    both.described(*LISTS[2], holds="'reader'")
    both.alter(ALICE, "--delete-config", "producer_byte_rate,request_percentage")
    both.alter(CLIENTS, "--delete-config", "producer_byte_rate,request_percentage")
    both.described(*ALICE, holds="consumer_byte_rate=7.0", gone="producer_byte_rate")
    both.described(*CLIENTS, holds="", gone="producer_byte_rate")
    for wrong in ("no_such_quota=1", "producer_byte_rate=much", "producer_byte_rate=0"):
        assert both.same("--alter", *ALICE, "--add-config", wrong).code != 0
    assert both.same("--alter", *ALICE, "--delete-config", "request_percentage").code != 0


def test_quotas_of_addresses(both: Both) -> None:
    both.alter(ADDRESS, "--add-config", "connection_creation_rate=5")
    both.alter(ADDRESSES, "--add-config", "connection_creation_rate=50")
    both.described(*ADDRESSES, holds="connection_creation_rate=50.0")
    both.described(*ADDRESS, holds="connection_creation_rate=5.0")
    both.described(*LISTS[3], holds="10.0.0.1")
    both.alter(ADDRESS, "--delete-config", "connection_creation_rate")
    both.described(*LISTS[3], holds="50.0", gone="10.0.0.1")
    nowhere = ("--entity-type", "ips", "--entity-name", "no such host")
    for entity, quota in (
        (ADDRESS, "connection_creation_rate=0.5"),
        (ADDRESS, "producer_byte_rate=1"),
        (nowhere, "connection_creation_rate=5"),
    ):
        assert both.same("--alter", *entity, "--add-config", quota).code != 0


def test_users_of_scram(both: Both) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        both.alter(ALICE, "--add-config", f"{mechanism}=[iterations=8192,password=wonder]")
    both.alter(ALICE, "--add-config", "producer_byte_rate=1000")
    both.described(*ALICE, holds="SCRAM-SHA-512")
    both.described("--entity-type", "users", holds="SCRAM-SHA-256")
    both.alter(ALICE, "--delete-config", "SCRAM-SHA-256")
    both.described(*ALICE, holds="SCRAM-SHA-512", gone="SCRAM-SHA-256")
    few = "SCRAM-SHA-256=[iterations=100,password=wonder]"
    for verb, what in (
        ("--add-config", few),
        ("--add-config", "SCRAM-SHA-256=[password=]"),
        ("--delete-config", "SCRAM-SHA-256"),
    ):
        assert both.same("--alter", *ALICE, verb, what).code != 0
    for entity in (USERS, (*ALICE, *READER)):
        assert both.same("--alter", *entity, "--add-config", few).code != 0
