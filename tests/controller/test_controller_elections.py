"""Who leads a partition: the first leadership, and each kind of election, as tables of cases."""

from __future__ import annotations

import pytest

from odradek.common.partition_state import LeaderAndIsr
from odradek.common.sentinels import NO_LEADER
from odradek.controller.partitions.leadership import (
    Electorate,
    elect_for_controlled_shutdown,
    elect_for_offline,
    elect_for_reassignment,
    elect_preferred,
    first_leadership,
    without_replica,
)

FORMER_EPOCH = 5
Elected = tuple[int, tuple[int, ...]] | None
"""The leader and the ISR that an election is to find."""


def electorate(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    live: set[int],
    *,
    leader: int = 2,
    shutting_down: tuple[int, ...] = (),
    allows_unclean: bool = False,
) -> Electorate:
    """The controller of epoch 4 looks for a leader after leader epoch 5."""
    former = LeaderAndIsr(3, leader, FORMER_EPOCH, isr)
    return Electorate(former, replicas, live, shutting_down, 4, allows_unclean)


def assert_elected(state: LeaderAndIsr | None, elected: Elected) -> None:
    if elected is None:
        assert state is None
    else:
        leader, isr = elected
        assert state == LeaderAndIsr(4, leader, FORMER_EPOCH + 1, isr)


def test_the_first_leader_is_the_first_live_replica_and_the_isr_all_live_ones() -> None:
    assert first_leadership((3, 1, 2), {1, 2}, 7) == LeaderAndIsr(7, 1, 0, (1, 2))
    assert first_leadership((3,), {1, 2}, 7) is None


@pytest.mark.parametrize("allows_unclean", [False, True])
@pytest.mark.parametrize(
    ("replicas", "isr", "live", "clean", "unclean"),
    [
        # The first of the assignment that is in sync; who is gone leaves the ISR.
        ((2, 4), (2, 4), {4}, (4, (4,)), (4, (4,))),
        ((1, 3, 2), (1, 2), {2, 3}, (2, (2,)), (2, (2,))),
        ((4, 3, 2), (2, 3, 4), {2, 3}, (3, (2, 3)), (3, (2, 3))),
        # A leader that came back leads again, in the next epoch.
        ((2,), (2,), {2}, (2, (2,)), (2, (2,))),
        # Nobody in sync is alive.
        ((2, 4), (2,), {4}, None, (4, (4,))),
        ((2, 4, 3), (2,), {3, 4}, None, (4, (4,))),
        ((2, 4), (), {4}, None, (4, (4,))),
        # Nobody is alive at all.
        ((2, 4), (2, 4), set(), None, None),
        # What is not a replica leads nothing, though the ISR names it.
        ((2, 4), (2, 7), {7}, None, None),
    ],
)
def test_a_leader_that_is_gone_is_followed_by_one_in_sync_or_uncleanly_where_allowed(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    live: set[int],
    clean: Elected,
    unclean: Elected,
    allows_unclean: bool,
) -> None:
    found = elect_for_offline(electorate(replicas, isr, live, allows_unclean=allows_unclean))
    assert_elected(found, unclean if allows_unclean else clean)


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "elected"),
    [
        ((2, 4), (2, 4), {2, 4}, (2, (2, 4))),
        ((2, 4), (4, 2), {2}, (2, (4, 2))),  # the ISR is not the election's to change
        ((2, 4), (2,), set(), None),
        ((2, 4), (4,), {2, 4}, None),
        ((2, 4), (), set(), None),
        ((2, 4), (4,), {4}, None),
    ],
)
def test_the_preferred_leader_is_the_first_replica_if_it_is_alive_and_in_sync(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: set[int], elected: Elected
) -> None:
    assert_elected(elect_preferred(electorate(replicas, isr, live, leader=4)), elected)


@pytest.mark.parametrize(
    ("target", "isr", "live", "elected"),
    [
        ((2, 4), (2, 4), {4}, (4, (2, 4))),
        ((4, 5), (2, 4, 5), {2, 4, 5}, (4, (2, 4, 5))),
        ((2, 4), (2,), set(), None),
        ((2, 4), (), {2}, None),
        ((4, 5), (2, 4), {2, 5}, None),
    ],
)
def test_a_reassigned_partition_is_led_by_a_new_replica_in_sync(
    target: tuple[int, ...], isr: tuple[int, ...], live: set[int], elected: Elected
) -> None:
    unclean = electorate(target, isr, live, allows_unclean=True)  # not even then
    assert_elected(elect_for_reassignment(unclean), elected)


@pytest.mark.parametrize(
    ("isr", "shutting_down", "elected"),
    [
        ((2, 4), (2,), (4, (4,))),
        ((2, 4, 3), (2, 3), (4, (4,))),
        ((2,), (2,), None),
        ((2, 3), (2,), (3, (3,))),
        # All of them stop: to one that stops later.
        ((2, 4), (2, 4), (4, (4,))),
        ((2, 3, 4), (2, 3, 4), (4, (3, 4))),
        ((2,), (2, 3, 4), None),
    ],
)
def test_a_leader_that_shuts_down_hands_over_to_one_in_sync(
    isr: tuple[int, ...], shutting_down: tuple[int, ...], elected: Elected
) -> None:
    live = {2, 3, 4} - set(shutting_down)
    found = elect_for_controlled_shutdown(
        electorate((2, 4, 3), isr, live, shutting_down=shutting_down, allows_unclean=True)
    )
    assert_elected(found, elected)


@pytest.mark.parametrize(
    ("leader", "isr", "gone", "left"),
    [
        (1, (1, 2), 2, (1, (1,))),
        (1, (1, 2), 1, (NO_LEADER, (2,))),
        (1, (1,), 1, (NO_LEADER, (1,))),  # the last in sync stays: only it has everything
        (NO_LEADER, (1, 2), 2, (NO_LEADER, (1,))),
        (NO_LEADER, (1,), 1, (NO_LEADER, (1,))),
    ],
)
def test_a_replica_that_went_leaves_the_isr_unless_it_is_the_last(
    leader: int, isr: tuple[int, ...], gone: int, left: Elected
) -> None:
    former = LeaderAndIsr(3, leader, FORMER_EPOCH, isr)
    assert_elected(without_replica(former, gone, 4), left)
