"""A broker's process, killed, frozen and started again, as real clients meet it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaProducer

from odradek.testing import Broker
from odradek.testing.control.client import ControlError
from odradek.testing.waiting import wait_until

WAIT_SECONDS_MAX = 60.0


def state_of(pid: int) -> str:
    """One letter, such as T for stopped; empty: there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_a_frozen_broker_answers_once_it_has_thawed() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("orders", b"first").get(WAIT_SECONDS_MAX)
        with broker.frozen():
            wait_until(lambda: state_of(broker.pid) == "T", otherwise="the broker goes on")
            waiting = producer.send("orders", b"second")
            with pytest.raises(ControlError, match="frozen, so it answers nothing until it thaws"):
                broker.topics()
            assert not waiting.is_done
        waiting.get(WAIT_SECONDS_MAX)
        assert [record.value for record in broker.read("orders")] == [b"first", b"second"]
        assert broker.log.index("outage: the process is frozen") < broker.log.index("goes on")
        producer.close()


@pytest.mark.parametrize("end", ["stop", "close"])
def test_a_frozen_broker_can_be_ended(end: str) -> None:
    broker = Broker()
    pid = broker.pid
    broker.freeze()
    getattr(broker, end)()
    assert state_of(pid) == ""
    broker.close()


def test_a_frozen_broker_ends_with_the_process_it_belongs_to() -> None:
    program = (
        "import os, signal\n"
        "from odradek.testing import Broker\n"
        "broker = Broker()\n"
        "broker.freeze()\n"
        "print(broker.pid, broker.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    pid, folder = run.stdout.split()
    wait_until(lambda: state_of(int(pid)) in ("", "Z"), otherwise="the broker is still there")
    wait_until(lambda: not os.path.exists(folder), otherwise="its folder is still there")


def test_a_client_goes_on_over_restarts_on_the_same_port() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=20)
        producer.send("orders", b"first").get(WAIT_SECONDS_MAX)
        port = broker.port
        broker.restart(clean=False)
        assert broker.port == port
        producer.send("orders", b"second").get(WAIT_SECONDS_MAX)
        assert "stopping on SIGTERM" not in broker.log
        broker.restart()
        assert broker.port == port
        assert "stopping on SIGTERM" in broker.log
        producer.send("orders", b"third").get(WAIT_SECONDS_MAX)
        values = [record.value for record in broker.read("orders")]
        assert values == [b"first", b"second", b"third"]
        producer.close()
