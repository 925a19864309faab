"""Groups that change their type while they have members: upgrade and downgrade (KIP-848).

A classic group of consumers becomes a consumer group when the first member comes that speaks the
consumer protocol. Each member has what the leader assigned last, which is its target too, in the
group's generation, so nothing moves before the first member of the new protocol is assigned
something. What a cooperative member owned when it joined and nobody was assigned it has too, since
it may not know yet that it is to give it up; Kafka does not look at that.

A consumer group becomes a classic one when the last such member goes and only classic ones are
left. It is stable in the consumer group's epoch. Where it goes on without a rebalance everybody is
assigned its target. Where a rebalance follows everybody is assigned what it owns, although Kafka
writes the target there too: a member of the consumer protocol that joins before the rebalance is
over would get what others have not given up.

The records of both types stand in one write. Source: Kafka 4.3's `convertToConsumerGroup`,
`convertToClassicGroup`, `ConsumerGroup.fromClassicGroup`, `ClassicGroup.fromConsumerGroup` and
`ConsumerGroupMigrationPolicy`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....common.errors import ErrorCode, KafkaError
from ....protocol.errors import ProtocolError
from ..classic.classic_groups import ClassicGroups
from ..classic.group import ClassicGroup
from ..classic.member import ClassicGroupMember
from ..classic.messages import JoinAnswer, MemberProtocol, SyncAnswer
from ..classic.states import ClassicGroupState
from ..consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    CustomAssignorError,
    Subscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
)
from ..records import group_record, group_tombstone
from ..runtime import GroupRuntime
from .group import ConsumerGroup
from .group_write import GroupWrite
from .member import ClassicMemberMetadata, ClassicProtocol, ConsumerGroupMember, TargetAssignment
from .settings import ConsumerGroupSettings
from .topics import TopicsImage

if TYPE_CHECKING:
    from ..shards import GroupShards


def consumer_members(
    classic: ClassicGroup, image: TopicsImage
) -> list[tuple[ConsumerGroupMember, TargetAssignment]]:
    """The members, and the target of each.

    Raises:
        ProtocolError: a member's metadata or assignment cannot be read.
        CustomAssignorError: an assignment has data of an assignor of the members' own.
    """
    if not classic.members:
        return []
    protocol_name = classic.protocol_name or classic.select_protocol()
    members = list(classic.members.values())
    said = [read_subscription(_metadata(member, protocol_name)) for member in members]
    targets = [by_topic_id(read_assignment(member.assignment), image) for member in members]
    owned = _owned_by_each(
        targets, [by_topic_id(subscription.owned, image) for subscription in said]
    )
    return [
        (_consumer_member(member, subscription, classic.generation_id, has), target)
        for member, subscription, has, target in zip(members, said, owned, targets, strict=True)
    ]


def _owned_by_each(
    targets: Sequence[TargetAssignment], claims: Sequence[TargetAssignment]
) -> list[dict[bytes, set[int]]]:
    """What each member has: its target, and what it claims and nobody else has."""
    owned = [{topic_id: set(numbers) for topic_id, numbers in target.items()} for target in targets]
    taken = {
        (topic_id, number)
        for target in targets
        for topic_id, numbers in target.items()
        for number in numbers
    }
    for has, claim in zip(owned, claims, strict=True):
        for topic_id, numbers in claim.items():
            free = {number for number in numbers if (topic_id, number) not in taken}
            if free:
                has.setdefault(topic_id, set()).update(free)
                taken.update((topic_id, number) for number in free)
    return owned


def _consumer_member(
    member: ClassicGroupMember,
    subscription: Subscription,
    generation_id: int,
    owned: Mapping[bytes, Iterable[int]],
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member.member_id,
        generation_id,
        generation_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=subscription.topics,
        assigned_partitions={
            topic_id: dict.fromkeys(sorted(numbers), generation_id)
            for topic_id, numbers in owned.items()
        },
        classic_member_metadata=ClassicMemberMetadata(
            member.session_timeout_ms,
            tuple(ClassicProtocol(name, metadata) for name, metadata in member.protocols),
        ),
    )


def _metadata(member: ClassicGroupMember, protocol_name: str) -> bytes:
    """The member's metadata; one that rejoins may have dropped the group's protocol, but each
    of a consumer's protocols has the same subscription."""
    by_name = dict(member.protocols)
    return by_name.get(protocol_name, member.protocols[0].metadata)


def by_topic_id(partitions: TopicPartitions, image: TopicsImage) -> dict[bytes, frozenset[int]]:
    """Partitions by topic id; those of topics that are gone are not in it."""
    result: dict[bytes, frozenset[int]] = {}
    for name, numbers in partitions.items():
        topic = image.find(name)
        if topic is not None and numbers:
            result[topic.topic_id] = frozenset(numbers)
    return result


def classic_group(
    group: ConsumerGroup,
    leaving: Collection[str],
    image: TopicsImage,
    now_ms: int,
    *,
    keeps_targets: bool,
) -> ClassicGroup:
    """The classic group of a consumer group's members, but for those that leave.

    Args:
        group: of which the others are all on the classic protocol, one at least.
        leaving: ids of members.
        image: names topics.
        now_ms: wall time.
        keeps_targets: whether members are assigned their targets, not what they own.
    """
    classic = ClassicGroup(group.group_id, group.partition, now_ms)
    classic.offsets, classic.in_flight = group.offsets, group.in_flight
    for member in group.members.values():
        if member.member_id not in leaving:
            classic.add(_classic_member(member), None)
    classic.generation_id = group.epoch
    classic.protocol_name = classic.select_protocol()
    for classic_member in classic.members.values():
        member_id = classic_member.member_id
        share = group.target_of(member_id) if keeps_targets else _owned(group.members[member_id])
        classic_member.assignment = write_assignment(
            by_topic_name(share, image), classic_member.metadata(classic.protocol_name)
        )
    classic.enter(ClassicGroupState.STABLE, now_ms)
    classic.update_subscribed_topics()
    return classic


def _owned(member: ConsumerGroupMember) -> dict[bytes, frozenset[int]]:
    """What the member has, with what it has to give up and may have still."""
    owned: dict[bytes, frozenset[int]] = {}
    for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
        for topic_id, numbers in partitions.items():
            owned[topic_id] = owned.get(topic_id, frozenset()) | numbers.keys()
    return owned


def _classic_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    said = member.classic_member_metadata
    assert said is not None
    return ClassicGroupMember(
        member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=said.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=[MemberProtocol(name, metadata) for name, metadata in said.supported_protocols],
    )


def by_topic_name(
    partitions: Mapping[bytes, Iterable[int]], image: TopicsImage
) -> dict[str, frozenset[int]]:
    """Partitions by topic; those of topics that are gone are not in it."""
    result: dict[str, frozenset[int]] = {}
    for topic_id, numbers in partitions.items():
        name = image.name_of(topic_id)
        if name is not None:
            result[name] = frozenset(numbers)
    return result


logger = logging.getLogger(__name__)


class MigrationPolicy:
    """Which groups may change their type with members in them.

    Args:
        name: group.consumer.migration.policy, in any case.
    """

    __slots__ = ("allows_downgrade", "allows_upgrade")

    def __init__(self, name: str) -> None:
        self.allows_upgrade = name.lower() in ("upgrade", "bidirectional")
        self.allows_downgrade = name.lower() in ("downgrade", "bidirectional")

    @property
    def is_disabled(self) -> bool:
        """Whether no group may, so that members of both protocols never meet."""
        return not self.allows_upgrade and not self.allows_downgrade


class Migration:
    """Changes groups' types.

    Args:
        runtime: settings and time.
        settings: of consumer groups.
        topics: the cluster's topics as they are now.
        metadata_hash: of the topics that a group reads.

    Attributes:
        policy: what is allowed.
    """

    shards: GroupShards
    """Keeps the groups; set by whoever puts both together."""

    classic: ClassicGroups
    """Moves classic groups; likewise."""

    def __init__(
        self,
        runtime: GroupRuntime,
        settings: ConsumerGroupSettings,
        topics: Callable[[], TopicsImage],
        metadata_hash: Callable[[ConsumerGroup], int],
    ) -> None:
        self.policy = MigrationPolicy(settings.migration_policy)
        self._runtime = runtime
        self._settings = settings
        self._topics = topics
        self._metadata_hash = metadata_hash

    # -- from classic to consumer ---------------------------------------------------------

    def upgrade(self, classic: ClassicGroup) -> GroupWrite:
        """A write on a consumer group that could take a classic group's place.

        Nothing has changed yet: once the write is submitted, `take_over` is to be called.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, this group may not or cannot become one.
        """
        if classic.state is ClassicGroupState.EMPTY:
            return self._replace_empty(classic)
        self._check_upgrade(classic)
        group_id, generation_id = classic.group_id, classic.generation_id
        try:
            members = consumer_members(classic, self._topics())
        except CustomAssignorError:
            raise _no_upgrade(
                group_id,
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade",
            ) from None
        except ProtocolError as error:
            logger.info("a subscription in group %s cannot be read: %s", group_id, error)
            raise _no_upgrade(group_id, "the embedded consumer protocol is malformed") from None
        write = self._replace_empty(classic)
        group = write.group
        for member, _ in members:
            write.put_metadata(member)
        write.put_epoch(generation_id, self._metadata_hash(group))
        for member, target in members:
            write.put_target(member.member_id, target)
        write.put_target_epoch(generation_id, 0)
        for member, _ in members:
            write.put_current(member)
        return write

    def _replace_empty(self, classic: ClassicGroup) -> GroupWrite:
        """A write that ends a classic group; another without members could take its place."""
        group = ConsumerGroup(classic.group_id, classic.partition)
        group.offsets, group.in_flight = classic.offsets, classic.in_flight
        group.is_conversion_open = True
        write = GroupWrite(group)
        write.add(group_tombstone(classic.group_id))
        return write

    def take_over(self, classic: ClassicGroup, group: ConsumerGroup) -> None:
        """Put the consumer group in the classic one's place; who waits there is called back."""
        logger.info("group %s becomes a consumer group", group.group_id)
        for member in list(classic.members.values()):
            classic.answer_join(
                member, JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            )
            classic.answer_sync(member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        self.shards.exchange_for_consumer(classic, group)

    def _check_upgrade(self, classic: ClassicGroup) -> None:
        if not self.policy.allows_upgrade:
            raise _no_upgrade(classic.group_id, "online upgrade is disabled")
        if not classic.uses_consumer_protocol:
            raise _no_upgrade(
                classic.group_id, "the group does not use the consumer embedded protocol"
            )
        if len(classic.members) > self._settings.max_size:
            raise _no_upgrade(
                classic.group_id, "the group size exceeds the consumer group maximum size"
            )

    # -- from consumer to classic ---------------------------------------------------------

    def may_downgrade(self, group: ConsumerGroup, leaving: Collection[str]) -> bool:
        """Whether only members on the classic protocol are left when these have gone."""
        left = [m for member_id, m in group.members.items() if member_id not in leaving]
        return bool(left) and self._fits_classic(group, left)

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: ConsumerGroupMember) -> bool:
        """Whether only such members are in the group once this static one is replaced by one."""
        others = [m for member_id, m in group.members.items() if member_id != replaced.member_id]
        return self._fits_classic(group, others, more=1)

    def _fits_classic(
        self, group: ConsumerGroup, members: Collection[ConsumerGroupMember], more: int = 0
    ) -> bool:
        if not all(member.uses_classic_protocol for member in members):
            return False
        if not self.policy.allows_downgrade:
            logger.info(
                "group %s stays a consumer group: group.consumer.migration.policy", group.group_id
            )
            return False
        if common_protocols(members) == set():
            logger.warning("group %s stays a consumer group: no common protocol", group.group_id)
            return False
        if len(members) + more > self._runtime.settings.max_size:
            logger.info("group %s stays a consumer group: group.max.size", group.group_id)
            return False
        return True

    def downgrade(
        self, write: GroupWrite, leaving: Collection[str], *, rebalance_for: str | None
    ) -> None:
        """Let a classic group take the place of this one, as soon as the write is submitted.

        Args:
            write: on the group, whose end it becomes.
            leaving: members that do not come along.
            rebalance_for: why its members are to rejoin at once, None if they are not.
        """
        group = write.group
        now_ms = self._runtime.clock.now_ms()
        classic = classic_group(
            group, leaving, self._topics(), now_ms, keeps_targets=rebalance_for is None
        )
        write.remove_group()
        assignments = {m.member_id: m.assignment for m in classic.members.values()}
        write.add(group_record(classic, assignments))
        group.is_conversion_open = True

        def exchange() -> None:
            logger.info("group %s becomes a classic group", group.group_id)
            self.shards.exchange_for_classic(group, classic)
            for member in classic.members.values():
                self.classic.sessions.extend(classic, member)
            if rebalance_for is not None:
                self.classic.prepare(classic, rebalance_for)

        write.after_submit = exchange


def common_protocols(members: Iterable[ConsumerGroupMember]) -> set[str] | None:
    """The protocols that all of the members on the classic protocol support.

    Returns:
        None where there is no such member, so that any protocol would do.
    """
    common: set[str] | None = None
    for member in members:
        if member.classic_member_metadata is not None:
            names = {
                protocol.name for protocol in member.classic_member_metadata.supported_protocols
            }
            common = names if common is None else common & names
    return common


def _no_upgrade(group_id: str, why: str) -> KafkaError:
    logger.info("group %s stays a classic group: %s", group_id, why)
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {why}.",
    )
