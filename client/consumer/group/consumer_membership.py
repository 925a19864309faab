"""A member of a group of KIP-848: heartbeats that carry everything, and partitions that come
and go one by one.

Source: Kafka's `ConsumerMembershipManager` and `ConsumerHeartbeatRequestManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from ....common.errors import ErrorCode, KafkaError
from ....common.state_table import StateTable
from ....protocol import messages
from ...error_kinds import error_name, error_of
from ..offsets import TopicPartition
from .membership import GroupMetadata, Rebalance, ResolveTopics, Send, Step, Wait

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""A static member that will come back: its partitions stay assigned to it."""

RESOLVE_INTERVAL_MS: Final = 1_000


class MemberState(Enum):
    """Where a member stands."""

    UNSUBSCRIBED = "Unsubscribed"
    JOINING = "Joining"
    RECONCILING = "Reconciling"
    ACKNOWLEDGING = "Acknowledging"
    STABLE = "Stable"
    FENCED = "Fenced"
    STALE = "Stale"
    FATAL = "Fatal"


class MemberEvent(Enum):
    """What moves a member."""

    SUBSCRIBED = "subscribed"
    ASSIGNED = "assigned"
    UNCHANGED = "nothing to do"
    RECONCILED = "reconciled"
    ACKNOWLEDGED = "acknowledged"
    FENCED = "fenced"
    POLL_EXPIRED = "poll expired"
    LOST = "lost"
    LEFT = "left"
    FAILED = "failed"


S, E = MemberState, MemberEvent
_ENDS = (
    (E.FENCED, S.FENCED, "the coordinator does not know the member, or not in this epoch"),
    (E.POLL_EXPIRED, S.STALE, "the caller does not poll, so its partitions go to others"),
    (E.LEFT, S.UNSUBSCRIBED, "the consumer is closed, or subscribes to nothing"),
    (E.FAILED, S.FATAL, "the coordinator refuses the member for good"),
)

TRANSITIONS: Final = StateTable(
    "a member of a consumer group",
    {
        S.UNSUBSCRIBED: [(E.SUBSCRIBED, S.JOINING, "there are topics to read")],
        S.JOINING: [
            (E.ASSIGNED, S.RECONCILING, "the target is another than what it has"),
            (E.UNCHANGED, S.STABLE, "there is nothing for it yet"),
            *_ENDS,
        ],
        S.STABLE: [(E.ASSIGNED, S.RECONCILING, "the target has changed"), *_ENDS],
        S.RECONCILING: [
            (E.ASSIGNED, S.RECONCILING, "the target has changed again"),
            (E.UNCHANGED, S.STABLE, "the new target is what it has"),
            (E.RECONCILED, S.ACKNOWLEDGING, "what was revoked is given up"),
            *_ENDS,
        ],
        S.ACKNOWLEDGING: [
            (E.ASSIGNED, S.RECONCILING, "the target has changed meanwhile"),
            (E.ACKNOWLEDGED, S.STABLE, "the coordinator knows what it has"),
            *_ENDS,
        ],
        S.FENCED: [
            (E.LOST, S.JOINING, "the caller knows that the partitions are gone"),
            (E.LEFT, S.UNSUBSCRIBED, "the consumer is closed"),
        ],
        S.STALE: [
            (E.LOST, S.JOINING, "the caller polls again, and knows that the partitions are gone"),
            (E.LEFT, S.UNSUBSCRIBED, "the consumer is closed"),
        ],
        S.FATAL: [(E.LEFT, S.UNSUBSCRIBED, "the consumer is closed")],
    },
    label=lambda state: state.value,
    initial=S.UNSUBSCRIBED,
)

OUTSIDE: Final = frozenset({S.UNSUBSCRIBED, S.FENCED, S.STALE, S.FATAL})
"""The member has no epoch, and sends no heartbeats."""

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
FENCING: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})

Partitions = dict[bytes, frozenset[int]]


class ConsumerMembership:
    """A member of one group; see `Membership`.

    Args:
        group_id: of the group.
        member_id: made by the client (KIP-1082).
        instance_id: makes it a static member.
        rack_id: the client's rack.
        assignor: the broker's assignor; None: the broker chooses.
        rebalance_timeout_ms: how long it may take to give partitions up.
        regex: topics whose names match it are read, too (RE2's syntax).
    """

    def __init__(
        self,
        group_id: str,
        member_id: str,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = 300_000,
        regex: str | None = None,
    ) -> None:
        self.state = MemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.failure: KafkaError | None = None
        self._group_id = group_id
        self._member_id = member_id
        self._instance_id = instance_id
        self._rack_id = rack_id
        self._assignor = assignor
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._regex = regex
        self._topics: frozenset[str] = frozenset()
        self._names: dict[bytes, str] = {}
        self._target: Partitions = {}
        self._owned: Partitions = {}
        self._reconciling: Partitions | None = None
        """What the caller is about to own."""
        self._reported: Partitions | None = None
        """What the heartbeat in flight says that it owns."""
        self._sends_all = True
        """Whether the next heartbeat repeats everything: nobody knows what of it came."""
        self._sends_topics = False
        self._must_leave = False
        self._heartbeat_due_ms = 0
        self._resolve_due_ms = 0

    @property
    def metadata(self) -> GroupMetadata:
        """Who this member is to the coordinator now."""
        is_in = self.epoch > 0
        return GroupMetadata(
            self._group_id,
            self.epoch if is_in else -1,
            self._member_id if is_in else "",
            self._instance_id,
        )

    # --- What the caller must hear of --------------------------------------------------------

    @property
    def rebalance(self) -> Rebalance | None:
        """What the caller is to hear of when it polls; None: nothing."""
        owned = self._named(self._owned)
        if self.state in (MemberState.FENCED, MemberState.STALE):
            return Rebalance(revoked=owned, is_lost=True)
        if self.state is MemberState.FATAL and owned:
            return Rebalance(revoked=owned, is_lost=True)
        if self.state is not MemberState.RECONCILING:
            return None
        if self._reconciling is None:
            self._reconciling = self._resolved_target()
        target = self._named(self._reconciling)
        if target == owned and self._unresolved():
            self._reconciling = None
            return None
        return Rebalance(revoked=owned - target, assigned=target - owned)

    def rebalance_done(self, now_ms: int) -> None:
        """The caller has heard of `rebalance`."""
        self._heartbeat_due_ms = now_ms
        if self.state is MemberState.FATAL:
            self._owned = {}
        elif self.state is not MemberState.RECONCILING:
            self._owned, self._target, self._reconciling = {}, {}, None
            self._sends_all = True
            self._move(E.LOST)
        elif self._reconciling is not None:
            self._owned, self._reconciling = self._reconciling, None
            self._move(E.RECONCILED)

    # --- What is sent ------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str]) -> None:
        """Be a member that reads these topics."""
        if topics != self._topics:
            self._topics = topics
            self._sends_topics = True
            self._heartbeat_due_ms = 0
        if self.state is MemberState.UNSUBSCRIBED:
            self._move(E.SUBSCRIBED)

    def next_step(self, now_ms: int) -> Step:
        """What to do next; nothing is in flight when it is asked."""
        if self._must_leave:
            self._must_leave = False
            return Send(self._leaving())
        if self.state in OUTSIDE:
            return Wait(None)
        due_ms = self._heartbeat_due_ms
        if self.state is MemberState.RECONCILING and self._unresolved():
            if self._resolve_due_ms <= now_ms:
                self._resolve_due_ms = now_ms + RESOLVE_INTERVAL_MS
                return ResolveTopics(self._unresolved())
            due_ms = min(due_ms, self._resolve_due_ms)
        if self._heartbeat_due_ms > now_ms:
            return Wait(due_ms)
        return Send(self._heartbeat())

    def answered(
        self, request: Any, response: messages.ConsumerGroupHeartbeatResponse, now_ms: int
    ) -> KafkaError | None:
        """The coordinator answered; returns an error that may pass."""
        if request.member_epoch < 0:
            return None  # It has left, one way or the other.
        if response.error_code:
            self._sends_all = True
            return self._refused(response, now_ms)
        if self.state in OUTSIDE:
            return None
        self.epoch = response.member_epoch
        if response.member_id:
            self._member_id = response.member_id
        self._heartbeat_due_ms = now_ms + response.heartbeat_interval_ms
        if response.assignment is not None:
            self._target = {
                topic.topic_id: frozenset(topic.partitions)
                for topic in response.assignment.topic_partitions
                if topic.partitions
            }
            self._resolve_due_ms = now_ms
        is_settled = self._target == self._owned
        if self._sends_topics:
            self._heartbeat_due_ms = now_ms
        if self.state is MemberState.ACKNOWLEDGING:
            if self._reported is not self._owned:
                self._heartbeat_due_ms = now_ms  # It was sent before the reconciliation ended.
            else:
                self._move(E.ACKNOWLEDGED if is_settled else E.ASSIGNED)
        elif not is_settled:
            self._move(E.ASSIGNED)
        elif self.state is MemberState.JOINING or (
            self.state is MemberState.RECONCILING and self._reconciling is None
        ):
            self._move(E.UNCHANGED)
        return None

    def unanswered(self, now_ms: int) -> None:
        """The request got no answer: the coordinator may have acted on it or not."""
        self._sends_all = True
        self._heartbeat_due_ms = now_ms

    def poll_expired(self) -> None:
        """The caller has not polled for too long: leave, until it does again."""
        if TRANSITIONS.takes(self.state, E.POLL_EXPIRED):
            self._must_leave = True
            self._move(E.POLL_EXPIRED)

    def partition_counts(self, counts: Mapping[str, int]) -> None:
        """Of no interest: the broker assigns."""

    def partitions_changed(self, counts: Mapping[str, int]) -> None:
        """Of no interest: the broker assigns."""

    def topic_names(self, names: Mapping[bytes, str]) -> None:
        """The names of topics that were assigned by their ids; unknown ones are left out."""
        self._names.update(names)

    def fenced(self) -> None:
        """The coordinator said in answer to a commit that it does not know this member."""
        if TRANSITIONS.takes(self.state, E.FENCED):
            self._move(E.FENCED)

    def leave(self) -> messages.ConsumerGroupHeartbeatRequest | None:
        """The request that ends the membership; None if there is nothing to end."""
        state = self.state
        if state is MemberState.UNSUBSCRIBED:
            return None
        self._move(E.LEFT)
        self._owned, self._target = {}, {}
        if state in (S.FENCED, S.STALE, S.FATAL) and not self._must_leave:
            return None
        return self._leaving()

    # --- Inside ------------------------------------------------------------------------------

    def _move(self, event: MemberEvent) -> None:
        self.state = TRANSITIONS.next_state(self.state, event)
        if self.state in OUTSIDE:
            self.epoch = JOIN_EPOCH

    def _refused(
        self, response: messages.ConsumerGroupHeartbeatResponse, now_ms: int
    ) -> KafkaError | None:
        code = error_of(response.error_code)
        error = KafkaError(code, response.error_message or error_name(response.error_code))
        if code in PASSING:
            self._heartbeat_due_ms = now_ms
            return error
        if self.state in OUTSIDE:
            return None
        if code in FENCING:
            self._move(E.FENCED)
        else:
            self.failure = error
            self._move(E.FAILED)
        return None

    def _heartbeat(self) -> messages.ConsumerGroupHeartbeatRequest:
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=self.epoch,
            instance_id=self._instance_id,
        )
        if self._sends_all:
            request.rack_id = self._rack_id
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.server_assignor = self._assignor
            request.subscribed_topic_regex = self._regex
        if self._sends_all or self._sends_topics:
            request.subscribed_topic_names = sorted(self._topics)
        if self._sends_all or self.state is MemberState.ACKNOWLEDGING:
            make = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
            request.topic_partitions = [
                make(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in sorted(self._owned.items())
            ]
            self._reported = self._owned
        else:
            self._reported = None
        self._sends_all = self._sends_topics = False
        return request

    def _leaving(self) -> messages.ConsumerGroupHeartbeatRequest:
        epoch = LEAVE_EPOCH if self._instance_id is None else LEAVE_STATIC_EPOCH
        return messages.ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=self._instance_id,
        )

    def _unresolved(self) -> frozenset[bytes]:
        return frozenset(self._target.keys() - self._names.keys())

    def _resolved_target(self) -> Partitions:
        return {key: numbers for key, numbers in self._target.items() if key in self._names}

    def _named(self, partitions: Partitions) -> frozenset[TopicPartition]:
        return frozenset(
            (self._names[topic_id], number)
            for topic_id, numbers in partitions.items()
            for number in numbers
        )
