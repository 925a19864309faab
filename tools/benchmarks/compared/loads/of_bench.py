"""Loads of `odradek bench` that any Kafka serves: groups, transactions, waiting fetches."""

from __future__ import annotations

from ..peers import Failed, Peer
from .load import ComparedLoad, Figures, Tools

LOAD_NAMES = (
    "heartbeats, classic group",
    "heartbeats, consumer group",
    "transactions of 100 records",
    "fetch wake-up",
    "fetch wake-up, 1000 partitions in a session",
    "session fetch, 1000 partitions",
)
SHOWN = ("rate", "cpu_us", "p50_ms", "p99_ms")


def bench_load(name: str) -> ComparedLoad:
    """The load of that name."""

    def run(peer: Peer, tools: Tools) -> Figures:
        from .....bench.errors import BenchError
        from .....bench.loads.loads import LOADS
        from .....bench.target import BenchTarget

        (load,) = (each for each in LOADS if each.name == name)
        try:
            figures = load.run(BenchTarget("127.0.0.1", peer.ports[0], peer.pid), tools.seconds)
        except BenchError as error:
            raise Failed(str(error)) from error
        return {each: figures[each] for each in SHOWN if each in figures}

    return ComparedLoad(name, run)
