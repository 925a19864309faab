"""How ranges are divided into tasks, batches limited, and filters carried out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

from odradek.common.sentinels import INT64_MAX
from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.kafka_source.filters import PushedFilters
from odradek.spark_connector.kafka_source.offset_ranges import OffsetRange, divide
from odradek.spark_connector.kafka_source.stream_offsets import from_json, to_json
from odradek.spark_connector.kafka_source.trigger_limits import DelayedBatches, limited

SIZES = st.lists(st.integers(0, 5000), min_size=1, max_size=6)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange("t", number, 7, 7 + size) for number, size in enumerate(sizes)]


@given(SIZES, st.none() | st.integers(1, 40), st.none() | st.integers(1, 900))
def test_division_covers_each_offset_once(
    sizes: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    parts = divide(ranges_of(sizes), min_partitions, max_records)
    for number, size in enumerate(sizes):
        mine = [part for part in parts if part.partition == number]
        covered = [offset for part in mine for offset in range(part.start, part.until)]
        assert covered == list(range(7, 7 + size))
    assert all(part.size > 0 for part in parts)
    if max_records is not None:
        assert all(part.size <= max_records for part in parts)


def test_min_partitions_divide_the_large_ranges_only() -> None:
    parts = divide(ranges_of([1000, 10]), 5, None)
    assert [(part.partition, part.size) for part in parts] == [
        (0, 250),
        (0, 250),
        (0, 250),
        (0, 250),
        (1, 10),
    ]


def test_a_limit_is_shared_by_what_waits_and_starves_nobody() -> None:
    start = {("t", 0): 0, ("t", 1): 100, ("t", 2): 50}
    latest = {("t", 0): 3000, ("t", 1): 1100, ("t", 2): 51}
    assert limited(400, start, latest) == {("t", 0): 299, ("t", 1): 199, ("t", 2): 51}


@given(SIZES, st.integers(1, 3000))
def test_a_limited_stream_arrives_at_the_end(sizes: list[int], limit: int) -> None:
    latest = {("t", number): size for number, size in enumerate(sizes)}
    position = dict.fromkeys(latest, 0)
    while position != latest:
        end = limited(limit, position, latest)
        assert end != position
        assert all(position[each] <= end[each] <= latest[each] for each in latest)
        taken = sum(end.values()) - sum(position.values())
        assert taken <= limit + len(sizes)
        position = end


def test_a_small_batch_is_held_back_until_it_has_waited() -> None:
    delayed = DelayedBatches(100, 5_000)
    start: dict[tuple[str, int], int] = {("t", 0): 0}
    assert not delayed.holds_back(start, {("t", 0): 1}, 0)
    assert delayed.holds_back(start, {("t", 0): 99}, 4_999)
    assert not delayed.holds_back(start, {("t", 0): 100}, 4_999)
    assert delayed.holds_back(start, {("t", 0): 99}, 9_998)
    assert not delayed.holds_back(start, {("t", 0): 99}, 9_999)


def test_offsets_have_the_form_of_sparks_own_source() -> None:
    offsets = {("b", 0): 1, ("a", 10): 2, ("a", 9): 3}
    assert to_json(offsets) == {"a": {"9": 3, "10": 2}, "b": {"0": 1}}
    assert from_json(to_json(offsets)) == offsets


def test_a_checkpoint_of_something_else_is_reported() -> None:
    with pytest.raises(SparkConnectorError, match="checkpointLocation"):
        from_json({"seconds": 5})


# --- Filters, which only a later Spark pushes down -------------------------------------------


@dataclass(frozen=True)
class ValueFilter:
    """As Spark 4.1 has it; the class's name says which comparison it is."""

    attribute: tuple[str, ...]
    value: Any = None


def pushed(name: str, column: str, value: Any = None) -> Any:
    return type(name, (ValueFilter,), {})((column,), value)


def test_offsets_are_narrowed_to_what_all_filters_leave() -> None:
    filters = PushedFilters()
    left = filters.take(
        [
            pushed("IsNotNull", "offset"),
            pushed("GreaterThan", "offset", 10),
            pushed("LessThanOrEqual", "offset", 20),
        ]
    )
    assert left == []
    assert (filters.first_offset, filters.until_offset) == (11, 21)


def test_topics_and_partitions_are_chosen() -> None:
    filters = PushedFilters()
    left = filters.take(
        [
            pushed("StringStartsWith", "topic", "fl"),
            pushed("In", "partition", (1, 2)),
        ]
    )
    assert left == []
    chosen = [("flights", 1), ("flights", 3), ("weather", 1)]
    assert [each for each in chosen if filters.covers(*each)] == [("flights", 1)]


def test_a_time_says_where_to_begin_and_is_left_to_spark() -> None:
    filters = PushedFilters()
    moment = datetime(2013, 6, 1, 12, tzinfo=UTC)
    wanted = [pushed("GreaterThanOrEqual", "timestamp", moment)]
    assert filters.take(wanted) == wanted
    assert filters.timestamp_ms == 1_370_088_000_000


@pytest.mark.parametrize(
    "unknown",
    [
        pushed("EqualTo", "value", b"x"),
        pushed("In", "offset", (1, 2)),
        pushed("EqualTo", "partition", None),
        pushed("LessThan", "timestamp", datetime(2013, 6, 1, tzinfo=UTC)),
        type("Not", (), {"child": pushed("EqualTo", "topic", "a")})(),
    ],
)
def test_what_cannot_be_carried_out_is_left_to_spark(unknown: Any) -> None:
    filters = PushedFilters()
    assert filters.take([unknown]) == [unknown]
    assert (filters.first_offset, filters.until_offset) == (0, INT64_MAX)
    assert filters.covers("any", 5)
    assert filters.timestamp_ms is None
