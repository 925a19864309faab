"""A share group: its epochs, its members, what they are assigned, and what of it is initialized.

All of it is what the group's records say. It is one image, which is never changed but replaced;
what it held before a write that is not replicated yet is kept so. Source: KIP-932; Kafka's
ShareGroup and ShareGroupMember.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..consumer.in_flight_writes import InFlightWrites
from ..session import Session
from .states import SHARE_GROUP_TRANSITIONS, ShareGroupState

ShareAssignment = Mapping[bytes, frozenset[int]]
"""What a member reads: topic id to partitions."""

NO_ASSIGNMENT: ShareAssignment = {}


class ShareMember(NamedTuple):
    """A member of one group, as its records keep it.

    Attributes:
        member_epoch: the group epoch that it has come to.
        previous_member_epoch: where it was before; its answer may have been lost.
        assigned: what it reads.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: ShareAssignment = NO_ASSIGNMENT


FIRST_EPOCH = 1
"""The epoch of a group that has not begun, and of its target; its first member counts it up."""


class SharedTopic(NamedTuple):
    """Partitions of one topic that a group reads."""

    name: str
    partitions: frozenset[int]


class ShareGroupImage(NamedTuple):
    """What a group holds at one moment; nothing of it changes afterwards.

    Attributes:
        epoch: counts changes of members, subscriptions and topics.
        metadata_hash: of the topics that the group reads.
        target_epoch: the group epoch for which the targets were computed.
        assignment_timestamp_ms: wall time of that.
        targets: what each member is to read.
        initializing: topic id to partitions that the share coordinator is to begin.
        initialized: those that it has begun; only these are assigned.
        deleting: topic id to name, of topics whose share partitions are being deleted.
    """

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: Mapping[str, ShareMember] = {}
    targets: Mapping[str, ShareAssignment] = {}
    initializing: Mapping[bytes, SharedTopic] = {}
    initialized: Mapping[bytes, SharedTopic] = {}
    deleting: Mapping[bytes, str] = {}

    @property
    def state(self) -> ShareGroupState:
        """The state of a group that holds this."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def is_initialized(self, topic_id: bytes, partition: int) -> bool:
        """Whether a partition may be assigned."""
        topic = self.initialized.get(topic_id)
        return topic is not None and partition in topic.partitions


class ShareGroup:
    """One share group that is kept here.

    Attributes:
        now: what it holds.
        state: where it stands.
        writes: changes that are not replicated yet.
        sessions: of its members.
        needs_refresh: whether topics may have changed, or been initialized, since the last look.
        under_way: the share partitions that are being initialized just now.
        is_conversion_open: always False: a share group never was of another type.
    """

    __slots__ = (
        "_seen_members",
        "_subscribed_topics",
        "group_id",
        "is_conversion_open",
        "needs_refresh",
        "now",
        "partition",
        "sessions",
        "state",
        "under_way",
        "writes",
    )

    def __init__(self, group_id: str, partition: int) -> None:
        self.group_id = group_id
        self.partition = partition
        self.now = ShareGroupImage()
        self.state = ShareGroupState.EMPTY
        self.writes: InFlightWrites[ShareGroupImage] = InFlightWrites()
        self.sessions: dict[str, Session] = {}
        self.needs_refresh = True
        self.under_way: set[tuple[bytes, int]] = set()
        self.is_conversion_open = False
        self._seen_members: Mapping[str, ShareMember] = {}
        self._subscribed_topics: frozenset[str] = frozenset()

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics that any member reads now."""
        members = self.now.members
        if members is not self._seen_members:
            names = (member.subscribed_topic_names for member in members.values())
            self._subscribed_topics = frozenset().union(*names)
            self._seen_members = members
        return self._subscribed_topics

    @property
    def members(self) -> Mapping[str, ShareMember]:
        """Those that are in it now."""
        return self.now.members

    @property
    def has_nothing(self) -> bool:
        """Whether nothing of it was ever stored."""
        return self.now == ShareGroupImage() and self.writes.is_settled

    def image(self) -> ShareGroupImage:
        """What it holds now."""
        return self.now

    def replicated(self) -> ShareGroupImage:
        """What it held when all was replicated last: what descriptions show."""
        oldest = self.writes.oldest_image
        return self.now if oldest is None else oldest

    def restore(self, image: ShareGroupImage) -> None:
        """Hold again what it held before a write that failed."""
        self.now = image
        self.needs_refresh = True
        self.refresh_state()

    def refresh_state(self, *, loading: bool = False) -> None:
        """Be in the state that what it holds says.

        Raises:
            IllegalTransitionError: the table has no such row.
        """
        state = self.now.state
        if not loading and state is not self.state:
            SHARE_GROUP_TRANSITIONS.require(self.state, state)
        self.state = state

    @property
    def is_dead(self) -> bool:
        """Whether nobody finds it here any more."""
        return self.state is ShareGroupState.DEAD

    def mark_dead(self) -> None:
        """Be dead: deleted, or kept by another broker now."""
        SHARE_GROUP_TRANSITIONS.require(self.state, ShareGroupState.DEAD)
        self.state = ShareGroupState.DEAD
        for session in self.sessions.values():
            session.stop()
        self.sessions.clear()

    def is_subscribed_to(self, topics: Collection[str]) -> bool:
        """Whether any member reads one of the topics."""
        return not self.subscribed_topics.isdisjoint(topics)
