"""The order of turns, by virtual time alone."""

from __future__ import annotations

import pytest

from odradek.broker.network.fair_order import (
    PASS_SECONDS,
    REQUESTS_PER_ROUND_MAX,
    REQUESTS_PER_TURN_MAX,
    SAVED_SECONDS_MAX,
    SHORT_SECONDS,
    FairOrder,
    Turns,
    fits_in_pass,
    requests_per_turn,
)

SHORT_AFTER_TURNS = 6
"""Turns of `GOOD_SECONDS` that make a new connection one of those whose turns are short."""
GOOD_SECONDS = 0.0001


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


class Passes:
    """A transport's passes over connections that are always ready, in simulated time.

    Args:
        floods: how many others there are.
        turn_seconds: what each of their turns takes.
        opens_anew: whether each of their turns is of a new connection.
    """

    def __init__(self, floods: int, turn_seconds: float, *, opens_anew: bool) -> None:
        self.order = FairOrder()
        self.now = 0.0
        self._turn_seconds = turn_seconds
        self._opens_anew = opens_anew
        self.good = Taker(self.order, GOOD_SECONDS)
        self.floods = [Taker(self.order, turn_seconds) for _ in range(floods)]

    def run(self, ready: list[Taker]) -> list[Taker]:
        """One pass; who had a turn."""
        had, ends = [], self.now + PASS_SECONDS
        for index, taker in enumerate(self.order.sorted(ready)):
            if index and not fits_in_pass(taker, self.now - ends + PASS_SECONDS):
                break
            self.now += taker.seconds
            self.order.note_turn(taker, taker.seconds)
            taker.taken += 1
            had.append(taker)
        if self._opens_anew:
            kept = [each for each in self.floods if each not in had]
            while len(kept) < len(self.floods):
                kept.append(Taker(self.order, self._turn_seconds))
            self.floods = kept
        return had

    def good_waits(self, requests: int, *, pauses: bool) -> list[float]:
        """How long each of the good client's requests waits, that come one after another."""
        waits = []
        for _ in range(requests):
            began = self.now
            while self.good not in self.run([*self.floods, self.good]):
                pass
            waits.append(self.now - began)
            if pauses:
                self.run(list(self.floods))
        return waits


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("opens_anew", [False, True])
@pytest.mark.parametrize("turn_seconds", [0.001, 0.005, 0.02])
def test_a_client_of_short_turns_waits_for_two_passes_however_many_flood(
    turn_seconds: float, opens_anew: bool, pauses: bool
) -> None:
    passes = Passes(100, turn_seconds, opens_anew=opens_anew)
    waits = passes.good_waits(400, pauses=pauses)[SHORT_AFTER_TURNS + 1 :]
    assert max(waits) <= 2 * (PASS_SECONDS + turn_seconds)


def test_nobody_starves_beside_those_whose_turns_are_short() -> None:
    passes = Passes(200, SHORT_SECONDS / 2, opens_anew=False)
    heavy = Taker(passes.order, 0.02)
    began = passes.now
    while heavy.taken < 5:
        passes.run([*passes.floods, heavy])
    share = 5 * heavy.seconds / (passes.now - began)
    assert share > 0.5 / (len(passes.floods) + 1)


def test_a_client_of_short_turns_keeps_its_place_after_a_long_one() -> None:
    passes = Passes(100, PASS_SECONDS, opens_anew=False)
    passes.good_waits(60, pauses=True)
    for _ in range(3):
        passes.good.seconds = 1.6 * PASS_SECONDS
        passes.good_waits(1, pauses=True)
        passes.good.seconds = GOOD_SECONDS
        assert max(passes.good_waits(60, pauses=True)) <= 4 * PASS_SECONDS


def test_a_flood_that_begins_does_not_come_before_one_that_was_alone() -> None:
    passes = Passes(100, PASS_SECONDS, opens_anew=False)
    for _ in range(SHORT_AFTER_TURNS):
        passes.run([passes.good])
    assert max(passes.good_waits(10, pauses=False)) <= 2 * PASS_SECONDS


def test_new_connections_do_not_come_before_one_whose_first_turn_was_measured() -> None:
    passes = Passes(100, PASS_SECONDS, opens_anew=False)
    passes.run([passes.good])
    assert max(passes.good_waits(1, pauses=False)) <= 2 * PASS_SECONDS


def test_small_turns_within_a_long_request_earn_nothing() -> None:
    order = FairOrder()
    sender, honest = Taker(order, 0.0), Taker(order, GOOD_SECONDS)
    order.note_turn(sender, PASS_SECONDS)
    for _ in range(1000):
        order.note_turn(sender, GOOD_SECONDS, is_request=False)
    assert sender.turns.expected_seconds == PASS_SECONDS
    for _ in range(SHORT_AFTER_TURNS):
        order.note_turn(honest, GOOD_SECONDS)
    sender.turns.virtual_seconds = honest.turns.virtual_seconds - PASS_SECONDS / 2
    assert order.sorted([sender, honest]) == [honest, sender]
    assert order.sorted([sender, honest]) == [honest, sender]


def test_a_long_turn_costs_as_many_short_ones() -> None:
    order = FairOrder()
    pretends = Taker(order, 0.0)
    for _ in range(1000):
        order.note_turn(pretends, 0.0)
    assert pretends.turns.saved_seconds == SAVED_SECONDS_MAX
    for _ in range(3):
        order.note_turn(pretends, PASS_SECONDS)
    assert pretends.turns.saved_seconds < 0
    owed = -pretends.turns.saved_seconds
    turns = 0
    while pretends.turns.saved_seconds < 0:
        order.note_turn(pretends, 0.0)
        turns += 1
    assert turns == pytest.approx(owed / SHORT_SECONDS, abs=1)


def test_a_pass_is_not_twice_as_long_for_two_long_turns() -> None:
    passes = Passes(100, 0.9 * PASS_SECONDS, opens_anew=False)
    assert max(len(passes.run(passes.floods)) for _ in range(1000)) == 1
    short = Passes(100, PASS_SECONDS / 100, opens_anew=False)
    while any(not each.taken for each in short.floods):
        short.run(short.floods)
    assert len(short.run(short.floods)) >= 99


@pytest.mark.parametrize("ready", [1, 2, 3, 50, 128, 1000])
def test_more_that_are_ready_share_the_requests_of_a_round(ready: int) -> None:
    each = requests_per_turn(ready)
    assert 1 <= each <= REQUESTS_PER_TURN_MAX
    assert each == 1 or each * ready <= REQUESTS_PER_ROUND_MAX
