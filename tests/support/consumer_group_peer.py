"""Members of consumer groups made of single requests, each of which a test sends when it likes.

One peer speaks for one group; `GroupPeer` sends the requests.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import request_message

from .group_peer import GroupPeer

CLIENT_ID = "consumer-group-peer"
GROUP_RESOURCE = 32
SETTLE_SECONDS_MAX = 120.0
RETRY_SECONDS = 0.02
NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}

Assignment = dict[bytes, set[int]]
"""Partitions by topic id."""


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    error: ErrorCode
    member_id: str | None
    epoch: int
    interval_ms: int
    assignment: Assignment | None
    message: str | None


class Peer:
    """A connection that sends any request by its key, and those of groups by name.

    Args:
        port: the broker's.
        group_id: the group that the requests are about.
    """

    def __init__(self, port: int, group_id: str) -> None:
        self._peer = GroupPeer(port, CLIENT_ID)
        self.group_id = group_id

    def close(self) -> None:
        self._peer.close()

    def ask(self, api_key: ApiKey, version: int, /, **fields: Any) -> Any:
        """Send one request and return its response."""
        return self._peer.ask(request_message(api_key)(**fields), version)

    def find_coordinator(self) -> None:
        """Wait until the group has a coordinator; creates the internal topic."""
        while True:
            (found,) = self.ask(
                ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[self.group_id]
            ).coordinators
            if found.error_code not in NOT_READY:
                assert found.error_code == ErrorCode.NONE, found
                return

    def create_topic(self, topic: str, partitions: int) -> bytes:
        """Create a topic; returns its id once it is there."""
        request = request_message(ApiKey.CREATE_TOPICS)
        (created,) = self.ask(
            ApiKey.CREATE_TOPICS,
            7,
            topics=[
                request.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
            ],
            timeout_ms=30_000,
        ).topics
        assert created.error_code == ErrorCode.NONE, created
        return bytes(created.topic_id)

    def configure(self, **settings: str) -> None:
        """Give the group configs of its own: `heartbeat_interval_ms` and the like."""
        request = request_message(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        (answer,) = self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[
                request.AlterConfigsResource(
                    resource_type=GROUP_RESOURCE,
                    resource_name=self.group_id,
                    configs=[
                        request.AlterableConfig(
                            name=f"consumer.{name.replace('_', '.')}",
                            config_operation=0,
                            value=value,
                        )
                        for name, value in settings.items()
                    ],
                )
            ],
        ).responses
        assert answer.error_code == ErrorCode.NONE, answer

    # -- membership -----------------------------------------------------------------------

    def heartbeat(
        self,
        member_id: str,
        epoch: int,
        *,
        owned: Mapping[bytes, Iterable[int]] | None = None,
        topics: Iterable[str] | None = None,
        regex: str | None = None,
        instance: str | None = None,
        rack: str | None = None,
        rebalance_timeout_ms: int = -1,
        assignor: str | None = None,
        version: int = 1,
        group_id: str | None = None,
    ) -> Beat:
        """ConsumerGroupHeartbeat, again while the coordinator is not there yet."""
        request = request_message(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        while True:
            answer = self.ask(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                version,
                group_id=self.group_id if group_id is None else group_id,
                member_id=member_id,
                member_epoch=epoch,
                instance_id=instance,
                rack_id=rack,
                rebalance_timeout_ms=rebalance_timeout_ms,
                subscribed_topic_names=None if topics is None else list(topics),
                subscribed_topic_regex=regex,
                server_assignor=assignor,
                topic_partitions=None
                if owned is None
                else [
                    request.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                    for topic_id, partitions in owned.items()
                ],
            )
            error = ErrorCode(answer.error_code)
            if error not in NOT_READY:
                break
        assignment = None
        if answer.assignment is not None:
            assignment = {
                bytes(entry.topic_id): set(entry.partitions)
                for entry in answer.assignment.topic_partitions
            }
        return Beat(
            error,
            answer.member_id,
            answer.member_epoch,
            answer.heartbeat_interval_ms,
            assignment,
            answer.error_message,
        )

    def join(self, member_id: str, *topics: str, **other: Any) -> Beat:
        """A heartbeat by which a member joins."""
        told = {"owned": {}, "rebalance_timeout_ms": 30_000, "topics": topics, **other}
        return self.heartbeat(member_id, 0, **told)

    def leave(self, member_id: str, **other: Any) -> Beat:
        """A heartbeat by which a member leaves."""
        return self.heartbeat(member_id, -1, **other)

    def describe(self, version: int = 1) -> Any:
        """ConsumerGroupDescribe of the group."""
        (group,) = self.ask(
            ApiKey.CONSUMER_GROUP_DESCRIBE, version, group_ids=[self.group_id]
        ).groups
        return group

    def described_classic(self, version: int) -> tuple[ErrorCode, str]:
        """DescribeGroups of the group: its error and its state."""
        (group,) = self.ask(ApiKey.DESCRIBE_GROUPS, version, groups=[self.group_id]).groups
        return ErrorCode(group.error_code), str(group.group_state)

    def listed(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> tuple[str, ...]:
        """The group as ListGroups tells of it: protocol type, state, type; empty if not."""
        answer = self.ask(
            ApiKey.LIST_GROUPS, 5, states_filter=list(states), types_filter=list(types)
        )
        for group in answer.groups:
            if group.group_id == self.group_id:
                return group.protocol_type, group.group_state, group.group_type
        return ()

    def delete(self) -> ErrorCode:
        """DeleteGroups of the group."""
        (result,) = self.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[self.group_id]).results
        return ErrorCode(result.error_code)

    def leave_group(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        """LeaveGroup of (member id, instance id); the error of each."""
        request = request_message(ApiKey.LEAVE_GROUP)
        answer = self.ask(
            ApiKey.LEAVE_GROUP,
            5,
            group_id=self.group_id,
            members=[
                request.MemberIdentity(member_id=member_id, group_instance_id=instance)
                for member_id, instance in members
            ],
        )
        assert answer.error_code == ErrorCode.NONE, answer
        return [ErrorCode(member.error_code) for member in answer.members]

    @property
    def state(self) -> str:
        """The group's state."""
        group = self.describe()
        assert group.error_code == ErrorCode.NONE, group
        return str(group.group_state)

    def wait_for_state(self, state: str) -> None:
        """Ask until the group is in a state that it comes to by itself."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while self.state != state:
            assert time.monotonic() < deadline, f"the group is {self.state} still"
            time.sleep(RETRY_SECONDS)

    # -- offsets ----------------------------------------------------------------------------

    def commit(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        member_id: str = "",
        epoch: int = -1,
        version: int = 9,
        topic_id: bytes = bytes(16),
    ) -> ErrorCode:
        """OffsetCommit of one position."""
        request = request_message(ApiKey.OFFSET_COMMIT)
        answer = self.ask(
            ApiKey.OFFSET_COMMIT,
            version,
            group_id=self.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[
                request.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id,
                    partitions=[
                        request.OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def delete_offset(self, topic: str, partition: int) -> ErrorCode:
        """OffsetDelete of one position."""
        request = request_message(ApiKey.OFFSET_DELETE)
        answer = self.ask(
            ApiKey.OFFSET_DELETE,
            0,
            group_id=self.group_id,
            topics=[
                request.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[request.OffsetDeleteRequestPartition(partition_index=partition)],
                )
            ],
        )
        if answer.error_code:
            return ErrorCode(answer.error_code)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def fetch(
        self, topic: str, partition: int, *, member_id: str | None = None, epoch: int = -1
    ) -> tuple[ErrorCode, int]:
        """OffsetFetch of one position: the group's error, and the position."""
        request = request_message(ApiKey.OFFSET_FETCH)
        (group,) = self.ask(
            ApiKey.OFFSET_FETCH,
            9,
            groups=[
                request.OffsetFetchRequestGroup(
                    group_id=self.group_id,
                    member_id=member_id,
                    member_epoch=epoch,
                    topics=[
                        request.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
                    ],
                )
            ],
        ).groups
        if group.error_code:
            return ErrorCode(group.error_code), -1
        return ErrorCode.NONE, group.topics[0].partitions[0].committed_offset
