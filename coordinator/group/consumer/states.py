"""The states of a consumer group and of its members, as tables.

Unlike a classic group's, these states are not moved by requests: what a group holds decides
which one it is in (`state_of`), and a change from one to another must stand in the table, or
it raises. A member's state says what it waits for on the way to its target assignment.
`diagram.py` draws `docs/consumer_group_states.md` from these tables.
Source: KIP-848; Kafka's ConsumerGroupState and MemberState.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple


class ConsumerGroupState(Enum):
    """Where a group stands; the value is the name that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """Where a member stands; the value is the number in its record."""

    STABLE = 0
    """It has what its epoch gives it."""
    UNREVOKED_PARTITIONS = 1
    """It is to give partitions up and has not said that it did."""
    UNRELEASED_PARTITIONS = 2
    """It is to get partitions that others have not given up yet."""
    UNKNOWN = 127
    """A newer broker wrote a state that is not known here."""


class MemberEvent(Enum):
    """What a heartbeat finds out about a member that is not where its target is."""

    MUST_REVOKE = "must revoke"
    """It owns partitions that are not in its target."""
    MUST_WAIT = "must wait"
    """Partitions of its target are still another member's."""
    COMPLETE = "has all"
    """All of its target is its own."""


class Transition(NamedTuple):
    """One cell: what a change from one state to another is due to."""

    cause: str
    reason: str


GROUP_TRANSITIONS: dict[tuple[ConsumerGroupState, ConsumerGroupState], Transition] = {
    (ConsumerGroupState.EMPTY, ConsumerGroupState.ASSIGNING): Transition(
        "member joined",
        "the last assignment is younger than group.consumer.assignment.interval.ms",
    ),
    (ConsumerGroupState.EMPTY, ConsumerGroupState.RECONCILING): Transition(
        "classic group taken over",
        "its members go on, and one of them has a new target already",
    ),
    (ConsumerGroupState.EMPTY, ConsumerGroupState.STABLE): Transition(
        "member joined", "the first member gets everything at once: nobody has to give anything up"
    ),
    (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD): Transition(
        "removed", "deleted by request, expired with its last offset, or led elsewhere now"
    ),
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.EMPTY): Transition(
        "last member gone", "it left or was fenced before anybody asked for an assignment"
    ),
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING): Transition(
        "target computed", "some members have another target now than they own"
    ),
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.STABLE): Transition(
        "target computed", "the only member, or one that was last behind, reached it at once"
    ),
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.DEAD): Transition(
        "removed", "another broker coordinates the group now"
    ),
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.EMPTY): Transition(
        "last member gone", "it left or was fenced on the way to its target"
    ),
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.ASSIGNING): Transition(
        "group epoch bumped", "members, subscriptions or topics changed again"
    ),
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.STABLE): Transition(
        "last member reconciled", "everybody owns its target"
    ),
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.DEAD): Transition(
        "removed", "another broker coordinates the group now"
    ),
    (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY): Transition(
        "last member gone", "it left or was fenced"
    ),
    (ConsumerGroupState.STABLE, ConsumerGroupState.ASSIGNING): Transition(
        "group epoch bumped", "a member went, or the next target has to wait for its interval"
    ),
    (ConsumerGroupState.STABLE, ConsumerGroupState.RECONCILING): Transition(
        "group epoch bumped", "the heartbeat that changed the group also computed its next target"
    ),
    (ConsumerGroupState.STABLE, ConsumerGroupState.DEAD): Transition(
        "removed", "another broker coordinates the group now"
    ),
}

MEMBER_TRANSITIONS: dict[tuple[MemberState, MemberEvent], tuple[MemberState, str]] = {
    (MemberState.STABLE, MemberEvent.MUST_REVOKE): (
        MemberState.UNREVOKED_PARTITIONS,
        "it keeps its epoch until it says that the partitions are given up, or is fenced when "
        "its rebalance timeout is over",
    ),
    (MemberState.STABLE, MemberEvent.MUST_WAIT): (
        MemberState.UNRELEASED_PARTITIONS,
        "it takes the target's epoch and what is free, and asks again with each heartbeat",
    ),
    (MemberState.STABLE, MemberEvent.COMPLETE): (
        MemberState.STABLE,
        "it takes the target's epoch with all that the target gives it",
    ),
    (MemberState.UNREVOKED_PARTITIONS, MemberEvent.MUST_REVOKE): (
        MemberState.UNREVOKED_PARTITIONS,
        "what it gave up is free, but the target moved on and takes more",
    ),
    (MemberState.UNREVOKED_PARTITIONS, MemberEvent.MUST_WAIT): (
        MemberState.UNRELEASED_PARTITIONS,
        "it gave up what it had to; others have not yet",
    ),
    (MemberState.UNREVOKED_PARTITIONS, MemberEvent.COMPLETE): (
        MemberState.STABLE,
        "it gave up what it had to and owns its target",
    ),
    (MemberState.UNRELEASED_PARTITIONS, MemberEvent.MUST_REVOKE): (
        MemberState.UNREVOKED_PARTITIONS,
        "the target moved on while it waited, and takes partitions from it",
    ),
    (MemberState.UNRELEASED_PARTITIONS, MemberEvent.MUST_WAIT): (
        MemberState.UNRELEASED_PARTITIONS,
        "some of the partitions became free, others are not yet",
    ),
    (MemberState.UNRELEASED_PARTITIONS, MemberEvent.COMPLETE): (
        MemberState.STABLE,
        "the last partition it waited for became free",
    ),
    (MemberState.UNKNOWN, MemberEvent.MUST_WAIT): (
        MemberState.UNRELEASED_PARTITIONS,
        "it came back with nothing and starts over; others have to give up first",
    ),
    (MemberState.UNKNOWN, MemberEvent.COMPLETE): (
        MemberState.STABLE,
        "it came back with nothing and starts over with its target",
    ),
}


class IllegalTransitionError(Exception):
    """A group or member would change in a way that has no cell: a fault of this broker."""


def check_group_transition(state: ConsumerGroupState, target: ConsumerGroupState) -> None:
    """Make sure that a group may go from `state` to `target`.

    Raises:
        IllegalTransitionError: the table has no such cell.
    """
    if state is not target and (state, target) not in GROUP_TRANSITIONS:
        raise IllegalTransitionError(
            f"a consumer group that is {state.value} cannot become {target.value}"
        )


def next_member_state(state: MemberState, event: MemberEvent) -> MemberState:
    """Where `event` leads a member that is in `state`.

    Raises:
        IllegalTransitionError: the table has no such cell.
    """
    cell = MEMBER_TRANSITIONS.get((state, event))
    if cell is None:
        raise IllegalTransitionError(f"a member that is {state.name} cannot take '{event.value}'")
    return cell[0]


def state_of(
    *, has_members: bool, group_epoch: int, target_epoch: int, is_reconciled: bool
) -> ConsumerGroupState:
    """The state of a group that holds this.

    Args:
        has_members: whether anybody is in it.
        group_epoch: counts changes of members, subscriptions and topics.
        target_epoch: the group epoch for which the target assignment was computed.
        is_reconciled: whether all members own what the target gives them.
    """
    if not has_members:
        return ConsumerGroupState.EMPTY
    if group_epoch > target_epoch:
        return ConsumerGroupState.ASSIGNING
    return ConsumerGroupState.STABLE if is_reconciled else ConsumerGroupState.RECONCILING
