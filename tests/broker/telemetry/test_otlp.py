"""MetricsData as OpenTelemetry's own classes write it, and what is not MetricsData."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.broker.telemetry.otlp import LABELS_MAX, Point, PointKind, read_points
from odradek.runtime.steps import run_at_once

texts = st.text(max_size=20)
values = st.one_of(
    texts.map(lambda text: AnyValue(string_value=text)),
    st.booleans().map(lambda value: AnyValue(bool_value=value)),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda value: AnyValue(int_value=value)),
)
attributes = st.dictionaries(texts, values, max_size=4)
numbers = st.one_of(
    st.floats(allow_nan=False).map(lambda value: {"as_double": value}),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda value: {"as_int": value}),
)
points = st.lists(st.tuples(attributes, numbers), max_size=3)
temporality = st.sampled_from([otlp.AGGREGATION_TEMPORALITY_DELTA, 2, 0])
measures = st.one_of(
    st.tuples(st.just("gauge"), points),
    st.tuples(st.just("sum"), points, temporality, st.booleans()),
    st.tuples(st.just("histogram")),
)
metrics = st.lists(st.tuples(texts, measures), max_size=4)


def pairs(given: dict[str, AnyValue]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in given.items()]


def data_points(given: list[Any]) -> list[otlp.NumberDataPoint]:
    return [
        otlp.NumberDataPoint(attributes=pairs(own), time_unix_nano=1, **number)
        for own, number in given
    ]


def metric(name: str, measure: tuple[Any, ...]) -> otlp.Metric:
    kind, *rest = measure
    if kind == "gauge":
        return otlp.Metric(name=name, gauge=otlp.Gauge(data_points=data_points(rest[0])))
    if kind == "sum":
        total = otlp.Sum(
            data_points=data_points(rest[0]), aggregation_temporality=rest[1], is_monotonic=rest[2]
        )
        return otlp.Metric(name=name, unit="1", description="d", sum=total)
    point = otlp.HistogramDataPoint(count=3, sum=4.0)
    return otlp.Metric(name=name, histogram=otlp.Histogram(data_points=[point]))


def text_of(value: AnyValue) -> str:
    if value.HasField("bool_value"):
        return "true" if value.bool_value else "false"
    return value.string_value if value.HasField("string_value") else str(value.int_value)


def expected(of_client: dict[str, AnyValue], given: list[Any]) -> list[tuple[Any, ...]]:
    found = []
    for name, (kind, *rest) in given:
        for own, number in rest[0] if rest else ():
            is_delta = kind == "sum" and rest[1] == otlp.AGGREGATION_TEMPORALITY_DELTA
            kinds = {"gauge": PointKind.GAUGE, "sum": PointKind.SUM}
            labels = [(key, text_of(value)) for key, value in [*of_client.items(), *own.items()]]
            (value,) = number.values()
            found.append(
                (
                    name,
                    PointKind.DELTA if is_delta else kinds[kind],
                    kind == "sum" and rest[2],
                    tuple(labels),
                    float(value),
                )
            )
    return found


def read(data: bytes) -> list[Point]:
    found: list[Point] = []
    run_at_once(read_points(data, found.append))
    return found


@given(attributes, metrics)
def test_gauges_and_sums_are_read_as_they_were_written(
    of_client: dict[str, AnyValue], given: list[Any]
) -> None:
    data = otlp.MetricsData(
        resource_metrics=[
            otlp.ResourceMetrics(
                resource=Resource(attributes=pairs(of_client)),
                scope_metrics=[otlp.ScopeMetrics(metrics=[metric(*each) for each in given])],
            )
        ]
    )
    found = [(*each.measure, each.labels, each.value) for each in read(data.SerializeToString())]
    assert found == expected(of_client, given)


@given(st.binary(max_size=200))
def test_what_is_no_message_is_an_error_and_nothing_else(data: bytes) -> None:
    try:
        found = read(data)
    except ValueError:
        return
    assert all(isinstance(each.value, float) for each in found)


def test_labels_and_texts_are_cut() -> None:
    many = {f"key{number}": AnyValue(string_value="v") for number in range(100)}
    point = otlp.NumberDataPoint(attributes=pairs(many), as_double=math.inf)
    gauge = otlp.Gauge(data_points=[point])
    scope = otlp.ScopeMetrics(metrics=[otlp.Metric(name="n" * 1000, gauge=gauge)])
    data = otlp.MetricsData(resource_metrics=[otlp.ResourceMetrics(scope_metrics=[scope])])
    (found,) = read(data.SerializeToString())
    assert (len(found.labels), len(found.measure.name)) == (LABELS_MAX, 255)
