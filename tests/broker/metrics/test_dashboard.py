"""The Grafana dashboard's queries, sent to a Prometheus that has scraped brokers at work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from support.broker_processes import BrokerProcesses
from support.documented import blocks_of
from support.metrics_page import scrape
from support.ports import ports_in_a_row

from odradek.broker.metrics.dashboard import dashboard
from odradek.broker.metrics.metric_table import METRICS
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.slow

DASHBOARD = json.loads(dashboard())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], each["expr"]) for panel in PANELS for each in panel["targets"]]
BUILT_IN = re.compile("process_[a-z_]+")
WITHOUT_VALUES = {
    "Refused writes",
    "Connections refused",
    "Failed background tasks",
    "Errors",
}
"""Of what has no series before it has happened."""
SECONDS = 120
CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
- job_name: odradek
  static_configs: [{{targets: {targets}}}]
{more}"""


def as_sent(query: str) -> str:
    """What Grafana makes of it with all jobs and instances chosen."""
    return query.replace("$job", ".*").replace("$instance", ".*").replace("$__rate_interval", "4s")


def test_panels_lie_beside_and_below_each_other() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_a_query_names_metrics_and_labels_that_there_are(title: str, query: str) -> None:
    selectors = re.findall(r"([a-z_:]+)\{([^}]*)\}", query)
    assert selectors, title
    for name, labels in selectors:
        names = set(re.findall(r"(\w+)[=!]", labels)) - {"job", "instance"}
        if not BUILT_IN.fullmatch(name):
            of_metric = {*METRICS[name].labels, "quantile"}
            assert names <= of_metric, (title, name)


class Prometheus:
    """A server that scrapes brokers every second.

    Args:
        folder: for its files.
        port: to listen on.
        targets: HOST:PORT of metrics.
        more: what its configuration says of the scrape besides.
    """

    def __init__(self, folder: Path, port: int, targets: list[str], more: str = "") -> None:
        self._url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        more = textwrap.indent(more, "  ")
        config.write_text(CONFIG.format(targets=json.dumps(targets), more=more))
        program = shutil.which("prometheus")
        assert program is not None, "install Prometheus: .ci/need prometheus"
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def query(self, query: str) -> list[Any]:
        """The series of an instant query. Raises: OSError, with what is wrong with the query."""
        parameters = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{parameters}") as response:
            return list(json.load(response)["data"]["result"])

    def scrapes(self) -> int:
        """How often each target has been scraped, of the one that least was."""
        try:
            found = self.query("count_over_time(up[10m])")
        except OSError:
            return 0
        return min((int(each["value"][1]) for each in found), default=0)

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        self._log.close()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    arguments = ["--brokers", "2", "--metrics", "127.0.0.1:0"]
    settings = {"offsets.topic.num.partitions": "1", "default.replication.factor": "2"}
    settings["group.initial.rebalance.delay.ms"] = "0"
    with (
        ports_in_a_row(1) as port,
        BrokerProcess(folder / "data", settings=settings, arguments=arguments) as brokers,
    ):
        targets = [urllib.parse.urlparse(url).netloc for url in brokers.metrics_urls]
        bootstrap = re.search(r"ready at ([^,]+),", brokers.ready_line)
        assert bootstrap is not None
        work(bootstrap[1])
        assert scrape(brokers.metrics_urls[0])["kafka_server_kafkaserver_brokerstate"] == 3
        server = Prometheus(folder, port, targets)
        try:
            wait_until(lambda: server.scrapes() >= 3, SECONDS)
            yield server
        finally:
            server.end()


def work(bootstrap: str) -> None:
    """Make a topic, write to it, and read it in a group."""
    settings = {"bootstrap.servers": bootstrap}
    producer = Producer({**settings, "acks": "all"})
    for _ in range(100):
        producer.produce("events", b"x" * 100)
    assert producer.flush(SECONDS) == 0
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["events"])
    assert consumer.consume(1, SECONDS)
    consumer.close()


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_prometheus_answers_a_query_with_numbers(
    prometheus: Prometheus, title: str, query: str
) -> None:
    found = prometheus.query(as_sent(query))
    if title not in WITHOUT_VALUES:
        assert found
        assert all(float(each["value"][1]) >= 0 for each in found)
        assert any(each["value"][1] != "NaN" for each in found)


def test_numbers_that_must_be_right_are(prometheus: Prometheus) -> None:
    expected = {
        "Brokers that serve": 2,
        "Active controllers": 1,
        "Partitions without a leader": 0,
        "Under-replicated partitions": 0,
        "Offline directories": 0,
        "Full directories": 0,
    }
    queries = dict(QUERIES)
    found = {
        title: [float(each["value"][1]) for each in prometheus.query(as_sent(queries[title]))]
        for title in expected
    }
    assert found == {title: [value] for title, value in expected.items()}


def test_processes_on_one_page_are_instances_by_what_operators_are_told(tmp_path: Path) -> None:
    (block,) = blocks_of("docs/operations.md", "yaml")
    with ports_in_a_row(1) as port, BrokerProcesses(tmp_path) as brokers:
        target = urllib.parse.urlparse(brokers.metrics_urls[0]).netloc
        server = Prometheus(tmp_path, port, [target], block.text)
        try:
            wait_until(lambda: server.scrapes() >= 1, SECONDS)
            query = "kafka_server_kafkaserver_brokerstate"
            wait_until(lambda: server.query(query), SECONDS)  # a scrape is stored a little later
            found = server.query(query)
        finally:
            server.end()
    assert {each["metric"]["instance"]: each["value"][1] for each in found} == {"1": "3", "2": "3"}
