"""What administrators want to know of which clients: the `client-metrics` settings, read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...common.named_tuple import NamedTuple
from ...config.tables.group_table import CLIENT_METRICS_DEFINITIONS
from ...config.values import parse_value

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000
"""Without a subscription, too (ClientMetricsConfigs)."""
ATTRIBUTE_LENGTH_MAX = 255
"""A longer attribute of a client matches no pattern: patterns may take their time."""


class Subscription(NamedTuple):
    """One subscription.

    Attributes:
        metrics: prefixes of names; "*" is all, and an empty text, too.
        match: patterns by attribute, all of which a client has to match.
    """

    metrics: frozenset[str]
    interval_ms: int
    match: Mapping[str, re.Pattern[str]]

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Whether it is about a client."""
        for name, pattern in self.match.items():
            value = attributes.get(name)
            if value is None or len(value) > ATTRIBUTE_LENGTH_MAX or not pattern.fullmatch(value):
                return False
        return True


class RequestedMetrics(NamedTuple):
    """What one client is to push, by all subscriptions that it matches."""

    metrics: frozenset[str]
    interval_ms: int


def read_subscription(overrides: Mapping[str, str]) -> Subscription:
    """A subscription from its settings, which were validated when they were made."""
    values: dict[str, Any] = {
        name: parse_value(definition, overrides[name]) if name in overrides else definition.default
        for name, definition in CLIENT_METRICS_DEFINITIONS.items()
    }
    match = {}
    for text in values["match"]:
        name, _, pattern = text.partition("=")
        match[name.strip()] = re.compile(pattern.rstrip("=").strip())
    return Subscription(frozenset(values["metrics"]), values["interval.ms"], match)


def requested_of(
    subscriptions: Iterable[Subscription], attributes: Mapping[str, str]
) -> RequestedMetrics:
    """What a client is to push (ClientMetricsManager.createClientInstance).

    Args:
        attributes: of the client, by the names that `match` knows.
    """
    metrics: set[str] = set()
    interval_ms: int = DEFAULT_INTERVAL_MS
    for each in subscriptions:
        if each.matches(attributes):
            metrics |= each.metrics
            interval_ms = min(interval_ms, each.interval_ms)
    return RequestedMetrics(
        frozenset({ALL_METRICS} if ALL_METRICS in metrics else metrics), interval_ms
    )
