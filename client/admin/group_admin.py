"""Administration of groups: list, describe, delete, and move their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_OFFSET
from ...protocol import messages
from ..client import KafkaClient
from ..error_kinds import error_name, error_of
from ..errors import UnsupportedByBrokerError
from .coordinators import GROUP_KEYS, Answered, Coordinators
from .group_descriptions import (
    GroupDescription,
    GroupListing,
    ShareOffset,
    TopicPartition,
    classic_group,
    consumer_group,
    share_group,
    streams_group,
)

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

NO_GENERATION: Final = -1
NO_LAG: Final = -1
LAST_WITH_TOPIC_NAMES: Final = 9
"""Of OffsetCommit and OffsetFetch; later versions go by topic ids."""

DEAD: Final = "Dead"


class GroupAdmin:
    """Administers groups through a client.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._coordinators = Coordinators(client, GROUP_KEYS, timeout_ms)
        self._timeout_ms = timeout_ms

    async def list_groups(
        self, states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> list[GroupListing]:
        """All groups of all brokers, by name.

        Args:
            states: only those in one of these, in any case; all if empty.
            types: only those of one of these types; all if empty.

        Raises:
            KafkaError: a broker refused.
            ClientError: a broker could not be reached.
        """
        listings = []
        for node in await self._client.live_brokers():
            answer: messages.ListGroupsResponse = await self._client.network.send(
                node,
                messages.ListGroupsRequest(states_filter=list(states), types_filter=list(types)),
                timeout_ms=self._timeout_ms,
            )
            _require(answer.error_code, f"broker {node.id}")
            listings += [
                GroupListing(
                    each.group_id, each.group_type, each.protocol_type, each.group_state, node.id
                )
                for each in answer.groups
            ]
        return sorted(listings)

    async def describe(self, groups: Iterable[str]) -> dict[str, GroupDescription | None]:
        """What groups are doing; None for one that there is not.

        Raises:
            KafkaError: a coordinator refused.
            ClientError: a coordinator could not be reached.
        """
        names = list(groups)
        described: dict[str, GroupDescription | None] = dict.fromkeys(names)
        described |= await self._describe_consumer_groups(names)
        answers = await self._coordinators.ask(
            _missing(described),
            lambda keys: messages.DescribeGroupsRequest(groups=keys),
            lambda answer: {each.group_id: each for each in answer.groups},
        )
        for name, (coordinator, group) in answers.items():
            if group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
                _require(group.error_code, f"group {name!r}", group.error_message)
                if group.group_state != DEAD:
                    described[name] = classic_group(group, coordinator)
        described |= await self._describe_share_groups(_missing(described))
        return described | await self._describe_streams_groups(_missing(described))

    async def _describe_consumer_groups(self, names: list[str]) -> dict[str, GroupDescription]:
        return {
            name: consumer_group(group, coordinator)
            for name, (coordinator, group) in (
                await self._of_type(names, messages.ConsumerGroupDescribeRequest)
            ).items()
        }

    async def _describe_share_groups(self, names: list[str]) -> dict[str, GroupDescription]:
        return {
            name: share_group(group, coordinator)
            for name, (coordinator, group) in (
                await self._of_type(names, messages.ShareGroupDescribeRequest)
            ).items()
        }

    async def _describe_streams_groups(self, names: list[str]) -> dict[str, GroupDescription]:
        return {
            name: streams_group(group, coordinator)
            for name, (coordinator, group) in (
                await self._of_type(names, messages.StreamsGroupDescribeRequest)
            ).items()
        }

    async def _of_type(
        self,
        names: list[str],
        request: type[
            messages.ConsumerGroupDescribeRequest
            | messages.ShareGroupDescribeRequest
            | messages.StreamsGroupDescribeRequest
        ],
    ) -> dict[str, Answered]:
        """What coordinators say of those groups that are of the type which a request is for."""
        try:
            answers = await self._coordinators.ask(
                names,
                lambda keys: request(group_ids=keys),
                lambda answer: {each.group_id: each for each in answer.groups},
            )
        except UnsupportedByBrokerError:
            return {}  # a broker from before the type
        found = {}
        for name, answered in answers.items():
            group = answered.item
            if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                continue
            _require(group.error_code, f"group {name!r}", group.error_message)
            found[name] = answered
        return found

    async def committed(self, groups: Iterable[str]) -> dict[str, dict[TopicPartition, int]]:
        """The committed offsets of groups; a group that there is not has none.

        Raises:
            KafkaError: a coordinator refused, or an offset of a transaction is not settled.
            ClientError: a coordinator could not be reached.
        """
        make = messages.OffsetFetchRequest.OffsetFetchRequestGroup
        answers = await self._coordinators.ask(
            groups,
            lambda keys: messages.OffsetFetchRequest(
                groups=[make(group_id=key, topics=None) for key in keys]
            ),
            lambda answer: {each.group_id: each for each in answer.groups},
            version_max=LAST_WITH_TOPIC_NAMES,
        )
        committed: dict[str, dict[TopicPartition, int]] = {}
        for name, (_, group) in answers.items():
            offsets = committed[name] = {}
            if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                continue
            _require(group.error_code, f"group {name!r}")
            for topic in group.topics:
                for each in topic.partitions:
                    what = f"partition {each.partition_index} of topic {topic.name!r}"
                    _require(each.error_code, what)
                    if each.committed_offset != NO_OFFSET:
                        offsets[topic.name, each.partition_index] = each.committed_offset
        return committed

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ErrorCode]:
        """Set offsets of a group that has no members.

        Returns:
            What became of each; UNKNOWN_MEMBER_ID where the group has members.

        Raises:
            KafkaError: there is no coordinator.
            ClientError: the coordinator could not be reached.
        """
        make = messages.OffsetCommitRequest
        topics = [
            make.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    make.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[name, index],
                        committed_metadata="",
                    )
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(offsets).items()
        ]
        (answered,) = (
            await self._coordinators.ask(
                [group],
                lambda _: make(
                    group_id=group, generation_id_or_member_epoch=NO_GENERATION, topics=topics
                ),
                lambda answer: {group: answer},
                _first_code,
                version_max=LAST_WITH_TOPIC_NAMES,
            )
        ).values()
        return {
            (topic.name, each.partition_index): error_of(each.error_code)
            for topic in answered.item.topics
            for each in topic.partitions
        }

    async def delete(self, groups: Iterable[str]) -> dict[str, ErrorCode]:
        """Delete groups with their offsets; what became of each.

        Raises:
            KafkaError: there is no coordinator.
            ClientError: a coordinator could not be reached.
        """
        answers = await self._coordinators.ask(
            groups,
            lambda keys: messages.DeleteGroupsRequest(groups_names=keys),
            lambda answer: {each.group_id: each for each in answer.results},
        )
        return {name: error_of(answered.item.error_code) for name, answered in answers.items()}

    async def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Forget offsets of a group; what became of each.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP and so on: none was forgotten.
            ClientError: the coordinator could not be reached.
        """
        make = messages.OffsetDeleteRequest
        topics = [
            make.OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    make.OffsetDeleteRequestPartition(partition_index=each) for each in indexes
                ],
            )
            for name, indexes in _by_topic(partitions).items()
        ]
        answer: messages.OffsetDeleteResponse = await self._answer(
            group, make(group_id=group, topics=topics)
        )
        _require(answer.error_code, f"group {group!r}")
        return {
            (topic.name, each.partition_index): error_of(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }

    # -- share groups -----------------------------------------------------------------------

    async def share_offsets(
        self, groups: Iterable[str]
    ) -> dict[str, dict[TopicPartition, ShareOffset]]:
        """Where share groups stand in all partitions that they have begun to read.

        Raises:
            KafkaError: a coordinator refused; what is no share group has no offsets.
            ClientError: a coordinator could not be reached.
        """
        make = messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        answers = await self._coordinators.ask(
            groups,
            lambda keys: messages.DescribeShareGroupOffsetsRequest(
                groups=[make(group_id=key, topics=None) for key in keys]
            ),
            lambda answer: {each.group_id: each for each in answer.groups},
        )
        found: dict[str, dict[TopicPartition, ShareOffset]] = {}
        for name, answered in answers.items():
            group = answered.item
            _require(group.error_code, f"group {name!r}", group.error_message)
            offsets = found[name] = {}
            for topic in group.topics:
                for each in topic.partitions:
                    what = f"group {name!r}, {topic.topic_name}:{each.partition_index}"
                    _require(each.error_code, what, each.error_message)
                    offsets[topic.topic_name, each.partition_index] = ShareOffset(
                        None if each.start_offset == NO_OFFSET else each.start_offset,
                        None if each.lag == NO_LAG else each.lag,
                    )
        return found

    async def alter_share_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ErrorCode]:
        """Have a share group without members begin at offsets; what became of each.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP and so on: none was changed.
            ClientError: the coordinator could not be reached.
        """
        make = messages.AlterShareGroupOffsetsRequest
        topics = [
            make.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    make.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offsets[name, index]
                    )
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(offsets).items()
        ]
        answer: messages.AlterShareGroupOffsetsResponse = await self._answer(
            group, make(group_id=group, topics=topics)
        )
        _require(answer.error_code, f"group {group!r}", answer.error_message)
        return {
            (topic.topic_name, each.partition_index): error_of(each.error_code)
            for topic in answer.responses
            for each in topic.partitions
        }

    async def delete_share_offsets(self, group: str, topics: Iterable[str]) -> dict[str, ErrorCode]:
        """Forget where a share group without members stands in topics; what became of each.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP and so on: none was forgotten.
            ClientError: the coordinator could not be reached.
        """
        make = messages.DeleteShareGroupOffsetsRequest
        answer: messages.DeleteShareGroupOffsetsResponse = await self._answer(
            group,
            make(
                group_id=group,
                topics=[
                    make.DeleteShareGroupOffsetsRequestTopic(topic_name=each)
                    for each in sorted(set(topics))
                ],
            ),
        )
        _require(answer.error_code, f"group {group!r}", answer.error_message)
        return {each.topic_name: error_of(each.error_code) for each in answer.responses}

    async def _answer(self, group: str, request: Message) -> Any:
        """What a group's coordinator answers a request about that group alone."""
        answers = await self._coordinators.ask(
            [group], lambda _: request, lambda answer: {group: answer}
        )
        return answers[group].item


def _missing(described: Mapping[str, GroupDescription | None]) -> list[str]:
    return [name for name, group in described.items() if group is None]


def _first_code(answer: messages.OffsetCommitResponse) -> int:
    """The code of the whole: what concerns the coordinator is said of every partition."""
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    return codes[0] if codes else ErrorCode.NONE


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped


def _require(code: int, what: str, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(error_of(code), f"{what}: {message or error_name(code)}")
