"""A real broker scraped after real traffic: every number is compared with somebody else's."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.metrics_page import MetricsPage, scrape

from odradek.broker.metrics.metric_table import METRICS
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

KAFKAS_OWN = Path(__file__).parent / "data" / "jmx_exporter_kafka_4_3_1.txt"
RECORDS = 500
PARTITIONS = 3
GROUP = "readers"

TOPICS = "kafka_server_brokertopicmetrics_"
ALL_TOPICS = ("messagesin_total", "bytesin_total", "bytesout_total", "totalproducerequests_total")


class Scraped:
    """A broker with metrics, what was done to it, and what it says of that."""

    def __init__(self, broker: BrokerProcess, page: MetricsPage, sizes: dict[int, int]) -> None:
        self.broker = broker
        self.page = page
        self.sizes = sizes
        """By partition, the bytes in its segment file."""

    @property
    def url(self) -> str:
        return self.broker.metrics_urls[0]

    @property
    def address(self) -> tuple[str, int]:
        host, port = re.fullmatch(r"http://([\d.]+):(\d+)/metrics", self.url).groups()  # type: ignore[union-attr]  # it has that form
        return host, int(port)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """500 records written, read by a group that has committed, and one refused for its size."""
    data = tmp_path_factory.mktemp("broker") / "data"
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
    arguments = ["--metrics", "127.0.0.1:0"]
    with BrokerProcess(data, settings=settings, arguments=arguments) as broker:
        create(broker, NewTopic("events", PARTITIONS), NewTopic("small", 1, config=SMALL))
        produce(broker, "events")
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            produce_one(broker, "small", b"x" * 2000)
        consume(broker, "events")
        sizes = {
            index: next((data / f"events-{index}").glob("*.log")).stat().st_size
            for index in range(PARTITIONS)
        }
        yield Scraped(broker, scrape(broker.metrics_urls[0]), sizes)


SMALL = {"max.message.bytes": "1000"}


def create(broker: BrokerProcess, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics(list(topics)).values():
        future.result(60)


def produce(broker: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 5})
    for number in range(RECORDS):
        producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def produce_one(broker: BrokerProcess, topic: str, value: bytes) -> None:
    failures = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    if failures[0] is not None:
        raise KafkaException(failures[0])


def consume(broker: BrokerProcess, topic: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    seen = 0
    while seen < RECORDS:
        messages = consumer.consume(RECORDS - seen, 60)
        assert messages, "the records did not come in time"
        for message in messages:
            assert message.error() is None
        seen += len(messages)
    consumer.commit(asynchronous=False)
    consumer.close()


def test_records_and_bytes_of_a_topic_are_those_on_disk(scraped):
    page = scraped.page
    assert page.of(TOPICS + "messagesin_total", topic="events") == RECORDS
    assert page.of(TOPICS + "bytesin_total", topic="events") == sum(scraped.sizes.values())
    assert page.of(TOPICS + "bytesout_total", topic="events") == sum(scraped.sizes.values())


def test_totals_are_the_sums_over_all_topics(scraped):
    page = scraped.page
    for name in ALL_TOPICS:
        values = page.all_of(TOPICS + name)
        total = values.pop(frozenset())
        assert total == sum(values.values()) > 0


def test_a_refused_record_counts_as_rejected_bytes_and_not_as_failure(scraped):
    page = scraped.page
    assert page.of(TOPICS + "bytesrejected_total", topic="small") > 2000
    assert page.of(TOPICS + "totalproducerequests_total", topic="small") == 1
    assert page[TOPICS + "failedproducerequests_total"] == 0
    assert ("topic", "small") not in frozenset().union(*page.all_of(TOPICS + "messagesin_total"))


def test_logs_end_where_the_records_do(scraped):
    page = scraped.page
    ends = 0
    for index, size in scraped.sizes.items():
        partition = {"topic": "events", "partition": index}
        ends += page.of("kafka_log_log_logendoffset", **partition)
        assert page.of("kafka_log_log_logstartoffset", **partition) == 0
        assert page.of("kafka_log_log_size", **partition) == size
        assert page.of("kafka_log_log_numlogsegments", **partition) == 1
        assert page.of("kafka_cluster_partition_insyncreplicascount", **partition) == 1
    assert ends == RECORDS


def test_partitions_and_topics_are_those_that_there_are(scraped):
    page = scraped.page
    partitions = PARTITIONS + 1 + 2  # events, small, __consumer_offsets
    assert page["kafka_server_replicamanager_partitioncount"] == partitions
    assert page["kafka_server_replicamanager_leadercount"] == partitions
    assert page["kafka_server_replicamanager_underreplicatedpartitions"] == 0
    assert page["kafka_controller_kafkacontroller_globalpartitioncount"] == partitions
    assert page["kafka_controller_kafkacontroller_globaltopiccount"] == 3
    assert page["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert page["kafka_controller_kafkacontroller_offlinepartitionscount"] == 0


def test_the_group_and_what_it_committed_are_counted(scraped):
    manager = "kafka_coordinator_group_groupmetadatamanager_"
    assert scraped.page[manager + "numgroups"] == 1
    assert scraped.page[manager + "numgroupsempty"] == 1
    coordinator = "kafka_server_group_coordinator_metrics_"
    assert scraped.page.of(coordinator + "group_count", protocol="classic") == 1
    assert scraped.page.of(coordinator + "group_count", protocol="consumer") == 0
    assert scraped.page.of(coordinator + "consumer_group_count", state="reconciling") == 0
    assert scraped.page[manager + "numoffsets"] == PARTITIONS


def early_joins(page: MetricsPage) -> dict[str, float]:
    """By error code, JoinGroups that were turned away and sent again."""
    answers = {
        dict(labels)["error"]: count
        for labels, count in page.all_of("kafka_network_requestmetrics_errors_total").items()
        if dict(labels)["request"] == "JoinGroup"
    }
    early = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
    return {error: answers[error] for error in answers.keys() & early}


def test_every_answered_request_is_counted_by_its_version(scraped):
    page = scraped.page
    requests = page.all_of("kafka_network_requestmetrics_requests_total")
    by_api: dict[str, float] = {}
    for labels, count in requests.items():
        api = dict(labels)["request"]
        by_api[api] = by_api.get(api, 0) + count
    # Without a member id, and with one; before that the coordinator may not have been there yet.
    assert by_api["JoinGroup"] == 2 + sum(early_joins(page).values())
    assert by_api["CreateTopics"] == 1
    assert by_api["Fetch"] == by_api["FetchConsumer"] > 0
    assert by_api["Produce"] >= page.of(TOPICS + "totalproducerequests_total", topic="events") / 3
    for api, count in by_api.items():
        times = "kafka_network_requestmetrics_totaltimems"
        assert page.of(times + "_count", request=api) == count
        assert page.of(times, request=api, quantile="0.50") <= page.of(
            times, request=api, quantile="0.999"
        )


def test_error_codes_are_counted_one_for_each_partition_answered(scraped):
    errors = "kafka_network_requestmetrics_errors_total"
    of = scraped.page.of
    assert of(errors, request="JoinGroup", error="MEMBER_ID_REQUIRED") == 1
    assert of(errors, request="JoinGroup", error="NONE") == 1
    assert of(errors, request="CreateTopics", error="NONE") == 2
    assert of(errors, request="Produce", error="MESSAGE_TOO_LARGE") == 1
    produced = of(TOPICS + "totalproducerequests_total", topic="events")
    assert of(errors, request="Produce", error="NONE") == produced
    assert of(errors, request="OffsetCommit", error="NONE") >= PARTITIONS


def test_names_labels_and_types_are_kafkas(scraped):
    theirs = set(KAFKAS_OWN.read_text().splitlines())
    page = scraped.page
    types = {family.name: family.type for family in page.families}
    only_here = {
        # of odradek, and of what the exporter's rules for Kafka do not name
        "gauge odradek_broker_info{broker,cluster_id,version}",
        "gauge odradek_log_directory_full{logDirectory}",
        "counter odradek_refused_writes_total{error,logDirectory}",
        "gauge odradek_client_metrics_clients",
        "gauge odradek_client_metrics_series",
        "counter odradek_client_metrics_dropped_series_total",
        "gauge kafka_server_socket_server_metrics_connection_count{listener,networkProcessor}",
        "counter kafka_server_socket_server_metrics_connection_creation_total"
        "{listener,networkProcessor}",
        "gauge kafka_server_group_coordinator_metrics_group_count{protocol}",
        "gauge kafka_server_group_coordinator_metrics_consumer_group_count{state}",
        "gauge kafka_server_group_coordinator_metrics_share_group_count{state}",
        "gauge kafka_server_group_coordinator_metrics_streams_group_count{state}",
        # a topic's counter that no client had made Kafka count when its list was taken
        "counter kafka_server_brokertopicmetrics_bytesrejected_total{topic}",
        # a real summary's parts, where the exporter can only imitate one
        "summary kafka_network_requestmetrics_totaltimems_count{request}",
        "summary kafka_network_requestmetrics_totaltimems_sum{request}",
    }
    ours = set()
    for name, labels in page.series():
        if name.startswith("process_"):
            continue
        type_ = next(types[each] for each in (name, *ends_of(name)) if each in types)
        if type_ == "summary" and "quantile" in labels:
            type_ = "gauge"
        ours.add(f"{type_} {name}" + (f"{{{','.join(sorted(labels))}}}" if labels else ""))
    assert ours - theirs == only_here


def ends_of(name: str) -> list[str]:
    return [name.removesuffix(end) for end in ("_total", "_count", "_sum")]


def test_help_and_type_stand_once_above_a_metrics_lines(scraped):
    text = scraped.page.text
    for name, metric in METRICS.items():
        assert text.count(f"\n# HELP {name} ") <= 1
        if f"\n# HELP {name} " not in text:
            continue
        block = text.partition(f"\n# HELP {name} ")[2].partition("\n# HELP ")[0].split("\n")
        assert block[0].startswith(metric.help)
        assert block[1] == f"# TYPE {name} {metric.type.value}"
        assert all(line.startswith(name) for line in block[2:] if line)


def test_the_common_produce_is_counted_like_any_other(scraped):
    """One record a request, on one connection: what takes the broker's fast path."""
    create(scraped.broker, NewTopic("steady", 1))
    requests = "kafka_network_requestmetrics_requests_total"
    errors = "kafka_network_requestmetrics_errors_total"
    producer = Producer({"bootstrap.servers": scraped.broker.bootstrap, "acks": "1"})
    producer.produce("steady", b"the first")
    assert producer.flush(60) == 0
    before = scrape(scraped.url)
    for number in range(50):
        producer.produce("steady", b"%d" % number)
        assert producer.flush(60) == 0
    after = scrape(scraped.url)

    def grew(name: str, **labels: str) -> float:
        return after.of(name, **labels) - before.of(name, **labels)

    (version,) = (
        dict(labels)["version"]
        for labels in after.all_of(requests)
        if dict(labels)["request"] == "Produce"
    )
    assert grew(requests, request="Produce", version=version) == 50
    assert grew(errors, request="Produce", error="NONE") == 50
    assert grew("kafka_network_requestmetrics_totaltimems_count", request="Produce") == 50
    assert grew(TOPICS + "totalproducerequests_total", topic="steady") == 50
    assert grew(TOPICS + "messagesin_total", topic="steady") == 50
    assert grew(TOPICS + "bytesin_total", topic="steady") == grew(
        "kafka_log_log_size", topic="steady", partition="0"
    )


def test_a_metric_of_many_partitions_is_whole(scraped):
    create(scraped.broker, NewTopic("wide", 300))
    page = scrape(scraped.url)
    ends = page.all_of("kafka_log_log_logendoffset")
    assert {dict(labels)["partition"] for labels in ends if dict(labels)["topic"] == "wide"} == set(
        map(str, range(300))
    )
    assert page.text.count("# TYPE kafka_log_log_logendoffset gauge") == 1


def test_a_deleted_topic_takes_its_counters_along_and_the_total_stays(scraped):
    create(scraped.broker, NewTopic("gone", PARTITIONS))
    produce(scraped.broker, "gone")
    before = scrape(scraped.url)
    assert before.of(TOPICS + "messagesin_total", topic="gone") == RECORDS
    admin = AdminClient({"bootstrap.servers": scraped.broker.bootstrap})
    admin.delete_topics(["gone"])["gone"].result(60)

    def is_gone() -> bool:
        counted = scrape(scraped.url).all_of(TOPICS + "messagesin_total")
        return frozenset({("topic", "gone")}) not in counted

    wait_until(is_gone)
    after = scrape(scraped.url)
    assert after[TOPICS + "messagesin_total"] == before[TOPICS + "messagesin_total"]


def ask(address: tuple[str, int], data: bytes, *, end: bool = False) -> bytes:
    """Send bytes, and read the answer to its end."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20_000, b"431"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"405"),
        (b"GET /secret HTTP/1.1\r\n\r\n", b"404"),
        (b"\x00\x00\x00\x1d\x00\x12\x00\x03\x00\x00\n\n", b"400"),
        (b"GET /metrics\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_scrape_is_refused_and_the_next_one_answered(scraped, data, status):
    assert ask(scraped.address, data).startswith(b"HTTP/1.1 " + status)
    assert scrape(scraped.url)["kafka_server_kafkaserver_brokerstate"] == 3


def test_a_client_that_leaves_within_its_request_harms_nobody(scraped):
    assert ask(scraped.address, b"GET /met", end=True).startswith(b"HTTP/1.1 400")
    for _ in range(50):
        socket.create_connection(scraped.address, timeout=60).close()
    assert scrape(scraped.url)["kafka_server_kafkaserver_brokerstate"] == 3
