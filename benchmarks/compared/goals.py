"""What odradek is to reach beside its peers; a floor once a limit was proved."""

from __future__ import annotations

from typing import NamedTuple

KAFKA, KFAKE, ITSELF = "Apache Kafka", "kfake", "odradek"


class Goal(NamedTuple):
    """One figure of one load: a ratio to a peer's, or, where the peer is odradek, the value.

    Attributes:
        at_most: whether smaller is better.
    """

    load: str
    figure: str
    peer: str
    value: float
    at_most: bool = False


def _produced(size: str) -> list[Goal]:
    return [
        goal
        for acks in ("1", "all")
        for load in (f"ProducerPerformance {size}, acks={acks}, none",)
        for goal in (
            Goal(load, "rate", KAFKA, 1.0),
            Goal(load, "cpu_us", KAFKA, 0.5, at_most=True),
            Goal(load, "rate", KFAKE, 1.0),
        )
    ]


def _consumed(size: str) -> list[Goal]:
    load = f"ConsumerPerformance {size}, none"
    return [
        Goal(load, "rate", KAFKA, 1.1),
        Goal(load, "cpu_us", KAFKA, 1 / 3, at_most=True),
        Goal(load, "rate", KFAKE, 1.8),
    ]


GOALS = [
    Goal("Produce, 1 connection", "rate", KAFKA, 2.5),
    Goal("Produce, 1 connection", "rate", KFAKE, 1.5),
    Goal("Produce, 16 connections", "rate", KAFKA, 2.0),
    Goal("Produce, 16 connections", "cpu_us", ITSELF, 20, at_most=True),
    Goal("Produce, 16 connections", "rate", KFAKE, 1.3),
    Goal("Produce, 4 connections x 8 in flight", "rate", KAFKA, 4.0),
    Goal("Produce, 4 connections x 8 in flight", "cpu_us", ITSELF, 10, at_most=True),
    Goal("Produce, 4 connections x 8 in flight", "rate", KFAKE, 2.0),
    *_produced("100 B"),
    *_produced("1 KB"),
    *_consumed("100 B"),
    *_consumed("1 KB"),
    *(
        goal
        for figure in ("p50_ms", "p99_ms")
        for goal in (
            Goal("kafka-python round trip", figure, KAFKA, 0.6, at_most=True),
            Goal("kafka-python round trip", figure, KFAKE, 1.0, at_most=True),
        )
    ),
    Goal("start", "ready_s", KAFKA, 0.1, at_most=True),
    Goal("start", "memory_mb", KAFKA, 0.12, at_most=True),
    Goal("memory after 1 GB produced", "memory_mb", ITSELF, 80, at_most=True),
    Goal("5000 idle connections", "kb_each", ITSELF, 20, at_most=True),
    Goal("5000 idle connections", "busy_loss", ITSELF, 0.1, at_most=True),
]
