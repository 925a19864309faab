"""What a metric is, and one value of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class MetricType(Enum):
    """Prometheus's types, as far as they are used; the value is what a TYPE line says."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


class Metric(NamedTuple):
    """One metric: a name, and what its values mean.

    Attributes:
        labels: the names of its labels, in the order in which readers give their values.
        mbean: what Kafka calls it in JMX, empty for what only odradek has.
        help: one sentence.
    """

    name: str
    type: MetricType
    labels: tuple[str, ...]
    mbean: str
    help: str


class Summary(NamedTuple):
    """The value of a SUMMARY.

    Attributes:
        observations: how many values were seen.
        sum: of all of them.
        quantiles: each share as text, such as "0.99", with the value it is at.
    """

    observations: int
    sum: float
    quantiles: tuple[tuple[str, float], ...]


Sample = tuple[str, tuple[str, ...], "float | Summary"]
"""The name of a metric, its labels' values, and its value."""
