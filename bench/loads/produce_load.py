"""Produce: requests of one record, and of full batches, acknowledged one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..cluster import TargetCluster
from ..figures import Figures, Measured
from ..run.driver import Lane, drive
from ..target import BenchTarget
from .load import WARM_UP_SHARE, Load
from .prepared import Produce, full_batch, one_record

SMALL_BYTES = 100
BATCH_BYTES = 16 * 1024
"""What Java's producer fills by default."""
BULK_IN_FLIGHT = 5
"""What Java's producer has in flight by default."""
WRITTEN_BYTES_MAX = 1 << 30
"""A load stops when it has written so much, however fast the broker is."""


def small_produce(connections: int, depth: int, idle: int = 0) -> Load:
    """Requests of one record of 100 bytes, acks=1.

    Args:
        connections: that produce.
        depth: requests in flight on each.
        idle: further connections, which are silent.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        batch = one_record(SMALL_BYTES)
        with TargetCluster(target) as cluster, _idle(cluster, idle):
            return _driven(cluster, batch, 1, connections, depth, seconds).figures()

    flight = f"{connections} connections" if connections > 1 else "1 connection"
    name = f"Produce, {flight}" + (f" x {depth} in flight" if depth > 1 else "")
    about = (
        f"one record of {SMALL_BYTES} B a request, acks=1, on {flight}, {depth} in flight on each"
    )
    if idle:
        name += f", {idle} idle ones"
        about += f", beside {idle} silent ones"
    return Load(name, about, run)


def bulk_produce(value_bytes: int, acks: int) -> Load:
    """Requests of one full batch on one connection.

    Args:
        value_bytes: of each record.
        acks: 1, or -1 for all.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        batch, records = full_batch(BATCH_BYTES, value_bytes)
        with TargetCluster(target) as cluster:
            measured = _driven(cluster, batch, acks, 1, BULK_IN_FLIGHT, seconds)
        return measured.figures(records, len(batch))

    name = f"bulk produce {size_name(value_bytes)}, acks={'all' if acks < 0 else acks}"
    about = (
        f"batches of {BATCH_BYTES // 1024} KB of such records, a batch a request, "
        f"{BULK_IN_FLIGHT} in flight on one connection"
    )
    return Load(name, about, run)


def size_name(value_bytes: int) -> str:
    """A record's size in words."""
    return f"{value_bytes // 1000} KB" if value_bytes >= 1000 else f"{value_bytes} B"


def _driven(
    cluster: TargetCluster,
    batch: bytearray,
    acks: int,
    connections: int,
    depth: int,
    seconds: float,
) -> Measured:
    with ExitStack() as stack:
        topic = stack.enter_context(cluster.topic())
        wires = [stack.enter_context(cluster.connect_leader(topic)) for _ in range(connections)]
        request = Produce(wires[0], topic, batch, acks)
        lanes = [Lane(wire, request.frame, request.error_at, "Produce") for wire in wires]
        most = WRITTEN_BYTES_MAX // len(batch)
        drive(lanes, depth, seconds * WARM_UP_SHARE, array("d"), most // 4)
        with Measured(cluster.target) as measured:
            drive(lanes, depth, seconds, measured.latencies, most)
    return measured


@contextmanager
def _idle(cluster: TargetCluster, count: int) -> Iterator[None]:
    """Connections to the target that were answered once and ask nothing more."""
    from ...protocol import messages

    with ExitStack() as stack:
        for _ in range(count):
            wire = stack.enter_context(cluster.connect())
            wire.ask(messages.ApiVersionsRequest(), 0)
        yield
