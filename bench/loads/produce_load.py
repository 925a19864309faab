"""Produce: requests of one record, and of full batches, acknowledged one by one."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, repeat

from ...protocol import messages
from ..cluster import LoadTopic, TargetCluster
from ..figures import Figures, Measured
from ..run.driver import Lane, drive
from ..target import BenchTarget
from .load import WARM_UP_SHARE, Load
from .prepared import Produce, full_batch, one_record
from .wire import Wire

SMALL_BYTES = 100
BATCH_BYTES = 16 * 1024
"""What Java's producer fills by default."""
SMALL_CONNECTIONS = 16
PRODUCER_TIMEOUT_MS = 60_000
BULK_IN_FLIGHT = 5
"""What Java's producer has in flight by default."""
WRITTEN_BYTES_MAX = 1 << 30
"""A load stops when it has written so much, however fast the broker is."""


MakeLane = Callable[[Wire, LoadTopic], Lane]
"""What one connection sends to a topic."""


def small_produce(connections: int, depth: int, idle: int = 0) -> Load:
    """Requests of one record of 100 bytes, acks=1.

    Args:
        connections: that produce.
        depth: requests in flight on each.
        idle: further connections, which are silent.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        batch = one_record(SMALL_BYTES)
        with TargetCluster(target) as cluster, _idle(cluster, idle), cluster.topic() as topic:
            make_lane = partial(_repeating, batch=batch, acks=1)
            size = len(batch)
            return _driven(cluster, topic, make_lane, size, connections, depth, seconds).figures()

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
        with TargetCluster(target) as cluster, cluster.topic() as topic:
            make_lane = partial(_repeating, batch=batch, acks=acks)
            size = len(batch)
            measured = _driven(cluster, topic, make_lane, size, 1, BULK_IN_FLIGHT, seconds)
        return measured.figures(records, len(batch))

    name = f"bulk produce {size_name(value_bytes)}, acks={'all' if acks < 0 else acks}"
    about = (
        f"batches of {BATCH_BYTES // 1024} KB of such records, a batch a request, "
        f"{BULK_IN_FLIGHT} in flight on one connection"
    )
    return Load(name, about, run)


def produce_to(partitions: int) -> Load:
    """Requests of one record of 100 bytes for each of some partitions, acks=1.

    Args:
        partitions: in each request.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        batch = one_record(SMALL_BYTES)
        with TargetCluster(target) as cluster, cluster.topic(partitions) as topic:
            make_lane = partial(_repeating, batch=batch, acks=1, partitions=topic.partitions)
            size = len(batch) * len(topic.partitions)
            return _driven(cluster, topic, make_lane, size, SMALL_CONNECTIONS, 1, seconds).figures()

    name = f"Produce, {SMALL_CONNECTIONS} connections, {partitions} partitions a request"
    about = f"a record of {SMALL_BYTES} B for each of {partitions} partitions a request, acks=1"
    return Load(name, f"{about}, one in flight on each connection", run)


def produce_in_turn(partitions: int) -> Load:
    """Requests of one record of 100 bytes for one partition after another, acks=1.

    Args:
        partitions: that take turns.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        batch = one_record(SMALL_BYTES)

        def make_lane(wire: Wire, topic: LoadTopic) -> Lane:
            requests = [
                Produce(wire, topic, batch, partitions=(each,)) for each in topic.partitions
            ]
            frames = cycle([each.frame for each in requests])
            return Lane(wire, frames, requests[0].errors_at, "Produce")

        with TargetCluster(target) as cluster, cluster.topic(partitions) as topic:
            size = len(batch)
            return _driven(cluster, topic, make_lane, size, SMALL_CONNECTIONS, 1, seconds).figures()

    name = f"Produce, {SMALL_CONNECTIONS} connections, {partitions} partitions in turn"
    about = (
        f"a record of {SMALL_BYTES} B a request, to one of {partitions} partitions after another"
    )
    return Load(name, about, run)


def idempotent_produce() -> Load:
    """Requests of one record of 100 bytes of idempotent producers, acks=all (KIP-98)."""

    def run(target: BenchTarget, seconds: float) -> Figures:
        with TargetCluster(target) as cluster, cluster.topic() as topic:
            size = len(one_record(SMALL_BYTES))
            return _driven(
                cluster, topic, partial(_idempotent, cluster), size, SMALL_CONNECTIONS, 1, seconds
            ).figures()

    name = f"Produce, {SMALL_CONNECTIONS} connections, idempotent"
    about = f"a record of {SMALL_BYTES} B a request, acks=all, an idempotent producer on each"
    return Load(name, about, run)


def _idempotent(cluster: TargetCluster, wire: Wire, topic: LoadTopic) -> Lane:
    """One producer with an id of its own."""
    asked = messages.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=PRODUCER_TIMEOUT_MS
    )
    given = cluster.when_ready(
        lambda: wire.ask(asked), lambda answer: answer.error_code, "InitProducerId"
    )
    batch = one_record(SMALL_BYTES, given.producer_id, given.producer_epoch)
    request = Produce(wire, topic, batch, acks=-1)
    return Lane(wire, request.in_sequence(batch), request.errors_at, "Produce")


def _repeating(
    wire: Wire, topic: LoadTopic, batch: bytearray, acks: int, partitions: Sequence[int] = (0,)
) -> Lane:
    """The same request again and again."""
    request = Produce(wire, topic, batch, acks, partitions=partitions)
    return Lane(wire, repeat(request.frame), request.errors_at, "Produce")


def size_name(value_bytes: int) -> str:
    """A record's size in words."""
    return f"{value_bytes // 1000} KB" if value_bytes >= 1000 else f"{value_bytes} B"


def _driven(
    cluster: TargetCluster,
    topic: LoadTopic,
    make_lane: MakeLane,
    request_bytes: int,
    connections: int,
    depth: int,
    seconds: float,
) -> Measured:
    """Drive so many connections.

    Args:
        request_bytes: what a request has of records.
    """
    with ExitStack() as stack:
        wires = [stack.enter_context(cluster.connect_leader(topic)) for _ in range(connections)]
        lanes = [make_lane(wire, topic) for wire in wires]
        most = WRITTEN_BYTES_MAX // request_bytes
        drive(lanes, depth, seconds * WARM_UP_SHARE, array("d"), most // 4)
        with Measured(cluster.target) as measured:
            drive(lanes, depth, seconds, measured.latencies, most)
    return measured


@contextmanager
def _idle(cluster: TargetCluster, count: int) -> Iterator[None]:
    """Connections to the target that were answered once and ask nothing more."""
    with ExitStack() as stack:
        for _ in range(count):
            wire = stack.enter_context(cluster.connect())
            wire.ask(messages.ApiVersionsRequest(), 0)
        yield
