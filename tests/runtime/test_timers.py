import random
from functools import partial

import pytest

from odradek.runtime.timers import COMPACT_AT_LEAST, Timers


def test_timers_run_in_order_of_their_moments() -> None:
    timers, ran = Timers(), []
    for at_ms in (30, 10, 20):
        timers.schedule(at_ms, lambda at_ms=at_ms: ran.append(at_ms))
    assert timers.next_deadline_ms() == 10
    assert timers.run_due(20) == 2
    assert ran == [10, 20]
    assert timers.next_deadline_ms() == 30


def test_a_cancelled_timer_neither_runs_nor_wakes_the_loop() -> None:
    timers, ran = Timers(), []
    timers.schedule(1, lambda: ran.append("cancelled")).cancel()
    timers.schedule(2, lambda: ran.append("kept"))
    assert timers.next_deadline_ms() == 2
    assert timers.run_due(5) == 1
    assert ran == ["kept"]
    assert timers.next_deadline_ms() is None


def test_a_timer_may_cancel_another_that_is_due_in_the_same_round() -> None:
    timers, ran = Timers(), []
    timers.schedule(1, lambda: second.cancel())
    second = timers.schedule(1, lambda: ran.append("second"))
    assert timers.run_due(1) == 1
    assert ran == []
    assert len(timers) == 0


def test_a_timer_that_rearms_itself_waits_for_the_next_round() -> None:
    timers, ran = Timers(), []

    def again() -> None:
        ran.append(1)
        timers.schedule(0, again)

    timers.schedule(0, again)
    assert timers.run_due(10) == 1
    assert timers.run_due(10) == 1
    assert ran == [1, 1]


def test_what_came_due_first_is_done_first_where_not_all_is_done_at_once() -> None:
    timers, ran = Timers(), []
    for number in (2, 0, 1, 3):
        timers.schedule(number, partial(ran.append, number))
    assert timers.run_due(10, most=3) == 3
    assert ran == [0, 1, 2]
    assert timers.next_deadline_ms() == 3
    assert timers.run_due(10, most=3) == 1
    assert ran == [0, 1, 2, 3]


def test_a_timer_that_fails_does_not_keep_the_others_from_running() -> None:
    timers, ran = Timers(), []
    timers.schedule(1, lambda: 1 // 0)
    timers.schedule(2, lambda: ran.append("second"))
    with pytest.raises(ExceptionGroup) as raised:
        timers.run_due(5)
    assert raised.group_contains(ZeroDivisionError)
    assert "timer callback " in raised.value.exceptions[0].__notes__[0]
    assert ran == ["second"]


def test_many_cancelled_timers_do_not_stay_in_memory() -> None:
    timers = Timers()
    rng = random.Random(7)
    kept = timers.schedule(10**6, lambda: None)
    for _ in range(20 * COMPACT_AT_LEAST):
        timers.schedule(rng.randrange(10**6), lambda: None).cancel()
    assert len(timers) == 1
    assert len(timers._heap) <= 2 * COMPACT_AT_LEAST + 2
    assert timers.next_deadline_ms() == kept.at_ms
