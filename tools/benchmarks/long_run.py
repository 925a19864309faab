"""Hours of mixed load on one broker or three: memory, descriptors and the log stay as they were.

    python -m odradek.tools.benchmarks.long_run [--minutes 120] [--brokers 3 --restart-minutes 5]

Records flow all the time through an idempotent producer to the members of a group, who check that
none is missing, doubled or out of order. Beside them transactions commit and abort, connections
come and go, topics are made and deleted, and groups form for a few records and end. With
`--brokers` the brokers are processes of one cluster, and one after the other is stopped and
started again.

Every few seconds the resident memory and the open descriptors of each broker are read. Exit code 1
if memory after the warm-up grows by more than `--growth-mb`, if descriptors do, if a record is
missing or doubled, or if a broker logs a traceback.
"""

from __future__ import annotations

import argparse
import csv
import os
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ...bench.run.interruptible import interruptible
from ...bench.run.own_broker import OwnBroker, target_of
from ...log_tools.dump.log_dump import DumpOptions, dump_file, files_of_partition
from .measure import machine

HOURLY_CONNECTIONS = 8_500
HOURLY_TRANSACTIONS = 3_000
HOURLY_TOPICS = 600
HOURLY_GROUPS = 300
RECORDS_PER_SECOND = 100
"""Of the records that flow all the time."""

FLOW_TOPIC = "flow"
FLOW_PARTITIONS = 6
VALUE_BYTES = 1000
TRANSACTION_TOPIC = "transactions"
TRANSACTIONAL_IDS = 4
TRANSACTIONS_A_PRODUCER = 50
"""After so many its successor takes over its transactional id."""

PARTS = 6
"""Of the time after the warm-up, the first of which is compared with the last."""

CLIENT_SECONDS_MAX = 60
"""So long a client may take for one operation, restarts of brokers included."""

SEGMENT_BYTES = str(1 << 20)
"""The least that Kafka allows."""

BROKER_SETTINGS = {
    # librdkafka's producers refresh what they know of topics, and would make deleted ones again.
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": SEGMENT_BYTES,
    "log.retention.bytes": str(2 << 20),
    "log.retention.check.interval.ms": "20000",
    "log.segment.delete.delay.ms": "5000",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.segment.bytes": SEGMENT_BYTES,
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.segment.bytes": SEGMENT_BYTES,
    "log.cleaner.backoff.ms": "5000",
    "producer.id.expiration.ms": "300000",
}
"""What is kept reaches its full size within the warm-up, so that only a leak grows after it."""

RECORDS_SHOWN = 20
"""Of a log, before the first record that lies where it should not."""
FIELDS_SHOWN = (
    *("base_offset", "records", "partition_leader_epoch", "base_timestamp"),
    *("producer_id", "producer_epoch", "base_sequence"),
)

API_VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class Sample(NamedTuple):
    """What the operating system says of one broker at one time.

    Attributes:
        seconds: since the start of the run.
        broker: its number.
        memory_mb: resident memory, in MB of 10^6 bytes.
        descriptors: that are open.
    """

    seconds: float
    broker: int
    memory_mb: float
    descriptors: int


class Brokers:
    """One broker, or a cluster of several, each in a process of its own; a context manager.

    Args:
        folder: for data and logs.
        count: how many.
    """

    def __init__(self, folder: Path, count: int) -> None:
        replicas = {
            "default.replication.factor": str(min(count, 3)),
            "offsets.topic.replication.factor": str(min(count, 3)),
            "transaction.state.log.replication.factor": str(min(count, 3)),
            "transaction.state.log.min.isr": str(min(count, 2)),
            "min.insync.replicas": str(min(count, 2)),
            "metadata.log.dir": str(folder),
        }
        self.processes = [
            OwnBroker(
                folder / f"broker-{number}",
                settings=BROKER_SETTINGS | replicas | {"broker.id": str(number)},
                start=False,
            )
            for number in range(1, count + 1)
        ]
        self._running = threading.Lock()

    def __enter__(self) -> Brokers:
        for each in self.processes:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.processes:
            each.__exit__()

    @property
    def bootstrap(self) -> str:
        """The addresses to give to clients."""
        return ",".join(each.bootstrap for each in self.processes)

    def restart(self, number: int) -> None:
        """Stop a broker as an operator does, and start it again."""
        with self._running:
            self.processes[number].restart()

    def sample(self, seconds: float) -> Iterator[Sample]:
        """Read memory and descriptors of each broker."""
        with self._running:
            for number, process in enumerate(self.processes, 1):
                memory = target_of(process).resident_mb() or 0.0
                yield Sample(seconds, number, memory, len(os.listdir(f"/proc/{process.pid}/fd")))

    def batches_near(self, partition: int, offset: int) -> Iterator[str]:
        """How each broker's log got to an offset of the flow: a line for each batch before it."""
        options = DumpOptions(from_offset=max(offset - RECORDS_SHOWN, 0), to_offset=offset)
        for number, process in enumerate(self.processes, 1):
            folder = f"{process.data_dir}/{FLOW_TOPIC}-{partition}"
            for name in files_of_partition(folder, options, side_files=False):
                for entry in dump_file(name, options):
                    shown = (f"{field} {entry.fields.get(field)}" for field in FIELDS_SHOWN)
                    yield f"broker {number}, {FLOW_TOPIC}-{partition}: {', '.join(shown)}"

    def tracebacks(self) -> list[str]:
        """What the logs have from each traceback on, a few lines each."""
        found = []
        for each in self.processes:
            lines = each.log.splitlines()
            for at, line in enumerate(lines):
                if line.startswith("Traceback"):
                    found.append("\n".join(lines[max(at - 1, 0) : at + 30]))
        return found


class Load:
    """Work that is done again and again at a rate, in a thread of its own.

    Args:
        name: of what is counted.
        hourly: how often an hour.
        work: one of it; an exception of the client is counted by its name.
        ended: when all is over.
    """

    def __init__(
        self, name: str, hourly: float, work: Callable[[int], None], ended: threading.Event
    ) -> None:
        self.name = name
        self.count = 0
        self.errors: Counter[str] = Counter()
        self._period = 3600 / hourly
        self._work = work
        self._ended = ended
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(due - time.monotonic(), 0)):
            due = max(due + self._period, time.monotonic() - 10 * self._period)
            try:
                self._work(self.count)
            except (KafkaException, OSError, TimeoutError) as error:
                reason = error.args[0] if isinstance(error, KafkaException) else error
                kind = reason.name() if hasattr(reason, "name") else type(reason).__name__
                self.errors[str(kind)] += 1
            self.count += 1

    def join(self) -> None:
        """Wait until the one that is being done is done."""
        self._thread.join()


class Flow:
    """Numbered records that flow from an idempotent producer through a group of two members.

    Args:
        bootstrap: where the brokers are.

    Attributes:
        sent: how many records.
        faults: what went wrong, in words.
        displaced: partition and offset of each record from which on they lie at other offsets.
    """

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self.faults: list[str] = []
        self.displaced: list[tuple[int, int]] = []
        self._shifts = [0] * FLOW_PARTITIONS
        self._delivered = [0] * FLOW_PARTITIONS
        self._next = [0] * FLOW_PARTITIONS
        self._bootstrap = bootstrap
        self._ended = threading.Event()
        self._sending_over = threading.Event()
        self._threads = [threading.Thread(target=self._send)]
        self._threads += [threading.Thread(target=self._read) for _ in range(2)]
        for each in self._threads:
            each.start()

    @property
    def received(self) -> int:
        """How many records were read, each counted once."""
        return sum(self._next)

    def end(self) -> None:
        """Stop sending, read what is left, and end."""
        self._sending_over.set()
        self._threads[0].join()
        deadline = time.monotonic() + CLIENT_SECONDS_MAX
        while self._next != self._delivered and time.monotonic() < deadline:
            time.sleep(0.2)
        self._ended.set()
        for each in self._threads[1:]:
            each.join()
        if self._next != self._delivered:
            self.faults.append(f"delivered {self._delivered}, read {self._next}")

    def _send(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "lz4",
                "delivery.timeout.ms": 10 * CLIENT_SECONDS_MAX * 1000,
                "log_level": 0,
            }
        )

        def on_delivery(error: object, message: object) -> None:
            if error is not None:
                self.faults.append(f"a record was not delivered: {error}")

        began = time.monotonic()
        while not self._sending_over.is_set():
            due = int((time.monotonic() - began) * RECORDS_PER_SECOND)
            while self.sent < due:
                partition = self.sent % FLOW_PARTITIONS
                value = struct.pack(">q", self._delivered[partition]) + os.urandom(VALUE_BYTES)
                producer.produce(FLOW_TOPIC, value, partition=partition, on_delivery=on_delivery)
                self._delivered[partition] += 1
                self.sent += 1
            producer.poll(0.05)
        if left := producer.flush(CLIENT_SECONDS_MAX):
            self.faults.append(f"{left} records were never delivered")

    def _read(self) -> None:
        """Read as a member; a successor in the group may see again what was not committed."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "flow-readers",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1000,
                "log_level": 0,
            }
        )
        consumer.subscribe([FLOW_TOPIC])
        while not self._ended.is_set():
            for message in consumer.consume(500, 0.2):
                value, partition, offset = message.value(), message.partition(), message.offset()
                if message.error() is not None or value is None:
                    continue
                assert partition is not None  # only an event that is no record has none
                assert offset is not None
                number = struct.unpack_from(">q", value)[0]
                if offset - number != self._shifts[partition]:
                    self._shifts[partition] = offset - number
                    self.displaced.append((partition, offset))
                    self.faults.append(f"record {number} of {partition} lies at offset {offset}")
                if number > self._next[partition]:
                    expected = self._next[partition]
                    self.faults.append(f"record {number} of {partition} came, not {expected}")
                self._next[partition] = max(self._next[partition], number + 1)
        consumer.close()


class Transactions:
    """Transactions of a few producers, one in five aborted.

    Args:
        bootstrap: where the brokers are.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producers: dict[int, Producer] = {}

    def __call__(self, number: int) -> None:
        """Do one."""
        at = number % TRANSACTIONAL_IDS
        if number // TRANSACTIONAL_IDS % TRANSACTIONS_A_PRODUCER == 0:
            self._producers.pop(at, None)
        try:
            producer = self._producers.get(at) or self._new(at)
            producer.begin_transaction()
            for key in range(3):
                producer.produce(TRANSACTION_TOPIC, b"%d" % number, b"%d" % key)
            if number % 5:
                producer.commit_transaction(CLIENT_SECONDS_MAX)
            else:
                producer.flush(CLIENT_SECONDS_MAX)
                producer.abort_transaction(CLIENT_SECONDS_MAX)
        except KafkaException:
            self._producers.pop(at, None)  # the next one fences it, and ends what it left open
            raise

    def _new(self, at: int) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": f"long-run-{at}",
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        producer.init_transactions(CLIENT_SECONDS_MAX)
        self._producers[at] = producer
        return producer


def visit(bootstrap: str) -> Callable[[int], None]:
    """Connections that say nothing, ask for versions, or leave in the middle of a request."""
    addresses = bootstrap.split(",")

    def one(number: int) -> None:
        host, _, port = addresses[number % len(addresses)].rpartition(":")
        with socket.create_connection((host, int(port)), CLIENT_SECONDS_MAX) as connection:
            if number % 3 == 1:
                connection.sendall(API_VERSIONS_REQUEST)
                if not connection.recv(4):
                    raise ConnectionResetError("the connection was closed")
            elif number % 3 == 2:
                connection.sendall(API_VERSIONS_REQUEST[:9])

    return one


def passing_topics(admin: AdminClient, producer: Producer) -> Callable[[int], None]:
    """Topics that are made, written to and deleted."""

    def one(number: int) -> None:
        name = f"passing-{number}"
        for future in admin.create_topics([NewTopic(name, 3)]).values():
            future.result(CLIENT_SECONDS_MAX)
        for partition in range(3):
            producer.produce(name, bytes(100), partition=partition)
        producer.flush(CLIENT_SECONDS_MAX)
        for future in admin.delete_topics([name]).values():
            future.result(CLIENT_SECONDS_MAX)

    return one


def passing_groups(bootstrap: str, admin: AdminClient) -> Callable[[int], None]:
    """Groups of either protocol that read a little, commit, and are deleted."""

    def one(number: int) -> None:
        group = f"passing-{number}"
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer" if number % 2 else "classic",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            consumer.subscribe([FLOW_TOPIC])
            messages = consumer.consume(10, CLIENT_SECONDS_MAX)
            if not messages:
                raise TimeoutError(f"group {group} read nothing")
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        for future in admin.delete_consumer_groups([group]).values():
            future.result()

    return one


@contextmanager
def loads(bootstrap: str, rate: float) -> Iterator[tuple[Flow, list[Load]]]:
    """All loads, from their start to their end.

    Args:
        bootstrap: where the brokers are.
        rate: of transactions, connections, topics and groups; 1: the hourly ones above.
    """
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    admin, producer = AdminClient(settings), Producer(settings)
    topics = [NewTopic(FLOW_TOPIC, FLOW_PARTITIONS), NewTopic(TRANSACTION_TOPIC, 3)]
    for future in admin.create_topics(topics).values():
        future.result(CLIENT_SECONDS_MAX)
    ended = threading.Event()
    kinds: Sequence[tuple[str, float, Callable[[int], None]]] = (
        ("transactions", HOURLY_TRANSACTIONS, Transactions(bootstrap)),
        ("connections", HOURLY_CONNECTIONS, visit(bootstrap)),
        ("topics", HOURLY_TOPICS, passing_topics(admin, producer)),
        ("groups", HOURLY_GROUPS, passing_groups(bootstrap, admin)),
    )
    flow = Flow(bootstrap)
    running = [Load(name, hourly * rate, work, ended) for name, hourly, work in kinds]
    try:
        yield flow, running
    finally:
        ended.set()
        for each in running:
            each.join()
        flow.end()


def watch(brokers: Brokers, options: argparse.Namespace, work: Sequence[Load]) -> list[Sample]:
    """Sample, and restart brokers when it is time, until the run is over."""
    samples: list[Sample] = []
    began = time.monotonic()
    end = options.minutes * 60
    restart_s = options.restart_minutes * 60
    restarts = 0
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, disable=not sys.stderr.isatty(), console=Console(stderr=True)) as bar:
        task = bar.add_task("running", total=end)
        while (seconds := time.monotonic() - began) < end:
            if restart_s and seconds // restart_s > restarts and seconds < end - restart_s / 2:
                brokers.restart(restarts % len(brokers.processes))
                restarts += 1
            samples += brokers.sample(seconds)
            counts = ", ".join(f"{each.count} {each.name}" for each in work)
            bar.update(task, completed=seconds, description=counts)
            time.sleep(options.sample_seconds)
    return samples


class Verdict(NamedTuple):
    """How one broker's memory and descriptors went after the warm-up.

    Attributes:
        broker: its number.
        memory_mb: of the beginning and the end of the time after the warm-up.
        descriptors: likewise.
        peak_mb: the most of all.
    """

    broker: int
    memory_mb: tuple[float, float]
    descriptors: tuple[float, float]
    peak_mb: float


def verdicts(
    samples: Iterable[Sample], warm_up_s: float, *, with_restarts: bool = False
) -> list[Verdict]:
    """Compare the beginning of what follows the warm-up with its end, broker by broker.

    That is the first and the last sixth, each by its median. A broker that was just started again
    has little of either, whatever it loses over the hours: with restarts it is what nine tenths of
    each stay below, and each should be long enough for every broker to be started again in it.
    """
    by_broker: dict[int, list[Sample]] = {}
    for each in samples:
        if each.seconds >= warm_up_s:
            by_broker.setdefault(each.broker, []).append(each)
    found = []
    for broker, of_broker in sorted(by_broker.items()):
        size = max(len(of_broker) // PARTS, 1)
        parts = of_broker[:size], of_broker[-size:]
        usual = _ninth_tenth if with_restarts else statistics.median
        memory = [usual([each.memory_mb for each in part]) for part in parts]
        opened = [usual([each.descriptors for each in part]) for part in parts]
        peak = max(each.memory_mb for each in of_broker)
        found.append(Verdict(broker, (memory[0], memory[1]), (opened[0], opened[1]), peak))
    return found


def _ninth_tenth(values: Sequence[float]) -> float:
    return sorted(values)[len(values) * 9 // 10]


def grows(found: Verdict, options: argparse.Namespace) -> bool:
    """Whether a broker's memory or descriptors grew by more than is allowed."""
    memory, descriptors = found.memory_mb, found.descriptors
    return bool(
        memory[1] - memory[0] > options.growth_mb
        or descriptors[1] - descriptors[0] > options.growth_descriptors
    )


def show(found: Sequence[Verdict], flow: Flow, work: Sequence[Load]) -> None:
    """Print what was done, and how each broker fared."""
    table = Table(
        "broker", "MB after warm-up", "MB at the end", "peak", "descriptors", "at the end"
    )
    for each in found:
        table.add_row(
            *(str(each.broker), *(f"{value:.1f}" for value in each.memory_mb)),
            *(f"{each.peak_mb:.1f}", *(f"{value:.0f}" for value in each.descriptors)),
        )
    console = Console()
    console.print(table)
    for load in work:
        errors = ", ".join(f"{count} {name}" for name, count in load.errors.most_common())
        console.print(f"{load.count} {load.name}; errors: {errors or 'none'}")
    console.print(f"{flow.sent} records sent, {flow.received} read; faults: {len(flow.faults)}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--minutes", type=float, default=120, help="how long (default: 120)")
    made.add_argument("--warm-up-minutes", type=float, default=10, help="not judged (default: 10)")
    made.add_argument(
        "--brokers", type=int, default=1, help="processes of one cluster (default: 1)"
    )
    made.add_argument(
        "--restart-minutes", type=float, default=0, help="between two restarts (default: none)"
    )
    made.add_argument("--rate", type=float, default=1, help="of the loads (default: 1)")
    made.add_argument("--growth-mb", type=float, default=2, help="allowed growth (default: 2)")
    made.add_argument(
        "--growth-descriptors",
        type=int,
        default=5,
        help="likewise, of descriptors (default: 5)",
    )
    made.add_argument("--sample-seconds", type=float, default=5, help="(default: 5)")
    made.add_argument("--csv", type=Path, help="where every sample goes")
    return made


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    """One row for each sample."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(Sample._fields)
        rows.writerows(samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit code says whether all stayed as it was."""
    options = parser().parse_args(arguments)
    print(machine())
    with interruptible(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-long-")))
        brokers = stack.enter_context(Brokers(folder, options.brokers))
        with loads(brokers.bootstrap, options.rate) as (flow, work):
            samples = watch(brokers, options, work)
        tracebacks = brokers.tracebacks()
        batches = [line for place in flow.displaced[:3] for line in brokers.batches_near(*place)]
        if options.csv:
            write_csv(options.csv, samples)
    found = verdicts(
        samples, options.warm_up_minutes * 60, with_restarts=options.restart_minutes > 0
    )
    show(found, flow, work)
    for text in (*flow.faults[:20], *batches, *tracebacks[:5]):
        print(text)
    print(f"tracebacks in the logs: {len(tracebacks)}")
    has_grown = any(grows(each, options) for each in found)
    return int(bool(has_grown or flow.faults or tracebacks or not found))


if __name__ == "__main__":
    raise SystemExit(main())
