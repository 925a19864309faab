"""The group's own steps: its epoch counts up when something changed, then a target is computed.

A target stands for its interval at least, so that a fleet that starts together is assigned
once; the group is Assigning until a heartbeat comes after that. Source: Kafka 4.3's
updateSubscriptionMetadata, maybeUpdateTargetAssignment and TargetAssignmentBuilder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ....common.errors import ErrorCode, KafkaError
from ..assignor.assignor import Assignor, AssignorError, GroupSpec, MemberSpec
from ..runtime import GroupRuntime
from .group import ConsumerGroup
from .group_write import GroupWrite
from .member import NO_TARGET, ConsumerGroupMember
from .settings import GroupTimings
from .topics import TopicHashes, TopicsImage, existing_topics

logger = logging.getLogger(__name__)


class TargetAssignmentBuilder:
    """Counts epochs and computes targets.

    Args:
        runtime: the clock.
        timings: how long a target stands at least.
        assignors: by name; the first is the default.
        topics: the cluster's topics as they are now.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        timings: GroupTimings,
        assignors: Mapping[str, Assignor],
        topics: Callable[[], TopicsImage],
    ) -> None:
        self._runtime = runtime
        self._timings = timings
        self._assignors = assignors
        self._topics = topics
        self._hashes = TopicHashes(topics)

    @property
    def assignor_names(self) -> list[str]:
        """What members may request; the first is the default."""
        return list(self._assignors)

    def metadata_hash(self, group: ConsumerGroup) -> int:
        """The hash of the topics that the group reads, as they are now."""
        return self._hashes.metadata_hash(group.subscribed_topics)

    def update_epoch(self, write: GroupWrite, *, has_subscription_changed: bool) -> None:
        """Count the epoch up if the subscription changed, or what it subscribes to did."""
        group = write.group
        metadata_hash = self.metadata_hash(group)
        if has_subscription_changed or metadata_hash != group.metadata_hash:
            write.put_epoch(group.epoch + 1, metadata_hash)
        group.needs_metadata_refresh = False
        if group.has_topics_record:
            write.remove_topics_record()

    def update_target(self, write: GroupWrite) -> None:
        """Compute the target of the group's epoch, if there is none and one may be computed.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, the assignor failed.
        """
        group = write.group
        if group.target_epoch >= group.epoch:
            return
        now_ms = self._runtime.clock.now_ms()
        if not self._may_assign(group, now_ms):
            return
        name = group.preferred_assignor
        if name is None or name not in self._assignors:
            # None requested, or one that a former configuration of this broker had.
            name = next(iter(self._assignors))
        targets = self._compute(group, self._assignors[name])
        for member_id in group.targets.keys() - group.members.keys():
            write.remove_target(member_id)
        for member_id in group.members:
            target = targets.get(member_id, NO_TARGET)
            if target != group.targets.get(member_id):
                write.put_target(member_id, target)
        write.put_target_epoch(group.epoch, now_ms)
        logger.debug(
            "group %s: %s computed the target of epoch %d", group.group_id, name, group.epoch
        )

    def subscribed_topic_ids(
        self, group: ConsumerGroup, member: ConsumerGroupMember
    ) -> frozenset[bytes]:
        """The topics that a member reads and that exist."""
        return self._ids(self._topics(), group.topics_of(member))

    def _may_assign(self, group: ConsumerGroup, now_ms: int) -> bool:
        interval_ms = self._timings.assignment_interval_ms(group.group_id)
        since_ms = group.assignment_timestamp_ms
        # The log holds wall time; where it is to come, the clock was set back, and nobody waits.
        return since_ms == 0 or not since_ms <= now_ms < since_ms + interval_ms

    def _compute(
        self, group: ConsumerGroup, assignor: Assignor
    ) -> Mapping[str, dict[bytes, frozenset[int]]]:
        image = self._topics()
        ids: dict[frozenset[str], frozenset[bytes]] = {}
        members: dict[str, MemberSpec] = {}
        for member in group.members.values():
            names = group.topics_of(member)
            if names not in ids:
                ids[names] = self._ids(image, names)
            members[member.member_id] = MemberSpec(
                ids[names], group.target_of(member.member_id), member.instance_id, member.rack_id
            )
        counts = {
            topic.topic_id: topic.partition_count
            for topic in existing_topics(image, group.subscribed_topics)
        }
        try:
            return assignor.assign(GroupSpec(members), counts)
        except AssignorError as error:
            logger.error(
                "cannot compute the target assignment of group %s: %s", group.group_id, error
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None

    def _ids(self, image: TopicsImage, names: frozenset[str]) -> frozenset[bytes]:
        return frozenset(topic.topic_id for topic in existing_topics(image, names))
