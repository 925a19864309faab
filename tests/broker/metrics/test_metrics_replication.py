"""Replication as three brokers' metrics tell it, compared with their files and metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.metrics_page import MetricsPage, scrape

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

TOPIC = "events"
PARTITIONS = 4
RECORDS = 400
TOPICS = "kafka_server_brokertopicmetrics_"
MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Three brokers in one process, and a topic that all of them have the records of."""
    data = tmp_path_factory.mktemp("brokers") / "data"
    arguments = ["--brokers", "3", "--metrics", "127.0.0.1:0"]
    with BrokerProcess(data, arguments=arguments) as process:
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(60)
        producer = Producer({"bootstrap.servers": process.bootstrap, "acks": "all"})
        for number in range(RECORDS):
            producer.produce(TOPIC, b"x" * 200, partition=number % PARTITIONS)
        assert producer.flush(60) == 0
        yield process


@pytest.fixture
def pages(brokers: BrokerProcess) -> list[MetricsPage]:
    """What each broker says, once the last follower has told its leader how far it is."""
    found: list[MetricsPage] = []

    def has_settled() -> bool:
        found[:] = [scrape(url) for url in brokers.metrics_urls]
        ends = [page.all_of("kafka_log_log_logendoffset") for page in found]
        return ends[0] == ends[1] == ends[2] and sum(ends[0].values()) == RECORDS

    wait_until(has_settled)
    return found


def total(pages: list[MetricsPage], name: str) -> float:
    return sum(page[name] for page in pages)


def test_each_page_is_another_brokers(pages):
    ids = [dict(next(iter(page.all_of("odradek_broker_info"))))["broker"] for page in pages]
    assert ids == ["1", "2", "3"]


def test_what_leaders_sent_is_what_followers_appended(brokers, pages):
    assert brokers.data_dir is not None
    folder: Path = brokers.data_dir
    on_disk = sum(path.stat().st_size for path in folder.glob(f"broker-1/{TOPIC}-*/*.log"))
    assert on_disk > RECORDS * 200
    assert total(pages, TOPICS + "bytesin_total") == on_disk
    assert total(pages, TOPICS + "messagesin_total") == RECORDS
    assert total(pages, TOPICS + "replicationbytesin_total") == 2 * on_disk
    # A follower that hears of a partition anew drops the answer that is coming, and fetches again.
    assert 2 * on_disk <= total(pages, TOPICS + "replicationbytesout_total") < 4 * on_disk
    assert total(pages, TOPICS + "bytesout_total") == 0, "followers are no consumers"


def test_every_partition_is_led_once_and_replicated_everywhere(pages):
    assert total(pages, MANAGER + "leadercount") == PARTITIONS
    assert [page[MANAGER + "partitioncount"] for page in pages] == [PARTITIONS] * 3
    assert total(pages, MANAGER + "underreplicatedpartitions") == 0
    assert total(pages, MANAGER + "atminisrpartitioncount") == 0
    replicas = [page.all_of("kafka_cluster_partition_replicascount") for page in pages]
    assert sum(sum(each.values()) for each in replicas) == 3 * PARTITIONS


def test_just_one_broker_is_the_controller_and_knows_the_cluster(pages):
    assert total(pages, CONTROLLER + "activecontrollercount") == 1
    (controller,) = (page for page in pages if page[CONTROLLER + "activecontrollercount"])
    assert controller[CONTROLLER + "activebrokercount"] == 3
    assert controller[CONTROLLER + "globaltopiccount"] == 1
    assert controller[CONTROLLER + "globalpartitioncount"] == PARTITIONS
    assert total(pages, CONTROLLER + "globalpartitioncount") == PARTITIONS


def test_followers_tell_their_lag_for_each_partition_they_follow(pages):
    followed = 0
    for page in pages:
        lags = page.all_of("kafka_server_fetcherlagmetrics_consumerlag")
        followed += len(lags)
        assert {dict(labels)["topic"] for labels in lags} == {TOPIC}
        manager = "kafka_server_replicafetchermanager_"
        assert page.of(manager + "maxlag", clientId="Replica") == max(lags.values())
        assert page.of(manager + "failedpartitionscount", clientId="Replica") == 0
        moves = "kafka_server_replicaalterlogdirsmanager_"
        assert page.of(moves + "maxlag", clientId="ReplicaAlterLogDirs") == 0
    assert followed == 2 * PARTITIONS


def test_followers_fetches_are_counted_as_theirs(pages):
    for page in pages:
        by_kind = {
            dict(labels)["request"]: count
            for labels, count in page.all_of("kafka_network_requestmetrics_requests_total").items()
        }
        assert by_kind["FetchFollower"] == by_kind["Fetch"] > 0
        assert by_kind["FetchConsumer"] == 0
