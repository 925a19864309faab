"""Brokers that containers and other hosts reach, by an address of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from support.http_control import ServedBrokers
from support.ports import ports_in_a_row
from support.pytest_runs import PytestRun

from odradek.testing import Broker, BrokerStartError, Cluster
from odradek.testing.process.broker_process import BrokerProcess

OTHER = "127.0.0.2"
"""All of 127.0.0.0/8 is this machine, on Linux."""
SECONDS_MAX = 60


def addresses_known_to(bootstrap_servers: str, **settings: Any) -> set[str]:
    """The addresses that a client is to connect to, as it hears from its first broker."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, **settings)
    try:
        brokers = admin.describe_cluster()["brokers"]
    finally:
        admin.close()
    return {f"{each['host']}:{each['port']}" for each in brokers}


def say_and_hear(bootstrap_servers: str, topic: str) -> bytes:
    """Produce a record and consume it."""
    with KafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        producer.send(topic, b"hello").get(SECONDS_MAX)
    with KafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        value: bytes = next(consumer).value
    return value


def test_each_client_hears_of_the_address_that_it_can_reach() -> None:
    with Broker(external=OTHER) as broker:
        outside = broker.external_bootstrap_servers
        assert outside.startswith(f"{OTHER}:")
        assert addresses_known_to(broker.bootstrap_servers) == {broker.bootstrap_servers}
        assert addresses_known_to(outside) == {outside}
        assert say_and_hear(outside, "topic") == b"hello"
        broker.restart(clean=False)
        assert broker.external_bootstrap_servers == outside
        assert say_and_hear(outside, "another") == b"hello"


def test_a_broker_for_this_machine_says_how_to_make_another(broker: Broker) -> None:
    with pytest.raises(RuntimeError, match=r"make it with external='host\.docker\.internal'"):
        _ = broker.external_bootstrap_servers


def test_a_port_of_ones_choice_is_had_or_refused() -> None:
    with ports_in_a_row(1) as port, Broker(external=f"{OTHER}:{port}") as broker:
        assert broker.external_bootstrap_servers == f"{OTHER}:{port}"
        with pytest.raises(BrokerStartError, match=f"no listener for {OTHER}:{port} can be had"):
            Broker(external=f"{OTHER}:{port}")


def test_logins_have_to_be_set_for_both_listeners_by_hand() -> None:
    with pytest.raises(ValueError, match="external and sasl cannot be had together"):
        Broker(external=OTHER, sasl="PLAIN")


@pytest.mark.slow
def test_the_certificate_is_for_that_address_too() -> None:
    with Broker(external=OTHER, tls=True) as broker:
        outside = broker.external_bootstrap_servers
        settings = broker.client_settings("kafka-python")
        del settings["bootstrap_servers"]
        assert addresses_known_to(outside, **settings) == {outside}


@pytest.mark.slow
def test_all_brokers_of_a_cluster_have_such_an_address() -> None:
    with Cluster(2, external=OTHER, tls=False) as cluster:
        outside = cluster.external_bootstrap_servers
        assert len(set(outside.split(","))) == 2
        assert addresses_known_to(outside) == set(outside.split(","))
        cluster.create_topic("replicated", 2, 2)
        assert say_and_hear(outside, "replicated") == b"hello"


@pytest.mark.slow
def test_the_marker_says_it_for_fixtures(tmp_path: Path) -> None:
    source = """
import pytest

@pytest.mark.kafka(external="127.0.0.2")
def test_shared(kafka):
    assert kafka.external_bootstrap_servers.startswith("127.0.0.2:")

@pytest.mark.kafka(external="127.0.0.2")
def test_own(kafka_broker):
    assert kafka_broker.external_bootstrap_servers.startswith("127.0.0.2:")

def test_none(kafka):
    assert kafka.external_bootstrap_servers == ""
"""
    assert "3 passed" in PytestRun(tmp_path, source, head="").finish(SECONDS_MAX)


def test_served_brokers_say_it_in_the_ready_line() -> None:
    with ServedBrokers("--external", f"{OTHER}:0") as served:
        outside = served.ready["external_bootstrap_servers"]
        assert addresses_known_to(outside) == {outside}


@pytest.mark.slow
def test_a_broker_of_the_command_line_has_one(tmp_path: Path) -> None:
    with (
        ports_in_a_row(1) as port,
        BrokerProcess(tmp_path / "data", arguments=["--external", f"{OTHER}:{port}"]) as broker,
    ):
        assert addresses_known_to(broker.bootstrap) == {broker.bootstrap}
        assert addresses_known_to(f"{OTHER}:{port}") == {f"{OTHER}:{port}"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--external", "host.docker.internal"], "write it as HOST:PORT"),
        (["--external", "host.docker.internal:0"], "write it as HOST:PORT, with a port"),
        (["--external", "0.0.0.0:9094"], "clients cannot connect to 0.0.0.0"),
        (["--external", "a:9094", "-o", "listeners=A://:1,B://:2"], "needs one listener beside it"),
    ],
)
def test_what_it_cannot_be_is_refused(arguments: list[str], sentence: str) -> None:
    command = [sys.executable, "-m", "odradek", "serve", "--ephemeral", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr


NAMESPACES = """
set -e
mount -t tmpfs tmpfs /run
mount --bind "$HOSTS" /etc/hosts
ip link set lo up
ip netns add container
ip link add near type veth peer name far netns container
ip address add 10.9.0.1/24 dev near
ip link set near up
ip -n container address add 10.9.0.2/24 dev far
ip -n container link set far up
exec "$@"
"""
"""A machine and a container of its own: namespaces of users, mounts and networks need no root."""

ON_THE_MACHINE = """
import json, subprocess, sys
from odradek.testing import Broker

with Broker(external="kafka.test") as broker:
    broker.create_topic("hello")
    inside = ["nsenter", "--net=/run/netns/container", sys.executable, "-c", sys.argv[1]]
    addresses = [broker.bootstrap_servers, broker.external_bootstrap_servers]
    heard = subprocess.run([*inside, *addresses], stdout=subprocess.PIPE, text=True, check=True)
    clients = {each.client_id for each in broker.requests.of("Produce")}
    print(json.dumps([*heard.stdout.split(), *clients]))
"""

IN_THE_CONTAINER = """
import socket, sys
from kafka import KafkaConsumer, KafkaProducer

of_the_machine, server = sys.argv[1:]
host, port = of_the_machine.split(":")
try:
    socket.create_connection((host, int(port)), 30)
except OSError as error:
    print(type(error).__name__)
with KafkaProducer(bootstrap_servers=server, client_id="container") as producer:
    producer.send("hello", b"hello").get(30)
consumer = KafkaConsumer("hello", bootstrap_servers=server, auto_offset_reset="earliest")
print(next(consumer).value.decode())
"""


@pytest.mark.slow
def test_a_container_reaches_it_by_the_machines_name(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n10.9.0.1 kafka.test\n")
    command = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", NAMESPACES]
    program = ["sh", sys.executable, "-c", ON_THE_MACHINE, IN_THE_CONTAINER]
    done = subprocess.run(
        [*command, *program],
        env={**os.environ, "HOSTS": str(hosts), "PATH": f"{os.environ['PATH']}:/usr/sbin"},
        capture_output=True,
        text=True,
        timeout=4 * SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The address that clients of the machine use is of no use there.
    assert json.loads(done.stdout) == ["OSError", "hello", "container"]
