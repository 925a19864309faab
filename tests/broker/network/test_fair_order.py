"""The order of turns, by virtual time alone."""

from __future__ import annotations

import pytest

from odradek.broker.network.fair_order import (
    PASS_SECONDS,
    REQUESTS_PER_ROUND_MAX,
    REQUESTS_PER_TURN_MAX,
    FairOrder,
    Turns,
    requests_per_turn,
)


class Taker:
    def __init__(self, order: FairOrder, seconds: float) -> None:
        self.turns: Turns = order.newcomer()
        self.seconds = seconds
        self.taken = 0


def take_turns(order: FairOrder, takers: list[Taker], count: int) -> list[Taker]:
    """So many turns, one in each pass; who took them."""
    taken = []
    for _ in range(count):
        first = order.sorted(takers)[0]
        order.note_turn(first, first.seconds)
        first.taken += 1
        taken.append(first)
    return taken


def test_all_get_the_same_time_whatever_their_turns_take() -> None:
    order = FairOrder()
    takers = [Taker(order, seconds) for seconds in (0.001, 0.002, 0.004)]
    take_turns(order, takers, 7000)
    assert [taker.taken for taker in takers] == pytest.approx([4000, 2000, 1000], abs=3)


def test_nobody_saves_up_while_idle() -> None:
    order = FairOrder()
    idle, *others = takers = [Taker(order, 0.001) for _ in range(3)]
    take_turns(order, others, 1000)
    taken = take_turns(order, takers, 30)
    assert taken.count(idle) == pytest.approx(10, abs=1)


def test_one_that_takes_little_waits_for_one_turn_of_another() -> None:
    order = FairOrder()
    heavy = [Taker(order, 0.02) for _ in range(30)]
    light = Taker(order, 0.0001)
    take_turns(order, [*heavy, light], 100)
    for _ in range(100):
        take_turns(order, heavy, 1)
        assert light in take_turns(order, [*heavy, light], 2)


def test_one_that_waits_comes_before_an_endless_number_of_light_ones() -> None:
    order = FairOrder()
    heavy = Taker(order, 0.02)
    take_turns(order, [heavy], 1)
    for _ in range(1000):
        newcomer = Taker(order, 0.0001)
        order.sorted([heavy, newcomer])
        take_turns(order, [heavy, newcomer], 1)
    assert heavy.taken > 1


def test_a_new_connection_begins_a_turn_later() -> None:
    order = FairOrder()
    old = Taker(order, PASS_SECONDS / 4)
    take_turns(order, [old], 1)
    new = Taker(order, PASS_SECONDS / 4)
    assert take_turns(order, [new, old], 2) == [old] * 2


@pytest.mark.parametrize("ready", [1, 2, 3, 50, 128, 1000])
def test_more_that_are_ready_share_the_requests_of_a_round(ready: int) -> None:
    each = requests_per_turn(ready)
    assert 1 <= each <= REQUESTS_PER_TURN_MAX
    assert each == 1 or each * ready <= REQUESTS_PER_ROUND_MAX
