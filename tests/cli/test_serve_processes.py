"""`odradek serve --brokers N --processes`: what becomes of the processes, and of what they say."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from support.broker_processes import BrokerProcesses, ProcessEnd
from support.ports import ports_in_a_row

from odradek.cli.serve.processes.restarts import RESTARTS_MAX
from odradek.testing.process.broker_process import BrokerProcess, BrokerStartError
from odradek.testing.waiting import wait_until

from .conftest import Odradek

ALL_SECONDS_MAX = 60


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "odradek", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=ALL_SECONDS_MAX,
        check=False,
    )


class Acknowledged:
    """A producer's thread that numbers its records, and knows which were acknowledged by all."""

    def __init__(self, bootstrap: list[str], topic: str) -> None:
        self.numbers: set[int] = set()
        self.count = 0
        self._topic = topic
        self._over = threading.Event()
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, acks="all", retries=1000, linger_ms=1,
            delivery_timeout_ms=ALL_SECONDS_MAX * 1000,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def wait_for_more(self) -> None:
        """Wait until a hundred more are acknowledged."""
        goal = len(self.numbers) + 100
        wait_until(lambda: len(self.numbers) >= goal)

    def stop(self) -> None:
        """Send no more, and wait for the last answers."""
        self._over.set()
        self._thread.join(ALL_SECONDS_MAX)
        self._producer.close(timeout=ALL_SECONDS_MAX)

    def _send(self) -> None:
        while not self._over.is_set():
            try:
                sent = self._producer.send(self._topic, str(self.count).encode())
            except KafkaError:  # nobody has told it the leaders yet
                continue
            sent.add_callback(lambda _, number=self.count: self.numbers.add(number))
            self.count += 1
            self._over.wait(0.001)


def read_all(bootstrap: list[str], topic: str, partitions: int) -> set[int]:
    with_all = [TopicPartition(topic, index) for index in range(partitions)]
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    consumer.assign(with_all)
    consumer.seek_to_beginning(*with_all)
    ends = consumer.end_offsets(with_all)
    found: set[int] = set()
    while any(consumer.position(each) < ends[each] for each in with_all):
        for records in consumer.poll(timeout_ms=1000).values():
            found |= {int(record.value) for record in records}
    consumer.close()
    return found


@pytest.mark.slow
def test_a_killed_broker_is_back_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with BrokerProcesses(tmp_path, 3, settings={"min.insync.replicas": "2"}) as brokers:
        admin = KafkaAdminClient(bootstrap_servers=brokers.addresses)
        admin.create_topics([NewTopic("numbers", 3, 3)])
        admin.close()
        load = Acknowledged(brokers.addresses, "numbers")
        before = brokers.pids()
        for broker_id in (1, 2):
            load.wait_for_more()
            brokers.kill_broker(broker_id)
            load.wait_for_more()
            brokers.wait_until_ready()
        load.wait_for_more()
        load.stop()
        after = brokers.pids()
        found = read_all(brokers.addresses, "numbers", 3)
        assert load.numbers <= found
        # All of the same command, at the addresses that clients know.
        assert [after[each] == before[each] for each in (1, 2, 3)] == [False, False, True]
        page = brokers.scrape()
        restarts = {each: page.of("odradek_broker_restarts_total", broker=each) for each in before}
        assert restarts == {1: 1, 2: 1, 3: 0}
        assert "broker 1 was killed by SIGKILL; it is started again in 0.25 s" in brokers.log
        assert brokers.stop() == 0


def test_no_broker_outlives_the_command_that_is_killed(tmp_path: Path) -> None:
    brokers = BrokerProcesses(tmp_path)
    with ExitStack() as stack:
        ends = [stack.enter_context(ProcessEnd(pid)) for pid in brokers.pids().values() if pid]
        assert len(ends) == 2
        brokers.kill()
        for end in ends:
            end.wait()
    # They have stopped in good order.
    for number in (1, 2):
        assert (tmp_path / "data" / f"broker-{number}" / ".kafka_cleanshutdown").exists()


@pytest.mark.slow
def test_a_broker_that_cannot_live_is_given_up_with_all_others(tmp_path: Path) -> None:
    with BrokerProcesses(tmp_path) as brokers:
        # Found when it is started again, as a disk that was mounted wrongly would be.
        meta = tmp_path / "data" / "broker-2" / "meta.properties"
        meta.write_text(meta.read_text().replace("node.id=2", "node.id=9"))
        with ExitStack() as stack:
            ends = [stack.enter_context(ProcessEnd(pid)) for pid in brokers.pids().values() if pid]
            command = stack.enter_context(ProcessEnd(brokers.pid))
            brokers.kill_broker(2)
            for end in [*ends, command]:
                end.wait()
        assert brokers._running().wait() == 1
    log = brokers.log.splitlines()
    assert sum("it is started again in" in line for line in log) == RESTARTS_MAX
    assert any(line.startswith("broker 2: odradek serve: ") for line in log)
    assert log[-1] == (
        "odradek serve: broker 2 ended with exit code 1, and was started again too often already: "
        "all are stopped. What it has said in the log is why."
    )


def test_a_broker_that_cannot_start_stops_all_at_once(tmp_path: Path) -> None:
    with ports_in_a_row(2) as port, socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        done = serve(
            *("--brokers", "2", "--processes", "--listen", f"127.0.0.1:{port}"),
            *("--data-dir", str(tmp_path / "data"), "--log-format", "json"),
        )
    assert (done.returncode, done.stdout) == (1, "")
    *events, sentence = done.stderr.splitlines()
    assert sentence == (
        "odradek serve: broker 2 ended with exit code 1 before it was ready: all are stopped."
    )
    # What a broker's process says without its log is an event of the log all the same.
    (why,) = [json.loads(line) for line in events if "another program" in line]
    assert why["broker_id"] == 2
    assert why["message"].startswith(f"odradek serve: Cannot listen on 127.0.0.1:{port + 1}")


def test_what_makes_no_sense_is_refused() -> None:
    for arguments, sentence in (
        (["--processes"], "--processes needs --brokers N, with two or more."),
        (
            ["--ephemeral", "--json", "--brokers", "2", "--processes"],
            "--json has no --processes: each of its brokers is one already.",
        ),
    ):
        done = serve(*arguments)
        assert (done.returncode, done.stderr) == (2, f"odradek serve: {sentence}\n")


def test_ctrl_c_stops_all_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "odradek", "serve", "--brokers", "2", "--processes", "-v"),
            *("--listen", "127.0.0.1:0", "--ephemeral"),
        ],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("odradek ready at 127.0.0.1:")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, log = process.communicate(timeout=ALL_SECONDS_MAX)
    assert process.returncode == 0, log
    stopped = [line for line in log.splitlines() if "stopping on" in line]
    assert [line.partition("stopping on ")[2] for line in stopped] == [
        "SIGINT",
        "SIGTERM",
        "SIGTERM",
    ]
    assert " ERROR " not in log
    assert list(tmp_path.iterdir()) == []


def test_lines_of_text_have_their_brokers_number(tmp_path: Path) -> None:
    with BrokerProcesses(tmp_path, 2, "-v") as brokers:
        pass
    lines = brokers.log.splitlines()
    of_brokers = [line for line in lines if line.startswith(("broker 1: 20", "broker 2: 20"))]
    assert {line[:8] for line in of_brokers} == {"broker 1", "broker 2"}
    own = [line for line in lines if line not in of_brokers]
    assert own
    assert all(" INFO odradek.cli.serve.processes." in line for line in own), own


def test_lines_of_json_have_their_brokers_number(tmp_path: Path) -> None:
    with BrokerProcesses(tmp_path, 2, "-v", "--log-format", "json") as brokers:
        brokers.kill_broker(2)
        brokers.wait_until_ready()
    events = [json.loads(line) for line in brokers.log.splitlines()]
    loggers = {each: {e["logger"] for e in events if e["broker_id"] == each} for each in (1, 2)}
    # This one concerns a whole process, and has no number before it comes into this log.
    assert all("odradek.broker.start" in each for each in loggers.values())
    (killed,) = [each for each in events if each["level"] == "ERROR"]
    assert killed["broker_id"] == 2
    assert "was killed by SIGKILL" in killed["message"]


def test_metrics_and_probes_are_of_all(tmp_path: Path, odradek: Odradek) -> None:
    with BrokerProcesses(tmp_path) as brokers:
        for path in ("/health", "/ready"):
            answered = brokers.probe(path)
            assert (answered.status, answered.body["status"], answered.reasons) == (200, "ok", [])
            assert [each["broker_id"] for each in answered.body["brokers"]] == [1, 2]
        page = brokers.scrape()
        for number in (1, 2):
            assert page.of("odradek_broker_up", broker=number) == 1
            assert page.of("kafka_server_kafkaserver_brokerstate", broker=number) == 3
        infos = page.all_of("odradek_broker_info")
        assert sorted(dict(labels)["broker"] for labels in infos) == ["1", "2"]
        names = [family.name for family in page.families]
        assert len(names) == len(set(names))
        url, bootstrap = brokers.metrics_urls[0], brokers.bootstrap
        shown = odradek("cluster", "--json", "-b", bootstrap, "--metrics", url)
        rows = [json.loads(line) for line in shown.lines]
        assert {row["broker_id"]: row["lag"] for row in rows} == {1: 0, 2: 0}


@pytest.mark.slow
def test_a_broker_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with BrokerProcesses(tmp_path) as brokers:
        pid = brokers.pids()[2]
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            with ThreadPoolExecutor() as pool:
                scraped = pool.submit(brokers.scrape)
                for answered in pool.map(brokers.probe, ("/health", "/ready")):
                    assert (answered.status, answered.body["status"]) == (503, "failing")
                    assert "broker 2: it has not answered for 5 s" in answered.reasons
                page = scraped.result()
        finally:
            os.kill(pid, signal.SIGCONT)
        up = {each: page.of("odradek_broker_up", broker=each) for each in (1, 2)}
        assert up == {1: 1, 2: 0}
        assert page.of("kafka_server_kafkaserver_brokerstate", broker=1) == 3


def test_the_service_manager_hears_of_all_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(ALL_SECONDS_MAX)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with BrokerProcesses(tmp_path) as brokers:
            said = manager.recv(1000).decode()
            assert said == f"READY=1\nSTATUS=serving at {','.join(brokers.addresses)}"
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(1000)


def test_brokers_of_one_process_and_of_several_share_folders_and_ids(tmp_path: Path) -> None:
    numbered = ("--broker-id", "5")

    def ids(admin: KafkaAdminClient) -> set[int]:
        return {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}

    with BrokerProcess(tmp_path / "data", arguments=["--brokers", "2", *numbered]) as together:
        admin = KafkaAdminClient(bootstrap_servers=together.bootstrap)
        assert ids(admin) == {5, 6}
        admin.create_topics([NewTopic("kept", 2, 2)])
        admin.close()
    with BrokerProcesses(tmp_path, 2, *numbered) as apart:
        admin = KafkaAdminClient(bootstrap_servers=apart.addresses)
        assert "kept" in admin.list_topics()
        assert ids(admin) == {5, 6}
        admin.close()


def test_a_setting_that_is_wrong_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(BrokerStartError, match="exit code 2"):
        BrokerProcesses(tmp_path, settings={"num.partitions": "many"})
    (sentence,) = (tmp_path / "data.log").read_text().splitlines()
    assert sentence.startswith("odradek serve: ")
    assert "num.partitions" in sentence
