"""The file of a run: written, read again, compared; and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.bench.errors import BenchError
from odradek.bench.plot import plot
from odradek.bench.report import BenchReport, columns, compared, is_loader_bound, number, read_loads

LOADS = {"a": {"requests": 5.0, "rate": 100.0, "p50_ms": 2.0}, "b": {"ready_s": 0.5}}


def saved(folder: Path, **changes: Any) -> Path:
    path = folder / "run.json"
    BenchReport("2026-01-01T00:00:00", "here", 1.0, 1, {"cores": "2"}, {}, LOADS).save(path)
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(content))
    return path


def test_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_loads(saved(tmp_path)) == (LOADS, {"cores": "2"})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"loads": []},
        {"loads": {"a": 1}},
        {"loads": {"a": {"rate": "fast"}}},
        {"loads": {"a": {"rate": -1}}},
        {"loads": {"a": {"rate": float("nan")}}},
        {"loads": {"a": {"rate": True}}},
        {"machine": 5},
    ],
)
def test_file_of_something_else_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(BenchError, match=r"run\.json"):
        read_loads(saved(tmp_path, **changes))


@pytest.mark.parametrize("text", ["", "not JSON", "[1]", "[" * 100_000, '"\\ud800"'])
def test_file_that_is_no_json_object_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(BenchError, match=r"run\.json is no file that"):
        read_loads(path)


def test_ratios_say_which_run_is_better() -> None:
    now = {"a": {"rate": 150.0, "p50_ms": 3.0, "cpu_us": 1.0}, "c": {"rate": 1.0}}
    found = {each.figure: (each.ratio, each.verdict) for each in compared(now, LOADS)}
    assert found == {"rate": (1.5, "better"), "p50_ms": (1.5, "worse")}
    (same,) = compared({"b": {"ready_s": 0.51}}, LOADS)
    assert same.verdict == "the same"


def test_columns_are_those_that_any_load_has() -> None:
    assert columns(LOADS) == ["rate", "p50_ms", "ready_s", "requests"]


def test_loader_that_had_no_time_left_is_reported() -> None:
    assert is_loader_bound({"rate": 100_000.0, "loader_us": 9.5})
    assert not is_loader_bound({"rate": 100_000.0, "loader_us": 5.0})
    assert not is_loader_bound({"p50_ms": 1.0, "loader_us": 900.0})


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (0.1234, "0.123"), (99.96, "100"), (12_345.6, "12,346")],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert number(value) == text


def test_picture_of_two_runs_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "bench.png"
    plot(path, {"earlier": {}, "this run": LOADS}, "a machine")
    assert path.read_bytes().startswith(b"\x89PNG")
    plot(path, {"this run": {"b": {"ready_s": 0.5}}}, "nothing to draw")
