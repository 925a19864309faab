"""The group APIs as single requests, each of which a test sends when it likes.

A peer is one connection, on which a request may wait for its answer; a test that needs several
to wait opens several. Requests are sent in the newest version unless a test names another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.codec.message import Message
from odradek.testing.waiting import wait_until
from odradek.tools.conformance.connection import RESPONSE_SECONDS_MAX, BlockingConnection

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"
"""What a Java consumer says that reads the topic `orders`."""
ASSIGNMENT = b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"
"""What a Java leader gives a member that shall own nothing."""
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
NO_TIMEOUT = -1

Offsets = Mapping[tuple[str, int], int]
"""Offset by topic and partition."""


class GroupPeer(BlockingConnection):
    """One connection to a broker; a context manager that closes it."""

    def __init__(
        self, port: int, client_id: str = "group-peer", timeout: float = RESPONSE_SECONDS_MAX
    ) -> None:
        super().__init__(f"127.0.0.1:{port}", client_id, timeout)
        self._waiting: tuple[int, int] | None = None

    # -- one request -----------------------------------------------------------------------

    def send(self, request: Message, version: int | None = None) -> None:
        """Send a request, and do not wait for its answer."""
        schema = type(request)
        version = schema.versions[-1] if version is None else version
        assert schema.api_key is not None
        self._waiting = schema.api_key, version
        super().send(request, version)

    def receive_answer(self) -> Any:
        """The answer to the request that was sent. Raises TimeoutError."""
        assert self._waiting is not None
        return self.receive(*self._waiting)

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send a request and receive its answer."""
        self.send(request, version)
        return self.receive_answer()

    # -- classic groups --------------------------------------------------------------------

    def find(self, *keys: str, key_type: int = 0, version: int | None = None) -> Any:
        """FindCoordinator."""
        request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        if version is not None and version < 4:
            request = messages.FindCoordinatorRequest(key=keys[0], key_type=key_type)
        return self.ask(request, version)

    def wait_for_coordinator(self, group: str) -> None:
        """Wait until the group is coordinated by this broker; creates the internal topic."""
        wait_until(lambda: self.find(group).coordinators[0].error_code == ErrorCode.NONE)
        wait_until(lambda: self.describe(group).error_code not in NOT_YET)

    def send_join(
        self,
        group: str,
        member: str = "",
        *,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 120_000,
        rebalance_timeout_ms: int = 120_000,
        version: int | None = None,
    ) -> None:
        """JoinGroup, which may have to wait."""
        offered = {"range": SUBSCRIPTION} if protocols is None else protocols
        of_name = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=group,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocols=[of_name(name=name, metadata=data) for name, data in offered.items()],
        )
        self.send(request, version)

    def join(self, group: str, member: str = "", **arguments: Any) -> Any:
        """JoinGroup, answered."""
        self.send_join(group, member, **arguments)
        return self.receive_answer()

    def member_id(self, group: str, **arguments: Any) -> str:
        """The id that the coordinator gives a dynamic member before it joins."""
        answer = self.join(group, **arguments)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, ErrorCode(answer.error_code)
        return str(answer.member_id)

    def join_alone(self, group: str, **arguments: Any) -> Any:
        """Become the only member: the answer, of a group that waits for its assignment."""
        answer = self.join(group, self.member_id(group, **arguments), **arguments)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        return answer

    def stable_alone(self, group: str, **arguments: Any) -> Any:
        """Become the only member of a stable group; its answer to JoinGroup."""
        joined = self.join_alone(group, **arguments)
        who = (group, joined.member_id, joined.generation_id)
        synced = self.sync(*who, protocol_type=joined.protocol_type, leads=True)
        assert synced.error_code == ErrorCode.NONE, ErrorCode(synced.error_code)
        return joined

    def send_sync(
        self,
        group: str,
        member: str,
        generation: int,
        *,
        leads: bool = False,
        assignments: Mapping[str, bytes] | None = None,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
    ) -> None:
        """SyncGroup; a leader without `assignments` assigns nothing to itself."""
        given = assignments or ({member: ASSIGNMENT} if leads else {})
        assignment = messages.SyncGroupRequest.SyncGroupRequestAssignment
        request = messages.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[assignment(member_id=name, assignment=of) for name, of in given.items()],
        )
        self.send(request)

    def sync(self, group: str, member: str, generation: int, **arguments: Any) -> Any:
        """SyncGroup, answered."""
        self.send_sync(group, member, generation, **arguments)
        return self.receive_answer()

    def heartbeat(
        self, group: str, member: str, generation: int, instance: str | None = None
    ) -> ErrorCode:
        """Heartbeat."""
        request = messages.HeartbeatRequest(
            group_id=group, member_id=member, generation_id=generation, group_instance_id=instance
        )
        return ErrorCode(self.ask(request).error_code)

    def leave(self, group: str, *members: str, instance: str | None = None) -> Any:
        """LeaveGroup."""
        identity = messages.LeaveGroupRequest.MemberIdentity
        leaving = [identity(member_id=member, group_instance_id=instance) for member in members]
        return self.ask(messages.LeaveGroupRequest(group_id=group, members=leaving))

    # -- offsets ---------------------------------------------------------------------------

    def commit(
        self,
        group: str,
        offsets: Offsets,
        *,
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str = "",
        version: int = 9,
    ) -> dict[tuple[str, int], ErrorCode]:
        """OffsetCommit by topic names."""
        request = messages.OffsetCommitRequest
        topics = [
            request.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    request.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_metadata=metadata,
                    )
                ],
            )
            for (topic, partition), offset in offsets.items()
        ]
        answer = self.ask(
            request(
                group_id=group,
                member_id=member,
                generation_id_or_member_epoch=generation,
                group_instance_id=instance,
                topics=topics,
            ),
            version,
        )
        return {
            (topic.name, each.partition_index): ErrorCode(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }

    def fetch(
        self,
        group: str,
        *,
        member: str | None = None,
        epoch: int = -1,
        partitions: Mapping[str, list[int]] | None = None,
        require_stable: bool = False,
        version: int = 9,
    ) -> Any:
        """OffsetFetch of one group by topic names: the group's part of the answer."""
        request = messages.OffsetFetchRequest
        topics = None
        if partitions is not None:
            topics = [
                request.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
                for topic, indexes in partitions.items()
            ]
        requested = request.OffsetFetchRequestGroup(
            group_id=group, member_id=member, member_epoch=epoch, topics=topics
        )
        (found,) = self.ask(
            request(groups=[requested], require_stable=require_stable), version
        ).groups
        return found

    def delete_offsets(self, group: str, topic: str, partition: int = 0) -> Any:
        """OffsetDelete of one partition."""
        request = messages.OffsetDeleteRequest
        of_partition = request.OffsetDeleteRequestPartition(partition_index=partition)
        of_topic = request.OffsetDeleteRequestTopic(name=topic, partitions=[of_partition])
        return self.ask(request(group_id=group, topics=[of_topic]))

    # -- groups as a whole -----------------------------------------------------------------

    def describe(self, group: str, version: int | None = None) -> Any:
        """DescribeGroups of one group."""
        request = messages.DescribeGroupsRequest(groups=[group])
        return self.ask(request, version).groups[0]

    def state(self, group: str) -> str:
        """The state of a classic group."""
        return str(self.describe(group).group_state)

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Any:
        """ListGroups."""
        request = messages.ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        return self.ask(request)

    def delete(self, group: str) -> ErrorCode:
        """DeleteGroups of one group."""
        request = messages.DeleteGroupsRequest(groups_names=[group])
        return ErrorCode(self.ask(request).results[0].error_code)

    # -- groups of the consumer protocol ---------------------------------------------------

    def beat(self, group: str, member: str = "", epoch: int = 0, **fields: Any) -> Any:
        """ConsumerGroupHeartbeat; one that joins brings what a joining one must."""
        if epoch == 0:
            fields = {
                "rebalance_timeout_ms": 120_000,
                "subscribed_topic_names": ["orders"],
                "topic_partitions": [],
                **fields,
            }
        version = fields.pop("version", None)
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **fields
        )
        return self.ask(request, version)

    def join_consumer_group(self, group: str, member: str, **fields: Any) -> int:
        """Become a member of a consumer group: the epoch."""
        answer = self.beat(group, member, 0, **fields)
        assert answer.error_code == ErrorCode.NONE, (
            ErrorCode(answer.error_code),
            answer.error_message,
        )
        return int(answer.member_epoch)

    def owned(self, partitions: Mapping[bytes, Iterable[int]]) -> list[Any]:
        """What a member says that it owns: partitions by topic id."""
        owned = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
        return [owned(topic_id=each, partitions=list(of)) for each, of in partitions.items()]

    def create_topic(self, name: str, partitions: int = 1) -> bytes:
        """Create a topic, if it is not there; returns its id if it was not."""
        of_topic = messages.CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        request = messages.CreateTopicsRequest(topics=[of_topic], timeout_ms=30_000)
        (answer,) = self.ask(request).topics
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), answer
        return bytes(answer.topic_id)

    def topic_id(self, name: str) -> bytes:
        """The id of a topic."""
        request = messages.MetadataRequest(
            topics=[messages.MetadataRequest.MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
        )
        return bytes(self.ask(request).topics[0].topic_id)

    def describe_consumer_group(self, group: str) -> Any:
        """ConsumerGroupDescribe of one group."""
        return self.ask(messages.ConsumerGroupDescribeRequest(group_ids=[group])).groups[0]
