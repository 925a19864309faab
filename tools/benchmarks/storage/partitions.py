"""What 10,000 partitions weigh on one broker: start after a clean stop, memory, descriptors.

    python -m odradek.tools.benchmarks.storage.partitions [--partitions 10000]

Topics of 100 partitions are made, one record is written to each partition, and the broker
is stopped and started again. Memory is what the started broker has more than one without
topics, once it has done nothing for a while; the start is from the command to the ready line.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer

from ....bench.run.calibration import calibrate
from ....bench.run.interruptible import interruptible
from ....testing.process.broker_process import BrokerProcess
from ..measure import machine

PARTITIONS_PER_TOPIC = 100
LOAD_SECONDS_MAX = 5.0
BYTES_PER_PARTITION_MAX = 10_000
DESCRIPTORS_MAX = 1_000
"""Whatever the number of partitions: so many are open when all of them are idle."""

IDLE_SETTLE_SECONDS = 2.0
"""What is done right after the start is over by then."""
TRIES = 3


def main() -> int:
    """Print the figures; exit code 1 if they miss the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    count: int = parser.parse_args().partitions
    with interruptible(), tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        with BrokerProcess(Path(folder) / "empty") as broker:
            time.sleep(IDLE_SETTLE_SECONDS)
            bare_bytes = resident_bytes(broker.pid)
        data = Path(folder) / "data"
        with BrokerProcess(data) as broker:
            began = time.perf_counter()
            fill(broker.bootstrap, count)
            filled_seconds = time.perf_counter() - began
            began = time.perf_counter()
        stopped_seconds = time.perf_counter() - began
        load_seconds, load_cpu_seconds = [], []
        for _ in range(TRIES):
            began = time.perf_counter()
            with BrokerProcess(data) as broker:
                load_seconds.append(time.perf_counter() - began)
                load_cpu_seconds.append(cpu_seconds(broker.pid))
                time.sleep(IDLE_SETTLE_SECONDS)
                bytes_each = (resident_bytes(broker.pid) - bare_bytes) / count
                descriptors = len(os.listdir(f"/proc/{broker.pid}/fd"))
        files = int(subprocess.check_output(f"find {data} -type f | wc -l", shell=True))
    best = min(load_seconds)
    print(machine())
    print(f"a fixed piece of work takes {calibrate():.3f} s")
    print(
        f"{count} partitions in {files} files, made and filled in {filled_seconds:.1f} s, ", end=""
    )
    print(f"closed in {stopped_seconds:.1f} s")
    print(f"start after a clean stop {best:8.2f} s      goal {LOAD_SECONDS_MAX}, ", end="")
    print("of " + ", ".join(f"{seconds:.2f}" for seconds in load_seconds), end="")
    print(f"; processor time {min(load_cpu_seconds):.2f} s")
    print(f"memory of a partition    {bytes_each:8.0f} bytes  goal {BYTES_PER_PARTITION_MAX}")
    print(f"open descriptors         {descriptors:8d}        goal {DESCRIPTORS_MAX}")
    good = best < LOAD_SECONDS_MAX and bytes_each < BYTES_PER_PARTITION_MAX
    return 0 if good and descriptors <= DESCRIPTORS_MAX else 1


def fill(bootstrap: str, count: int) -> None:
    """Make the topics, and write one record to each partition."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=120_000)
    topics = range(count // PARTITIONS_PER_TOPIC)
    for number in topics:
        admin.create_topics({f"topic-{number}": {"num_partitions": PARTITIONS_PER_TOPIC}})
        print(f"\r{number + 1} of {len(topics)} topics", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks=1, max_block_ms=120_000)
    for number in topics:
        for partition in range(PARTITIONS_PER_TOPIC):
            producer.send(f"topic-{number}", b"v" * 100, partition=partition)
    producer.flush()
    producer.close()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    raise SystemExit(main())
