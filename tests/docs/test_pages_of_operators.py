"""What the pages for those who run and measure brokers show, in their order, on ports of the test.

Kafka's tools on them are run by tests/interop/test_tools_of_pages.py.
"""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from kafka import KafkaProducer
from support.documented import Terminal, blocks_of, commands_of
from support.http_control import ServedBrokers
from support.metrics_page import MetricsPage
from support.ports import ports_in_a_row

from odradek.common.log_lines import JsonLineFormatter
from odradek.testing import Broker
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.slow
SECONDS_MAX = 60


def test_the_processes_of_the_page_on_operations(tmp_path: Path) -> None:
    processes, levels, service, image = blocks_of("docs/operations.md", "console")
    assert [command.split()[0] for command, _ in commands_of(levels)] == ["kafka-configs.sh"]
    assert len(commands_of(service)) == 3  # They change the machine: their arguments are read.
    assert len(commands_of(image)) == 2
    with ports_in_a_row(4) as first:
        ports = {9092: first, 9404: first + 3}
        with Terminal(tmp_path, ports) as terminal:
            ((command, _),) = commands_of(processes)
            terminal.command(command, "metrics at ...\nodradek ready at ...\n")
            with urlopen(f"http://localhost:{first + 3}/metrics", timeout=SECONDS_MAX) as answer:
                page = MetricsPage(answer.read().decode())
    assert [page.of("odradek_broker_up", broker=number) for number in (1, 2, 3)] == [1, 1, 1]


def test_an_event_has_the_fields_of_the_page_on_operations() -> None:
    (shown,) = blocks_of("docs/operations.md", "json")
    try:
        raise OSError("full")
    except OSError as error:
        how = (type(error), error, error.__traceback__)
    event = logging.LogRecord("odradek", logging.WARNING, "", 1, "%s", ("...",), how)
    written = json.loads(JsonLineFormatter().format(event))
    page = json.loads(shown.text)
    assert list(written) == list(page)
    assert re.sub(r"\d", "0", written["timestamp"]) == re.sub(r"\d", "0", page["timestamp"])
    logging.getLogger(page["logger"])
    assert (written["level"], page["level"]) == ("WARNING", "WARNING")


def test_the_page_on_metrics(tmp_path: Path) -> None:
    served, subscription = blocks_of("docs/metrics.md", "console")
    (serve, _), (curl, _) = commands_of(served)
    with ports_in_a_row(2) as first, Terminal(tmp_path, {9092: first, 9404: first + 1}) as terminal:
        terminal.command(serve, "metrics at ...\nodradek ready at ...\n")
        assert "\nkafka_server_" in terminal.command(curl)
        terminal.run(subscription)


def test_the_page_on_measuring(tmp_path: Path) -> None:
    """Of the loads one is enough here."""
    measuring, leftovers = blocks_of("docs/bench.md", "console")
    (python,) = blocks_of("docs/bench.md", "python")
    with BrokerProcess(tmp_path / "data") as broker:
        port = broker.bootstrap.rpartition(":")[2]
        terminal = Terminal(tmp_path, {9092: int(port)})
        page = {
            "127.0.0.1:9092": broker.bootstrap,
            "4711": str(broker.pid),
            "HOST:PORT": broker.bootstrap,
            "NAME...": "odradek-bench-left",
            "9092": port,
            "3.0": "0.1",
        }

        def here(text: str) -> str:
            for name, value in page.items():
                text = text.replace(name, value)
            return text

        for command, _ in commands_of(measuring):
            printed = terminal.bash(f"{here(command)} --quick --only '^Produce, 1 connection$'")
            assert "Produce, 1 connection" in printed
        terminal.bash(here("odradek topics create odradek-bench-left -b HOST:PORT"))
        listing, deletion = (here(command) for command, _ in commands_of(leftovers))
        assert "odradek-bench-left" in terminal.bash(listing)
        terminal.bash(deletion)
        assert "odradek-bench" not in terminal.bash(listing)
        (tmp_path / "measure.py").write_text(here(python.text) + "print(figures)")
        assert "p50_ms" in terminal.bash("python measure.py")


def test_the_page_on_tests_in_any_language(tmp_path: Path) -> None:
    start, request = blocks_of("docs/control.md", "console")
    ((serve, ready),) = commands_of(start)
    ((curl, added),) = commands_of(request)
    program, verb, *arguments = serve.split()
    assert (program, verb, arguments[:2]) == ("odradek", "serve", ["--ephemeral", "--json"])
    with ServedBrokers(*arguments[2:]) as served:
        terminal = Terminal(tmp_path, {9092: served.control_port})
        page = json.loads(ready.replace(", ...]", "]"))
        assert list(served.ready) == list(page)
        assert served.ready["brokers"][0].keys() == page["brokers"][0].keys()
        assert served.bootstrap_servers.count(":") == page["bootstrap_servers"].count(":") == 3
        assert page["control"].endswith(str(page["control_port"]))
        printed = terminal.bash(curl.replace(str(page["control_port"]), str(served.control_port)))
        assert json.loads(printed) == json.loads(re.sub(r"\n *", " ", added))


def test_the_page_on_recording(tmp_path: Path) -> None:
    record, replay = blocks_of("docs/recorder.md", "console")
    (lines,) = blocks_of("docs/recorder.md", "text")
    with Broker() as broker, Broker() as other:
        brokers = {9092: broker, 9093: other}
        ports = {
            page: int(there.bootstrap_servers.rpartition(":")[2]) for page, there in brokers.items()
        }
        terminal = Terminal(tmp_path, ports)
        ((command, _),) = commands_of(record)
        with recording(f"{terminal.local(command)} --listen 127.0.0.1:0", tmp_path) as printed:
            port = re.search(r" at 127\.0\.0\.1:(\d+)", printed[0])
            assert port is not None, printed
            with KafkaProducer(
                bootstrap_servers=f"127.0.0.1:{port[1]}", client_id="shop", enable_idempotence=False
            ) as producer:
                producer.send("orders", b"hello").get(SECONDS_MAX)
        shown = [line for line in printed if " Produce v" in line]
        assert [like(line) for line in shown] == [like(line) for line in lines.text.splitlines()]
        assert terminal.run(replay) == 1


def like(line: str) -> str:
    """A line without its numbers, as far as the page shows the fields."""
    fields, _, _ = line.partition("[{")
    return re.sub(r"[\d.:]+", "0", fields)


@contextmanager
def recording(command: str, folder: Path) -> Iterator[list[str]]:
    """What a recorder has printed: its first line, and all of them when it has ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    printed = [process.stdout.readline()]
    try:
        yield printed
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=SECONDS_MAX)
        printed += rest.splitlines()
    assert process.returncode == 0
