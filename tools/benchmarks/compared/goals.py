"""What odradek is to reach beside its peers; a floor once a limit was proved."""

from __future__ import annotations

from typing import NamedTuple

from .loads.performance import ACKS, COMPRESSIONS, SIZES
from .slots import Medians, ratio

KAFKA, KFAKE, ITSELF = "Apache Kafka", "kfake", "odradek"


class Goal(NamedTuple):
    """One figure of one load: a ratio to a peer's, or, where the peer is odradek, the value.

    Attributes:
        at_most: whether smaller is better.
        floor: where the goal proved to be out of reach (docs/performance.md says by what), the
            value that has to be held all the same.
    """

    load: str
    figure: str
    peer: str
    value: float
    at_most: bool = False
    floor: float | None = None

    def is_met(self, measured: float, value: float) -> bool:
        """Whether a figure is as good as a value."""
        return measured <= value if self.at_most else measured >= value


class Verdict(NamedTuple):
    """A goal beside what was measured.

    Attributes:
        measured: None where one of both gave no figure, or the peer's is nothing.
        reached: None where that cannot be said, since the peer has no figure.
    """

    goal: Goal
    measured: float | None
    reached: bool | None

    @property
    def is_held(self) -> bool:
        """Whether nothing is worse than it has to be."""
        floor = self.goal.floor
        if self.reached is not False:
            return True
        return (
            floor is not None
            and self.measured is not None
            and self.goal.is_met(self.measured, floor)
        )


def _many(load: str, rate: float | None = None, cpu_us: float | None = None) -> list[Goal]:
    """Of what leaves the commonest way: several partitions, several active ones of a session.

    Args:
        rate, cpu_us: the floors.
    """
    return [
        Goal(load, "rate", KAFKA, 1.5, floor=rate),
        Goal(load, "cpu_us", KAFKA, 0.5, at_most=True, floor=cpu_us),
    ]


def _produced(load: str) -> list[Goal]:
    return [
        Goal(load, "rate", KAFKA, 1.0),
        Goal(load, "cpu_us", KAFKA, 0.5, at_most=True, floor=0.75),
        Goal(load, "rate", KFAKE, 1.0),
    ]


def _consumed(load: str) -> list[Goal]:
    return [
        Goal(load, "rate", KAFKA, 1.1, floor=0.9),
        Goal(load, "cpu_us", KAFKA, 1 / 3, at_most=True, floor=1.2),
        Goal(load, "rate", KFAKE, 1.8, floor=1.0),
    ]


def _round_trip(figure: str) -> list[Goal]:
    return [
        Goal("kafka-python round trip", figure, KAFKA, 0.6, at_most=True, floor=1.15),
        Goal("kafka-python round trip", figure, KFAKE, 1.0, at_most=True, floor=1.25),
    ]


GOALS = [
    Goal("Produce, 1 connection", "rate", KAFKA, 2.5, floor=1.7),
    Goal("Produce, 1 connection", "rate", KFAKE, 1.5, floor=1.0),
    Goal("Produce, 16 connections", "rate", KAFKA, 2.0, floor=1.15),
    Goal("Produce, 16 connections", "cpu_us", ITSELF, 20, at_most=True),
    Goal("Produce, 16 connections", "rate", KFAKE, 1.3, floor=0.8),
    Goal("Produce, 4 connections x 8 in flight", "rate", KAFKA, 4.0, floor=3.2),
    Goal("Produce, 4 connections x 8 in flight", "cpu_us", ITSELF, 10, at_most=True, floor=11),
    Goal("Produce, 4 connections x 8 in flight", "rate", KFAKE, 2.0, floor=1.25),
    *(
        goal
        for size in SIZES.values()
        for acks in ACKS
        for compression in COMPRESSIONS
        for goal in _produced(f"ProducerPerformance {size}, acks={acks}, {compression}")
    ),
    *(
        goal
        for size in SIZES.values()
        for compression in COMPRESSIONS
        for goal in _consumed(f"ConsumerPerformance {size}, {compression}")
    ),
    *(Goal(f"ShareConsumerPerformance {size}", "rate", KAFKA, 1.0) for size in SIZES.values()),
    *_round_trip("p50_ms"),
    *_round_trip("p99_ms"),
    Goal("start", "ready_s", KAFKA, 0.1, at_most=True, floor=0.13),
    Goal("start", "memory_mb", KAFKA, 0.12, at_most=True),
    Goal("memory after 1 GB produced", "memory_mb", ITSELF, 80, at_most=True),
    *_many("Produce, 16 connections, 3 partitions a request", 1.0, 0.7),
    *_many("Produce, 16 connections, 12 partitions a request", 0.8, 0.8),
    *_many("Produce, 16 connections, 50 partitions a request", 0.55, 1.0),
    *_many("Produce, 16 connections, 12 partitions in turn", 1.05, 0.7),
    *_many("Produce, 16 connections, idempotent", 1.0, 0.75),
    *_many("Produce, 16 connections, ACLs and a quota", 1.15, 0.65),
    *_many("session fetch, 1000 partitions"),
    *(
        goal
        for count in (3, 12, 50)
        for goal in _many(f"session fetch, {count} of 1000 partitions")
    ),
    *_many("transactions of 100 records"),
    Goal("three brokers, ProducerPerformance 1 KB, acks=all", "rate", KAFKA, 1.5, floor=0.95),
    Goal(
        "three brokers, ProducerPerformance 1 KB, acks=all", "p99_ms", KAFKA, 0.7, True, floor=1.2
    ),
    Goal("three brokers, transactions of 100 records", "rate", KAFKA, 2.0, floor=0.7),
    Goal("three brokers, heartbeats, classic group", "rate", KAFKA, 1.2),
    Goal("three brokers, heartbeats, consumer group", "rate", KAFKA, 1.2, floor=0.95),
    Goal("5000 idle connections", "kb_each", ITSELF, 20, at_most=True),
    Goal("5000 idle connections", "busy_loss", ITSELF, 0.1, at_most=True),
]


def judged(table: Medians, goals: list[Goal] | None = None) -> list[Verdict]:
    """Each goal whose load was run on any peer."""
    return [_judged(goal, table) for goal in goals or GOALS if goal.load in table]


def _judged(goal: Goal, table: Medians) -> Verdict:
    by_peer = table[goal.load]
    ours = by_peer.get(ITSELF, {}).get(goal.figure)
    theirs = 1.0 if goal.peer == ITSELF else by_peer.get(goal.peer, {}).get(goal.figure)
    measured = ratio(ours, theirs)
    if ours is None:
        return Verdict(goal, None, False)
    if measured is None:
        return Verdict(goal, None, None)
    return Verdict(goal, measured, goal.is_met(measured, goal.value))
