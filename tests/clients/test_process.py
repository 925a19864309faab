"""The broker as a process: listeners, the ready line, the data folder, signals."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from support.kafka_process import KafkaProcess
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess, BrokerStartError
from odradek.testing.process.held_port import HeldPort

pytestmark = pytest.mark.clients

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
STOP_SECONDS_MAX = 45.0
"""Less than the fetch waits that must not hold up a stop."""
IDLE_MS = 1000
TRIES_MAX = 20


StartOdradek = Callable[..., BrokerProcess]


@pytest.fixture
def odradek() -> Iterator[StartOdradek]:
    """Start odradek, whatever the other suites test: its command line is the subject here."""
    with ExitStack() as stack:

        def start(data_dir: Path | None = None, **how: Any) -> BrokerProcess:
            return stack.enter_context(BrokerProcess(data_dir, **how))

        yield start


def advertised(port: int, host: str = "127.0.0.1") -> tuple[str, int]:
    """The address of the broker that it tells on a connection to `port`."""
    with RawConnection(port, host) as connection:
        response = connection.ask(MetadataRequest(topics=[]), MetadataResponse, 1)
    (node,) = response.brokers
    return node.host, node.port


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `odradek serve` to its end, which is soon when it cannot start."""
    command = [sys.executable, "-m", "odradek", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_ready_line_tells_address_data_folder_and_seconds(
    odradek: StartOdradek, tmp_path: Path
) -> None:
    broker = odradek(tmp_path / "data")

    pattern = rf"odradek ready at 127\.0\.0\.1:(\d+), data in {tmp_path}/data, (\d+\.\d\d) s"
    matched = re.fullmatch(pattern, broker.ready_line)
    assert matched, broker.ready_line
    assert int(matched[1]) == broker.port != 0
    assert 0 < float(matched[2]) < 300
    with RawConnection(broker.port) as connection:
        connection.assert_served()


def test_each_listener_tells_its_own_address(odradek: StartOdradek, tmp_path: Path) -> None:
    held = HeldPort(), HeldPort()
    first, second = (each.port for each in held)
    settings = {
        "listeners": f"INSIDE://127.0.0.1:{first},OUTSIDE://127.0.0.1:{second}",
        "advertised.listeners": f"INSIDE://127.0.0.1:{first},OUTSIDE://broker.example:9999",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }

    odradek(tmp_path / "data", settings=settings)

    assert advertised(first) == ("127.0.0.1", first)
    assert advertised(second) == ("broker.example", 9999)


def test_localhost_is_reached_by_ipv4_and_ipv6(odradek: StartOdradek, tmp_path: Path) -> None:
    broker = odradek(tmp_path / "data", listen="localhost:0")

    for host in ("127.0.0.1", "::1", "localhost"):
        assert advertised(broker.port, host) == ("localhost", broker.port)
    with KafkaProducer(bootstrap_servers=f"localhost:{broker.port}") as producer:
        assert producer.send("t", b"x").get(timeout=30).offset == 0


def test_second_process_on_the_same_data_folder_is_refused(
    odradek: StartOdradek, tmp_path: Path
) -> None:
    first = odradek(tmp_path / "data")

    second = serve("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))

    assert second.returncode == 1
    assert str(tmp_path / "data") in second.stderr
    assert "Traceback" not in second.stderr
    with RawConnection(first.port) as connection:
        connection.assert_served()


def test_taken_port_is_refused_with_its_number(odradek: StartOdradek, tmp_path: Path) -> None:
    first = odradek(tmp_path / "data")

    second = serve("--listen", first.bootstrap, "--data-dir", str(tmp_path / "other"))

    assert second.returncode == 1
    assert str(first.port) in second.stderr
    assert "Traceback" not in second.stderr


def leave_a_gap(data: Path) -> None:
    (data / "orders-1").mkdir()


def damage_the_store(data: Path) -> None:
    (data / "odradek-metadata.sqlite").write_bytes(b"no database" * 100)


def belong_to_another_broker(data: Path) -> None:
    (data / "meta.properties").write_text("version=1\nnode.id=7\n")


@pytest.mark.parametrize(
    ("prepare", "reported"),
    [
        (leave_a_gap, "has no folder of partition 0"),
        (damage_the_store, "is damaged"),
        (belong_to_another_broker, "is of broker 7"),
    ],
)
def test_a_folder_that_contradicts_itself_is_refused_with_what_to_do(
    tmp_path: Path, prepare: Callable[[Path], None], reported: str
) -> None:
    prepare(tmp_path)

    refused = serve("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))

    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith("odradek serve: ")
    assert str(tmp_path) in line
    assert reported in line


@pytest.mark.parametrize(
    ("setting", "reported"),
    [("num.partitions=many", "num.partitions"), ("log.segment.bytes=-1", "log.segment.bytes")],
)
def test_bad_setting_is_refused_with_its_name(tmp_path: Path, setting: str, reported: str) -> None:
    refused = serve("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "d"), "-o", setting)

    assert refused.returncode == 2
    assert reported in refused.stderr
    assert "Traceback" not in refused.stderr


def test_broker_that_cannot_start_says_why_through_broker_process(
    odradek: StartOdradek, tmp_path: Path
) -> None:
    with pytest.raises(BrokerStartError, match=r"num\.partitions"):
        odradek(tmp_path / "data", settings={"num.partitions": "many"})


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_broker_and_leaves_a_clean_folder(
    start_broker, topic: str, signal_number: int
) -> None:
    broker = start_broker()
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number)

    assert broker.stop(signal_number) == 0

    assert (broker.data_dir / CLEAN_SHUTDOWN).exists()
    broker.start()
    assert not (broker.data_dir / CLEAN_SHUTDOWN).exists()
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    assert consumer.end_offsets([partition]) == {partition: 100}
    consumer.close()


def test_killed_broker_leaves_no_mark_of_a_clean_end(start_broker) -> None:
    broker = start_broker()

    broker.kill()

    assert not (broker.data_dir / CLEAN_SHUTDOWN).exists()


def test_waiting_fetch_does_not_hold_up_the_stop(start_broker, topic: str) -> None:
    broker = start_broker()
    if isinstance(broker, KafkaProcess):
        pytest.skip("Apache Kafka takes longer to stop")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({topic: {"num_partitions": 1}}, wait_for_metadata=True)
    admin.close()
    topic_type = FetchRequest.FetchTopic
    part = topic_type.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic_type(topic=topic, partitions=[part])],
        rack_id="",
    )
    with RawConnection(broker.port) as waiting, RawConnection(broker.port) as witness:
        waiting.send(request, 11)
        witness.assert_served()

        started = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - started < STOP_SECONDS_MAX


def test_ephemeral_broker_leaves_nothing_behind(odradek: StartOdradek) -> None:
    broker = odradek()
    folder = Path(broker.ready_line.split(", data in ")[1].rpartition(",")[0])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("t", b"x").get(timeout=30)
    assert folder.is_dir()

    assert broker.stop() == 0

    assert not folder.exists()


def test_idle_connection_is_closed_and_a_busy_one_is_not(start_broker) -> None:
    broker = start_broker(settings={"connections.max.idle.ms": str(IDLE_MS)})

    for _ in range(TRIES_MAX):
        if longest_pause_of_the_busy(broker.port) * 1000 < IDLE_MS:
            return
    pytest.fail(f"this machine stands still for {IDLE_MS} ms again and again")


def longest_pause_of_the_busy(port: int) -> float:
    """Use a connection until one beside it is closed; returns the seconds that it idled itself.

    A test that stands still for too long idles on both: then it has shown nothing.
    """
    used = time.monotonic()
    pause = 0.0
    with RawConnection(port) as idle, RawConnection(port) as busy:
        started = time.monotonic()
        idle.assert_served()
        while idle.is_open:
            try:
                busy.assert_served()
            except ConnectionError:
                pause = max(pause, time.monotonic() - used)
                assert pause * 1000 >= IDLE_MS, "it was closed though it was busy"
                return pause
            now = time.monotonic()
            used, pause = now, max(pause, now - used)
        assert (time.monotonic() - started) * 1000 >= IDLE_MS * 0.9
    return pause
