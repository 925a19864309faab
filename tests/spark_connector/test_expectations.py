"""Files of expectations, and verdicts on what was measured; no Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    AuditSettings,
    Expectation,
    HistorySettings,
    TopicSource,
    read_expectations,
)
from odradek.spark_connector.pipelines.audit.expectations import (
    EXPECTATIONS_MAX,
    FILE_BYTES_MAX,
    Reference,
)
from odradek.spark_connector.pipelines.audit.results import (
    TREND_RUNS_MAX,
    Measured,
    TrendPoint,
    result_of,
    sparkline,
)

NOW_MS = 1_800_000_000_000


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "orders.toml"
    path.write_text(text)
    return path


def read(tmp_path: Path, text: str) -> tuple[Expectation, ...]:
    return read_expectations(written(tmp_path, text))


def test_each_kind_is_read_with_what_it_takes(tmp_path: Path) -> None:
    text = """
[[expect]]
kind = "not_null"
column = "field:customer"
threshold = 0.25
severity = "warning"
topic = "orders"

[[expect]]
name = "when"
kind = "range"
column = "timestamp"
min = 2024-01-01T00:00:00Z
max = 2024-06-01T00:00:00
severity = "critical"

[[expect]]
kind = "unique"
columns = ["key", "field:id"]

[[expect]]
kind = "referential"
column = "field:customer"
references = { topic = "customers", column = "key" }

[[expect]]
kind = "freshness"
max_age = "1.5h"

[[expect]]
kind = "volume"
min = 10
max_ratio = 2
"""
    not_null, within, unique, referential, freshness, volume = read(tmp_path, text)
    assert not_null == Expectation(
        "not_null orders field:customer",
        "not_null",
        "warning",
        "orders",
        ("field:customer",),
        0.25,
    )
    assert (within.name, within.severity) == ("when", "critical")
    assert (within.least, within.most) == (
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 6, 1, tzinfo=UTC),
    )
    assert (unique.columns, unique.severity) == (("key", "field:id"), "error")
    assert referential.references == Reference("key", topic="customers")
    assert freshness.max_age_s == 5_400
    assert (volume.least, volume.max_ratio, volume.needs_history) == (10, 2.0, True)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ('kind = "nul"', "has the kind 'nul'; did you mean not_null?; it is one of"),
        ("", "has no kind; it is one of not_null, range"),
        ('kind = "not_null"', "lacks column, which not_null needs"),
        (
            'kind = "not_null"\ncolumn = "key"\ntreshold = 0.1',
            "has the setting 'treshold', which not_null does not take; did you mean threshold?",
        ),
        ('kind = "volume"\ncolumn = "key"\nmin = 1', "'column', which volume does not take"),
        ('kind = "range"\ncolumn = "key"', "needs min or max"),
        ('kind = "range"\ncolumn = "key"\nmin = 2\nmax = 1', "a min of 2 above its max of 1"),
        ('kind = "range"\ncolumn = "key"\nmin = 2\nmax = "b"', "a min and a max of different"),
        ('kind = "range"\ncolumn = "key"\nmin = nan', "leave it out where there is no limit"),
        ('kind = "range"\ncolumn = "key"\nmin = true', "no number, text, date or time: True"),
        (f'kind = "range"\ncolumn = "key"\nmin = {2**63}', "does not fit into 64 bits"),
        ('kind = "not_null"\ncolumn = "key"\nthreshold = 5', "from 0 to 1"),
        ('kind = "not_null"\ncolumn = "key"\nseverity = "eror"', "did you mean error?"),
        ('kind = "not_null"\ncolumn = 7', "has a column that is no text: 7"),
        ('kind = "unique"\ncolumns = []', "needs columns as a list of texts"),
        ('kind = "unique"\ncolumn = "a"\ncolumns = ["b"]', "give one of them"),
        ('kind = "freshness"\nmax_age = "1 week"', "write it as '90s', '15m', '36h' or '7d'"),
        ('kind = "volume"\nmin_ratio = 3\nmax_ratio = 2', "a min_ratio above its max_ratio"),
        ('kind = "volume"\nmin = "many"', "needs numbers of records as min and max"),
        (
            'kind = "referential"\ncolumn = "key"\nreferences = { tpic = "a", column = "key" }',
            "references: 'tpic' is not known; did you mean topic?",
        ),
        (
            'kind = "referential"\ncolumn = "key"\nreferences = { column = "key" }',
            "give a column, and either topic or parquet",
        ),
    ],
)
def test_an_entry_that_makes_no_sense_is_named_with_its_line(
    tmp_path: Path, entry: str, sentence: str
) -> None:
    text = f'# Orders\n[[expect]]\nkind = "volume"\nmin = 1\n\n[[expect]]\n{entry}\n'
    with pytest.raises(SparkConnectorError) as refusal:
        read(tmp_path, text)
    assert "orders.toml, line 6: expectation 2" in str(refusal.value)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[expect]\n", "is not TOML: .*line 1"),
        ("[[expects]]\nkind = 'volume'\n", "has 'expects', which means nothing"),
        ("", "expects nothing; write a table"),
        ("expect = 3\n", "expects nothing; write a table"),
        ("a = " + "[" * 50_000, "is not TOML"),
        ("#" * (FILE_BYTES_MAX + 1), "is larger than 1024 KiB"),
        ("[[expect]]\nkind='volume'\nmin=1\n" * (EXPECTATIONS_MAX + 1), "takes 200 at most"),
        ("[[expect]]\nkind='volume'\nmin=1\n" * 2, "is called 'volume', as another one is"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_in_a_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(SparkConnectorError, match=sentence):
        read(tmp_path, text)


def test_a_missing_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SparkConnectorError, match=r"none\.toml: No such file"):
        read_expectations(tmp_path / "none.toml")


def test_settings_without_the_history_that_they_need_are_refused() -> None:
    source = TopicSource("h:1", ("a",))
    volume = Expectation("v", "volume", min_ratio=0.5)
    with pytest.raises(SparkConnectorError, match="'v' compares with the run before"):
        AuditSettings(source, expectations=(volume,)).check()
    with pytest.raises(SparkConnectorError, match="there are none"):
        AuditSettings(source, history=HistorySettings("audits")).check()
    history = HistorySettings("audits", "delta")
    with pytest.raises(SparkConnectorError, match="parquet or iceberg"):
        AuditSettings(source, expectations=(volume,), history=history).check()


# --- Verdicts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checked", "failed", "threshold", "verdict"),
    [
        (100, 0, 0.0, "passed"),
        (100, 1, 0.0, "failed"),
        (100, 1, 0.01, "passed"),
        (100, 2, 0.01, "failed"),
        (100, 100, 1.0, "passed"),
        (0, 0, 0.0, "passed"),
    ],
)
def test_a_share_up_to_the_threshold_may_fail(
    checked: int, failed: int, threshold: float, verdict: str
) -> None:
    expectation = Expectation("e", "not_null", columns=("key",), threshold=threshold)
    result = result_of(expectation, "t", Measured(checked, failed), NOW_MS)
    assert result.verdict == verdict
    assert result.observed == (failed / checked if checked else 0.0)


@pytest.mark.parametrize(
    ("newest_ms", "verdict"),
    [(NOW_MS - 60_000, "passed"), (NOW_MS - 60_001, "failed"), (NOW_MS + 1, "passed")],
)
def test_the_newest_record_may_be_so_old(newest_ms: int, verdict: str) -> None:
    expectation = Expectation("e", "freshness", max_age_s=60)
    result = result_of(expectation, "t", Measured(5, newest_ms=newest_ms), NOW_MS)
    assert (result.verdict, result.observed) == (verdict, (NOW_MS - newest_ms) / 1000)


def test_without_any_record_nothing_is_fresh() -> None:
    result = result_of(Expectation("e", "freshness", max_age_s=60), "t", Measured(0), NOW_MS)
    assert (result.verdict, result.observed) == ("failed", None)


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ((), 100, "passed"),
        ((100,), 50, "passed"),
        ((100,), 49, "failed"),
        ((100,), 201, "failed"),
        ((10, 100), 201, "failed"),  # the run before counts, not an earlier one
        ((0,), 500, "passed"),
        ((100,), 3, "failed"),
    ],
)
def test_a_volume_is_compared_with_the_run_before(
    before: tuple[int, ...], now: int, verdict: str
) -> None:
    trend = tuple(TrendPoint(place, float(count), "passed") for place, count in enumerate(before))
    expectation = Expectation("e", "volume", least=5, min_ratio=0.5, max_ratio=2.0)
    result = result_of(expectation, "t", Measured(now), NOW_MS, trend)
    assert result.verdict == verdict
    assert [point.observed for point in result.trend] == [*before, now]


def test_a_trend_has_the_last_runs_only() -> None:
    before = tuple(TrendPoint(place, 1.0, "passed") for place in range(TREND_RUNS_MAX))
    result = result_of(Expectation("e", "volume", least=1), "t", Measured(7), NOW_MS, before)
    assert len(result.trend) == TREND_RUNS_MAX
    assert (result.trend[0].at_ms, result.trend[-1].observed) == (1, 7.0)


def test_a_sparkline_is_higher_for_more() -> None:
    observed = (0.0, 7.0, None, 14.0)
    trend = tuple(TrendPoint(place, each, "passed") for place, each in enumerate(observed))
    low, middle, none, high = sparkline(trend)
    assert low < middle < high
    assert none == "·"
