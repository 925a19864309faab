"""How far a query is behind, from what stands in a progress."""

from __future__ import annotations

from odradek.spark_connector import OffsetsBehindLatest, offsets_behind_latest

LATEST = '{"a": {"0": 10, "1": 4}, "b": {"0": 3}}'


def test_a_partition_that_was_not_read_is_behind_by_all_it_has() -> None:
    source = {"endOffset": '{"a": {"0": 8, "1": 4}}', "latestOffset": LATEST}
    assert offsets_behind_latest(source) == OffsetsBehindLatest(5, 0, 3, 5 / 3)


def test_a_progress_without_positions_tells_nothing() -> None:
    for reached in (None, "-", "7"):
        assert offsets_behind_latest({"endOffset": reached, "latestOffset": LATEST}) is None
