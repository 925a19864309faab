"""The states of a consumer group and of its members, as tables.

Unlike a classic group's, these states are not moved by requests: what a group holds decides
which one it is in (`state_of`), and a change from one to another must stand in the table. A
member's state says what it waits for on the way to its target assignment. Drawn in
`docs/consumer_group_states.md`. Source: KIP-848; Kafka's ConsumerGroupState and MemberState.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from operator import attrgetter

from ....common.state_table import StateTable


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


_G = ConsumerGroupState
_M = MemberState
_E = MemberEvent
GROUP_TRANSITIONS = StateTable(
    "a consumer group",
    {
        _G.EMPTY: (
            (
                "member joined",
                _G.ASSIGNING,
                "the last assignment is younger than group.consumer.assignment.interval.ms",
            ),
            (
                "classic group taken over",
                _G.RECONCILING,
                "its members go on, and one of them has a new target already",
            ),
            (
                "member joined",
                _G.STABLE,
                "the first member gets everything at once: nobody has to give anything up",
            ),
            (
                "removed",
                _G.DEAD,
                "deleted by request, expired with its last offset, or led elsewhere now",
            ),
        ),
        _G.ASSIGNING: (
            (
                "last member gone",
                _G.EMPTY,
                "it left or was fenced before any heartbeat computed an assignment",
            ),
            (
                "target computed",
                _G.RECONCILING,
                "some members have another target now than they own",
            ),
            (
                "target computed",
                _G.STABLE,
                "the only member, or one that was last behind, reached it at once",
            ),
            ("removed", _G.DEAD, "another broker coordinates the group now"),
        ),
        _G.RECONCILING: (
            ("last member gone", _G.EMPTY, "it left or was fenced on the way to its target"),
            ("group epoch bumped", _G.ASSIGNING, "members, subscriptions or topics changed again"),
            ("last member reconciled", _G.STABLE, "everybody owns its target"),
            ("removed", _G.DEAD, "another broker coordinates the group now"),
        ),
        _G.STABLE: (
            ("last member gone", _G.EMPTY, "it left or was fenced"),
            (
                "group epoch bumped",
                _G.ASSIGNING,
                "a member went, or the next target has to wait for its interval",
            ),
            (
                "group epoch bumped",
                _G.RECONCILING,
                "the heartbeat that changed the group also computed its next target",
            ),
            ("removed", _G.DEAD, "another broker coordinates the group now"),
        ),
    },
    label=attrgetter("value"),
    initial=_G.EMPTY,
    final=_G.DEAD,
)
"""How the state that follows from what a group holds may change."""

MEMBER_TRANSITIONS = StateTable(
    "a member",
    {
        _M.STABLE: (
            (
                _E.MUST_REVOKE,
                _M.UNREVOKED_PARTITIONS,
                "it keeps its epoch until it has given the partitions up, or is fenced when "
                "its rebalance timeout is over",
            ),
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_PARTITIONS,
                "it takes the target's epoch and what is free, and the rest with later heartbeats",
            ),
            (
                _E.COMPLETE,
                _M.STABLE,
                "it takes the target's epoch with all that the target gives it",
            ),
        ),
        _M.UNREVOKED_PARTITIONS: (
            (
                _E.MUST_REVOKE,
                _M.UNREVOKED_PARTITIONS,
                "what it gave up is free, but the target moved on and takes more",
            ),
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_PARTITIONS,
                "it gave up what it had to; others have not yet",
            ),
            (_E.COMPLETE, _M.STABLE, "it gave up what it had to and owns its target"),
        ),
        _M.UNRELEASED_PARTITIONS: (
            (
                _E.MUST_REVOKE,
                _M.UNREVOKED_PARTITIONS,
                "the target moved on while it waited, and takes partitions from it",
            ),
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_PARTITIONS,
                "some of the partitions became free, others are not yet",
            ),
            (_E.COMPLETE, _M.STABLE, "the last partition it waited for became free"),
        ),
        _M.UNKNOWN: (
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_PARTITIONS,
                "it came back with nothing and starts over; others have to give up first",
            ),
            (_E.COMPLETE, _M.STABLE, "it came back with nothing and starts over with its target"),
        ),
    },
    label=attrgetter("name"),
    initial=_M.STABLE,
)
"""What a member does next on the way to its target assignment."""


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
