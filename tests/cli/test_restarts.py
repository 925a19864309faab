"""When a broker's process is started again, by a clock of the test's."""

from __future__ import annotations

from odradek.cli.serve.processes.restarts import (
    BACKOFF_SECONDS_MAX,
    BACKOFF_SECONDS_MIN,
    RESTARTS_MAX,
    WINDOW_SECONDS,
    Restarts,
)


def test_each_end_doubles_the_wait_until_it_is_given_up() -> None:
    restarts = Restarts()
    delays = [restarts.next_delay(1000.0 + number) for number in range(RESTARTS_MAX)]
    assert delays == [BACKOFF_SECONDS_MIN * 2**number for number in range(RESTARTS_MAX)]
    assert max(each or 0.0 for each in delays) <= BACKOFF_SECONDS_MAX
    assert restarts.next_delay(1100.0) is None


def test_what_is_long_ago_does_not_count() -> None:
    restarts = Restarts()
    for number in range(RESTARTS_MAX):
        restarts.next_delay(float(number))
    # The first two ends are out of the window, the other ones in it.
    now = WINDOW_SECONDS + 1.0
    assert restarts.next_delay(now) == BACKOFF_SECONDS_MIN * 2 ** (RESTARTS_MAX - 2)
    assert restarts.next_delay(3 * WINDOW_SECONDS) == BACKOFF_SECONDS_MIN
