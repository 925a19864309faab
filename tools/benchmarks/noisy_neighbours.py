"""What a good client notices of others that flood the broker, or do not read their answers.

    python -m odradek.tools.benchmarks.noisy_neighbours [--kinds unread floods] [--seconds 5]

The good client sends a small Produce every few milliseconds, fetches what it has produced, and
takes the time of each. Beside it one kind of noise at a time (`noisy/noise.py`) does its worst
against a broker of 10,000 partitions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...bench.loads.wire import Wire, wire_to
from ...bench.run.calibration import calibrate
from ...protocol import messages
from ...testing.certificates import broker_settings, make_tls_files
from .compared.ports import free_ports
from .growing.loading import member_of, rest
from .growing.requests import create_topics, fetches, find_coordinator, produce, records
from .measure import MeasuredBroker, broker, machine
from .noisy.noise import (
    BULK_TOPIC,
    KINDS,
    LOAD_GROUP,
    LOAD_TOPIC,
    PARTITIONS_PER_TOPIC,
    REQUESTS,
)

P99_MS_MAX = 20.0
LONGEST_MS_MAX = 100.0
EVERY_SECONDS = 0.004
WARM_UP_SHARE = 0.1
BULK_BYTES = 64 << 20
NOISE = f"{__package__}.noisy.noise"


def prepare(running: MeasuredBroker, partitions: int) -> None:
    """Make the topics, one of them with something to fetch, and a group with all offsets."""
    with member_of(running) as member:
        names = [f"many-{index:04d}" for index in range(partitions // PARTITIONS_PER_TOPIC)]
        create_topics(member, names, PARTITIONS_PER_TOPIC)
        create_topics(member, [LOAD_TOPIC, BULK_TOPIC], 1)
        frame = REQUESTS["big-produce"]()
        for _ in range(BULK_BYTES // len(frame)):
            member.wire.exchange(frame)
        find_coordinator(member, LOAD_GROUP)
        for name in names:
            commit(member.wire, name)


def commit(wire: Wire, topic: str) -> None:
    """Have the group commit an offset for each partition of a topic, once it is loaded."""
    request = messages.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition
    partitions = [
        partition(partition_index=n, committed_offset=7) for n in range(PARTITIONS_PER_TOPIC)
    ]
    of_topic = request.OffsetCommitRequestTopic(name=topic, partitions=partitions)
    body = request(group_id=LOAD_GROUP, generation_id_or_member_epoch=-1, topics=[of_topic])
    while any(each.error_code for each in wire.ask(body, 8).topics[0].partitions):
        time.sleep(EVERY_SECONDS)


@contextmanager
def noise(address: str, kind: str) -> Iterator[None]:
    """Have one kind of noise beside what is done in the block."""
    command = [sys.executable, "-m", NOISE, address, kind]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "ready\n":
                raise SystemExit("the noise could not begin; its message is above")
            process.stdin.write("begin\n")
            process.stdin.flush()
            yield
        finally:
            process.kill()


def latencies_ms(
    running: MeasuredBroker, good: Wire, seconds: float
) -> tuple[list[float], list[float]]:
    """How long the good client's requests took, and the broker's processor time meanwhile.

    The latter hardly depends on what else the machine does. Both are in ascending order.
    """
    requests = [produce(LOAD_TOPIC, [0], records(1)), *fetches(LOAD_TOPIC, [0], 4096).frames]
    found: list[float] = []
    busy: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() < began + seconds:
        for frame in requests:
            cpu = running.cpu_seconds()
            sent = time.perf_counter()
            good.exchange(frame)
            ended = time.perf_counter()
            if ended > began + seconds * WARM_UP_SHARE:
                found.append((ended - sent) * 1000)
                busy.append((running.cpu_seconds() - cpu) * 1000)
        time.sleep(EVERY_SECONDS)
    return sorted(found), sorted(busy)


def p99_of(ascending: list[float]) -> float:
    """What 99 of 100 do not exceed."""
    return ascending[int(len(ascending) * 0.99)]


def settings_of(folder: str, tls_port: int) -> list[str]:
    """A broker with a plain listener and one that speaks TLS."""
    tls = broker_settings(make_tls_files(Path(folder) / "tls"))
    del tls["security.inter.broker.protocol"]
    listeners = f"listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{tls_port}"
    return [listeners, *(f"{name}={value}" for name, value in tls.items())]


def main() -> int:
    """Print a line for each kind of noise; exit code 1 if one misses the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    print(machine(), f"calibration {calibrate():.3f} s")
    print(
        f"{'':20}{'p50':>9}{'p99':>9}{'max':>9}{'p99, busy':>12}{'max':>9} ms  requests  "
        "memory grown by     load"
    )
    good = True
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        (tls_port,) = free_ports(1)
        running = stack.enter_context(broker(*settings_of(folder, tls_port)))
        prepare(running, options.partitions)
        wire = stack.enter_context(wire_to(running.address))
        for kind in [None, *options.kinds]:
            rest(running)
            latencies_ms(running, wire, 0.5)
            before_mb = running.resident_mb()
            with ExitStack() as noisy:
                if kind is not None:
                    port = tls_port if KINDS[kind].tls else running.port
                    noisy.enter_context(noise(f"{running.host}:{port}", kind))
                found, busy = latencies_ms(running, wire, options.seconds)
                memory_mb = running.resident_mb() - before_mb
            p99, longest = p99_of(found), found[-1]
            reached = p99 <= P99_MS_MAX and longest <= LONGEST_MS_MAX
            good &= reached
            print(
                f"{kind or 'nobody':20}{found[len(found) // 2]:9.2f}{p99:9.2f}{longest:9.2f}"
                f"{p99_of(busy):12.2f}{busy[-1]:9.2f} ms  "
                f"{len(found):8}  {memory_mb:10.1f} MB      {os.getloadavg()[0]:5.1f}"
                f"{'' if reached else '  MISSED'}",
                flush=True,
            )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
