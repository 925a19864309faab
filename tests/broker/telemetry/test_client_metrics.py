"""When clients may ask and push, what they are to push, and how much of it is kept."""

from __future__ import annotations

import random
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp

from odradek.broker.telemetry import client_metrics
from odradek.broker.telemetry.client_metrics import ClientMetrics, PushingClient
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression, compress
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once

ZERO_ID = bytes(16)
ATTRIBUTES = {
    "client_id": "orders-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_source_address": "127.0.0.1",
    "client_source_port": "5000",
}


class Bench:
    """Client metrics with a clock of their own."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock(0)
        self.metrics = ClientMetrics(
            {"telemetry.max.bytes": 1000},  # type: ignore[arg-type]  # it is looked up only
            self.clock,
            random.Random(1),
        )
        self.metrics.change("all", settings or {"metrics": "*", "interval.ms": "1000"})

    def get(self, instance_id: bytes = ZERO_ID, **attributes: str) -> PushingClient:
        return self.metrics.get(instance_id, {**ATTRIBUTES, **attributes})

    def push(
        self,
        client: PushingClient,
        data: bytes = b"",
        *,
        subscription_id: int | None = None,
        compression: int = Compression.NONE,
        is_terminating: bool = False,
    ) -> ErrorCode:
        if subscription_id is None:
            subscription_id = client.subscription_id
        try:
            run_at_once(
                self.metrics.push(
                    client.id,
                    client.attributes,
                    subscription_id,
                    compression,
                    data,
                    is_terminating=is_terminating,
                )
            )
        except KafkaError as refusal:
            return ErrorCode(refusal.code)
        return ErrorCode.NONE


def message(*values: tuple[str, float], delta: bool = False) -> bytes:
    metrics = []
    for name, value in values:
        point = otlp.NumberDataPoint(as_double=value)
        temporality = 1 if delta else 2
        total = otlp.Sum(
            data_points=[point], aggregation_temporality=temporality, is_monotonic=True
        )
        metrics.append(otlp.Metric(name=name, sum=total))
    scope = otlp.ScopeMetrics(metrics=metrics)
    data = otlp.MetricsData(resource_metrics=[otlp.ResourceMetrics(scope_metrics=[scope])])
    return bytes(data.SerializeToString())


def test_subscriptions_that_match_are_united() -> None:
    bench = Bench(metrics="org.apache.kafka.producer.", match="client_id=orders-.*")
    bench.metrics.change("few", {"metrics": "a,b", "interval.ms": "500"})
    bench.metrics.change("others", {"metrics": "c", "match": "client_software_name=librdkafka"})
    assert bench.get().requested == ({"org.apache.kafka.producer.", "a", "b"}, 500)
    assert bench.get(client_id="more-orders-1").requested == ({"a", "b"}, 500)
    bench.metrics.change("others", {"metrics": "*", "match": "client_source_port=5.*"})
    assert bench.get().requested == ({"*"}, 500)
    for name in ("all", "few", "others"):
        bench.metrics.change(name, {})
    assert bench.get().requested == (frozenset(), 300_000)


def test_a_client_without_an_id_gets_one_and_keeps_it() -> None:
    bench = Bench()
    first, second = bench.get(), bench.get()
    assert len({first.id, second.id, ZERO_ID}) == 3
    bench.clock.advance(1000)
    assert bench.get(first.id) is first


def test_who_comes_before_the_interval_is_over_is_refused() -> None:
    bench = Bench()
    client = bench.get()
    with pytest.raises(KafkaError) as refusal:
        bench.get(client.id)
    assert refusal.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert bench.push(client) == ErrorCode.NONE  # the first may come at any time
    assert bench.push(client) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    bench.clock.advance(999)
    assert bench.push(client) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    bench.clock.advance(1)
    assert bench.push(client) == ErrorCode.NONE


def test_the_last_push_may_come_at_any_time_and_nothing_after_it() -> None:
    bench = Bench()
    client = bench.get()
    assert bench.push(client) == ErrorCode.NONE
    assert bench.push(client, is_terminating=True) == ErrorCode.NONE
    bench.clock.advance(5000)
    assert bench.push(client) == ErrorCode.INVALID_REQUEST


def test_other_subscriptions_have_another_id() -> None:
    bench = Bench()
    client = bench.get()
    before = client.subscription_id
    bench.metrics.change("all", {"metrics": "*", "interval.ms": "2000"})
    assert bench.push(client, subscription_id=before) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    bench.clock.advance(2000)
    assert bench.get(client.id).subscription_id != before
    assert bench.push(client) == ErrorCode.NONE


@pytest.mark.parametrize("compression", list(Compression))
def test_every_codec_is_read(compression: Compression) -> None:
    bench = Bench()
    client = bench.get()
    data = compress(compression, message(("sent.total", 3.0)))
    assert bench.push(client, data, compression=compression) == ErrorCode.NONE
    assert {name: each.value for (name, _), each in client.series.items()} == {"sent.total": 3.0}


@pytest.mark.parametrize(
    ("data", "how", "code"),
    [
        (b"\xff", {}, ErrorCode.INVALID_RECORD),
        (b"no gzip", {"compression": 1}, ErrorCode.INVALID_RECORD),
        (b"", {"compression": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (bytes(1001), {}, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(Compression.ZSTD, bytes(5 << 20)), {"compression": 4}, ErrorCode.INVALID_RECORD),
    ],
)
def test_what_cannot_be_taken_is_refused(data: bytes, how: dict[str, Any], code: ErrorCode) -> None:
    bench = Bench()
    assert bench.push(bench.get(), data, **how) == code


def test_deltas_are_added_up_and_sums_are_not() -> None:
    bench = Bench()
    client = bench.get()
    for _ in range(3):
        bench.push(client, message(("sum.total", 5.0)))
        bench.clock.advance(1000)
        bench.push(client, message(("delta.total", 5.0), delta=True))
        bench.clock.advance(1000)
    values = {name: each.value for (name, _), each in client.series.items()}
    assert values == {"sum.total": 5.0, "delta.total": 15.0}


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_metrics, "SERIES_OF_CLIENT_MAX", 3)
    monkeypatch.setattr(client_metrics, "SERIES_MAX", 5)
    monkeypatch.setattr(client_metrics, "CLIENTS_MAX", 2)
    bench = Bench()
    clients = [bench.get() for _ in range(2)]
    for each in clients:
        bench.push(each, message(*((str(number), 1.0) for number in range(5))))
    assert [len(each.series) for each in clients] == [3, 2]
    assert bench.metrics.dropped_series == 5
    third = bench.get()
    assert list(bench.metrics.clients()) == [clients[1], third]
    bench.push(third, message(*((str(number), 1.0) for number in range(5))))
    assert len(third.series) == 3  # the first one's place is free


def test_who_is_silent_for_three_intervals_is_forgotten() -> None:
    bench = Bench(metrics="*", **{"interval.ms": "30000"})
    client = bench.get()
    bench.clock.advance(90_000)
    assert list(bench.metrics.clients()) == [client]
    bench.clock.advance(1)
    assert list(bench.metrics.clients()) == []
    assert bench.get(client.id) is not client
