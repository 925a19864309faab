"""Fetch: much at once, one batch of a session of many partitions, and waiting for a record."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from itertools import repeat

from ..cluster import LoadTopic, TargetCluster
from ..errors import BenchError
from ..figures import Figures, Measured
from ..run.driver import Lane, drive
from ..target import BenchTarget
from .fetching import PARTITION_BYTES_MAX, FetchRequest, PolledFetchSession
from .load import WARM_UP_SHARE, Load
from .prepared import Produce, full_batch, one_record
from .produce_load import BATCH_BYTES, BULK_IN_FLIGHT, SMALL_BYTES, size_name
from .wire import Wire, refused

FETCHED_BYTES = 64 << 20
"""What a topic is filled with for bulk fetching; it is read again and again."""
FETCHED_BYTES_QUICK = 8 << 20
QUICK_SECONDS = 1.0
FILL_SECONDS_MAX = 120.0
WAIT_MS_MAX = 500
SESSION_BATCHES = 500
"""How many batches a session's busy partition has, read one by one, again and again."""
LONG_POLL_MS = 30_000
PAUSE_SECONDS = 0.001
"""Between a Fetch that will wait and the Produce that wakes it, so that it does wait."""


def bulk_fetch(value_bytes: int) -> Load:
    """One consumer that reads a partition as fast as it is answered.

    Args:
        value_bytes: of each record.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        with (
            TargetCluster(target) as cluster,
            cluster.topic() as topic,
            cluster.connect_leader(topic) as wire,
        ):
            size = FETCHED_BYTES if seconds > QUICK_SECONDS else FETCHED_BYTES_QUICK
            batch, count = full_batch(BATCH_BYTES, value_bytes)
            batches = size // len(batch)
            _fill(wire, topic, batch, batches, BULK_IN_FLIGHT)
            reader = _PartitionReader(wire, topic, batches * count)
            reader.read(seconds * WARM_UP_SHARE, array("d"))
            records, bytes_before = reader.records, reader.size
            with Measured(target) as measured:
                reader.read(seconds, measured.latencies)
        requests = len(measured.latencies)
        found = measured.figures()
        each = (reader.records - records) / requests
        for name in ("cpu_us", "loader_us"):
            if name in found:
                found[name] /= each
        found["mb_s"] = found["rate"] * (reader.size - bytes_before) / requests / 1e6
        found["rate"] *= each
        return found

    about = (
        f"one consumer, one Fetch at a time, of up to {PARTITION_BYTES_MAX >> 20} MB of batches of"
        f" {BATCH_BYTES >> 10} KB"
    )
    return Load(f"bulk fetch {size_name(value_bytes)}", about, run)


class _PartitionReader:
    """Reads partition 0 to its end, and again from its beginning.

    Args:
        wire: to the leader.
        topic: what is read.
        end: the offset after its last record.
    """

    def __init__(self, wire: Wire, topic: LoadTopic, end: int) -> None:
        self.records = 0
        self.size = 0
        self._offset = 0
        self._end = end
        self._request = FetchRequest(wire, topic, max_wait_ms=WAIT_MS_MAX)
        self._wire = wire

    def read(self, seconds: float, latencies: array[float]) -> None:
        deadline = time.perf_counter() + seconds
        while (began := time.perf_counter()) < deadline:
            self._wire.send(self._request.move(self._offset))
            fetched = self._request.fetched()
            latencies.append(time.perf_counter() - began)
            if fetched.next_offset is None or fetched.next_offset <= self._offset:
                raise BenchError(
                    f"{self._wire.peer} answered Fetch at offset {self._offset} without the records"
                    " that are there"
                )
            self.records += fetched.records
            self.size += fetched.size
            self._offset = fetched.next_offset if fetched.next_offset < self._end else 0


def session_fetch(partitions: int, busy: int = 1) -> Load:
    """A session of many partitions, of which some have a record for each request.

    Args:
        partitions: of the topic; of a cluster, those that one broker leads count.
        busy: how many have.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        with (
            TargetCluster(target) as cluster,
            cluster.topic(partitions) as topic,
            cluster.connect_leader(topic) as wire,
        ):
            batch = one_record(SMALL_BYTES)
            _fill(wire, topic, batch, SESSION_BATCHES, 1, busy)
            session = PolledFetchSession(wire, topic, WAIT_MS_MAX, len(batch), busy)
            expected = topic.partitions[:busy]
            _read_one_by_one(session, expected, seconds * WARM_UP_SHARE, array("d"), wire)
            with Measured(target) as measured:
                _read_one_by_one(session, expected, seconds, measured.latencies, wire)
        return measured.figures()

    about = (
        f"a fetch session of {partitions} partitions (KIP-227); each Fetch gets one record of "
        f"{'one' if busy == 1 else f'each of {busy}'} of them"
    )
    name = f"session fetch, {'' if busy == 1 else f'{busy} of '}{partitions} partitions"
    return Load(name, about, run)


def _read_one_by_one(
    session: PolledFetchSession,
    partitions: Sequence[int],
    seconds: float,
    latencies: array[float],
    wire: Wire,
) -> None:
    offset = 0
    deadline = time.perf_counter() + seconds
    while (began := time.perf_counter()) < deadline:
        session.ask(offset)
        fetched = session.fetched_of_each()
        latencies.append(time.perf_counter() - began)
        if fetched.keys() != set(partitions) or any(
            (each.next_offset, each.records) != (offset + 1, 1) for each in fetched.values()
        ):
            raise BenchError(f"{wire.peer} answered Fetch at offset {offset} with other records")
        offset = (offset + 1) % SESSION_BATCHES


def fetch_wake_up(partitions: int = 1) -> Load:
    """A Fetch that waits, and the record that ends its waiting.

    Args:
        partitions: in the session that waits; all but one of them stay idle.
    """

    def run(target: BenchTarget, seconds: float) -> Figures:
        with (
            TargetCluster(target) as cluster,
            cluster.topic(partitions) as topic,
            cluster.connect_leader(topic) as reading,
            cluster.connect_leader(topic) as writing,
        ):
            wake_ups = _WakeUps(reading, writing, topic)
            wake_ups.run(seconds * WARM_UP_SHARE, array("d"))
            with Measured(target) as measured:
                wake_ups.run(seconds, measured.latencies)
        return measured.figures(rate=False)

    name = "fetch wake-up"
    about = (
        "a Fetch waits at a partition's end: from the sending of a Produce to the Fetch's answer"
    )
    if partitions > 1:
        name += f", {partitions} partitions in a session"
        about += f", in a session of {partitions} partitions"
    return Load(name, about, run)


class _WakeUps:
    """A consumer that waits, and a producer that lets it have a record."""

    def __init__(self, reading: Wire, writing: Wire, topic: LoadTopic) -> None:
        self._reading = reading
        self._writing = writing
        self._produce = Produce(writing, topic, one_record(SMALL_BYTES))
        self._session = PolledFetchSession(reading, topic, LONG_POLL_MS)
        self._offset = 0

    def run(self, seconds: float, latencies: array[float]) -> None:
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            self._session.ask(self._offset)
            time.sleep(PAUSE_SECONDS)
            began = time.perf_counter()
            self._writing.send(self._produce.frame)
            fetched = self._session.fetched()
            latencies.append(time.perf_counter() - began)
            check_produced(self._writing, self._produce)
            if (fetched.next_offset, fetched.records) != (self._offset + 1, 1):
                raise BenchError(
                    f"{self._reading.peer} answered a waiting Fetch, and not with its record"
                )
            self._offset += 1


def check_produced(wire: Wire, request: Produce) -> None:
    """Receive the answer to a Produce. Raises: BenchError."""
    answer = wire.receive()
    for error_at in request.errors_at:
        code = int.from_bytes(answer[error_at : error_at + 2], "big", signed=True)
        if code:
            raise refused(code, "Produce", wire.peer)


def _fill(
    wire: Wire, topic: LoadTopic, batch: bytearray, count: int, depth: int, partitions: int = 1
) -> None:
    """Produce a batch so many times, to all replicas of some partitions, so that it can be read."""
    request = Produce(wire, topic, batch, acks=-1, partitions=topic.partitions[:partitions])
    latencies = array("d")
    lane = Lane(wire, repeat(request.frame), request.errors_at, "Produce")
    drive([lane], depth, FILL_SECONDS_MAX, latencies, count)
    if len(latencies) < count:
        raise BenchError(f"{wire.peer} did not take {count} batches within {FILL_SECONDS_MAX:g} s")
