"""Brokers' metrics, read from where Prometheus would read them.

Rates are made of two readings, since a scrape holds only how much there was in all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..common.errors import CommandError, fail

SCRAPE_SECONDS_MAX = 5.0
SCRAPE_BYTES_MAX = 64 << 20

BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_OUT = "kafka_server_brokertopicmetrics_bytesout_total"
MAX_LAG = "kafka_server_replicafetchermanager_maxlag"
BROKER_INFO = "odradek_broker_info"
_READ = tuple(name.encode() for name in (BYTES_IN, BYTES_OUT, MAX_LAG, BROKER_INFO))


class BrokerMetrics(NamedTuple):
    """What is shown of one broker's metrics; None for what they do not tell, or not yet."""

    bytes_in: float | None = None
    bytes_out: float | None = None
    lag: int | None = None


class Scrape(NamedTuple):
    """What a page said of one broker, and when (monotonic, seconds)."""

    at: float
    bytes_in: float | None
    bytes_out: float | None
    lag: int | None


class MetricsSource:
    """A page of metrics, of one broker or of several.

    Args:
        text: its URL, HOST:PORT for short, or ID=URL where the page does not say whose it is.

    Raises:
        CommandError: the text is none of these.

    Attributes:
        problem: why the last reading failed; None if it did not.
    """

    def __init__(self, text: str) -> None:
        id_text, equals, url = text.partition("=")
        if not equals or not id_text.isdecimal():
            id_text, url = "", text
        if "://" not in url:
            url = f"http://{url}"
        scheme, _, rest = url.partition("://")
        if scheme not in ("http", "https") or not rest.strip("/"):
            fail(f"{text!r} is no address of metrics; write http://HOST:PORT/metrics")
        if "/" not in rest:
            url += "/metrics"
        self.url = url
        self.problem: str | None = None
        self._broker_id = int(id_text) if id_text else None
        self._before: dict[int, Scrape] = {}

    def read(self) -> dict[int, BrokerMetrics]:
        """The metrics since the last reading, by broker id; empty if there is a problem.

        It blocks for up to `SCRAPE_SECONDS_MAX`: call it in a thread.
        """
        from http.client import HTTPException

        try:
            found = parse(_get(self.url), self._broker_id)
        except (OSError, ValueError, KeyError, HTTPException, CommandError) as error:
            self.problem = f"{self.url}: {_reason(error)}"
            self._before = {}
            return {}
        if not found:
            self.problem = (
                f"{self.url} does not say which broker it is of; write --metrics ID={self.url}"
            )
            return {}
        self.problem = None
        before, self._before = self._before, found
        return {
            broker_id: _between(before.get(broker_id), scrape)
            for broker_id, scrape in found.items()
        }


def parse(page: bytes, broker_id: int | None = None) -> dict[int, Scrape]:
    """What a page says, by broker id; empty where it does not say whose it is.

    The page of several processes (`odradek serve --processes`) has a label `broker` on each sample.

    Args:
        page: as it came.
        broker_id: whose it is, if that is known.

    Raises:
        ValueError: it is not in Prometheus's format.
    """
    from prometheus_client.parser import text_string_to_metric_families

    # A broker with many partitions has pages of megabytes; only some lines matter here.
    lines = [line for line in page.splitlines() if line.startswith(_READ)]
    own: dict[str, float] = {}
    of_others: dict[int, dict[str, float]] = {}
    for family in text_string_to_metric_families(b"\n".join(lines).decode() + "\n"):
        for sample in family.samples:
            broker = sample.labels.get("broker")
            if sample.name == BROKER_INFO:
                broker_id = int(sample.labels["broker"]) if broker_id is None else broker_id
            elif "topic" not in sample.labels:
                values = own if broker is None else of_others.setdefault(int(broker), {})
                values[sample.name] = sample.value
    if of_others:
        return {each: _scrape(values) for each, values in of_others.items()}
    return {} if broker_id is None else {broker_id: _scrape(own)}


def _scrape(values: Mapping[str, float]) -> Scrape:
    lag = values.get(MAX_LAG)
    return Scrape(
        time.monotonic(),
        values.get(BYTES_IN),
        values.get(BYTES_OUT),
        None if lag is None else int(lag),
    )


def _between(before: Scrape | None, now: Scrape) -> BrokerMetrics:
    """What two readings make; the rates are not known by one."""
    if before is None:
        return BrokerMetrics(lag=now.lag)
    seconds = now.at - before.at
    return BrokerMetrics(
        _rate(before.bytes_in, now.bytes_in, seconds),
        _rate(before.bytes_out, now.bytes_out, seconds),
        now.lag,
    )


def _rate(before: float | None, now: float | None, seconds: float) -> float | None:
    """Growth per second; None if it is not known, or the broker began anew in between."""
    if before is None or now is None or now < before or seconds <= 0:
        return None
    return (now - before) / seconds


def _get(url: str) -> bytes:
    from urllib.request import ProxyHandler, build_opener

    # Brokers are near; a proxy for the web would not know them.
    opener = build_opener(ProxyHandler({}))
    with opener.open(url, timeout=SCRAPE_SECONDS_MAX) as response:
        page: bytes = response.read(SCRAPE_BYTES_MAX + 1)
    if len(page) > SCRAPE_BYTES_MAX:
        fail(f"it has more than {SCRAPE_BYTES_MAX >> 20} MB")
    return page


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason) or type(error).__name__


def problems(sources: Sequence[MetricsSource]) -> list[str]:
    """Why some of them could not be read."""
    return [source.problem for source in sources if source.problem is not None]
