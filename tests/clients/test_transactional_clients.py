"""Transactions by three clients' own producers, in both generations of the protocol.

Generation 1 is a cluster whose `transaction.version` was moved down to 1; clients that know
generation 2 ask for it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from support.exactly_once import read_all
from support.external_broker import ExternalBroker
from support.kafka_process import KafkaProcess
from support.transaction_peer import READ_UNCOMMITTED, TransactionPeer
from support.transactional_clients import CLIENTS, Refused, TransactionalClient

from odradek.common.errors import ErrorCode
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.clients

SAFE_DOWNGRADE = 2
TIMEOUT_MS = 60_000
SHORT_MS = 4_000
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}

Open = Callable[..., TransactionalClient]
numbers = itertools.count()


@pytest.fixture(scope="module", params=[1, 2])
def server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A broker, of either generation."""
    external = os.environ.get("ODRADEK_TEST_BOOTSTRAP")
    libs = os.environ.get("ODRADEK_TEST_KAFKA_LIBS")
    if external:
        if request.param == 1:
            pytest.skip("moves a feature of the broker, and somebody else runs that")
        yield ExternalBroker(external)
        return
    folder = tmp_path_factory.mktemp("broker") / "data"
    with (
        KafkaProcess(Path(libs), folder, settings=SETTINGS)
        if libs
        else BrokerProcess(folder, settings=SETTINGS)
    ) as process:
        if request.param == 1:
            move_down(process.port)
        yield process


def move_down(port: int) -> None:
    """Have `transaction.version` 1."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=1, upgrade_type=SAFE_DOWNGRADE
    )
    peer = TransactionPeer(port, "nobody")
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=False)
    assert peer.connection.ask(request, UpdateFeaturesResponse, 2).error_code == ErrorCode.NONE
    peer.close()


@pytest.fixture
def made(server: Any) -> str:
    """A topic of one partition."""
    name = f"pages-{os.getpid()}-{next(numbers)}"
    with KafkaAdminClient(bootstrap_servers=server.bootstrap) as admin:
        requested = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({name: requested}, wait_for_metadata=True)
    return name


@pytest.fixture(params=sorted(CLIENTS))
def open_client(request: Any, server: Any, made: str) -> Iterator[Open]:
    """Make a producer with a transactional id, the topic's name unless told otherwise."""
    with ExitStack() as stack:

        def make(transactional_id: str = made, timeout_ms: int = TIMEOUT_MS) -> Any:
            client = CLIENTS[request.param](server.bootstrap, transactional_id, timeout_ms)
            stack.callback(client.close)
            return client

        yield make


def read(server: Any, topic: str, isolation: str = "read_committed") -> list[str]:
    """All values of a topic, in order; waits until its transactions have ended."""
    found = read_all([server.bootstrap], topic, 1, isolation)
    return [value.decode() for _, value in sorted(found.items())]


def test_committed_records_are_read_and_aborted_ones_are_not(
    server: Any, made: str, open_client: Open
) -> None:
    client = open_client()
    client.init()
    for number, end in enumerate([client.commit, client.abort] * 3):
        client.begin()
        client.write(made, f"{number}-a", f"{number}-b")
        end()
    kept = [f"{number}-{letter}" for number in (0, 2, 4) for letter in "ab"]
    assert read(server, made) == kept
    everything = [f"{number}-{letter}" for number in range(6) for letter in "ab"]
    assert read(server, made, "read_uncommitted") == everything


def test_records_are_not_stable_before_their_transaction_has_ended(
    server: Any, made: str, open_client: Open
) -> None:
    client = open_client()
    client.init()
    client.begin()
    client.write(made, "a")
    peer = TransactionPeer(server.port, made)
    assert peer.end_offset(made, isolation=1) == 0
    assert peer.end_offset(made, isolation=READ_UNCOMMITTED) == 1
    assert peer.state == "Ongoing"
    client.commit()
    assert peer.wait_stable(made) == 2, "the record and the marker"
    peer.close()


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    server: Any, made: str, open_client: Open
) -> None:
    client = open_client()
    client.init()
    peer = TransactionPeer(server.port, made)
    with KafkaAdminClient(bootstrap_servers=server.bootstrap) as admin:
        for end, offset, expected in (
            (client.abort, 3, None),
            (client.commit, 5, 5),
            (client.abort, 7, 5),
        ):
            client.begin()
            client.write(made, f"before {offset}")
            client.send_offsets(made, {0: offset}, made)
            end()
            peer.wait_state("CompleteCommit", "CompleteAbort")
            assert committed(admin, made) == expected
    peer.close()


def committed(admin: KafkaAdminClient, topic: str) -> int | None:
    """What a group named as its topic has committed of partition 0."""
    offsets = admin.list_group_offsets(topic)
    return next((each.offset for each in offsets[topic].values()), None)


def test_a_zombie_is_fenced_by_its_successor(server: Any, made: str, open_client: Open) -> None:
    zombie = open_client()
    zombie.init()
    zombie.begin()
    zombie.write(made, "of the zombie")
    successor = open_client()
    successor.init()
    successor.begin()
    successor.write(made, "of the successor")
    # It must not write once more: kafka-python's would then begin anew, and fence its successor.
    with pytest.raises(Refused):
        zombie.commit()
    successor.commit()
    assert read(server, made) == ["of the successor"]


def test_a_transaction_that_takes_too_long_is_aborted(
    server: Any, made: str, open_client: Open
) -> None:
    client = open_client(timeout_ms=SHORT_MS)
    client.init()
    client.begin()
    client.write(made, "too late")
    peer = TransactionPeer(server.port, made)
    peer.wait_state("CompleteAbort")
    peer.close()
    with pytest.raises(Refused):
        client.commit()
    successor = open_client()
    successor.init()
    successor.begin()
    successor.write(made, "in time")
    successor.commit()
    assert read(server, made) == ["in time"]
