"""Goals: which figures they are about, and when they are reached."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from odradek.tools.benchmarks.compared.goals import (
    GOALS,
    ITSELF,
    KAFKA,
    KFAKE,
    Goal,
    Verdict,
    judged,
)
from odradek.tools.benchmarks.compared.loads import (
    GUARDED,
    ONE_BROKER,
    SPARK,
    THREE_BROKERS,
    warm_ups,
)
from odradek.tools.benchmarks.compared.report import UNITS, show, show_changes, show_goals

FASTER = Goal("a", "rate", KAFKA, 2.5)
CHEAPER = Goal("a", "cpu_us", KAFKA, 0.5, at_most=True)
SMALL = Goal("a", "memory_mb", ITSELF, 80, at_most=True)


def verdict_of(goal: Goal, ours: float | None, theirs: float | None = None) -> Verdict:
    values = {ITSELF: ours, goal.peer: theirs} if goal.peer != ITSELF else {ITSELF: ours}
    by_peer = {peer: {goal.figure: value} for peer, value in values.items() if value is not None}
    (verdict,) = judged({goal.load: by_peer}, [goal])
    return verdict


@pytest.mark.parametrize(
    ("goal", "ours", "theirs", "reached"),
    [
        (FASTER, 250.0, 100.0, True),
        (FASTER, 249.0, 100.0, False),
        (CHEAPER, 5.0, 10.0, True),
        (CHEAPER, 5.1, 10.0, False),
        (SMALL, 80.0, None, True),
        (SMALL, 80.1, None, False),
    ],
)
def test_a_goal_is_reached_at_its_value(
    goal: Goal, ours: float, theirs: float | None, reached: bool
) -> None:
    assert verdict_of(goal, ours, theirs).reached is reached


def test_a_goal_is_missed_where_we_failed_and_open_where_the_peer_did() -> None:
    assert verdict_of(FASTER, None, 100.0) == Verdict(FASTER, None, False)
    assert verdict_of(FASTER, 100.0, None) == Verdict(FASTER, None, None)
    assert verdict_of(CHEAPER, 1.0, 0.0) == Verdict(CHEAPER, None, None)


def test_a_floor_holds_below_its_goal_and_no_further() -> None:
    goal = FASTER._replace(floor=2.0)
    assert verdict_of(goal, 250.0, 100.0).is_held
    assert verdict_of(goal, 200.0, 100.0) == Verdict(goal, 2.0, False)
    assert verdict_of(goal, 200.0, 100.0).is_held
    assert not verdict_of(goal, 199.0, 100.0).is_held
    assert not verdict_of(goal, None, 100.0).is_held
    assert verdict_of(goal, 200.0, None).is_held
    assert not verdict_of(FASTER, 249.0, 100.0).is_held


def test_no_floor_is_above_its_goal() -> None:
    floors = [goal for goal in GOALS if goal.floor is not None]
    assert not [goal for goal in floors if goal.is_met(goal.floor, goal.value)]


def test_a_load_that_did_not_run_is_not_judged() -> None:
    assert judged({"b": {ITSELF: {"rate": 1.0}}}, [FASTER]) == []


def test_every_goal_is_about_a_load_that_runs() -> None:
    names = {load.name for load in (*ONE_BROKER, *GUARDED, *SPARK, *THREE_BROKERS)} | {"start"}
    assert {goal.load for goal in GOALS} <= names
    assert {goal.figure for goal in GOALS} <= set(UNITS)
    assert {goal.peer for goal in GOALS} == {KAFKA, KFAKE, ITSELF}


def test_loads_have_names_of_their_own() -> None:
    names = [load.name for load in (*ONE_BROKER, *GUARDED, *SPARK, *THREE_BROKERS)]
    assert len(names) == len(set(names))


def test_peers_are_warmed_up_by_the_kind_of_what_is_requested() -> None:
    def named(start: str) -> list[str]:
        loads = [load for load in (*ONE_BROKER, *THREE_BROKERS) if load.name.startswith(start)]
        return [load.name for load in warm_ups(loads)]

    small = "Produce, 16 connections"
    assert named("Produce,") == [small]
    assert named("ConsumerPerformance 1 KB") == [small, "ConsumerPerformance 100 B, none"]
    assert named("P") == [small, "ProducerPerformance 100 B, acks=1, none"]
    assert named("three brokers") == ["three brokers, ProducerPerformance 1 KB, acks=all"]
    assert warm_ups(SPARK) == []


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=160)


def row(text: str, *words: str) -> list[str]:
    """The cells of the only row that has all these words."""
    (found,) = [line for line in text.splitlines() if all(word in line for word in words)]
    return [cell.strip() for cell in found.split("│")[1:-1]]


def test_the_table_has_a_dash_where_a_peer_gave_no_figure(console: Console) -> None:
    table = {"a": {ITSELF: {"rate": 300.0, "p50_ms": 1.0}, KAFKA: {"rate": 100.0}}}
    show(table, [ITSELF, KAFKA, KFAKE], console)
    text = printed(console)
    assert row(text, "/s") == ["a", "/s", "300", "100", "-", "3.00", "-"]
    assert row(text, "ms p50") == ["a", "ms p50", "1", "-", "-", "-", "-"]


def test_goals_are_reached_together_only_if_none_is_missed(console: Console) -> None:
    first, *_ = GOALS
    assert (first.peer, first.at_most) == (KAFKA, False)
    assert first.floor is not None
    ours = first.value * 10
    table = {first.load: {ITSELF: {first.figure: ours}, KAFKA: {first.figure: 10.0}}}
    assert show_goals(table, console)
    assert row(printed(console), "reached", KAFKA)[-1] == "reached"
    table[first.load][KAFKA][first.figure] = 10.1
    assert show_goals(table, console)
    assert row(printed(console), "floor held", KAFKA)[-1] == "floor held"
    table[first.load][KAFKA][first.figure] = ours / first.floor * 1.01
    assert not show_goals(table, console)
    assert row(printed(console), "MISSED", KAFKA)[-1] == "MISSED"


def test_a_comparison_shows_the_ratio_and_what_it_was(console: Console) -> None:
    earlier = {"a": {ITSELF: {"rate": 200.0}, KAFKA: {"rate": 100.0}}}
    later = {"a": {ITSELF: {"rate": 300.0}, KAFKA: {"rate": 90.0}, KFAKE: {"rate": 1.0}}}
    show_changes(earlier, later, [ITSELF, KAFKA, KFAKE], "before.json", console)
    text = printed(console)
    assert "before.json" in text
    assert row(text, "/s") == ["a", "/s", "1.50 (200)", "0.90 (100)", "-"]
