"""Loads speak to brokers of years ago: by versions that odradek serves, and would not choose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.bench.cluster import NAME_PREFIX, TargetCluster
from odradek.bench.errors import Unavailable
from odradek.bench.loads.loads import load_named
from odradek.bench.loads.wire import Wire
from odradek.bench.target import BenchTarget
from odradek.client.network.api_version_ranges import ApiVersionRanges
from odradek.protocol.api_keys import ApiKey
from odradek.testing.process.broker_process import BrokerProcess

SECONDS = 0.1
NEWEST_OF_KAFKA_2_1 = {
    ApiKey.PRODUCE: 7,
    ApiKey.FETCH: 10,
    ApiKey.LIST_OFFSETS: 4,
    ApiKey.METADATA: 7,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.DELETE_GROUPS: 1,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 3,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
}
"""As its ApiVersions answers."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("old") / "data") as process:
        yield process


@pytest.fixture
def target(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> BenchTarget:
    """The broker, as one that knows nothing newer."""
    ask = Wire._ask_versions

    def requested(wire: Wire) -> ApiVersionRanges:
        served = ask(wire)
        return ApiVersionRanges(
            {
                key: range(served.served(key).start, newest + 1)
                for key, newest in NEWEST_OF_KAFKA_2_1.items()
            }
        )

    monkeypatch.setattr(Wire, "_ask_versions", requested)
    return BenchTarget("127.0.0.1", broker.port)


@pytest.mark.parametrize(
    "name",
    [
        "Produce, 4 connections x 8 in flight",
        "bulk produce 100 B, acks=all",
        "bulk fetch 100 B",
        "fetch wake-up",
        "heartbeats, classic group",
        "transactions of 100 records",
    ],
)
def test_load_speaks_what_the_broker_knows(target: BenchTarget, name: str) -> None:
    assert load_named(name).run(target, SECONDS)["requests"] >= 1
    with TargetCluster(target) as cluster:
        assert cluster.topics_named(NAME_PREFIX) == []


def test_load_that_needs_a_newer_broker_says_so(target: BenchTarget) -> None:
    with pytest.raises(Unavailable, match="the broker serves CONSUMER_GROUP_HEARTBEAT at versions"):
        load_named("heartbeats, consumer group").run(target, SECONDS)
