"""Members of one group made of single requests, each of which a test sends when it likes.

Members of the consumer protocol, and classic ones in the same group; `GroupPeer` sends the
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

from .group_peer import NOT_YET, GroupPeer
from .mixed_bench import assigned, assignment, subscription

GROUP_RESOURCE = 32

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


class Joined(NamedTuple):
    """The answer to a JoinGroup."""

    error: ErrorCode
    member_id: str
    generation_id: int
    leader: str


class Peer:
    """A connection for requests about one group.

    Args:
        port: the broker's.
        group_id: the group that the requests are about.
    """

    def __init__(self, port: int, group_id: str) -> None:
        self.connection = GroupPeer(port, "consumer-group-peer")
        self.ask = self.connection.ask
        self.group_id = group_id

    def close(self) -> None:
        self.connection.close()

    def find_coordinator(self) -> None:
        """Wait until the group is coordinated by this broker; creates the internal topic."""
        self.connection.wait_for_coordinator(self.group_id)

    def create_topic(self, topic: str, partitions: int) -> bytes:
        """Create a topic; returns its id."""
        return self.connection.create_topic(topic, partitions)

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic, as soon as the broker knows it."""

        def known() -> bytes:
            found = self.connection.topic_id(topic)
            return found if any(found) else b""

        return wait_until(known)

    def configure(self, **settings: str) -> None:
        """Give the group configs of its own: `heartbeat_interval_ms` and the like."""
        request = messages.IncrementalAlterConfigsRequest
        configs = [
            request.AlterableConfig(
                name=f"consumer.{name.replace('_', '.')}", config_operation=0, value=value
            )
            for name, value in settings.items()
        ]
        resource = request.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self.group_id, configs=configs
        )
        (answer,) = self.ask(request(resources=[resource])).responses
        assert answer.error_code == ErrorCode.NONE, answer

    # -- members of the consumer protocol -------------------------------------------------

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
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id=self.group_id if group_id is None else group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=rebalance_timeout_ms,
            subscribed_topic_names=None if topics is None else list(topics),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None if owned is None else self.connection.owned(owned),
        )
        answer = self._ready(request, version)
        assignment = None
        if answer.assignment is not None:
            assignment = {
                bytes(entry.topic_id): set(entry.partitions)
                for entry in answer.assignment.topic_partitions
            }
        return Beat(
            ErrorCode(answer.error_code),
            answer.member_id,
            answer.member_epoch,
            answer.heartbeat_interval_ms,
            assignment,
            answer.error_message,
        )

    def _ready(self, request: Any, version: int) -> Any:
        """The answer of a coordinator that is there."""

        def ready() -> Any:
            answer = self.ask(request, version)
            return None if answer.error_code in NOT_YET else answer

        return wait_until(ready)

    def join(self, member_id: str, *topics: str, **other: Any) -> Beat:
        """A heartbeat by which a member joins."""
        fields = {"owned": {}, "rebalance_timeout_ms": 30_000, "topics": topics, **other}
        return self.heartbeat(member_id, 0, **fields)

    def leave(self, member_id: str, **other: Any) -> Beat:
        """A heartbeat by which a member leaves."""
        return self.heartbeat(member_id, -1, **other)

    def beat_until(
        self, member_id: str, is_done: Callable[[Beat], bool], epoch: int, **fields: Any
    ) -> Beat:
        """Send heartbeats, in the member's epoch, until one is answered so."""

        def answered() -> Beat | None:
            nonlocal epoch
            beat = self.heartbeat(member_id, epoch, **fields)
            assert beat.error is ErrorCode.NONE, beat
            epoch = beat.epoch
            return beat if is_done(beat) else None

        return wait_until(answered)

    def settle(self, member_id: str, share: Assignment, epoch: int, **fields: Any) -> Beat:
        """Send heartbeats until the member is told of this share."""
        return self.beat_until(member_id, lambda beat: beat.assignment == share, epoch, **fields)

    def join_until(self, member_id: str, share: Assignment, *topics: str) -> Beat:
        """Join, and take the share, which may take a while after a topic was created."""
        beat = self.join(member_id, *topics)
        assert beat.error is ErrorCode.NONE, beat
        return beat if beat.assignment == share else self.settle(member_id, share, beat.epoch)

    def outlive(self, member_id: str, epoch: int) -> None:
        """Send heartbeats until the member is the only one left."""
        self.beat_until(member_id, lambda _: len(self.describe().members) == 1, epoch, owned={})

    # -- members of the classic protocol --------------------------------------------------

    def classic_join(
        self,
        member_id: str = "",
        *topics: str,
        owned: Mapping[str, Iterable[int]] | None = None,
        protocol: str = "range",
        metadata: bytes | None = None,
        **fields: Any,
    ) -> Joined:
        """JoinGroup; a member without an id is given one, and joins with it."""
        content = subscription(*topics, owned=owned) if metadata is None else metadata
        fields["protocols"] = {protocol: content}

        def joined() -> Joined | None:
            nonlocal member_id
            answer = self.connection.join(self.group_id, member_id, **fields)
            error = ErrorCode(answer.error_code)
            if error is ErrorCode.MEMBER_ID_REQUIRED:
                member_id = answer.member_id
            elif error not in NOT_YET:
                return Joined(error, answer.member_id, answer.generation_id, answer.leader)
            return None

        return wait_until(joined)

    def classic_sync(
        self,
        member_id: str,
        generation_id: int,
        given: Mapping[str, Mapping[str, Iterable[int]]] | None = None,
        **fields: Any,
    ) -> tuple[ErrorCode, dict[str, set[int]]]:
        """SyncGroup; `given`, by member id, is the leader's to bring."""
        shares = {name: assignment(partitions) for name, partitions in (given or {}).items()}
        answer = self.connection.sync(
            self.group_id, member_id, generation_id, assignments=shares, **fields
        )
        if answer.error_code:
            return ErrorCode(answer.error_code), {}
        return ErrorCode.NONE, assigned(bytes(answer.assignment))

    def classic_beat(
        self, member_id: str, generation_id: int, instance: str | None = None
    ) -> ErrorCode:
        """Heartbeat."""
        return self.connection.heartbeat(self.group_id, member_id, generation_id, instance)

    def stable_classic(self, topic: str, *numbers: int) -> Joined:
        """The only member of a stable classic group, which has these partitions."""
        joined = self.classic_join("", topic)
        assert joined.error is ErrorCode.NONE, joined
        share = {joined.member_id: {topic: numbers}}
        error, _ = self.classic_sync(joined.member_id, joined.generation_id, share)
        assert error is ErrorCode.NONE
        return joined

    # -- the group ------------------------------------------------------------------------

    def describe(self) -> Any:
        """ConsumerGroupDescribe of the group."""
        return self.connection.describe_consumer_group(self.group_id)

    def described_classic(self, version: int) -> tuple[ErrorCode, str]:
        """DescribeGroups of the group: its error and its state."""
        group = self.connection.describe(self.group_id, version)
        return ErrorCode(group.error_code), str(group.group_state)

    def listed(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> tuple[str, ...]:
        """The group as ListGroups tells of it: protocol type, state, type; empty if not."""
        answer = self.connection.list_groups(states, types)
        for group in answer.groups:
            if group.group_id == self.group_id:
                return group.protocol_type, group.group_state, group.group_type
        return ()

    def delete(self) -> ErrorCode:
        """DeleteGroups of the group."""
        return self.connection.delete(self.group_id)

    def leave_group(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        """LeaveGroup of (member id, instance id); the error of each."""
        request = messages.LeaveGroupRequest
        leaving = [
            request.MemberIdentity(member_id=member_id, group_instance_id=instance)
            for member_id, instance in members
        ]
        answer = self.ask(request(group_id=self.group_id, members=leaving))
        assert answer.error_code == ErrorCode.NONE, answer
        return [ErrorCode(member.error_code) for member in answer.members]

    @property
    def state(self) -> str:
        """The group's state."""
        group = self.describe()
        assert group.error_code == ErrorCode.NONE, group
        return str(group.group_state)

    def wait_for_state(self, state: str) -> None:
        """Wait until the group is in a state that it comes to by itself."""
        wait_until(lambda: self.state == state)

    # -- offsets --------------------------------------------------------------------------

    def commit(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        member_id: str = "",
        epoch: int = -1,
        version: int = 9,
    ) -> ErrorCode:
        """OffsetCommit of one position."""
        offsets = {(topic, partition): offset}
        answered = self.connection.commit(
            self.group_id, offsets, member=member_id, generation=epoch, version=version
        )
        return answered[topic, partition]

    def delete_offset(self, topic: str, partition: int) -> ErrorCode:
        """OffsetDelete of one position."""
        answer = self.connection.delete_offsets(self.group_id, topic, partition)
        return ErrorCode(answer.error_code or answer.topics[0].partitions[0].error_code)

    def fetch(
        self, topic: str, partition: int, *, member_id: str | None = None, epoch: int = -1
    ) -> tuple[ErrorCode, int]:
        """OffsetFetch of one position: the group's error, and the position."""
        partitions = {topic: [partition]}
        group = self.connection.fetch(
            self.group_id, member=member_id, epoch=epoch, partitions=partitions
        )
        if group.error_code:
            return ErrorCode(group.error_code), -1
        return ErrorCode.NONE, group.topics[0].partitions[0].committed_offset
