"""Groups that change their type while they have members: upgrade and downgrade (KIP-848).

A classic group of consumers becomes a consumer group when the first member comes that speaks the
consumer protocol; its classic members go on with what they have, and are called back to be
assigned anew. A consumer group becomes a classic one when the last such member goes and only
classic ones are left. The records of both types stand in one write. Source: Kafka 4.3's
`convertToConsumerGroup`, `convertToClassicGroup` and `ConsumerGroupMigrationPolicy`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from .....common.errors import ErrorCode, KafkaError
from .....protocol.errors import ProtocolError
from ...answers import JoinAnswer, SyncAnswer
from ...classic.group import Group
from ...classic.rebalancing import Rebalancing
from ...classic.states import GroupState
from ...records import group_record, group_tombstone
from ...runtime import GroupRuntime
from ..group import ConsumerGroup
from ..member import ConsumerGroupMember
from ..records.write import GroupWrite
from ..settings import ConsumerGroupSettings
from ..subscription.topics import TopicsImage
from .downgrade import classic_group
from .embedded_protocol import CustomAssignorError
from .upgrade import consumer_members

if TYPE_CHECKING:
    from ...shards import GroupShards

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

    rebalancing: Rebalancing
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

    def upgrade(self, classic: Group) -> GroupWrite:
        """A write on a consumer group that could take a classic group's place.

        Nothing has changed yet: once the write is submitted, `take_over` is to be called.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, this group may not or cannot become one.
        """
        if classic.state is GroupState.EMPTY:
            return self._replace_empty(classic)
        self._check_upgrade(classic)
        group_id, generation_id = classic.group_id, classic.generation_id
        try:
            members = consumer_members(classic, self._topics())
        except CustomAssignorError:
            raise _no_upgrade(
                group_id, "its members use an assignor of their own, whose data would be lost"
            ) from None
        except ProtocolError as error:
            raise _no_upgrade(group_id, f"its members' metadata cannot be read: {error}") from None
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

    def _replace_empty(self, classic: Group) -> GroupWrite:
        """A write that ends a classic group; another without members could take its place."""
        group = ConsumerGroup(classic.group_id, classic.partition)
        group.offsets, group.in_flight = classic.offsets, classic.in_flight
        group.is_conversion_open = True
        write = GroupWrite(group)
        write.add(group_tombstone(classic.group_id))
        return write

    def take_over(self, classic: Group, group: ConsumerGroup) -> None:
        """Put the consumer group in the classic one's place; who waits there is called back."""
        logger.info("group %s becomes a consumer group", group.group_id)
        for member in list(classic.members.values()):
            classic.answer_join(
                member, JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            )
            classic.answer_sync(member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        self.shards.exchange_for_consumer(classic, group)

    def _check_upgrade(self, classic: Group) -> None:
        if not self.policy.allows_upgrade:
            raise _no_upgrade(classic.group_id, "group.consumer.migration.policy does not allow it")
        if not classic.uses_consumer_protocol:
            raise _no_upgrade(classic.group_id, "its members are no consumers")
        if len(classic.members) > self._settings.max_size:
            raise _no_upgrade(classic.group_id, "it has more members than group.consumer.max.size")

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
                self.rebalancing.sessions.extend(classic, member)
            if rebalance_for is not None:
                self.rebalancing.prepare(classic, rebalance_for)

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
        f"Classic group {group_id} cannot become a consumer group: {why}.",
    )
