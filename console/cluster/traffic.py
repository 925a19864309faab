"""Bytes in and out, and requests by API with how long they took: from brokers' metrics.

They are where Prometheus would read them; rates are made of two readings, and while nobody looks
nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from http.client import HTTPException
from typing import Final, NamedTuple
from urllib.request import ProxyHandler, build_opener

import trio

from ...runtime.clock import Clock

SCRAPE_SECONDS_MAX: Final = 5.0
SCRAPE_BYTES_MAX: Final = 64 << 20
INTERVAL_MS: Final = 1_000
FORGET_AFTER_MS: Final = 15_000

BYTES_IN: Final = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_OUT: Final = "kafka_server_brokertopicmetrics_bytesout_total"
REQUESTS: Final = "kafka_network_requestmetrics_requests_total"
TIMES: Final = "kafka_network_requestmetrics_totaltimems"
_READ: Final = tuple(name.encode() for name in (BYTES_IN, BYTES_OUT, REQUESTS, TIMES))
PARTS_OF_FETCH: Final = ("FetchConsumer", "FetchFollower")
"""Kafka counts each such request as a Fetch, too (`RequestChannel.updateRequestMetrics`)."""
MEDIAN, P99 = "0.50", "0.99"


class Reading(NamedTuple):
    """What a broker's page says: totals, and the quantiles of each API in ms."""

    bytes_in: float
    bytes_out: float
    requests: dict[str, float]
    quantiles: dict[tuple[str, str], float]


class ApiTraffic(NamedTuple):
    """An API: requests per second of all brokers, and the slowest broker's times in ms."""

    name: str
    rate: float
    median: float | None
    p99: float | None


class Traffic(NamedTuple):
    """Per second, of all brokers whose metrics are read.

    Attributes:
        bytes_in: None before there are two readings.
        apis: those that were requested meanwhile, the busiest first.
        problems: why metrics could not be read.
    """

    bytes_in: float | None
    bytes_out: float | None
    requests: float | None
    apis: list[ApiTraffic]
    problems: list[str]


class TrafficReader:
    """Reads the metrics of brokers.

    Args:
        urls: of their pages.
        clock: the time.
    """

    def __init__(self, urls: Sequence[str], clock: Clock) -> None:
        self._urls = urls
        self._clock = clock
        self._at_ms = 0
        self._readings: dict[str, Reading] = {}
        self._traffic = Traffic(None, None, None, [], [])
        self._reading = trio.Lock()
        # Brokers are near; a proxy for the web would not know them.
        self._opener = build_opener(ProxyHandler({}))

    async def read(self) -> Traffic:
        """The traffic between the last two readings."""
        async with self._reading:
            now_ms = self._clock.monotonic_ms()
            if now_ms - self._at_ms >= INTERVAL_MS:
                await self._look(now_ms)
        return self._traffic

    async def _look(self, now_ms: int) -> None:
        readings: dict[str, Reading] = {}
        problems: list[str] = []

        async def look(url: str) -> None:
            try:
                readings[url] = await trio.to_thread.run_sync(self._scrape, url)
            except (OSError, ValueError, HTTPException) as error:
                problems.append(f"{url} cannot be read: {error}")

        async with trio.open_nursery() as nursery:
            for url in self._urls:
                nursery.start_soon(look, url)
        elapsed_ms = now_ms - self._at_ms
        before = self._readings if elapsed_ms < FORGET_AFTER_MS else {}
        self._traffic = traffic_between(before, readings, elapsed_ms / 1000, sorted(problems))
        self._at_ms, self._readings = now_ms, readings

    def _scrape(self, url: str) -> Reading:
        with self._opener.open(url, timeout=SCRAPE_SECONDS_MAX) as answer:
            return parse(answer.read(SCRAPE_BYTES_MAX))


def parse(page: bytes) -> Reading:
    """What a page says. Raises ValueError: it is not in Prometheus's format."""
    from prometheus_client.parser import text_string_to_metric_families

    # A broker with many partitions has pages of megabytes; only some lines matter here.
    lines = [line for line in page.splitlines() if line.startswith(_READ)]
    totals = {BYTES_IN: 0.0, BYTES_OUT: 0.0}
    requests: dict[str, float] = {}
    quantiles: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(b"\n".join(lines).decode() + "\n"):
        for sample in family.samples:
            api = sample.labels.get("request", "")
            if sample.name == REQUESTS:
                requests[api] = requests.get(api, 0.0) + sample.value
            elif sample.name == TIMES and "quantile" in sample.labels:
                quantiles[api, sample.labels["quantile"]] = sample.value
            elif sample.name in totals and "topic" not in sample.labels:
                totals[sample.name] = sample.value
    return Reading(totals[BYTES_IN], totals[BYTES_OUT], requests, quantiles)


def traffic_between(
    before: dict[str, Reading], now: dict[str, Reading], seconds: float, problems: list[str]
) -> Traffic:
    """The rates of those brokers that both readings have, and that did not begin anew between.

    Args:
        before: readings by address.
        now: the later ones.
        seconds: between them.
        problems: what could not be read.
    """
    pairs = [
        (before[url], reading)
        for url, reading in now.items()
        if url in before and reading.bytes_in >= before[url].bytes_in
    ]
    if not pairs or seconds <= 0:
        return Traffic(None, None, None, [], problems)
    rates: dict[str, float] = {}
    for earlier, later in pairs:
        for api, total in later.requests.items():
            grown = max(total - earlier.requests.get(api, 0.0), 0.0)
            rates[api] = rates.get(api, 0.0) + grown / seconds
    apis = [
        ApiTraffic(api, rate, _slowest(now, api, MEDIAN), _slowest(now, api, P99))
        for api, rate in sorted(rates.items(), key=lambda each: (-each[1], each[0]))
        if rate > 0
    ]
    return Traffic(
        sum(later.bytes_in - earlier.bytes_in for earlier, later in pairs) / seconds,
        sum(later.bytes_out - earlier.bytes_out for earlier, later in pairs) / seconds,
        sum(rate for api, rate in rates.items() if api not in PARTS_OF_FETCH),
        apis,
        problems,
    )


def _slowest(readings: dict[str, Reading], api: str, quantile: str) -> float | None:
    found = [
        value
        for reading in readings.values()
        if (value := reading.quantiles.get((api, quantile))) is not None and value == value
    ]
    return max(found, default=None)
