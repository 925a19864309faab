"""What a client announces is not what the broker allocates."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.kafka_process import KafkaProcess
from support.raw_connection import RawConnection

CONNECTIONS = 100
ANNOUNCED_BYTES = 100_000_000
GROWTH_BYTES_MAX = 20_000_000


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in RAM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process is gone")


@pytest.mark.parametrize("sent_bytes", [0, 1, 1000])
def test_hundred_announcements_of_100_megabytes_cost_little(start_broker, sent_bytes: int) -> None:
    broker = start_broker()
    if isinstance(broker, KafkaProcess):
        pytest.skip("Apache Kafka allocates what a frame announces, and runs out of memory")
    with RawConnection(broker.port) as witness, ExitStack() as stack:
        witness.assert_served()
        before = resident_bytes(broker.pid)

        for _ in range(CONNECTIONS):
            connection = stack.enter_context(RawConnection(broker.port))
            connection.send_bytes(struct.pack(">i", ANNOUNCED_BYTES) + b"x" * sent_bytes)
            witness.assert_served()
        witness.assert_served()

        grown = resident_bytes(broker.pid) - before
        assert grown < GROWTH_BYTES_MAX, f"{grown / 1e6:.1f} MB more for {CONNECTIONS} frames"
