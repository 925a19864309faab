"""Medians of slots, their file, and one run beside another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.tools.benchmarks.compared.slots import (
    ComparedRun,
    ComparedSlot,
    MedianChange,
    changes,
    figures_of,
    load_run,
    medians,
    ratio,
)


def rated(load: str, peer: str, *rates: float) -> list[ComparedSlot]:
    return [ComparedSlot(load, peer, {"rate": rate}, 0.1, 10.0, 20.0) for rate in rates]


def test_a_median_is_of_one_load_and_peer() -> None:
    slots = [
        *rated("a", "x", 3, 1, 200),
        *rated("a", "y", 10, 20),
        *rated("b", "x", 7),
    ]
    assert medians(slots) == {
        "a": {"x": {"rate": 3}, "y": {"rate": 15}},
        "b": {"x": {"rate": 7}},
    }


def test_a_figure_that_one_slot_lacks_has_no_median() -> None:
    slots = [
        ComparedSlot("a", "x", {"rate": 1, "cpu_us": 2}, 0.1),
        ComparedSlot("a", "x", {"rate": 3}, 0.1),
    ]
    assert medians(slots) == {"a": {"x": {"rate": 2}}}


def test_figures_that_only_another_peer_has_are_named() -> None:
    table = {"a": {"x": {"rate": 1.0}, "y": {"cpu_us": 2.0, "rate": 3.0}}}
    assert figures_of(table, "a") == ["rate", "cpu_us"]


@pytest.mark.parametrize(("over", "under"), [(None, 2.0), (2.0, None), (2.0, 0.0)])
def test_there_is_no_ratio_to_nothing(over: float | None, under: float | None) -> None:
    assert ratio(over, under) is None


def test_nothing_over_something_is_a_ratio() -> None:
    assert ratio(0.0, 2.0) == 0.0


def test_a_change_is_the_later_over_the_earlier_where_both_have_it() -> None:
    earlier = {"a": {"x": {"rate": 4.0, "cpu_us": 0.0}, "gone": {"rate": 1.0}}, "old": {}}
    later = {"a": {"x": {"rate": 6.0, "cpu_us": 2.0, "p50_ms": 1.0}}, "new": {"x": {"rate": 1.0}}}
    assert changes(earlier, later) == [
        MedianChange("a", "rate", "x", 4.0, 6.0, 1.5),
        MedianChange("a", "cpu_us", "x", 0.0, 2.0, None),
    ]


def test_a_run_is_read_as_it_was_saved(tmp_path: Path) -> None:
    run = ComparedRun("a machine", {"odradek": "1"}, rated("a", "x", 1, 2), ["b on x failed: no"])
    run.save(tmp_path / "bench.json")
    assert load_run(tmp_path / "bench.json") == run


def test_a_run_without_memory_and_failures_is_read(tmp_path: Path) -> None:
    slot = {"load": "a", "peer": "x", "figures": {"rate": 5}, "calibration": 0.1}
    content = {"machine": "m", "versions": {}, "slots": [slot]}
    (tmp_path / "old.json").write_text(json.dumps(content))
    assert load_run(tmp_path / "old.json") == ComparedRun(
        "m", {}, [ComparedSlot("a", "x", {"rate": 5}, 0.1)], []
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"machine": "m", "versions": {}, "slots": [{"load": "a"}]}',
        '{"machine": "m", "versions": {}, "slots": [{"load": "a", "peer": "x", "figures": {},'
        ' "calibration": 1, "unheard of": 2}]}',
    ],
)
def test_a_file_of_something_else_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json is not a file of figures"):
        load_run(file)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gone\.json cannot be read: No such file"):
        load_run(tmp_path / "gone.json")
