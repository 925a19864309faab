"""A classic group: its members, its generation, its protocol, its leader.

What is true of a group at any moment is kept true here; when and why it changes is for
`ClassicGroups`. Source: Kafka's ClassicGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ....common.errors import ErrorCode, KafkaError
from ....runtime.timers import Timer
from ..consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from ..offsets import GroupOffsets, PendingAppends
from .member import ClassicGroupMember
from .messages import (
    UNKNOWN_MEMBER_ID,
    JoinAnswer,
    JoinCallback,
    JoinedMember,
    MemberProtocol,
    SyncAnswer,
)
from .states import ANSWERS, TRANSITIONS, ClassicGroupState, GroupEvent


class ClassicGroup:
    """One group.

    Args:
        group_id: its name.
        partition: the partition of `__consumer_offsets` that keeps it.
        now_ms: wall time, from which it is in its first state.

    Attributes:
        members: by member id, oldest first.
        pending_members: ids that were given out (MEMBER_ID_REQUIRED) and have not joined yet.
        pending_sync_members: who joined the generation and has not sent SyncGroup.
        static_members: group instance id to member id.
        subscribed_topics: what the members of a consumer group read; None when unknown.
        state_timestamp_ms: wall time of the last change of state, or -1 when a record of an
            old format did not tell.
        offsets: what the group committed.
        in_flight: commits that are not in the log yet.
    """

    __slots__ = (
        "answers",
        "generation_id",
        "group_id",
        "in_flight",
        "join_timer",
        "leader_id",
        "members",
        "members_awaiting_join",
        "new_member_added",
        "offsets",
        "partition",
        "pending_members",
        "pending_sync_members",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "supported_protocols",
        "sync_timer",
    )

    def __init__(self, group_id: str, partition: int, now_ms: int) -> None:
        self.group_id = group_id
        self.partition = partition
        self.state = ClassicGroupState.EMPTY
        self.previous_state = ClassicGroupState.EMPTY
        self.answers = ANSWERS[ClassicGroupState.EMPTY]
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: dict[str, Timer] = {}
        self.pending_sync_members: set[str] = set()
        self.supported_protocols: dict[str, int] = {}
        self.members_awaiting_join = 0
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self.offsets = GroupOffsets()
        self.in_flight = PendingAppends()

    # -- state ----------------------------------------------------------------------

    def take(self, event: GroupEvent, now_ms: int) -> None:
        """Move to the state where `event` leads.

        Raises:
            IllegalTransitionError: the table has no such row.
        """
        self.enter(TRANSITIONS.next_state(self.state, event), now_ms)

    @property
    def is_dead(self) -> bool:
        """Whether nobody finds it here any more."""
        return self.state is ClassicGroupState.DEAD

    def enter(self, state: ClassicGroupState, timestamp_ms: int) -> None:
        """Be in `state`, since wall time `timestamp_ms`; for `take` and for loading."""
        self.previous_state = self.state
        self.state = state
        self.answers = ANSWERS[state]
        self.state_timestamp_ms = timestamp_ms

    def begin_generation(self, now_ms: int) -> None:
        """End the join phase: choose the protocol, count the generation up."""
        self.generation_id += 1
        self.pending_sync_members.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.take(GroupEvent.MEMBERS_JOINED, now_ms)
        else:
            self.protocol_name = None
            self.take(GroupEvent.MEMBERS_GONE, now_ms)
        self.update_subscribed_topics()

    # -- members ----------------------------------------------------------------------

    def add(self, member: ClassicGroupMember, callback: JoinCallback | None) -> None:
        """Take a member in; `callback` answers its JoinGroup once the join phase is over."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self._await_join(member, callback)
        pending = self.pending_members.pop(member.member_id, None)
        if pending is not None:
            pending.cancel()

    def update(
        self,
        member: ClassicGroupMember,
        protocols: Sequence[MemberProtocol],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        callback: JoinCallback | None,
    ) -> None:
        """Replace what a member said of itself when it joined before."""
        self._count_protocols(member, -1)
        member.protocols = tuple(protocols)
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._await_join(member, callback)

    def remove(self, member_id: str) -> None:
        """Forget a member, or an id that was given out; the oldest member left leads on.

        A request of the member that waits is answered: it is to join anew if it is alive.
        """
        member = self.members.get(member_id)
        if member is not None:
            self.answer_join(member, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
            self.answer_sync(member, SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
            del self.members[member_id]
            self._count_protocols(member, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
            member.end_session()
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        pending = self.pending_members.pop(member_id, None)
        if pending is not None:
            pending.cancel()
        self.pending_sync_members.discard(member_id)

    def replace_static_member(
        self, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> ClassicGroupMember:
        """Give a static member that came back its new id; whoever used the old one is fenced."""
        old = self.members.pop(old_member_id)
        self.answer_join(old, JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, old_member_id))
        self.answer_sync(old, SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
        old.end_session()
        member = old.renamed(new_member_id)
        self.members[new_member_id] = member
        self.static_members[group_instance_id] = new_member_id
        self.pending_sync_members.discard(old_member_id)
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        return member

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """The member of that id, whose static identity, if given, must be current.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def has_all_members_joined(self) -> bool:
        """Whether nobody is left to wait for in the join phase."""
        return len(self.members) == self.members_awaiting_join and not self.pending_members

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is among those who joined; False when nobody did."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].is_awaiting_join:
            return True
        for member in self.members.values():
            if member.is_awaiting_join:
                self.leader_id = member.member_id
                return True
        return False

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def generation_answer(
        self, member: ClassicGroupMember, members: Sequence[JoinedMember]
    ) -> JoinAnswer:
        """The JoinGroup answer that puts a member into the generation; `members` for the leader."""
        return JoinAnswer(
            ErrorCode.NONE,
            member.member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader_id or "",
            members=members,
        )

    def sync_answer(self, member: ClassicGroupMember) -> SyncAnswer:
        """The SyncGroup answer with a member's assignment."""
        return SyncAnswer(ErrorCode.NONE, member.assignment, self.protocol_type, self.protocol_name)

    def joined_members(self) -> list[JoinedMember]:
        """The members for the leader, with metadata of the chosen protocol."""
        protocol_name = self.protocol_name
        assert protocol_name is not None
        return [
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(protocol_name))
            for member in self.members.values()
        ]

    # -- who waits ----------------------------------------------------------------------

    def answer_join(self, member: ClassicGroupMember, answer: JoinAnswer) -> bool:
        """Answer the JoinGroup that waits for this member; False when none does."""
        callback = member.join_callback
        if callback is None:
            return False
        self._await_join(member, None)
        callback(answer)
        return True

    def answer_sync(self, member: ClassicGroupMember, answer: SyncAnswer) -> bool:
        """Answer the SyncGroup that waits for this member; False when none does."""
        callback, member.sync_callback = member.sync_callback, None
        if callback is None:
            return False
        callback(answer)
        return True

    def _await_join(self, member: ClassicGroupMember, callback: JoinCallback | None) -> None:
        was_awaiting = member.join_callback is not None
        member.join_callback = callback
        self.members_awaiting_join += (callback is not None) - was_awaiting

    # -- protocols ----------------------------------------------------------------------

    def supports_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member of that type and those protocols could be in the group.

        An empty group takes whatever comes, if it comes with a type and a protocol; else
        one of the protocols must be supported by all members there are.
        """
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and any(
            self.supported_protocols.get(name, 0) == len(self.members) for name in names
        )

    def select_protocol(self) -> str:
        """The protocol that all members support and most prefer; of equals the first voted."""
        everybody = len(self.members)
        candidates = {
            name for name, count in self.supported_protocols.items() if count == everybody
        }
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _count_protocols(self, member: ClassicGroupMember, by: int) -> None:
        counts = self.supported_protocols
        for protocol in member.protocols:
            count = counts.get(protocol.name, 0) + by
            if count:
                counts[protocol.name] = count
            else:
                del counts[protocol.name]

    # -- subscriptions ------------------------------------------------------------------

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, whose metadata says which topics they read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the members read the topic; a consumer group of unknown topics reads all."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def update_subscribed_topics(self) -> None:
        """Learn from the members' metadata which topics they read."""
        self.subscribed_topics = None
        if not self.uses_consumer_protocol:
            return
        if not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is not None:
            name = self.protocol_name
            self.subscribed_topics = subscribed_topics(
                member.metadata(name) for member in self.members.values()
            )
