"""A consumer group: its epochs, its members, what they own and what they are to own.

All of it is what the group's records say; `write.py` changes both together. What a group held
before a write that is not replicated yet stays as an image, which is what descriptions
show and what is restored if the write fails. Source: KIP-848; Kafka's ConsumerGroup.
"""

from __future__ import annotations

from collections import Counter

from ..offsets import GroupOffsets, PendingAppends
from .in_flight_writes import GroupImage, InFlightWrites, preferred_assignor
from .member import (
    NO_TARGET,
    ConsumerGroupMember,
    MemberTimers,
    OwnedPartitions,
    ResolvedExpression,
    TargetAssignment,
)
from .states import GROUP_TRANSITIONS, ConsumerGroupState, state_of

FIRST_EPOCH = 1
"""The epoch of a group that has not begun; its first member counts it up (Kafka 4.3)."""

NO_TARGET_EPOCH = -1
"""The target epoch of a group whose target record was deleted."""


class ConsumerGroup:
    """One group.

    Args:
        group_id: its name.
        partition: the partition of `__consumer_offsets` that keeps it.

    Attributes:
        state: follows from what it holds; see `refresh_state`.
        epoch: counts changes of members, subscriptions and topics.
        metadata_hash: of the subscribed topics, when the epoch was last counted up.
        target_epoch: the epoch that the target assignment was computed for.
        assignment_timestamp_ms: wall time of that; 0 if never.
        members: by member id, oldest first.
        static_members: group instance id to member id.
        targets: what each member is to own, by member id.
        expressions: regular expressions of members, and the topics that they match.
        owners: (topic id, partition) to the member that owns it or has not given it up.
        needs_metadata_refresh: whether the topics may have changed since they were looked at.
        is_conversion_open: whether it was a classic group, or is to become one, and the log may
            not have heard of that yet.
        has_topics_record: whether a record of an older Kafka's, kind 4, is to be deleted.
        timers: of each member, by member id.
        offsets: what the group committed.
        in_flight: commits that are not in the log yet.
        writes: changes of the group itself that are not replicated yet.
    """

    __slots__ = (
        "_lagging",
        "_lagging_epoch",
        "_subscribed_expressions",
        "_subscribed_topics",
        "assignment_timestamp_ms",
        "epoch",
        "expressions",
        "group_id",
        "has_topics_record",
        "in_flight",
        "is_conversion_open",
        "members",
        "metadata_hash",
        "needs_metadata_refresh",
        "offsets",
        "owners",
        "partition",
        "state",
        "static_members",
        "target_epoch",
        "targets",
        "timers",
        "writes",
    )

    def __init__(self, group_id: str, partition: int) -> None:
        self.group_id = group_id
        self.partition = partition
        self.state = ConsumerGroupState.EMPTY
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = 0
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, TargetAssignment] = {}
        self.expressions: dict[str, ResolvedExpression] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        self.needs_metadata_refresh = True
        self.has_topics_record = False
        self.is_conversion_open = False
        self.timers: dict[str, MemberTimers] = {}
        self.offsets = GroupOffsets()
        self.in_flight = PendingAppends()
        self.writes: InFlightWrites[GroupImage] = InFlightWrites()
        self._lagging: set[str] = set()
        self._lagging_epoch: int | None = None
        self._subscribed_topics: frozenset[str] | None = None
        self._subscribed_expressions: Counter[str] | None = None

    # -- members ------------------------------------------------------------------------

    def put_member(self, member: ConsumerGroupMember) -> None:
        """Take a member in, or exchange what is known of it."""
        member_id = member.member_id
        before = self.members.get(member_id)
        if before is not None:
            self._release(before)
            if before.instance_id != member.instance_id:
                self._forget_instance(before)
        self.members[member_id] = member
        self._note_lag(member)
        for owned in (member.assigned_partitions, member.partitions_pending_revocation):
            for topic_id, partitions in owned.items():
                for partition in partitions:
                    self.owners[topic_id, partition] = member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        if before is None or not _subscribe_alike(before, member):
            self._subscribed_expressions = None
            topics = self._subscribed_topics
            if before is not None or topics is None or not self.topics_of(member) <= topics:
                self._subscribed_topics = None

    def remove_member(self, member_id: str) -> None:
        """Forget a member, and that it owns anything."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._lagging.discard(member_id)
        self._release(member)
        self._forget_instance(member)
        self._subscribed_topics = self._subscribed_expressions = None

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        """The member that has a static identity, if any has."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> TargetAssignment:
        """What a member is to own."""
        return self.targets.get(member_id, NO_TARGET)

    def is_taken(self, topic_id: bytes, partition: int, member_id: str) -> bool:
        """Whether another member owns a partition, or has not given it up yet."""
        owner = self.owners.get((topic_id, partition))
        return owner is not None and owner != member_id

    def _forget_instance(self, member: ConsumerGroupMember) -> None:
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _release(self, member: ConsumerGroupMember) -> None:
        for owned in (member.assigned_partitions, member.partitions_pending_revocation):
            self._release_partitions(owned, member.member_id)

    def _release_partitions(self, owned: OwnedPartitions, member_id: str) -> None:
        owners = self.owners
        for topic_id, partitions in owned.items():
            for partition in partitions:
                # After compaction a later owner may have been read first.
                if owners.get((topic_id, partition)) == member_id:
                    del owners[topic_id, partition]

    # -- subscriptions ------------------------------------------------------------------

    def put_expression(self, expression: str, resolved: ResolvedExpression) -> None:
        """Keep the topics that a regular expression matches."""
        self.expressions[expression] = resolved
        self._subscribed_topics = self._subscribed_expressions = None

    def remove_expression(self, expression: str) -> None:
        """Forget a regular expression that nobody subscribes by any more."""
        self.expressions.pop(expression, None)
        self._subscribed_topics = self._subscribed_expressions = None

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """The topics that a member reads, by name and by regular expression."""
        resolved = self.expressions.get(member.subscribed_topic_regex)
        if not member.subscribed_topic_regex or resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics that any member reads."""
        topics = self._subscribed_topics
        if topics is None:
            topics = frozenset().union(*(self.topics_of(m) for m in self.members.values()))
            self._subscribed_topics = topics
        return topics

    @property
    def subscribed_expressions(self) -> Counter[str]:
        """The regular expressions that members subscribe by, and how many do."""
        expressions = self._subscribed_expressions
        if expressions is None:
            expressions = self._subscribed_expressions = Counter(
                member.subscribed_topic_regex
                for member in self.members.values()
                if member.subscribed_topic_regex
            )
        return expressions

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether any member reads the topic."""
        return topic in self.subscribed_topics

    @property
    def preferred_assignor(self) -> str | None:
        """The assignor that most members request, if any member requests one."""
        return preferred_assignor(self.members)

    def invalidate_target_assignment(self) -> None:
        """Have the next heartbeat count the epoch up, and compute all targets from nothing."""
        self.targets = {
            member_id: NO_TARGET for member_id in self.targets if member_id not in self.members
        }
        self.metadata_hash = ~self.metadata_hash
        self.needs_metadata_refresh = True

    # -- the group as a whole -----------------------------------------------------------

    @property
    def has_nothing(self) -> bool:
        """Whether nothing tells it from a group that never was."""
        return (
            not self.members
            and not self.offsets
            and self.epoch == FIRST_EPOCH
            and self.target_epoch == 0
            and self.in_flight.is_settled
            and self.writes.is_settled
        )

    def refresh_state(self, *, loading: bool = False) -> None:
        """Be in the state that follows from what the group holds.

        Args:
            loading: whether the group is being read back, so that any state may follow.

        Raises:
            IllegalTransitionError: the table has no such row.
        """
        state = state_of(
            has_members=bool(self.members),
            group_epoch=self.epoch,
            target_epoch=self.target_epoch,
            is_reconciled=self._is_reconciled(),
        )
        if not loading and state is not self.state:
            GROUP_TRANSITIONS.require(self.state, state)
        self.state = state

    def _is_reconciled(self) -> bool:
        """Whether every member owns what the target gives it.

        Asked at each write: who lags behind a target is looked for once, and noted from then on.
        """
        if self._lagging_epoch != self.target_epoch:
            self._lagging_epoch = self.target_epoch
            self._lagging.clear()
            for member in self.members.values():
                self._note_lag(member)
        return not self._lagging

    def _note_lag(self, member: ConsumerGroupMember) -> None:
        if self._lagging_epoch is None:
            return  # not needed yet
        if member.is_reconciled_to(self._lagging_epoch):
            self._lagging.discard(member.member_id)
        else:
            self._lagging.add(member.member_id)

    @property
    def is_dead(self) -> bool:
        """Whether nobody finds it here any more."""
        return self.state is ConsumerGroupState.DEAD

    def mark_dead(self) -> None:
        """Be dead: deleted, or kept by another broker now."""
        GROUP_TRANSITIONS.require(self.state, ConsumerGroupState.DEAD)
        self.state = ConsumerGroupState.DEAD

    def image(self) -> GroupImage:
        """What the group holds now."""
        return GroupImage(
            self.state,
            self.epoch,
            self.metadata_hash,
            self.target_epoch,
            self.assignment_timestamp_ms,
            dict(self.members),
            dict(self.static_members),
            dict(self.targets),
            dict(self.expressions),
            dict(self.owners),
        )

    def restore(self, image: GroupImage) -> None:
        """Hold again what it held before a write that failed."""
        self.state = image.state
        self.epoch = image.epoch
        self.metadata_hash = image.metadata_hash
        self.target_epoch = image.target_epoch
        self.assignment_timestamp_ms = image.assignment_timestamp_ms
        self.members = dict(image.members)
        self.static_members = dict(image.static_members)
        self.targets = dict(image.targets)
        self.expressions = dict(image.expressions)
        self.owners = dict(image.owners)
        self.needs_metadata_refresh = True
        self._lagging_epoch = None
        self._subscribed_topics = self._subscribed_expressions = None

    @property
    def replicated_state(self) -> ConsumerGroupState:
        """The state when all was replicated last."""
        image = self.writes.oldest_image
        return self.state if image is None else image.state

    def replicated(self) -> GroupImage:
        """What the group held when all was replicated last: what descriptions show."""
        return self.writes.oldest_image or self.image()


def _subscribe_alike(one: ConsumerGroupMember, other: ConsumerGroupMember) -> bool:
    return (
        one.subscribed_topic_names == other.subscribed_topic_names
        and one.subscribed_topic_regex == other.subscribed_topic_regex
    )
