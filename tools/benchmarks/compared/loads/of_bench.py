"""Loads of `odradek bench` that any Kafka serves: many partitions, groups, transactions, waiting
fetches."""

from __future__ import annotations

from ..peers import Failed, Peer
from .load import ComparedLoad, Figures, Tools

LOAD_NAMES = (
    *(f"Produce, 16 connections, {count} partitions a request" for count in (3, 12, 50)),
    "Produce, 16 connections, 12 partitions in turn",
    "Produce, 16 connections, idempotent",
    "heartbeats, classic group",
    "heartbeats, consumer group",
    "transactions of 100 records",
    "fetch wake-up",
    "fetch wake-up, 1000 partitions in a session",
    "session fetch, 1000 partitions",
    *(f"session fetch, {count} of 1000 partitions" for count in (3, 12, 50)),
)
SHOWN = ("rate", "cpu_us", "p50_ms", "p99_ms")


OF_THREE_BROKERS = (
    "Produce, 16 connections, idempotent",
    "heartbeats, classic group",
    "heartbeats, consumer group",
    "transactions of 100 records",
)
"""What also depends on other replicas."""


def bench_load(name: str, brokers: int = 1) -> ComparedLoad:
    """The load of that name; of several brokers it has no CPU time."""

    def run(peer: Peer, tools: Tools) -> Figures:
        from .....bench.errors import BenchError
        from .....bench.loads.loads import LOADS
        from .....bench.target import BenchTarget

        (load,) = (each for each in LOADS if each.name == name)
        try:
            pid = peer.pid if brokers == 1 else None
            figures = load.run(BenchTarget("127.0.0.1", peer.ports[0], pid), tools.seconds)
        except BenchError as error:
            raise Failed(str(error)) from error
        return {each: figures[each] for each in SHOWN if each in figures}

    return ComparedLoad(name if brokers == 1 else f"three brokers, {name}", run)
