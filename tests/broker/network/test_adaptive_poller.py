"""When the loop waits awake, and when asleep."""

from __future__ import annotations

import select
import socket

import pytest
import trio
import trio.testing

from odradek.broker.network import adaptive_poller
from odradek.broker.network.adaptive_poller import (
    LIGHT_PASS_BYTES,
    NAP_SECONDS,
    SPIN_SECONDS,
    AdaptivePoller,
)

EVENT = [(5, select.EPOLLIN)]


class Epoll:
    """Gives an event after so long, and notes how each look was made.

    A look without sleeping takes a microsecond of the test's own time.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.due = float("inf")
        self.timeouts: list[float] = []

    def seconds(self) -> float:
        return self.now

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        self.timeouts.append(timeout)
        self.now = max(self.now, min(self.due, self.now + max(timeout, 1e-6)))
        if self.now < self.due:
            return []
        self.due = float("inf")
        return EVENT

    def slept(self) -> bool:
        """Whether any look since the last question slept."""
        timeouts, self.timeouts = self.timeouts, []
        return any(timeouts)


@pytest.fixture
def epoll(monkeypatch: pytest.MonkeyPatch) -> Epoll:
    epoll = Epoll()
    monkeypatch.setattr(adaptive_poller, "precise_seconds", epoll.seconds)
    return epoll


def after(epoll: Epoll, poller: AdaptivePoller, seconds: float) -> list[tuple[int, int]]:
    """What it sees of an event so long from now."""
    epoll.due = epoll.now + seconds
    return poller.next_events(0)


async def test_a_client_that_sends_at_once_is_waited_for_awake(epoll: Epoll) -> None:
    poller = AdaptivePoller(epoll)  # type: ignore[arg-type]  # as much of one as it needs
    assert after(epoll, poller, SPIN_SECONDS / 2) == EVENT
    assert epoll.slept()
    for _ in range(100):
        assert after(epoll, poller, SPIN_SECONDS / 2) == EVENT
        assert not epoll.slept()


async def test_a_client_that_takes_its_time_is_waited_for_asleep(epoll: Epoll) -> None:
    poller = AdaptivePoller(epoll)  # type: ignore[arg-type]  # as much of one as it needs
    for _ in range(20):
        assert after(epoll, poller, SPIN_SECONDS * 3) == EVENT
        assert epoll.timeouts == [NAP_SECONDS]
        assert epoll.slept()


async def test_a_client_that_sends_much_is_waited_for_asleep(epoll: Epoll) -> None:
    poller = AdaptivePoller(epoll)  # type: ignore[arg-type]  # as much of one as it needs
    after(epoll, poller, SPIN_SECONDS / 2)
    epoll.timeouts.clear()
    epoll.due = epoll.now + SPIN_SECONDS / 2
    assert poller.next_events(LIGHT_PASS_BYTES + 1) == EVENT
    assert epoll.timeouts == [NAP_SECONDS]


async def test_useless_spinning_soon_ends(epoll: Epoll) -> None:
    poller = AdaptivePoller(epoll)  # type: ignore[arg-type]  # as much of one as it needs
    after(epoll, poller, SPIN_SECONDS / 2)
    awake = []
    for _ in range(30):
        epoll.timeouts.clear()
        began = epoll.now
        assert poller.next_events(0) == []
        asleep = NAP_SECONDS if epoll.slept() else 0
        awake.append(epoll.now - began - asleep)
    assert sum(awake) < 2.5 * SPIN_SECONDS
    assert awake[-1] == pytest.approx(0, abs=1e-9)


async def test_other_tasks_are_not_kept_waiting(epoll: Epoll) -> None:
    poller = AdaptivePoller(epoll)  # type: ignore[arg-type]  # as much of one as it needs
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        assert poller.next_events(0) == []
        assert not epoll.slept()


async def test_after_a_useless_nap_there_is_none_until_a_wait_was_short(epoll: Epoll) -> None:
    poller = AdaptivePoller(epoll)  # type: ignore[arg-type]  # as much of one as it needs
    assert poller.next_events(0) == []
    assert epoll.slept()
    assert poller.next_events(0) == []
    poller.note_parked(NAP_SECONDS * 2)
    assert poller.next_events(0) == []
    assert not epoll.slept()
    poller.note_parked(NAP_SECONDS / 2)
    assert after(epoll, poller, NAP_SECONDS / 2) == EVENT
    assert epoll.slept()
    assert after(epoll, poller, NAP_SECONDS / 2) == EVENT
    assert epoll.slept()


async def test_a_real_epoll_is_waited_for(nursery: trio.Nursery) -> None:
    here, there = socket.socketpair()
    with here, there, select.epoll() as real:
        real.register(here, select.EPOLLIN)
        poller = AdaptivePoller(real)
        assert poller.next_events(0) == []
        poller.note_parked(0)
        there.send(b"x")
        assert poller.next_events(0) == [(here.fileno(), select.EPOLLIN)]
