"""`odradek cluster` against three brokers; what it says is looked up with kafka-python."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from support.broker_cluster import METADATA_VERSION, BrokerCluster, View, ask

from odradek.cli.cluster.metrics import MetricsSource, parse
from odradek.cli.common.errors import CommandError
from odradek.cli.serve.processes.merged_pages import merged
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

from .conftest import Odradek

pytestmark = pytest.mark.clients

TOPIC = "events"
PARTITIONS = 4


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Three brokers in one process, with metrics, and a topic on all of them."""
    data = tmp_path_factory.mktemp("brokers") / "data"
    arguments = ["--brokers", "3", "--metrics", "127.0.0.1:0"]
    with BrokerProcess(data, arguments=arguments) as process:
        with KafkaAdminClient(bootstrap_servers=process.bootstrap) as admin:
            admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 3}})
        # A command may ask any of them, and one hears of a topic later than another.
        for broker in metadata(process.port).brokers:
            wait_until(lambda port=broker.port: knows_topic(port))
        yield process


def metadata(port: int) -> Any:
    return ask(port, messages.MetadataRequest(topics=None), METADATA_VERSION)


def knows_topic(port: int) -> bool:
    topics = {each.name: each.partitions for each in metadata(port).topics}
    return [len(each.isr_nodes) for each in topics.get(TOPIC, ())] == [3] * PARTITIONS


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("patience")
def test_brokers_are_those_of_the_metadata(odradek, three):
    outcome = odradek("cluster", "--json", "--bootstrap", three.bootstrap)
    assert outcome.code == 0, outcome.err
    rows = lines_of(outcome.out)
    with KafkaAdminClient(bootstrap_servers=three.bootstrap) as admin:
        described = admin.describe_cluster()
        (topic,) = admin.describe_topics([TOPIC])
    assert {(row["broker_id"], row["address"]) for row in rows} == {
        (broker["broker_id"], f"{broker['host']}:{broker['port']}")
        for broker in described["brokers"]
    }
    assert [row["broker_id"] for row in rows if row["is_controller"]] == [
        described["controller_id"]
    ]
    leaders = [partition["leader_id"] for partition in topic["partitions"]]
    for row in rows:
        assert row["leaders"] == leaders.count(row["broker_id"])
        assert row["replicas"] == PARTITIONS
        assert row["bytes_in"] is None


@pytest.mark.usefixtures("patience")
def test_a_pipe_gets_one_table(odradek, three):
    outcome = odradek("cluster", "-b", three.bootstrap)
    assert outcome.code == 0, outcome.err
    assert "3 brokers, 1 topics, 4 partitions" in outcome.lines[0]
    address = three.bootstrap
    (line,) = (line for line in outcome.lines if address in line)
    assert line.split()[0] == "1"
    assert outcome.lines[-1] == "every partition has a leader and all its replicas in sync"


@pytest.mark.usefixtures("patience")
def test_metrics_add_rates_and_lag_and_one_that_is_not_there_is_reported(odradek, three):
    arguments = [each for url in three.metrics_urls[:2] for each in ("--metrics", url)]
    outcome = odradek(
        "cluster", "--json", "-b", three.bootstrap, *arguments, "--metrics", "127.0.0.1:1"
    )
    assert outcome.code == 0, outcome.err
    rows = {row["broker_id"]: row for row in lines_of(outcome.out)}
    for broker_id in (1, 2):
        assert rows[broker_id]["bytes_in"] == 0
        assert rows[broker_id]["lag"] == 0
    assert rows[3]["bytes_in"] is None
    assert "http://127.0.0.1:1/metrics: Connection refused" in outcome.err


def test_nobody_there_is_a_sentence(odradek):
    outcome = odradek("cluster", "--once", "--bootstrap", "127.0.0.1:1")
    assert outcome.code == 1
    assert "no broker answers at 127.0.0.1:1" in outcome.err


@pytest.mark.parametrize("address", ["ftp://host:1", "file:///etc/passwd", "http://", ""])
def test_what_is_no_address_of_metrics_is_refused(odradek, address):
    outcome = odradek("cluster", "--metrics", address)
    assert outcome.code == 1
    assert "is no address of metrics" in outcome.err


def test_it_is_live_on_a_terminal_and_ends_with_ctrl_c(three):
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", "cluster", "-b", three.bootstrap, "-i", "0.2"],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "40"},
        # Tests that run in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        os.close(end)
        seen = b""
        while seen.count(b"3 brokers") < 3:  # drawn anew
            part = os.read(terminal, 4096)
            assert part, seen.decode(errors="replace")
            seen += part
        process.send_signal(signal.SIGINT)
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            pass  # Linux's way to say that nobody has the terminal any more
        assert process.wait(60) == 0
    os.close(terminal)


def has_lost_broker_3(view: View) -> bool:
    in_sync = [set(each.isr) for each in view.topics["wide"].values()]
    return in_sync == [{1, 2}] * 2 and view.topics["alone"][0].leader == -1


@pytest.mark.usefixtures("patience")
def test_partitions_in_trouble_are_reported_with_what_is_missing(
    odradek: Odradek, tmp_path: Path
) -> None:
    with BrokerCluster(tmp_path / "cluster") as cluster:
        with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
            wide = NewTopic("wide", replica_assignments={0: [1, 2, 3], 1: [2, 3, 1]})
            admin.create_topics([wide, NewTopic("alone", replica_assignments={0: [3]})])
        cluster.agreed(lambda view: view.topics.keys() >= {"wide", "alone"})
        cluster.brokers[3].kill()
        # Whichever broker the command asks knows of it.
        cluster.agreed(has_lost_broker_3)
        where = ("-b", ",".join(cluster.bootstrap))
        rows = lines_of(odradek("cluster", "--json", *where).out)
        told = odradek("cluster", "--once", *where)
    troubled = {
        (row["topic"], row["partition"]): (row["state"], row["leader"], row["missing"])
        for row in rows
        if row["type"] == "partition"
    }
    assert troubled[("wide", 0)] == ("under-replicated", 1, [3])
    assert troubled[("wide", 1)] == ("under-replicated", 2, [3])
    assert troubled[("alone", 0)][:2] == ("offline", None)
    brokers = {row["broker_id"]: row for row in rows if row["type"] == "broker"}
    assert brokers[3]["address"] is None
    assert (brokers[1]["under_replicated"], brokers[2]["under_replicated"]) == (1, 1)
    assert "not alive" in told.out
    assert "offline" in told.out


# -- pages of metrics, without a broker ------------------------------------------------------

PAGE = b"""# HELP kafka_server_brokertopicmetrics_bytesin_total x
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 300.0
kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 100.0
kafka_server_brokertopicmetrics_bytesout_total 1.2E3
kafka_server_replicafetchermanager_maxlag{clientId="Replica",} 7.0
kafka_log_log_size{partition="0",topic="a",} broken, and nobody looks
"""


def test_a_page_of_the_jmx_exporter_is_understood():
    assert parse(PAGE) == {}  # it does not say whose it is
    scrape = parse(PAGE, 7)[7]
    assert (scrape.bytes_in, scrape.bytes_out, scrape.lag) == (300, 1200, 7)


def test_a_page_of_several_brokers_is_understood():
    found = parse(merged({1: PAGE.decode(), 2: PAGE.decode().replace("300.0", "5.0")}).encode())
    assert {each: scrape.bytes_in for each, scrape in found.items()} == {1: 300, 2: 5}
    assert {scrape.lag for scrape in found.values()} == {7}


def test_an_id_may_stand_before_the_address():
    assert MetricsSource("7=http://h:1/metrics").url == "http://h:1/metrics"
    assert MetricsSource("h:1").url == "http://h:1/metrics"
    assert MetricsSource("https://h/kafka?a=b").url == "https://h/kafka?a=b"
    with pytest.raises(CommandError):
        MetricsSource("7=")
