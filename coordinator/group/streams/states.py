"""The states of a streams group and of its members, as tables.

What a group holds decides which one it is in (`state_of`), and a change from one to another must
stand in the table. A member's state says what it waits for on the way to its target assignment.
Drawn in `docs/streams_group_states.md`. Source: KIP-1071; Kafka's StreamsGroupState and
MemberState.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from operator import attrgetter

from ....common.state_table import StateTable


class StreamsGroupState(Enum):
    """Where a group stands; the value is the name that clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsMemberState(IntEnum):
    """Where a member stands; the value is the number in its record."""

    STABLE = 1
    """It has what its epoch gives it."""
    UNREVOKED_TASKS = 2
    """It is to give tasks up and has not said that it did."""
    UNRELEASED_TASKS = 3
    """It is to get tasks that others have not given up yet."""
    UNKNOWN = 127
    """A newer broker wrote a state that is not known here."""


class StreamsMemberEvent(Enum):
    """What a heartbeat finds out about a member that is not where its target is."""

    MUST_REVOKE = "must revoke"
    """It has tasks that are not in its target."""
    MUST_WAIT = "must wait"
    """Tasks of its target are still somebody else's."""
    COMPLETE = "has all"
    """All of its target is its own."""


_G = StreamsGroupState
_M = StreamsMemberState
_E = StreamsMemberEvent
_MOVED = ("removed", _G.DEAD, "another broker coordinates the group now")
_LAST_GONE = ("last member gone", _G.EMPTY, "it left or was fenced")
_NOT_READY = (
    "topics changed",
    _G.NOT_READY,
    "a topic that the topology needs is gone, or has other partitions now",
)
STREAMS_GROUP_TRANSITIONS = StateTable(
    "a streams group",
    {
        _G.EMPTY: (
            ("member joined", _G.NOT_READY, "topics that the topology needs are not there"),
            (
                "member joined",
                _G.ASSIGNING,
                "it waits for more members, for streams.initial.rebalance.delay.ms",
            ),
            ("member joined", _G.STABLE, "the first member gets all tasks at once"),
            (
                "removed",
                _G.DEAD,
                "deleted by request, expired with its last offset, or led elsewhere now",
            ),
        ),
        _G.NOT_READY: (
            _LAST_GONE,
            ("topics are there", _G.ASSIGNING, "the next assignment has to wait for its interval"),
            ("topics are there", _G.RECONCILING, "members have tasks to take now"),
            ("topics are there", _G.STABLE, "the only member takes all tasks"),
            _MOVED,
        ),
        _G.ASSIGNING: (
            _LAST_GONE,
            _NOT_READY,
            ("target computed", _G.RECONCILING, "some members have another target than tasks"),
            ("target computed", _G.STABLE, "the only member, or the last one behind, reached it"),
            _MOVED,
        ),
        _G.RECONCILING: (
            _LAST_GONE,
            _NOT_READY,
            ("group epoch bumped", _G.ASSIGNING, "members, topics or settings changed again"),
            ("last member reconciled", _G.STABLE, "everybody has the tasks of its target"),
            _MOVED,
        ),
        _G.STABLE: (
            _LAST_GONE,
            _NOT_READY,
            ("group epoch bumped", _G.ASSIGNING, "a member went, or the next target has to wait"),
            (
                "group epoch bumped",
                _G.RECONCILING,
                "the heartbeat that changed the group also computed its next target",
            ),
            _MOVED,
        ),
    },
    label=attrgetter("value"),
    initial=_G.EMPTY,
    final=_G.DEAD,
)
"""How the state that follows from what a group holds may change."""

STREAMS_MEMBER_TRANSITIONS = StateTable(
    "a member of a streams group",
    {
        _M.STABLE: (
            (
                _E.MUST_REVOKE,
                _M.UNREVOKED_TASKS,
                "it keeps its epoch until it has given the tasks up, or is fenced when its "
                "rebalance timeout is over",
            ),
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_TASKS,
                "it takes the target's epoch and what is free, and the rest with later heartbeats",
            ),
            (_E.COMPLETE, _M.STABLE, "it takes the target's epoch with all tasks of the target"),
        ),
        _M.UNREVOKED_TASKS: (
            (
                _E.MUST_REVOKE,
                _M.UNREVOKED_TASKS,
                "what it gave up is free, but the target moved on and takes more",
            ),
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_TASKS,
                "it gave up what it had to; others have not yet",
            ),
            (_E.COMPLETE, _M.STABLE, "it gave up what it had to and has all of its target"),
        ),
        _M.UNRELEASED_TASKS: (
            (
                _E.MUST_REVOKE,
                _M.UNREVOKED_TASKS,
                "the target moved on while it waited, and takes tasks from it",
            ),
            (_E.MUST_WAIT, _M.UNRELEASED_TASKS, "some tasks became free, others are not yet"),
            (_E.COMPLETE, _M.STABLE, "the last task that it waited for became free"),
        ),
        _M.UNKNOWN: (
            (
                _E.MUST_WAIT,
                _M.UNRELEASED_TASKS,
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
    *,
    has_members: bool,
    is_ready: bool,
    group_epoch: int,
    target_epoch: int,
    is_reconciled: bool,
) -> StreamsGroupState:
    """The state of a group that holds this.

    Args:
        has_members: whether anybody is in it.
        is_ready: whether all topics that the topology needs were found to be there.
        group_epoch: counts changes of members, topology, topics and settings.
        target_epoch: the group epoch for which the target assignment was computed.
        is_reconciled: whether all members have what the target gives them.
    """
    if not has_members:
        return StreamsGroupState.EMPTY
    if not is_ready:
        return StreamsGroupState.NOT_READY
    if group_epoch > target_epoch:
        return StreamsGroupState.ASSIGNING
    return StreamsGroupState.STABLE if is_reconciled else StreamsGroupState.RECONCILING
