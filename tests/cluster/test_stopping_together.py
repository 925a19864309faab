"""A whole cluster is stopped at once, as Ctrl-C does: nobody is left to lead, and all is well.

And one broker after another, while a client looks whether the others still send it there.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.broker_cluster import BrokerCluster, ask
from support.cluster_topics import create

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess
from odradek.tools.conformance.requests import metadata_of

CREATE_VERSION = 7
METADATA_VERSION = 9
STOPS = 3
COMPLAINTS = re.compile(r"^.* (?:WARNING|ERROR|CRITICAL) odradek\.broker\..*$", re.MULTILINE)
STOP_SECONDS_MAX = 45
"""What holds a broker up is told by its complaints; this is for a busy machine."""


@pytest.mark.parametrize(
    ("replicas", "more"),
    [(0, []), (3, []), (3, ["--processes"])],
    ids=["one process", "one process, replicas", "processes, replicas"],
)
def test_brokers_of_one_command_stop_without_a_complaint(
    tmp_path: Path, replicas: int, more: list[str]
) -> None:
    for number in range(STOPS):
        arguments = ["--brokers", "3", "-v", *more]
        broker = BrokerProcess(tmp_path / f"data-{number}", arguments=arguments)
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


def test_a_client_is_never_sent_to_a_port_that_has_closed(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path) as cluster, ThreadPoolExecutor() as pool:
        assert create(cluster, 1, "t") == ErrorCode.NONE
        cluster.agreed()
        for broker_id, broker in cluster.brokers.items():
            named = pool.submit(who_names_it_once_closed, cluster, broker_id)
            stop_soon(broker)
            assert named.result() == {}, broker_id
            broker.start()
            cluster.agreed()


def who_names_it_once_closed(cluster: BrokerCluster, broker_id: int) -> dict[int, str]:
    """Which of the other brokers name one, from the first connection on that it refused."""
    others = {other: cluster.brokers[other].port for other in cluster.running}
    port = others.pop(broker_id)
    with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
        while True:
            socket.create_connection(("127.0.0.1", port)).close()
    named = {}
    for other, its_port in others.items():
        answer = ask(its_port, metadata_of("t"), METADATA_VERSION)
        leaders = [each.leader_id for topic in answer.topics for each in topic.partitions]
        if broker_id in [each.node_id for each in answer.brokers]:
            named[other] = "alive"
        if broker_id in leaders:
            named[other] = "leader"
    return named


def stop_soon(broker: BrokerProcess) -> None:
    began = time.monotonic()
    assert broker.stop() == 0
    assert time.monotonic() - began < STOP_SECONDS_MAX


def create_topic(port: int, replicas: int) -> None:
    make = messages.CreateTopicsRequest
    topic = make.CreatableTopic(name="t", num_partitions=6, replication_factor=replicas)
    answer = ask(port, make(topics=[topic], timeout_ms=60_000), CREATE_VERSION)
    assert [each.error_code for each in answer.topics] == [ErrorCode.NONE]
