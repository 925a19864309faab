"""Each load on a real broker: its figures hang together, and agree with the broker's own counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.metrics_page import MetricsPage, scrape
from support.selection import short

from odradek.bench.cluster import NAME_PREFIX, TargetCluster
from odradek.bench.errors import BenchError, Unavailable
from odradek.bench.figures import UNITS
from odradek.bench.loads import (
    fetch_load,
    group_load,
    produce_load,
    round_trip_load,
    transaction_load,
)
from odradek.bench.loads.load import Load
from odradek.bench.loads.loads import LOADS, load_named
from odradek.bench.target import BenchTarget
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess

SECONDS = 0.1
QUICK = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "1"}
ON_A_BROKER = [load for load in LOADS if not load.starts_broker]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that counts what it is asked."""
    folder = tmp_path_factory.mktemp("bench") / "data"
    with BrokerProcess(folder, settings=QUICK, arguments=["--metrics", "127.0.0.1:0"]) as process:
        yield process


@pytest.fixture
def target(broker: BrokerProcess) -> BenchTarget:
    return BenchTarget("127.0.0.1", broker.port, broker.pid)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads begin without a warm-up, but for what a loader has in flight at once."""
    for module in (fetch_load, group_load, produce_load, round_trip_load, transaction_load):
        monkeypatch.setattr(module, "WARM_UP_SHARE", 0.0)


def counted(broker: BrokerProcess, api: str) -> int:
    """How many requests of an API the broker has answered."""
    page: MetricsPage = scrape(broker.metrics_urls[0])
    name = "kafka_network_requestmetrics_requests_total"
    return int(sum(v for labels, v in page.all_of(name).items() if ("request", api) in labels))


def names_left(target: BenchTarget) -> list[str]:
    """Topics and groups of loads that are there still."""
    with TargetCluster(target) as cluster:
        groups = cluster.wire.ask(messages.ListGroupsRequest()).groups
        topics = cluster.topics_named(NAME_PREFIX)
    return topics + [each.group_id for each in groups if each.group_id.startswith(NAME_PREFIX)]


@pytest.mark.parametrize("load", short(ON_A_BROKER, 8), ids=lambda load: load.name)
def test_figures_hang_together_and_nothing_is_left(load: Load, target: BenchTarget) -> None:
    figures = load.run(target, SECONDS)
    assert set(figures) <= set(UNITS)
    assert figures["requests"] >= 1
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]
    assert figures["loader_us"] > 0
    assert figures["cpu_us"] >= 0
    if "rate" in figures:
        # So many were in flight at once for as long as it took, and half of the requests took at
        # least the median.
        in_flight = {"4 connections x 8": 32, "16": 16, "heartbeats": 16}
        depth = next((n for words, n in in_flight.items() if words in load.name), 1)
        assert figures["rate"] > 0
        if "mb_s" not in figures:
            assert figures["p50_ms"] / 1000 * figures["rate"] <= 2 * depth
    else:
        assert "wake-up" in load.name or "round trip" in load.name
    assert ("mb_s" in figures) == load.name.startswith("bulk")
    assert names_left(target) == []


@pytest.mark.parametrize(
    ("load", "api", "besides"),
    [
        ("Produce, 1 connection", "Produce", 1),
        ("Produce, 16 connections", "Produce", 16),
        ("Produce, 4 connections x 8 in flight", "Produce", 32),
        ("bulk produce 1 KB, acks=all", "Produce", 5),
        ("Produce, 16 connections, 12 partitions a request", "Produce", 16),
        ("Produce, 16 connections, 12 partitions in turn", "Produce", 16),
        ("Produce, 16 connections, idempotent", "Produce", 16),
        ("session fetch, 1000 partitions", "Fetch", 1),
        ("session fetch, 12 of 1000 partitions", "Fetch", 1),
        ("fetch wake-up", "Produce", 0),
        ("fetch wake-up", "Fetch", 1),
        ("heartbeats, classic group", "Heartbeat", 16),
        ("transactions of 100 records", "EndTxn", 0),
        ("transactions of 100 records", "Produce", 0),
    ],
)
def test_loader_counts_what_the_broker_counts(
    broker: BrokerProcess, target: BenchTarget, cold: None, load: str, api: str, besides: int
) -> None:
    """`besides`: what is sent before the clock starts."""
    before = counted(broker, api)
    requests = load_named(load).run(target, SECONDS)["requests"]
    assert counted(broker, api) - before == requests + besides


def test_bulk_rates_count_records_and_bytes(target: BenchTarget) -> None:
    for load in ("bulk produce 1 KB, acks=1", "bulk fetch 1 KB"):
        figures = load_named(load).run(target, SECONDS)
        assert 1000 < figures["mb_s"] * 1e6 / figures["rate"] < 1040


def written(broker: BrokerProcess) -> float:
    """How many records the broker has appended."""
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    return sum(scrape(broker.metrics_urls[0]).all_of(name).values())


@pytest.mark.parametrize(
    ("load", "each"),
    [
        ("Produce, 16 connections", 1),
        ("Produce, 16 connections, 3 partitions a request", 3),
        ("Produce, 16 connections, 12 partitions in turn", 1),
        ("Produce, 16 connections, idempotent", 1),
    ],
)
def test_each_request_writes_a_record_to_each_of_its_partitions(
    broker: BrokerProcess, target: BenchTarget, cold: None, load: str, each: int
) -> None:
    before = written(broker)
    requests = load_named(load).run(target, SECONDS)["requests"]
    assert written(broker) - before == (requests + 16) * each


def test_figures_of_a_process_need_its_number(broker: BrokerProcess) -> None:
    figures = load_named("Produce, 1 connection").run(
        BenchTarget("127.0.0.1", broker.port), SECONDS
    )
    assert "cpu_us" not in figures
    assert figures["requests"] > 0


def test_process_that_is_gone_is_named(broker: BrokerProcess) -> None:
    gone = BenchTarget("127.0.0.1", broker.port, 1 << 22)
    with pytest.raises(BenchError, match="there is no process 4194304"):
        load_named("Produce, 1 connection").run(gone, SECONDS)


def test_start_is_of_a_broker_of_its_own() -> None:
    figures = load_named("start").run(BenchTarget("127.0.0.1", 1), SECONDS)
    assert set(figures) == {"ready_s", "memory_mb"}
    assert 0 < figures["ready_s"] < 30
    assert 5 < figures["memory_mb"] < 500


def test_load_that_the_broker_refuses_says_so_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    settings = {"message.max.bytes": "120", "transaction.max.timeout.ms": "1000"}
    with BrokerProcess(tmp_path / "data", settings=settings) as process:
        refusing = BenchTarget("127.0.0.1", process.port)
        with pytest.raises(BenchError, match="answered Produce with MESSAGE_TOO_LARGE"):
            load_named("Produce, 16 connections").run(refusing, SECONDS)
        with pytest.raises(BenchError, match="InitProducerId with INVALID_TRANSACTION_TIMEOUT"):
            load_named("transactions of 100 records").run(refusing, SECONDS)
        assert names_left(refusing) == []


def test_nobody_there_is_a_sentence() -> None:
    with pytest.raises(BenchError, match=r"no broker answers at 127\.0\.0\.1:1: "):
        load_named("Produce, 1 connection").run(BenchTarget("127.0.0.1", 1), SECONDS)


@pytest.mark.parametrize(
    ("module", "load"),
    [("kafka", "kafka-python round trip"), ("confluent_kafka", "confluent-kafka round trip")],
)
def test_client_that_is_not_installed_is_named(
    target: BenchTarget, monkeypatch: pytest.MonkeyPatch, module: str, load: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    package = re.sub(" .*", "", load)
    with pytest.raises(Unavailable, match=f"{package} is not installed: pip install {package}"):
        load_named(load).run(target, SECONDS)


def test_names_of_loads_are_unique_and_reported() -> None:
    assert len({load.name for load in LOADS}) == len(LOADS)
    assert all(load.about for load in LOADS)
