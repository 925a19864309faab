"""How fast transactions of 100 records commit, beside the same records outside transactions.

    python -m odradek.tools.benchmarks.coordinator.transactions_rate \\
        [--runs 7] [--rounds 200] [--address HOST:PORT]

confluent-kafka sends 100 records of 100 bytes to one partition with acks=all and waits for them:
once idempotent without a transaction, once as a transaction. Both are measured in turn, several
times, against the same broker, and with the same batches: of 10 records, which the goal is for,
and all 100 in one, where a transaction's own requests, and the millisecond that librdkafka waits
before it names a partition, outweigh the records. Printed, too: what the broker's CPU spends.
`--address` measures another broker.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ....bench.loads.transaction_load import RECORDS_PER_TRANSACTION
from ....bench.run.calibration import calibrate
from ..measure import MeasuredBroker, broker, machine, summary, verdict

RECORD_BYTES = 100
BATCH_RECORDS = (10, 100)
RATE_SHARE_MIN = 1 / 3
CALL_SECONDS_MAX = 30
WARM_UP = 20

numbers = itertools.count()


def producer_of(address: str, batch_records: int, **settings: object) -> Producer:
    """A producer that sends a batch as soon as it has all its records, and not before."""
    return Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "enable.idempotence": True,
            "batch.num.messages": batch_records,
            "linger.ms": 1000,
            "log_level": 2,
            **settings,
        }
    )


def produce(producer: Producer, topic: str) -> None:
    """Produce the records of one round."""
    value = b"v" * RECORD_BYTES
    for _ in range(RECORDS_PER_TRANSACTION):
        producer.produce(topic, value, partition=0)


def in_transactions(address: str, topic: str, batch_records: int) -> Callable[[int], None]:
    """So many rounds, each a transaction."""
    transactional_id = f"benchmark-{os.getpid()}-{next(numbers)}"
    producer = producer_of(address, batch_records, **{"transactional.id": transactional_id})
    producer.init_transactions(CALL_SECONDS_MAX)

    def run(rounds: int) -> None:
        for _ in range(rounds):
            producer.begin_transaction()
            produce(producer, topic)
            producer.commit_transaction(CALL_SECONDS_MAX)

    return run


def outside(address: str, topic: str, batch_records: int) -> Callable[[int], None]:
    """So many rounds, each acknowledged before the next."""
    producer = producer_of(address, batch_records)

    def run(rounds: int) -> None:
        for _ in range(rounds):
            produce(producer, topic)
            assert producer.flush(CALL_SECONDS_MAX) == 0

    return run


WAYS = {"outside transactions": outside, "in transactions": in_transactions}


@contextmanager
def server(address: str | None) -> Iterator[tuple[str, MeasuredBroker | None]]:
    """A broker of our own, or the one at an address."""
    if address:
        yield address, None
        return
    with broker("transaction.state.log.num.partitions=1") as running:
        yield running.address, running


def measure(
    address: str, running: MeasuredBroker | None, batch_records: int, options: argparse.Namespace
) -> float:
    """Print what batches of one size come to; returns the share of transactions in the rate."""
    topic = f"transactions-rate-{os.getpid()}-{batch_records}"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    runs = {name: make(address, topic, batch_records) for name, make in WAYS.items()}
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    cpu: dict[str, list[float]] = {name: [] for name in WAYS}
    for run in runs.values():
        run(WARM_UP)
    for _ in range(options.runs):
        for name, run in runs.items():
            spent = running.cpu_seconds() if running else 0.0
            began = time.perf_counter()
            run(options.rounds)
            rates[name].append(
                options.rounds * RECORDS_PER_TRANSACTION / (time.perf_counter() - began) / 1000
            )
            if running:
                cpu[name].append((running.cpu_seconds() - spent) / options.rounds * 1e6)
    print(f"batches of {batch_records} records")
    for name in WAYS:
        print(f"  {name:22} {summary(rates[name], 'k records/s')}")
        if cpu[name]:
            print(f"  {'':22} {summary(cpu[name], 'us of the broker for 100 records')}")
    pairs = zip(rates["in transactions"], rates["outside transactions"], strict=True)
    return statistics.median(inside / beside for inside, beside in pairs)


def main() -> int:
    """Print medians; exit code 1 if transactions miss their share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--address")
    options = parser.parse_args()
    print(machine(), f"calibration {calibrate():.3f} s")
    with server(options.address) as (address, running):
        shares = {size: measure(address, running, size, options) for size in BATCH_RECORDS}
    for size in BATCH_RECORDS[1:]:
        print(f"share of the rate, batches of {size}: {shares[size]:.2f}")
    share = shares[BATCH_RECORDS[0]]
    good = verdict("share of the rate in transactions", share, RATE_SHARE_MIN, "", at_most=False)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
