"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, and an assignment that one of the
members makes.

Source: Kafka's `AbstractCoordinator` and `ConsumerCoordinator`; KIP-394 (a member id before
joining), KIP-345 (static members), KIP-429 (cooperative rebalancing), KIP-814 (a static leader
that comes back).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import NO_EPOCH
from ....common.state_table import StateTable
from ....protocol import internal as schemas
from ....protocol import messages
from ....protocol.errors import ProtocolError
from ....protocol.internal import find_message
from ....protocol.internal.versioned import decode_versioned, encode_versioned
from ...error_kinds import error_name, error_of
from ..offsets import TopicPartition
from .assignors import ASSIGNORS, MemberSubscription
from .membership import CountPartitions, GroupMetadata, Rebalance, Send, Step, Wait

PROTOCOL_TYPE: Final = "consumer"
CONSUMER_PROTOCOL_VERSION: Final = 3
JOIN_TIMEOUT_EXTRA_MS: Final = 5_000
"""A join is answered when all members are there, or the rebalance timeout is over."""

GENERATION: Final = struct.Struct(">i")
"""What cooperative-sticky wrote of itself before subscriptions had a generation (v2)."""


class MemberState(Enum):
    """Where a member stands; Kafka's words."""

    UNJOINED = "Unjoined"
    PREPARING_REBALANCE = "PreparingRebalance"
    JOINING = "Joining"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    FENCED = "Fenced"
    STALE = "Stale"
    FATAL = "Fatal"


class MemberEvent(Enum):
    """What moves a member."""

    SUBSCRIBED = "subscribed"
    REBALANCE = "rebalance"
    PREPARED = "prepared"
    JOINED = "joined"
    SYNCED = "synced"
    FENCED = "fenced"
    POLL_EXPIRED = "poll expired"
    LOST = "lost"
    LEFT = "left"
    FAILED = "failed"


S, E = MemberState, MemberEvent
_ENDS = (
    (E.FENCED, S.FENCED, "the coordinator does not know the member, or not in this generation"),
    (E.POLL_EXPIRED, S.STALE, "the caller does not poll, so its partitions go to others"),
    (E.LEFT, S.UNJOINED, "the consumer is closed"),
    (E.FAILED, S.FATAL, "the coordinator refuses the member for good"),
)

TRANSITIONS: Final = StateTable(
    "a member of a classic group",
    {
        S.UNJOINED: [(E.SUBSCRIBED, S.PREPARING_REBALANCE, "there are topics to read")],
        S.PREPARING_REBALANCE: [
            (E.PREPARED, S.JOINING, "what had to be given up before joining is"),
            *_ENDS,
        ],
        S.JOINING: [
            (E.JOINED, S.COMPLETING_REBALANCE, "all members are there"),
            *_ENDS,
        ],
        S.COMPLETING_REBALANCE: [
            (E.SYNCED, S.STABLE, "the leader has assigned"),
            (E.REBALANCE, S.PREPARING_REBALANCE, "another member came or went meanwhile"),
            *_ENDS,
        ],
        S.STABLE: [
            (E.REBALANCE, S.PREPARING_REBALANCE, "members, topics or partitions have changed"),
            *_ENDS,
        ],
        S.FENCED: [
            (E.LOST, S.PREPARING_REBALANCE, "the caller knows that the partitions are gone"),
            (E.LEFT, S.UNJOINED, "the consumer is closed"),
        ],
        S.STALE: [
            (
                E.LOST,
                S.PREPARING_REBALANCE,
                "the caller polls again, and knows that the partitions are gone",
            ),
            (E.LEFT, S.UNJOINED, "the consumer is closed"),
        ],
        S.FATAL: [(E.LEFT, S.UNJOINED, "the consumer is closed")],
    },
    label=lambda state: state.value,
    initial=S.UNJOINED,
)

OUTSIDE: Final = frozenset({S.UNJOINED, S.FENCED, S.STALE, S.FATAL})
"""The member is in no generation, and sends nothing."""

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class ClassicMembership:
    """A member of one group; see `Membership`.

    Args:
        group_id: of the group.
        assignors: names of `ASSIGNORS`, the preferred first.
        instance_id: makes it a static member.
        rack_id: the client's rack.
        session_timeout_ms: a member that is silent for so long is removed.
        heartbeat_interval_ms: between heartbeats.
        rebalance_timeout_ms: how long members may take to join again.
    """

    def __init__(
        self,
        group_id: str,
        assignors: Sequence[str],
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        rebalance_timeout_ms: int = 300_000,
    ) -> None:
        self.state = MemberState.UNJOINED
        self.generation = NO_EPOCH
        self.member_id = ""
        self.is_leader = False
        self.failure: KafkaError | None = None
        self._group_id = group_id
        self._assignors = tuple(assignors)
        self._is_cooperative = all(ASSIGNORS[name].is_cooperative for name in assignors)
        self._instance_id = instance_id
        self._rack_id = rack_id
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._topics: frozenset[str] = frozenset()
        self._joined_topics: frozenset[str] = frozenset()
        self._owned: frozenset[TopicPartition] = frozenset()
        self._owned_generation = NO_EPOCH
        self._assigned: frozenset[TopicPartition] | None = None
        """By the last SyncGroup, until the caller has heard of it."""
        self._members: dict[str, MemberSubscription] | None = None
        """Of the group that this member leads, until it has assigned."""
        self._keeps_assignment = False
        """Whether the group keeps what it has, and the leader only watches for changes."""
        self._protocol = ""
        self._counted: dict[str, int] = {}
        """The partitions that the leader has assigned, by topic."""
        self._assignments: list[messages.SyncGroupRequest.SyncGroupRequestAssignment] = []
        self._must_leave = False
        self._rejoin_is_due = False
        self._heartbeat_due_ms = 0

    @property
    def metadata(self) -> GroupMetadata:
        """Who this member is to the coordinator now."""
        is_in = self.generation >= 0
        return GroupMetadata(
            self._group_id,
            self.generation,
            self.member_id if is_in else "",
            self._instance_id,
        )

    # --- What the caller must hear of --------------------------------------------------------

    @property
    def rebalance(self) -> Rebalance | None:
        """What the caller is to hear of when it polls; None: nothing."""
        if self.state in (MemberState.FENCED, MemberState.STALE):
            return Rebalance(revoked=self._owned, is_lost=True)
        if self.state is MemberState.FATAL and self._owned:
            return Rebalance(revoked=self._owned, is_lost=True)
        if self.state is MemberState.PREPARING_REBALANCE:
            return Rebalance(revoked=self._given_up())
        if self._assigned is not None:
            return Rebalance(self._owned - self._assigned, self._assigned - self._owned)
        return None

    def rebalance_done(self, now_ms: int) -> None:
        """The caller has heard of `rebalance`."""
        if self.state in (MemberState.FENCED, MemberState.STALE):
            self._owned = frozenset()
            self._assigned = None
            self._move(E.LOST)
        elif self.state is MemberState.FATAL:
            self._owned = frozenset()
        elif self.state is MemberState.PREPARING_REBALANCE:
            self._owned -= self._given_up()
            self._move(E.PREPARED)
        elif self._assigned is not None:
            gives_up = bool(self._owned - self._assigned)
            self._owned, self._assigned = self._assigned, None
            self._owned_generation = self.generation
            if gives_up:  # Only now may another member be given it (KIP-429).
                self._rejoin()

    def _given_up(self) -> frozenset[TopicPartition]:
        """What goes before this member joins again."""
        if not self._is_cooperative:
            return self._owned
        return frozenset(each for each in self._owned if each[0] not in self._topics)

    # --- What is sent ------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str]) -> None:
        """Be a member that reads these topics."""
        self._topics = topics
        if self.state is MemberState.UNJOINED:
            self._move(E.SUBSCRIBED)
        elif topics != self._joined_topics:
            self._rejoin()

    def next_step(self, now_ms: int) -> Step:
        """What to do next; nothing is in flight when it is asked."""
        if self._must_leave:
            self._must_leave = False
            leaving = self._leaving()
            self.member_id = ""
            if leaving is not None:
                return Send(leaving)
        if self.state in OUTSIDE:
            return Wait(None)
        if self._rejoin_is_due and TRANSITIONS.takes(self.state, E.REBALANCE):
            self._rejoin()
        if self.state is MemberState.PREPARING_REBALANCE and not self._given_up():
            self._move(E.PREPARED)
        if self.state is MemberState.JOINING:
            return Send(self._joining(), self._rebalance_timeout_ms + JOIN_TIMEOUT_EXTRA_MS)
        if self.state is MemberState.COMPLETING_REBALANCE:
            if self._members is not None:
                return CountPartitions(
                    frozenset(topic for each in self._members.values() for topic in each.topics)
                )
            return Send(self._syncing(), self._rebalance_timeout_ms + JOIN_TIMEOUT_EXTRA_MS)
        if self.generation < 0 or self._heartbeat_due_ms > now_ms:
            return Wait(self._heartbeat_due_ms if self.generation >= 0 else None)
        return Send(
            messages.HeartbeatRequest(
                group_id=self._group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._instance_id,
            )
        )

    def answered(self, request: Any, response: Any, now_ms: int) -> KafkaError | None:
        """The coordinator answered; returns an error that may pass."""
        self._heartbeat_due_ms = now_ms + self._heartbeat_interval_ms
        if isinstance(response, messages.LeaveGroupResponse):
            return None
        if self.state in OUTSIDE:
            return None
        if response.error_code:
            return self._refused(request, response, now_ms)
        if isinstance(response, messages.JoinGroupResponse):
            self._joined(response)
        elif isinstance(response, messages.SyncGroupResponse):
            return self._synced(response)
        return None

    def unanswered(self, now_ms: int) -> None:
        """The request got no answer: the coordinator may have acted on it or not."""
        self._heartbeat_due_ms = now_ms

    def poll_expired(self) -> None:
        """The caller has not polled for too long: leave, until it does again."""
        if TRANSITIONS.takes(self.state, E.POLL_EXPIRED):
            self._must_leave = True
            self._move(E.POLL_EXPIRED)

    def partition_counts(self, counts: Mapping[str, int]) -> None:
        """Assign, as the leader of the group."""
        members, self._members = self._members or {}, None
        topics = {topic for each in members.values() for topic in each.topics}
        self._counted = {topic: counts.get(topic, 0) for topic in topics}
        if self._keeps_assignment:
            return
        assigned = ASSIGNORS[self._protocol].assign(members, counts)
        make = messages.SyncGroupRequest.SyncGroupRequestAssignment
        self._assignments = [
            make(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in assigned.items()
        ]

    def partitions_changed(self, counts: Mapping[str, int]) -> None:
        """Join again where what this leader has assigned has changed."""
        if any(counts.get(topic, count) != count for topic, count in self._counted.items()):
            self._rejoin()

    def topic_names(self, names: Mapping[bytes, str]) -> None:
        """Of no interest: members of these groups know topics by their names."""

    def fenced(self) -> None:
        """The coordinator said in answer to a commit that it does not know this member."""
        if TRANSITIONS.takes(self.state, E.FENCED):
            self._move(E.FENCED)

    def leave(self) -> messages.LeaveGroupRequest | None:
        """The request that ends the membership; None if there is nothing to end."""
        if self.state is MemberState.UNJOINED:
            return None
        is_in = self.state not in OUTSIDE or self._must_leave
        self._move(E.LEFT)
        self._owned, self._assigned = frozenset(), None
        return self._leaving() if is_in else None

    # --- Inside ------------------------------------------------------------------------------

    def _move(self, event: MemberEvent) -> None:
        self.state = TRANSITIONS.next_state(self.state, event)
        if self.state in OUTSIDE:
            self.generation = NO_EPOCH

    def _rejoin(self) -> None:
        """Join again, as soon as the state allows it."""
        if self.state is MemberState.PREPARING_REBALANCE:
            return
        if TRANSITIONS.takes(self.state, E.REBALANCE):
            self._rejoin_is_due = False
            self._assigned = None
            self._members = None
            self._move(E.REBALANCE)
        else:
            self._rejoin_is_due = True

    def _joining(self) -> messages.JoinGroupRequest:
        self._joined_topics = self._topics
        self._rejoin_is_due = False
        make = messages.JoinGroupRequest.JoinGroupRequestProtocol
        return messages.JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                make(
                    name=name,
                    metadata=write_subscription(
                        self._topics,
                        self._owned,
                        self._owned_generation,
                        self._rack_id,
                        is_sticky=ASSIGNORS[name].is_cooperative,
                    ),
                )
                for name in self._assignors
            ],
        )

    def _syncing(self) -> messages.SyncGroupRequest:
        return messages.SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=self._assignments,
        )

    def _leaving(self) -> messages.LeaveGroupRequest | None:
        """A static member does not leave: it may come back before its session ends."""
        if not self.member_id or self._instance_id is not None:
            return None
        return messages.LeaveGroupRequest(
            group_id=self._group_id,
            members=[messages.LeaveGroupRequest.MemberIdentity(member_id=self.member_id)],
        )

    def _joined(self, response: messages.JoinGroupResponse) -> None:
        self.generation = response.generation_id
        self.member_id = response.member_id
        self.is_leader = response.leader == response.member_id
        self._protocol = response.protocol_name or ""
        self._assignments = []
        self._members = None
        self._counted = {}
        self._move(E.JOINED)
        if not self.is_leader or self._protocol not in ASSIGNORS:
            return
        members = {
            member.member_id: read_subscription(member.metadata, member.group_instance_id)
            for member in response.members
        }
        self._members = members
        self._keeps_assignment = response.skip_assignment

    def _synced(self, response: messages.SyncGroupResponse) -> KafkaError | None:
        try:
            self._assigned = read_assignment(response.assignment)
        except ProtocolError as error:
            self.failure = KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"the leader of group {self._group_id!r} sent an assignment that is none: {error}",
            )
            self._move(E.FAILED)
            return None
        self._move(E.SYNCED)
        return None

    def _refused(self, request: Any, response: Any, now_ms: int) -> KafkaError | None:
        code = error_of(response.error_code)
        if code in PASSING:
            self._heartbeat_due_ms = now_ms
            return KafkaError(code, error_name(response.error_code))
        if isinstance(response, messages.HeartbeatResponse) and self.state is MemberState.JOINING:
            return None  # It was sent before this member began to join again.
        if code is ErrorCode.MEMBER_ID_REQUIRED and isinstance(
            response, messages.JoinGroupResponse
        ):
            self.member_id = response.member_id
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin()
        elif code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self._move(E.FENCED)
        else:
            self.failure = KafkaError(code, f"group {self._group_id!r}: {code.name}")
            self._move(E.FAILED)
        return None


def write_subscription(
    topics: Iterable[str],
    owned: Iterable[TopicPartition],
    generation: int,
    rack_id: str | None = None,
    *,
    is_sticky: bool = False,
) -> bytes:
    """A member's metadata, as all of Kafka's clients understand it.

    Args:
        topics: that it subscribes to.
        owned: what it has not given up.
        generation: in which it was given that.
        rack_id: the client's rack.
        is_sticky: say the generation in the user data, too, as cooperative-sticky does.
    """
    make = schemas.ConsumerProtocolSubscription.TopicPartition
    message = schemas.ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=GENERATION.pack(generation) if is_sticky else None,
        owned_partitions=[
            make(topic=topic, partitions=numbers) for topic, numbers in _by_topic(owned)
        ],
        generation_id=generation,
        rack_id=rack_id,
    )
    return encode_versioned(message, CONSUMER_PROTOCOL_VERSION)


def read_subscription(metadata: bytes, instance_id: str | None = None) -> MemberSubscription:
    """What another member wrote; one whose metadata cannot be read subscribes to nothing."""
    try:
        message, version = decode_versioned(
            find_message("ConsumerProtocolSubscription"), metadata, newer_as_newest=True
        )
    except ProtocolError:
        return MemberSubscription(frozenset(), instance_id=instance_id)
    generation = message.generation_id
    if version < 2 and message.user_data is not None and len(message.user_data) == GENERATION.size:
        (generation,) = GENERATION.unpack(message.user_data)
    return MemberSubscription(
        frozenset(message.topics), _pairs(message.owned_partitions), generation, instance_id
    )


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """What the leader gives one member."""
    make = schemas.ConsumerProtocolAssignment.TopicPartition
    message = schemas.ConsumerProtocolAssignment(
        assigned_partitions=[
            make(topic=topic, partitions=numbers) for topic, numbers in _by_topic(partitions)
        ]
    )
    return encode_versioned(message, CONSUMER_PROTOCOL_VERSION)


def read_assignment(assignment: bytes) -> frozenset[TopicPartition]:
    """What the leader gave this member; no bytes are nothing.

    Raises:
        ProtocolError: it is no such thing.
    """
    if not assignment:
        return frozenset()
    message, _ = decode_versioned(
        find_message("ConsumerProtocolAssignment"), assignment, newer_as_newest=True
    )
    return _pairs(message.assigned_partitions)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return list(topics.items())


def _pairs(entries: Iterable[Any] | None) -> frozenset[TopicPartition]:
    return frozenset(
        (entry.topic, number) for entry in entries or () for number in entry.partitions
    )
