"""The worst request of every API: how long it holds the broker's loop, and what it takes.

    python -m odradek.tools.benchmarks.worst_requests [--only REGEX] [--partitions 500]

A broker of its own gets topics, groups and transactional ids. For each API that is served, and each
size, some requests made from its schema are sent once (`worst/requests.py`); the one that takes
most processor time is the worst. It is then sent again and again for a moment. All the while a good
client produces, fetches and asks for Metadata beside it: how long it waits is what matters.

Columns: the elements and bytes of the request (less than its size where the broker closes the
connection at more); bytes of the answer; the broker's processor time for it; peak of its resident
memory above that before; for how long the broker's processor was at work at the most while the
good client waited for one answer (held), then, while the request is repeated, the same as p99 and
at the most, and the whole waits as p50, p99 and at the most, in which everything counts that the
machine does. Times are ms, memory is MB of 10^6 bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...bench.cluster import LoadTopic
from ...bench.errors import BenchError
from ...bench.loads.wire import Wire
from ...broker.handlers.registry import REGISTRATIONS
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from .measure import MeasuredBroker, broker, machine
from .worst.good_client import GoodClient, percentile
from .worst.requests import Candidate, Scene, candidates

PARTITIONS_EACH = 20
GROUPS = 200
GOOD_TOPIC = "good"
SIZES = (10_000, 1_000_000)
TOPICS_PER_REQUEST = 50
P99_MS_MAX, WAIT_MS_MAX, MEMORY_MB_MAX = 20.0, 100.0, 64.0
"""The goals: of waits on a machine with nothing else to do, which are what is held here."""
IDLE_SECONDS = 1.0
WITHOUT_ANSWER = "closed"


@dataclass
class Row:
    """What the worst request of one API and size did.

    Attributes:
        answer_bytes: None: the connection was closed.
        hold_ms: the most that the broker's processor did during one wait of the good client's,
            while the request was sent once.
        hold_p99_ms, hold_max_ms: the same while it was repeated.
        p50_ms, p99_ms, max_ms: those waits, whatever the machine did.
    """

    api: str
    shape: str
    count: int
    request_bytes: int
    answer_bytes: int | None
    cpu_ms: float
    memory_mb: float
    hold_ms: float
    hold_p99_ms: float = 0.0
    hold_max_ms: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


class Attack:
    """Sends bad requests to a broker that a good client uses.

    Args:
        running: the broker.
        good: uses it all the time.
    """

    def __init__(self, running: MeasuredBroker, good: GoodClient) -> None:
        self._running = running
        self._good = good
        self._wire = Wire(running.host, running.port)
        self._idle_cpu = self._measure_idle()

    def _measure_idle(self) -> float:
        """Processor seconds for a request of the good client's."""
        before, waits = self._running.cpu_seconds(), len(self._good.waits)
        time.sleep(IDLE_SECONDS)
        return (self._running.cpu_seconds() - before) / (len(self._good.waits) - waits)

    def once(self, candidate: Candidate) -> Row:
        """Send a request and wait for its answer."""
        frame = candidate.frame
        self._good.wait_for_one_more()
        reset_peak(self._running.target.pid)
        resident, cpu = self._running.resident_mb(), self._running.cpu_seconds()
        began = time.perf_counter()
        answer_bytes = self._exchange(frame)
        self._good.wait_for_one_more()
        waits = self._good.since(began)
        cpu_seconds = self._running.cpu_seconds() - cpu - len(waits) * self._idle_cpu
        return Row(
            candidate.api.name,
            candidate.shape,
            candidate.elements,
            len(frame),
            answer_bytes,
            1000 * max(cpu_seconds, 0),
            peak_mb(self._running.target.pid) - resident,
            percentile((each.held for each in waits), 1.0),
        )

    def again(self, candidate: Candidate, seconds: float, row: Row) -> None:
        """Send it for some seconds; what the good client has of that goes into the row."""
        frame = candidate.frame
        self._good.wait_for_one_more()
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            self._exchange(frame)
        self._good.wait_for_one_more()
        waits = self._good.since(began)
        row.hold_p99_ms, row.hold_max_ms = (
            percentile((each.held for each in waits), share) for share in (0.99, 1.0)
        )
        row.p50_ms, row.p99_ms, row.max_ms = (
            percentile((each.seconds for each in waits), share) for share in (0.5, 0.99, 1.0)
        )

    def _exchange(self, frame: bytes) -> int | None:
        try:
            return len(self._wire.exchange(frame))
        except BenchError:
            self._wire.close()
            self._wire = Wire(self._running.host, self._running.port)
            return None


def reset_peak(pid: int | None) -> None:
    """Have the system forget the peak of a process's memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mb(pid: int | None) -> float:
    """The peak of a process's resident memory, in MB of 10^6 bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def prepare(running: MeasuredBroker, partitions: int) -> tuple[Scene, LoadTopic]:
    """Make what requests may name, and the good client's topic."""
    names = [f"t{number}" for number in range(max(1, partitions // PARTITIONS_EACH))]
    with Wire(running.host, running.port) as wire:
        create = messages.CreateTopicsRequest
        requested = [(GOOD_TOPIC, 1), *((name, PARTITIONS_EACH) for name in names)]
        topic_ids = {}
        for start in range(0, len(requested), TOPICS_PER_REQUEST):
            topics = [
                create.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in requested[start : start + TOPICS_PER_REQUEST]
            ]
            for made in wire.ask(create(topics=topics, timeout_ms=60_000)).topics:
                topic_ids[made.name] = made.topic_id
        described = wire.ask(messages.DescribeLogDirsRequest(topics=[]))
        metadata = wire.ask(messages.MetadataRequest(topics=[]))
        scene = Scene(
            metadata.brokers[0].node_id,
            names,
            PARTITIONS_EACH,
            topic_ids,
            [f"g{number}" for number in range(GROUPS)],
            [f"x{number}" for number in range(GROUPS)],
            [each.log_dir for each in described.results],
        )
        _make_groups(wire, scene)
        _make_transactions(wire, scene)
    good = LoadTopic(GOOD_TOPIC, topic_ids[GOOD_TOPIC], (0,), running.host, running.port)
    return scene, good


def _make_groups(wire: Wire, scene: Scene) -> None:
    commit = messages.OffsetCommitRequest
    for group in scene.groups:
        _until_known(
            wire,
            commit(
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=[
                    commit.OffsetCommitRequestTopic(
                        name=scene.topics[0],
                        partitions=[
                            commit.OffsetCommitRequestPartition(
                                partition_index=index, committed_offset=1
                            )
                            for index in range(scene.partitions_each)
                        ],
                    )
                ],
            ),
            9,
        )


def _make_transactions(wire: Wire, scene: Scene) -> None:
    for name in scene.transactions:
        _until_known(
            wire,
            messages.InitProducerIdRequest(
                transactional_id=name,
                transaction_timeout_ms=60_000,
                producer_id=-1,
                producer_epoch=-1,
            ),
            3,
        )


def _until_known(wire: Wire, request: messages.Message, version: int) -> None:
    """Ask until the coordinator is there."""
    while True:
        answer = wire.ask(request, version)
        codes = [getattr(answer, "error_code", 0)]
        for topic in getattr(answer, "topics", []):
            codes += [partition.error_code for partition in topic.partitions]
        if not any(codes):
            return
        kind = 0 if isinstance(request, messages.OffsetCommitRequest) else 1
        wire.ask(messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]))
        time.sleep(0.05)


def rows(options: argparse.Namespace, console: Console) -> Iterator[Row]:
    """Measure every API that is chosen, at each size."""
    with broker("group.initial.rebalance.delay.ms=0") as running:
        scene, topic = prepare(running, options.partitions)
        with GoodClient((running.host, running.port), topic, running.cpu_seconds) as good:
            attack = Attack(running, good)
            for api in map(ApiKey, REGISTRATIONS):
                if not re.search(options.only, api.name, re.IGNORECASE):
                    continue
                for size in options.sizes:
                    yield _worst(attack, api, scene, size, options.seconds, console)


def _worst(
    attack: Attack, api: ApiKey, scene: Scene, size: int, seconds: float, console: Console
) -> Row:
    worst: tuple[Row, Candidate] | None = None
    hold_ms = memory_mb = 0.0
    for tried in candidates(api, scene, size):
        candidate: Candidate | None = tried
        while candidate is not None:
            row = attack.once(candidate)
            hold_ms, memory_mb = max(hold_ms, row.hold_ms), max(memory_mb, row.memory_mb)
            if worst is None or row.cpu_ms > worst[0].cpu_ms:
                worst = row, candidate
            candidate = candidate.smaller() if row.answer_bytes is None else None
    assert worst is not None
    row, candidate = worst
    row.hold_ms, row.memory_mb = hold_ms, memory_mb
    attack.again(candidate, seconds, row)
    console.print(
        f"{row.api} {size}: {row.cpu_ms:.1f} ms CPU, held {row.hold_ms:.1f} ms, "
        f"{row.memory_mb:.1f} MB ({row.shape})"
    )
    return row


def table(found: list[Row], title: str) -> Table:
    """The rows as a table; what misses a goal is marked."""
    shown = Table(title=title, show_edge=False, pad_edge=False)
    shown.add_column("API")
    shown.add_column("worst request")
    for name in ("bytes", "answer", "CPU", "MB", "held", "h99", "hmax", "p50", "p99", "max"):
        shown.add_column(name, justify="right")
    for row in found:
        shown.add_row(
            row.api,
            f"{row.shape} x {row.count}",
            f"{row.request_bytes:,}",
            WITHOUT_ANSWER if row.answer_bytes is None else f"{row.answer_bytes:,}",
            f"{row.cpu_ms:.1f}",
            _marked(row.memory_mb, MEMORY_MB_MAX),
            _marked(row.hold_ms, WAIT_MS_MAX),
            _marked(row.hold_p99_ms, P99_MS_MAX),
            _marked(row.hold_max_ms, WAIT_MS_MAX),
            f"{row.p50_ms:.1f}",
            f"{row.p99_ms:.1f}",
            f"{row.max_ms:.1f}",
        )
    return shown


def _marked(value: float, most: float) -> str:
    return f"{value:.1f}" + ("!" if value > most else "")


def main() -> int:
    """Measure and print; exit code 1 if a goal is missed."""
    options = _options()
    console = Console(width=170)
    found = list(rows(options, Console(stderr=True, width=170)))
    if not found:
        console.print("no API has such a name: " + ", ".join(ApiKey(k).name for k in REGISTRATIONS))
        return 2
    title = f"{machine()}; {options.partitions:,} partitions; ! misses the goal"
    if options.json:
        options.json.write_text(
            json.dumps({"machine": title, "rows": [asdict(row) for row in found]}, indent=1) + "\n"
        )
    console.print(table(found, title))
    missed = any(
        row.memory_mb > MEMORY_MB_MAX
        or row.hold_p99_ms > P99_MS_MAX
        or max(row.hold_ms, row.hold_max_ms) > WAIT_MS_MAX
        for row in found
    )
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="APIs whose name matches")
    parser.add_argument("--partitions", type=int, default=500, help="of the broker; 500")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each repetition; 1")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="of the requests, in bytes"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
