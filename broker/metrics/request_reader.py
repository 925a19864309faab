"""Requests by API and version, and how long they took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...common.errors import ErrorCode
from ...protocol.messages import request_message
from ..request.request_metrics import BUCKETS, RequestTimes, quantiles
from .metric import Sample, Summary
from .source import MetricsSource

if TYPE_CHECKING:
    from ..request.route import Route

QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""Those that the exporter shows of Kafka's histograms, as it writes them."""

_SHARES = tuple(float(each) for each in QUANTILES)


def request_samples(source: MetricsSource) -> Iterator[Sample]:
    """Every API that was requested.

    A Fetch counts twice, as in Kafka: under its own name, and as FetchConsumer or FetchFollower.
    """
    times_of: dict[str, list[RequestTimes]] = defaultdict(list)
    errors: Counter[tuple[str, str]] = Counter()
    for route in source.dispatcher.routes:
        for name, times in _named_times(route):
            times_of[name].append(times)
        for name, count in _counts(route).items():
            labels = (name, str(route.api_version))
            yield "kafka_network_requestmetrics_requests_total", labels, count
        for error, count in route.errors.by_name():
            errors[_name(route), error] += count
        if route.times.sub_millisecond_count:
            errors[_name(route), ErrorCode.NONE.name] += route.times.sub_millisecond_count
    for request_and_error, count in errors.items():
        yield "kafka_network_requestmetrics_errors_total", request_and_error, count
    now_ms = source.context.clock.monotonic_ms()
    for name, several in times_of.items():
        yield "kafka_network_requestmetrics_totaltimems", (name,), _summary(several, now_ms)


def _name(route: Route) -> str:
    return request_message(route.api_key).name.removesuffix("Request")


def _named_times(route: Route) -> Iterator[tuple[str, RequestTimes]]:
    name = _name(route)
    yield name, route.times
    if route.follower_times is not None:
        yield name, route.follower_times
        yield f"{name}Consumer", route.times
        yield f"{name}Follower", route.follower_times


def _counts(route: Route) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for name, times in _named_times(route):
        counts[name] += times.count
    return counts


def _summary(several: list[RequestTimes], now_ms: int) -> Summary:
    buckets = [0] * BUCKETS
    for times in several:
        buckets = [a + b for a, b in zip(buckets, times.recent(now_ms), strict=True)]
    return Summary(
        sum(times.count for times in several),
        sum(times.sum_ms for times in several),
        tuple(zip(QUANTILES, quantiles(buckets, _SHARES), strict=True)),
    )
