"""A whole cluster is stopped at once, as Ctrl-C does: nobody is left to lead, and all is well."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.broker_cluster import BrokerCluster, ask
from support.cluster_topics import create

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess

CREATE_VERSION = 7
STOPS = 3
COMPLAINTS = re.compile(r"^.* (?:WARNING|ERROR|CRITICAL) odradek\.broker\..*$", re.MULTILINE)
STOP_SECONDS_MAX = 45
"""What holds a broker up is told by its complaints; this is for a busy machine."""


@pytest.mark.parametrize("replicas", [0, 3])
def test_brokers_of_one_process_stop_without_a_complaint(tmp_path: Path, replicas: int) -> None:
    for number in range(STOPS):
        broker = BrokerProcess(tmp_path / f"data-{number}", arguments=["--brokers", "3", "-v"])
        with broker:
            if replicas:
                create_topic(broker.port, replicas)
            stop_soon(broker)
        assert not COMPLAINTS.findall(broker.log), broker.log


def test_brokers_of_three_processes_stop_without_a_complaint(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path) as cluster:
        assert create(cluster, 1, "t") == ErrorCode.NONE
        cluster.agreed()
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(stop_soon, cluster.brokers.values()):
                pass
        for broker in cluster.brokers.values():
            assert not broker.is_running
            assert not COMPLAINTS.findall(broker.log), broker.log


def stop_soon(broker: BrokerProcess) -> None:
    began = time.monotonic()
    assert broker.stop() == 0
    assert time.monotonic() - began < STOP_SECONDS_MAX


def create_topic(port: int, replicas: int) -> None:
    make = messages.CreateTopicsRequest
    topic = make.CreatableTopic(name="t", num_partitions=6, replication_factor=replicas)
    answer = ask(port, make(topics=[topic], timeout_ms=60_000), CREATE_VERSION)
    assert [each.error_code for each in answer.topics] == [ErrorCode.NONE]
