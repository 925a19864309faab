"""A streams group: its epochs, its topology, its members, and the tasks that they have.

All of it is what the group's records say. It is one image, which is never changed but replaced;
what it held before a write that is not replicated yet is kept so. Source: KIP-1071; Kafka's
StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....runtime.timers import Timer
from ..consumer.in_flight_writes import InFlightWrites
from ..offsets import GroupOffsets, PendingAppends
from ..session import Session
from .configured_topology import ConfiguredTopology
from .member import StreamsMember
from .reconciliation import Holders
from .states import STREAMS_GROUP_TRANSITIONS, StreamsGroupState, state_of
from .tasks import Tasks
from .topology import Topology

FIRST_EPOCH = 1
"""The epoch of a group that has not begun, and of its target; its first member counts it up."""

NO_TARGET_EPOCH = -1
"""The target epoch of a group whose target record was deleted."""


class StreamsGroupImage(NamedTuple):
    """What a group holds at one moment; nothing of it changes afterwards.

    Attributes:
        epoch: counts changes of members, topology, topics and settings.
        metadata_hash: of the topics that the topology needs.
        validated_topology_epoch: of the topology whose topics were found to be there; -1: none.
        assignor_settings: what the assignor had to heed, when the epoch was last counted up.
        target_epoch: the group epoch for which the targets were computed.
        assignment_timestamp_ms: wall time of that.
        topology: the application's; None: not known yet.
        members: by member id, oldest first.
        targets: what each member is to run.
    """

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_topology_epoch: int = 0
    assignor_settings: Mapping[str, str] = {}
    target_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    topology: Topology | None = None
    members: Mapping[str, StreamsMember] = {}
    targets: Mapping[str, Tasks] = {}

    @property
    def state(self) -> StreamsGroupState:
        """The state of a group that holds this."""
        topology = self.topology
        return state_of(
            has_members=bool(self.members),
            is_ready=topology is not None and topology.epoch == self.validated_topology_epoch,
            group_epoch=self.epoch,
            target_epoch=self.target_epoch,
            is_reconciled=all(
                member.is_reconciled_to(self.target_epoch) for member in self.members.values()
            ),
        )

    def holders(self) -> Holders:
        """Which processes have tasks, or have not given them up yet."""
        active: dict[tuple[str, int], str] = {}
        passive: dict[tuple[str, int], frozenset[str]] = {}
        for member in self.members.values():
            process = frozenset((member.process_id,))
            for owned in (member.assigned, member.pending_revocation):
                for subtopology_id, epochs in owned.active.items():
                    for number in epochs:
                        active[subtopology_id, number] = member.process_id
                for tasks in (owned.standby, owned.warmup):
                    for subtopology_id, numbers in tasks.items():
                        for number in numbers:
                            task = subtopology_id, number
                            passive[task] = passive.get(task, frozenset()) | process
        return Holders(active, passive)


class MemberTimers:
    """The timers of one member.

    Attributes:
        session: how long it may be silent.
        rebalance: fires when the time to give tasks up is over.
    """

    __slots__ = ("rebalance", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rebalance: Timer | None = None

    def cancel(self) -> None:
        """Stop both."""
        self.session.stop()
        self.cancel_rebalance()

    def cancel_rebalance(self) -> None:
        """The member gave up what it had to, or has nothing to give up any more."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None


class StreamsGroup:
    """One streams group that is kept here.

    Attributes:
        now: what it holds.
        state: where it stands.
        offsets: what the group committed.
        in_flight: commits that are not in the log yet.
        writes: changes of the group itself that are not replicated yet.
        is_conversion_open: whether it was a classic group, and the log may not have heard yet.
        timers: of each member.
        initial_delay: of a group that waits for more members before its first assignment.
        needs_refresh: whether topics may have changed since they were looked at.
        configured: what the topology came to then; None: it was not looked at.
        shutdown_requested_by: the member that wants the whole application to end.
        endpoint_epoch: counts changes of who can be asked for what.
        creation_failures: internal topic to why it could not be made, and until when (monotonic
            milliseconds) that is told.
    """

    __slots__ = (
        "configured",
        "creation_failures",
        "endpoint_epoch",
        "group_id",
        "in_flight",
        "initial_delay",
        "is_conversion_open",
        "needs_refresh",
        "now",
        "offsets",
        "partition",
        "shutdown_requested_by",
        "state",
        "timers",
        "writes",
    )

    def __init__(self, group_id: str, partition: int) -> None:
        self.group_id = group_id
        self.partition = partition
        self.now = StreamsGroupImage()
        self.state = StreamsGroupState.EMPTY
        self.offsets = GroupOffsets()
        self.in_flight = PendingAppends()
        self.writes: InFlightWrites[StreamsGroupImage] = InFlightWrites()
        self.is_conversion_open = False
        self.timers: dict[str, MemberTimers] = {}
        self.initial_delay: Timer | None = None
        self.needs_refresh = True
        self.configured: ConfiguredTopology | None = None
        self.shutdown_requested_by: str | None = None
        self.endpoint_epoch = 0
        self.creation_failures: dict[str, tuple[str, int]] = {}

    @property
    def members(self) -> Mapping[str, StreamsMember]:
        """Those that are in it now."""
        return self.now.members

    @property
    def has_nothing(self) -> bool:
        """Whether nothing tells it from a group that never was."""
        return (
            self.now == StreamsGroupImage()
            and not self.offsets
            and self.in_flight.is_settled
            and self.writes.is_settled
        )

    def image(self) -> StreamsGroupImage:
        """What it holds now."""
        return self.now

    def replicated(self) -> StreamsGroupImage:
        """What it held when all was replicated last: what descriptions show."""
        oldest = self.writes.oldest_image
        return self.now if oldest is None else oldest

    def restore(self, image: StreamsGroupImage) -> None:
        """Hold again what it held before a write that failed."""
        self.now = image
        self.configured = None
        self.needs_refresh = True
        self.state = image.state

    def refresh_state(self, *, loading: bool = False) -> None:
        """Be in the state that what it holds says.

        Args:
            loading: whether the group is being read back, so that any state may follow.

        Raises:
            IllegalTransitionError: the table has no such row.
        """
        state = self.now.state
        if not loading and state is not self.state:
            STREAMS_GROUP_TRANSITIONS.require(self.state, state)
        self.state = state
        if state is StreamsGroupState.EMPTY:
            self.shutdown_requested_by = None

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether any member reads the topic."""
        topology = self.now.topology
        return bool(self.members) and topology is not None and topology.reader_of(topic) is not None

    def invalidate_target_assignment(self) -> None:
        """Have the next heartbeat count the epoch up, and compute all targets again."""
        self.now = self.now._replace(metadata_hash=~self.now.metadata_hash)
        self.needs_refresh = True

    def stop_timers(self) -> None:
        """Nothing is waited for any more."""
        for timers in self.timers.values():
            timers.cancel()
        self.timers.clear()
        if self.initial_delay is not None:
            self.initial_delay.cancel()
            self.initial_delay = None

    @property
    def is_dead(self) -> bool:
        """Whether nobody finds it here any more."""
        return self.state is StreamsGroupState.DEAD

    def mark_dead(self) -> None:
        """Be dead: deleted, or kept by another broker now."""
        STREAMS_GROUP_TRANSITIONS.require(self.state, StreamsGroupState.DEAD)
        self.state = StreamsGroupState.DEAD
        self.stop_timers()
