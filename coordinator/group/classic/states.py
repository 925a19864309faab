"""The states of a classic group, as a table, and what each state answers its members.

What a state answers to a member that is known and in its generation stands here too, so that
no verb tests which state a group is in. Drawn in `docs/group_states.md`. Source: Kafka's
ClassicGroupState.
"""

from __future__ import annotations

from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from ....common.errors import ErrorCode
from ....common.state_table import StateTable


class ClassicGroupState(Enum):
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


_S = ClassicGroupState
_E = GroupEvent
TRANSITIONS = StateTable(
    "a group",
    {
        _S.EMPTY: (
            (
                _E.MEMBERSHIP_CHANGED,
                _S.PREPARING_REBALANCE,
                "the first member came; others get group.initial.rebalance.delay.ms to join it",
            ),
            (_E.REMOVED, _S.DEAD, "deleted by request, or its last offset expired"),
        ),
        _S.PREPARING_REBALANCE: (
            (
                _E.MEMBERS_JOINED,
                _S.COMPLETING_REBALANCE,
                "everybody rejoined or the rebalance timeout is over: a new generation begins",
            ),
            (_E.MEMBERS_GONE, _S.EMPTY, "the last member left or did not rejoin in time"),
            (
                _E.REMOVED,
                _S.DEAD,
                "another broker coordinates the group now; waiting joins are refused",
            ),
        ),
        _S.COMPLETING_REBALANCE: (
            (
                _E.ASSIGNMENT_STORED,
                _S.STABLE,
                "the leader's assignment survives a failure from here on",
            ),
            (
                _E.MEMBERSHIP_CHANGED,
                _S.PREPARING_REBALANCE,
                "the generation is out of date before its assignment was made",
            ),
            (
                _E.REMOVED,
                _S.DEAD,
                "another broker coordinates the group now; waiting syncs are refused",
            ),
        ),
        _S.STABLE: (
            (
                _E.MEMBERSHIP_CHANGED,
                _S.PREPARING_REBALANCE,
                "somebody came, went or changed; the leader may also cause it by rejoining",
            ),
            (_E.REMOVED, _S.DEAD, "another broker coordinates the group now"),
        ),
    },
    label=attrgetter("value"),
    initial=_S.EMPTY,
    final=_S.DEAD,
)
"""What moves a group."""


class Answers(NamedTuple):
    """What a state answers to a member of the current generation."""

    heartbeat: ErrorCode
    sync: ErrorCode
    commit: ErrorCode
    reason: str


ANSWERS: dict[ClassicGroupState, Answers] = {
    ClassicGroupState.EMPTY: Answers(
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        "nobody is a member; only consumers outside of any generation commit",
    ),
    ClassicGroupState.PREPARING_REBALANCE: Answers(
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.NONE,
        "a heartbeat's answer calls the member back; it may still commit what it has done",
    ),
    ClassicGroupState.COMPLETING_REBALANCE: Answers(
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.REBALANCE_IN_PROGRESS,
        "syncs wait for the leader's; nobody owns a partition yet, so nobody may commit",
    ),
    ClassicGroupState.STABLE: Answers(
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NONE,
        "the generation is at work",
    ),
    ClassicGroupState.DEAD: Answers(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "no longer kept here: the client is to look for the coordinator again",
    ),
}
