"""The states of a classic group, as a table.

Rule 1: a group changes its state through `next_state` alone, and a cell that is missing
here raises. Rule 2: what a state answers to a member that is known and in its generation
stands here too, so that a handler never asks which state a group is in.
`diagram.py` draws `docs/group_states.md` from these tables. Source: Kafka's
ClassicGroupState.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ....common.errors import ErrorCode


class GroupState(Enum):
    """Where a group stands; the value is the name that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    """What moves a group from one state to another."""

    MEMBERSHIP_CHANGED = "membership changed"
    """A member joined, rejoined with other metadata, left, or was given up."""
    MEMBERS_JOINED = "members joined"
    """The join phase is over and somebody joined."""
    MEMBERS_GONE = "members gone"
    """The join phase is over and nobody is left."""
    ASSIGNMENT_STORED = "assignment stored"
    """The leader's assignment is in the log."""
    REMOVED = "removed"
    """The group was deleted, has expired, or its partition is led elsewhere now."""


class Transition(NamedTuple):
    """One cell: where the event leads, and why."""

    target: GroupState
    reason: str


TRANSITIONS: dict[tuple[GroupState, GroupEvent], Transition] = {
    (GroupState.EMPTY, GroupEvent.MEMBERSHIP_CHANGED): Transition(
        GroupState.PREPARING_REBALANCE,
        "the first member came; others that start with it get group.initial.rebalance.delay.ms",
    ),
    (GroupState.EMPTY, GroupEvent.REMOVED): Transition(
        GroupState.DEAD, "deleted by request, or its last offset expired"
    ),
    (GroupState.PREPARING_REBALANCE, GroupEvent.MEMBERS_JOINED): Transition(
        GroupState.COMPLETING_REBALANCE,
        "everybody rejoined or the rebalance timeout is over: a new generation begins",
    ),
    (GroupState.PREPARING_REBALANCE, GroupEvent.MEMBERS_GONE): Transition(
        GroupState.EMPTY, "the last member left or did not rejoin in time"
    ),
    (GroupState.PREPARING_REBALANCE, GroupEvent.REMOVED): Transition(
        GroupState.DEAD, "another broker coordinates the group now; waiting joins are told so"
    ),
    (GroupState.COMPLETING_REBALANCE, GroupEvent.ASSIGNMENT_STORED): Transition(
        GroupState.STABLE, "the leader's assignment survives a failure from here on"
    ),
    (GroupState.COMPLETING_REBALANCE, GroupEvent.MEMBERSHIP_CHANGED): Transition(
        GroupState.PREPARING_REBALANCE,
        "the generation is out of date before its assignment was made",
    ),
    (GroupState.COMPLETING_REBALANCE, GroupEvent.REMOVED): Transition(
        GroupState.DEAD, "another broker coordinates the group now; waiting syncs are told so"
    ),
    (GroupState.STABLE, GroupEvent.MEMBERSHIP_CHANGED): Transition(
        GroupState.PREPARING_REBALANCE,
        "somebody came, went or changed; the leader may also ask for it by rejoining",
    ),
    (GroupState.STABLE, GroupEvent.REMOVED): Transition(
        GroupState.DEAD, "another broker coordinates the group now"
    ),
}


class Answers(NamedTuple):
    """What a state answers to a member of the current generation."""

    heartbeat: ErrorCode
    sync: ErrorCode
    commit: ErrorCode
    reason: str


ANSWERS: dict[GroupState, Answers] = {
    GroupState.EMPTY: Answers(
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        "nobody is a member; only consumers outside of any generation commit",
    ),
    GroupState.PREPARING_REBALANCE: Answers(
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.NONE,
        "a heartbeat's answer calls the member back; it may still commit what it has done",
    ),
    GroupState.COMPLETING_REBALANCE: Answers(
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.REBALANCE_IN_PROGRESS,
        "syncs wait for the leader's; nobody owns a partition yet, so nobody may commit",
    ),
    GroupState.STABLE: Answers(
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NONE,
        "the generation is at work",
    ),
    GroupState.DEAD: Answers(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "no longer kept here: the client is to look for the coordinator again",
    ),
}


class IllegalTransitionError(Exception):
    """An event came in a state that has no cell for it: a fault of this broker."""


def next_state(state: GroupState, event: GroupEvent) -> GroupState:
    """Where `event` leads a group that is in `state`.

    Raises:
        IllegalTransitionError: the table has no such cell.
    """
    transition = TRANSITIONS.get((state, event))
    if transition is None:
        raise IllegalTransitionError(f"a group that is {state.value} cannot take '{event.value}'")
    return transition.target


def can_rebalance(state: GroupState) -> bool:
    """Whether a change of membership may begin a rebalance in this state."""
    return (state, GroupEvent.MEMBERSHIP_CHANGED) in TRANSITIONS
