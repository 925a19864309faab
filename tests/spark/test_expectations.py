"""Expectations on topics: what Spark measures of each kind, and the history."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.decoding import Schema
from odradek.spark_connector.pipelines import (
    AuditReport,
    AuditSettings,
    ExpectationResult,
    HistorySettings,
    TopicSource,
    ValueSettings,
    audit_topics,
    read_expectations,
)
from odradek.spark_connector.pipelines.audit.html import as_html

from .conftest import START_MS, Topics

pytestmark = pytest.mark.spark

PREFIX = f"expected-{os.getpid()}-"
ORDERS, CUSTOMERS, COUNTS = f"{PREFIX}orders", f"{PREFIX}customers", f"{PREFIX}counts"

AVRO = {
    "type": "record",
    "name": "Count",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "at", "type": {"type": "record", "name": "At", "fields": [
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]}]}},
    ],
}  # fmt: skip
DAY_2024 = 19_723
"""1 January 2024, in days since the epoch."""


def order(number: int) -> bytes:
    """Of 10 orders: 3 has no customer, 4 an unknown one; 7 costs too much, 8 text; 9 is 2 again."""
    customers: dict[int, Any] = {3: None, 4: "zoe"}
    amounts: dict[int, Any] = {7: 1_000.5, 8: "dear", 6: "30"}
    return json.dumps(
        {
            "id": 2 if number == 9 else number,
            "customer": customers.get(number, ("ann", "bob")[number % 2]),
            "amount": amounts.get(number, number * 10),
        }
    ).encode()


def avro(n: int, day: int | None) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(AVRO), {"n": n, "at": {"day": day}})
    return data.getvalue()


def produce(
    bootstrap: str, topic: str, records: list[tuple[bytes | None, bytes | None, int]]
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 60_000})
    for number, (key, value, ms) in enumerate(records):
        producer.produce(topic, value, key, number % 2, timestamp=ms)
    assert producer.flush(60) == 0


FILE = f"""
[[expect]]
name = "customer is there"
kind = "not_null"
column = "field:customer"
topic = "{ORDERS}"

[[expect]]
name = "most have one"
kind = "not_null"
column = "field:customer"
topic = "{ORDERS}"
threshold = 0.1

[[expect]]
name = "amount"
kind = "range"
column = "field:amount"
min = 0
max = 100
topic = "{ORDERS}"
severity = "critical"

[[expect]]
name = "id"
kind = "unique"
column = "field:id"
topic = "{ORDERS}"
severity = "warning"

[[expect]]
name = "customer and id"
kind = "unique"
columns = ["field:customer", "field:id"]
topic = "{ORDERS}"

[[expect]]
name = "known customer"
kind = "referential"
column = "field:customer"
references = {{ topic = "{CUSTOMERS}", column = "key" }}
topic = "{ORDERS}"

[[expect]]
name = "fresh"
kind = "freshness"
max_age = "1h"

[[expect]]
name = "volume"
kind = "volume"
min_ratio = 0.9
max_ratio = 1.1
"""


class Audited(NamedTuple):
    """A topic of orders, and two audits of it: one before it got more records, and one after."""

    bootstrap: str
    history: Path
    first: AuditReport
    second: AuditReport


@pytest.fixture(scope="module")
def audited(spark: Any, broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("expectations")
    bootstrap = str(broker.bootstrap)
    now_ms = time.time_ns() // 1_000_000
    for topic in (ORDERS, CUSTOMERS, COUNTS):
        Topics(bootstrap, topic).create(partitions=2)
    orders: list[tuple[bytes | None, bytes | None, int]] = [
        (b"%d" % number, order(number), START_MS) for number in range(10)
    ]
    produce(bootstrap, ORDERS, [*orders, (b"10", None, START_MS)])
    produce(
        bootstrap, CUSTOMERS, [(b"ann", b"", now_ms), (b"bob", b"", now_ms), (b"zoe", None, now_ms)]
    )
    file = folder / "orders.toml"
    file.write_text(FILE)
    settings = AuditSettings(
        TopicSource(bootstrap, (ORDERS, CUSTOMERS)),
        partitioner="none",
        expectations=read_expectations(file),
        history=HistorySettings(str(folder / "history")),
    )
    first = audit_topics(spark, settings)
    produce(bootstrap, ORDERS, [(b"%d" % n, order(n), now_ms) for n in (10, 11)])
    second = audit_topics(spark, settings)
    return Audited(bootstrap, folder / "history", first, second)


def result(report: AuditReport, name: str, topic: str = ORDERS) -> ExpectationResult:
    (found,) = [r for r in report.results if (r.expectation, r.topic) == (name, topic)]
    return found


@pytest.mark.parametrize(
    ("name", "checked", "failed", "verdict", "sample"),
    [
        ("customer is there", 10, 1, "failed", "1@1"),
        ("most have one", 10, 1, "passed", "1@1"),
        ("amount", 10, 2, "failed", "0@4 has 'dear'"),
        ("id", 10, 1, "failed", "'{2}' is there 2 times, first at 0@1"),
        ("customer and id", 9, 0, "passed", ""),
        ("known customer", 9, 1, "failed", "'zoe' is there once, first at 0@2"),
    ],
)
def test_records_that_are_not_as_expected_are_counted_with_a_sample(
    audited: Audited, name: str, checked: int, failed: int, verdict: str, sample: str
) -> None:
    found = result(audited.first, name)
    assert (found.checked, found.failed, found.verdict) == (checked, failed, verdict)
    assert found.sample == sample


def test_freshness_is_of_the_newest_record_of_each_topic(audited: Audited) -> None:
    assert result(audited.first, "fresh").verdict == "failed"
    assert result(audited.first, "fresh", CUSTOMERS).verdict == "passed"
    assert result(audited.second, "fresh").verdict == "passed"


def test_the_volume_is_compared_with_the_run_that_the_history_has(audited: Audited) -> None:
    assert (audited.first.worst_severity, audited.second.worst_severity) == ("critical",) * 2
    first, second = result(audited.first, "volume"), result(audited.second, "volume")
    assert (first.verdict, first.observed, len(first.trend)) == ("passed", 11.0, 1)
    assert (second.verdict, second.observed) == ("failed", 13.0)
    assert [point.observed for point in second.trend] == [11.0, 13.0]
    assert result(audited.second, "volume", CUSTOMERS).verdict == "passed"


def test_the_history_is_a_file_for_each_run_that_others_read(audited: Audited) -> None:
    files = sorted(path.name for path in audited.history.iterdir() if not path.name.startswith("."))
    assert [name.rpartition("-")[0].partition("-")[0] for name in files] == ["run", "run"]
    rows = pq.read_table(audited.history).to_pylist()
    assert {row["run_id"] for row in rows} == {audited.first.run_id, audited.second.run_id}
    told = {(r.expectation, r.topic, r.observed, r.verdict) for r in audited.first.results}
    assert told == {
        (row["expectation"], row["topic"], row["observed"], row["verdict"])
        for row in rows
        if row["run_id"] == audited.first.run_id
    }
    assert not [path for path in audited.history.iterdir() if "writing" in path.name]


def test_the_report_has_a_trend_for_each_expectation(audited: Audited) -> None:
    page = as_html(audited.second)
    assert page.count("<svg class='trend'") == len(audited.second.results) == 10
    failed = sum(each.has_failed for each in audited.second.results)
    assert f"{failed} failed expectations" in page
    assert "&#x27;zoe&#x27; is there once" in page


def test_decoded_columns_and_a_history_in_iceberg(
    spark: Any, audited: Audited, tmp_path: Path
) -> None:
    values = [avro(1, DAY_2024), avro(2, None), avro(2, DAY_2024 + 1), None, b"\x80"]
    produce(audited.bootstrap, COUNTS, [(b"k", value, START_MS) for value in values])
    file = tmp_path / "counts.toml"
    file.write_text(
        "[[expect]]\nkind = 'range'\ncolumn = 'decoded.at.day'\nmax = 2024-01-01\n"
        "[[expect]]\nkind = 'unique'\ncolumn = 'decoded.n'\nthreshold = 0.4\n"
        "[[expect]]\nkind = 'not_null'\ncolumn = 'decoded.at.day'\n"
    )
    settings = AuditSettings(
        TopicSource(audited.bootstrap, (COUNTS,)),
        partitioner="none",
        values=ValueSettings(None, Schema("AVRO", json.dumps(AVRO))),
        expectations=read_expectations(file),
        history=HistorySettings(str(tmp_path / "warehouse"), "iceberg"),
    )
    audit_topics(spark, settings)
    report = audit_topics(spark, settings)
    assert [fault.kind for fault in report.faults] == ["poison"]
    found = [(r.checked, r.failed, r.verdict, len(r.trend)) for r in report.results]
    # The null's own record and the one that does not decode have no day; the tombstone lacks none.
    assert found == [(2, 1, "failed", 2), (3, 1, "passed", 2), (4, 2, "failed", 2)]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("kind = 'not_null'\ncolumn = 'ke'", "'ke', which records do not have; did you mean key?"),
        ("kind = 'not_null'\ncolumn = 'decoded.n'", r"with a schema \(--registry, --schema\)"),
        ("kind = 'range'\ncolumn = 'headers'\nmin = 1", "compares headers, a column of array"),
        ("kind = 'unique'\ncolumn = 'headers'", "compares headers"),
        ("kind = 'volume'\nmin = 1\ntopic = 'expected'", "'expected', which is not audited"),
        (
            "kind = 'referential'\ncolumn = 'key'\nreferences = {parquet='/no/where', column='a'}",
            "refers to /no/where, which cannot be read",
        ),
    ],
)
def test_what_does_not_fit_the_topic_is_told_in_a_sentence(
    spark: Any, audited: Audited, tmp_path: Path, entry: str, sentence: str
) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(f"[[expect]]\n{entry}\n")
    source = TopicSource(audited.bootstrap, (CUSTOMERS,))
    with pytest.raises(SparkConnectorError, match=sentence):
        audit_topics(spark, AuditSettings(source, expectations=read_expectations(file)))
