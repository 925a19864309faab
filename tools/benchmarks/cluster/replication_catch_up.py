"""How fast a follower that is far behind catches up, and what producers notice of it.

    python -m odradek.tools.benchmarks.cluster.replication_catch_up [--megabytes 1024] [--runs 3]

Three processes on one file of metadata; a topic of one partition on all three. One follower is
killed, so much is written, and the follower starts again: the clock runs from its first answer
until its log ends where the leader's does. Beside it stands the lesser of what the disk takes
(`dd bs=1M`, no sync) and what a loopback connection carries (sendfile to a socket that is read).
Each of the three comes after some quiet seconds, in which a virtual machine gives free memory back:
what has to get its pages anew is slower than what finds them warm, and all three are to do so.
Meanwhile a producer sends a record every few milliseconds with acks=all; its median latency is
compared with that of the same producer before.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ....bench.loads.wire import wire_to
from ....common.sentinels import DEBUGGING_REPLICA_ID, LATEST_TIMESTAMP
from ....protocol import messages
from ..measure import machine, summary, verdict
from .clusters import BROKER_IDS, CLUSTER_POLL_SECONDS, SECONDS_MAX, in_three_processes

SPEED_SHARE_MIN = 0.6
LATENCY_TIMES_MAX = 2.0
CATCH_UP_TOPIC = "catch-up"
LEADER, OTHER, LATE = BROKER_IDS
RECORD = b"r" * 1024
RECORD_INTERVAL_SECONDS = 0.005
"""Between two records of the steady producer."""
SETTLE_SECONDS = 3.0
"""Quiet before each measurement, so that all of them find their memory in the same state."""
LIST_OFFSETS_VERSION = 5


class LatencyProbe:
    """A thread that sends a record every few milliseconds; a context manager.

    Attributes:
        latencies_ms: of each record acknowledged since they were taken last.
    """

    def __init__(self, bootstrap: str) -> None:
        self.latencies_ms: list[float] = []
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def take(self) -> float:
        """The median latency since the last call."""
        taken, self.latencies_ms = self.latencies_ms, []
        return statistics.median(taken)

    def _send(self) -> None:
        while not self._is_over.is_set():
            began = time.perf_counter()

            def delivered(error: KafkaError | None, message: Message, began: float = began) -> None:
                assert error is None, error
                self.latencies_ms.append((time.perf_counter() - began) * 1000)

            self._producer.produce(CATCH_UP_TOPIC, b"steady", on_delivery=delivered)
            self._producer.poll(RECORD_INTERVAL_SECONDS)
        self._producer.flush(SECONDS_MAX)

    def __enter__(self) -> LatencyProbe:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()


def end_offset(address: str) -> int:
    """Where a broker's own replica ends, leader or not; -1: it does not know yet."""
    make = messages.ListOffsetsRequest
    requested = make.ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
    request = make(
        replica_id=DEBUGGING_REPLICA_ID,
        topics=[make.ListOffsetsTopic(name=CATCH_UP_TOPIC, partitions=[requested])],
    )
    with wire_to(address) as wire:
        return int(wire.ask(request, LIST_OFFSETS_VERSION).topics[0].partitions[0].offset)


def write(bootstrap: str, megabytes: int) -> None:
    """Fill the topic."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20, "log_level": 0}
    )
    for number in range(megabytes * 1024):
        while True:
            try:
                producer.produce(CATCH_UP_TOPIC, RECORD)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 100 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0, "not everything was acknowledged"


class CatchUp(NamedTuple):
    """One run: MB/s of the follower, of disk or loopback, and how many times the producer's
    latency was what it is else."""

    speed: float
    bound: float
    latency_times: float


def catch_up(megabytes: int) -> CatchUp:
    """Have a follower miss so much, and see."""
    with in_three_processes() as cluster:
        bootstrap = ",".join(cluster.addresses.values())
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        topic = NewTopic(
            CATCH_UP_TOPIC,
            1,
            replica_assignment=[[LEADER, OTHER, LATE]],
            config={"min.insync.replicas": "2"},
        )
        admin.create_topics([topic])[CATCH_UP_TOPIC].result(SECONDS_MAX)
        cluster.processes[LATE].kill()
        write(bootstrap, megabytes)
        disk, loopback = disk_speed(megabytes), loopback_speed(megabytes)
        os.sync()
        with LatencyProbe(bootstrap) as steady:
            time.sleep(SETTLE_SECONDS)
            before_ms = steady.take()
            cluster.processes[LATE].start()
            began = time.perf_counter()
            goal = end_offset(cluster.addresses[LEADER])
            while end_offset(cluster.addresses[LATE]) < goal:
                assert time.perf_counter() - began < SECONDS_MAX, "the follower does not catch up"
                time.sleep(CLUSTER_POLL_SECONDS)
            seconds = time.perf_counter() - began
            during_ms = steady.take()
        print(
            f"{megabytes / seconds:.0f} MB/s where the disk takes {disk:.0f} and loopback "
            f"{loopback:.0f}; the producer's median latency "
            f"{before_ms:.1f} ms before, {during_ms:.1f} ms meanwhile"
        )
        return CatchUp(megabytes / seconds, min(disk, loopback), during_ms / before_ms)


def disk_speed(megabytes: int) -> float:
    """MB/s that `dd` writes, when what was written before is on the disk."""
    os.sync()
    time.sleep(SETTLE_SECONDS)
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        path = Path(folder) / "dd"
        began = time.perf_counter()
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={megabytes}", "status=none"],
            check=True,
        )
        return megabytes / (time.perf_counter() - began)


def loopback_speed(megabytes: int) -> float:
    """MB/s from a file by sendfile to a socket that another process reads."""
    listener = socket.create_server(("127.0.0.1", 0))
    reader = subprocess.Popen(
        [
            "python3",
            "-c",
            "import socket,sys\n"
            f"s=socket.create_connection(('127.0.0.1',{listener.getsockname()[1]}))\n"
            "b=bytearray(1<<20)\n"
            "while s.recv_into(b): pass\n",
        ]
    )
    with tempfile.TemporaryFile() as file, listener.accept()[0] as sock:
        file.write(bytes(megabytes << 20))
        file.flush()
        os.fsync(file.fileno())
        time.sleep(SETTLE_SECONDS)
        began = time.perf_counter()
        at = 0
        while at < megabytes << 20:
            at += os.sendfile(sock.fileno(), file.fileno(), at, 1 << 20)
    reader.wait()
    listener.close()
    return megabytes / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print(machine())
    runs = [catch_up(arguments.megabytes) for _ in range(arguments.runs)]
    print(f"catching up {summary([run.speed for run in runs], 'MB/s')}")
    share = statistics.median(run.speed / run.bound for run in runs)
    reached = verdict("of disk or loopback", share, SPEED_SHARE_MIN, "x", at_most=False)
    times = statistics.median(run.latency_times for run in runs)
    reached &= verdict("latency meanwhile", times, LATENCY_TIMES_MAX, "x", at_most=True)
    raise SystemExit(not reached)


if __name__ == "__main__":
    main()
