"""Consumer groups with members of both protocols, on a log in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.classic.messages import (
    JoinAnswer,
    JoinRequest,
    LeavingMember,
    MemberProtocol,
    SyncAnswer,
    SyncRequest,
)
from odradek.protocol.internal import find_message
from odradek.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from odradek.protocol.internal.versioned import decode_versioned, encode_versioned
from odradek.runtime.steps import run_at_once

from .consumer_bench import GROUP, ConsumerBench
from .pending import Pending

ByTopic = Mapping[str, Iterable[int]]


def subscription(
    *topics: str, owned: ByTopic | None = None, rack: str | None = None, version: int = 3
) -> bytes:
    """What a consumer on the classic protocol says of itself."""
    message = ConsumerProtocolSubscription
    return encode_versioned(
        message(
            topics=list(topics),
            owned_partitions=[
                message.TopicPartition(topic=topic, partitions=list(numbers))
                for topic, numbers in (owned or {}).items()
            ],
            rack_id=rack,
        ),
        version,
    )


def assignment(partitions: ByTopic, user_data: bytes | None = None) -> bytes:
    """What the leader of a classic group gives a consumer."""
    message = ConsumerProtocolAssignment
    return encode_versioned(
        message(
            assigned_partitions=[
                message.TopicPartition(topic=topic, partitions=list(numbers))
                for topic, numbers in partitions.items()
            ],
            user_data=user_data,
        ),
        1,
    )


def assigned(content: bytes) -> dict[str, set[int]]:
    """What a consumer on the classic protocol reads in its SyncGroup's answer."""
    message, _ = decode_versioned(find_message("ConsumerProtocolAssignment"), content)
    return {entry.topic: set(entry.partitions) for entry in message.assigned_partitions}


class MixedBench(ConsumerBench):
    """A coordinator whose groups may have members of both protocols."""

    def classic_state(self) -> str:
        """The group's state as DescribeGroups tells it, of a classic group."""
        return self.coordinator.describe_group(GROUP).state

    @property
    def kind(self) -> str:
        """Which type the group is of."""
        (listing,) = run_at_once(self.coordinator.list_groups((), ()))
        return listing.group_type

    def classic_join(
        self,
        member_id: str = "",
        *,
        owned: ByTopic | None = None,
        topics: Iterable[str] = ("orders",),
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        version: int = 9,
    ) -> Pending[JoinAnswer]:
        """Send one JoinGroup."""
        pending: Pending[JoinAnswer] = Pending()
        chosen = {"range": subscription(*topics, owned=owned)} if protocols is None else protocols
        self.coordinator.join_group(
            JoinRequest(
                GROUP,
                member_id,
                instance,
                "classic-client",
                "/127.0.0.2",
                session_timeout_ms,
                rebalance_timeout_ms,
                protocol_type,
                [MemberProtocol(name, metadata) for name, metadata in chosen.items()],
                requires_known_member_id=version >= 4,
                supports_skipping_assignment=version >= 9,
            ),
            pending,
        )
        self.log.flush()
        return pending

    def classic_sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> SyncAnswer:
        """Send one SyncGroup, which is answered at once."""
        pending: Pending[SyncAnswer] = Pending()
        self.coordinator.sync_group(
            SyncRequest(
                GROUP,
                generation_id,
                member_id,
                instance,
                protocol_type,
                protocol_name,
                assignments or {},
            ),
            pending,
        )
        self.log.flush()
        return pending.answer

    def classic_beat(
        self, member_id: str, generation_id: int, instance: str | None = None
    ) -> ErrorCode:
        """Send one Heartbeat."""
        return self.coordinator.heartbeat(GROUP, generation_id, member_id, instance)

    def classic_leave(self, *members: str | LeavingMember) -> list[ErrorCode]:
        """Send one LeaveGroup."""
        named = [LeavingMember(m) if isinstance(m, str) else m for m in members]
        pending: Pending[Sequence[ErrorCode]] = Pending()
        self.coordinator.leave_group(GROUP, named, pending)
        self.log.flush()
        return list(pending.answer)

    # -- whole steps --------------------------------------------------------------------

    def classic_group(self, shares: Mapping[str, ByTopic], **fields: Any) -> dict[str, str]:
        """A stable classic group; returns the member id of each share's name."""
        joins: dict[str, Pending[JoinAnswer]] = {}
        ids: dict[str, str] = {}
        for name in shares:
            first = self.classic_join(**fields).answer
            assert first.error is ErrorCode.MEMBER_ID_REQUIRED
            ids[name] = first.member_id
            joins[name] = self.classic_join(first.member_id, **fields)
        while any(pending.is_waiting for pending in joins.values()):
            self.advance(1_000)
        generation_id = next(iter(joins.values())).answer.generation_id
        leader = next(iter(joins.values())).answer.leader
        given = {ids[name]: assignment(share) for name, share in shares.items()}
        answers: list[Pending[SyncAnswer]] = []
        for member_id in sorted(ids.values(), key=lambda m: m == leader):
            pending: Pending[SyncAnswer] = Pending()
            request = SyncRequest(GROUP, generation_id, member_id, None, "consumer", "range", given)
            self.coordinator.sync_group(request, pending)
            self.log.flush()
            answers.append(pending)
        assert [pending.answer.error for pending in answers] == [ErrorCode.NONE] * len(shares)
        assert self.classic_state() == "Stable"
        return ids

    def rejoin(self, member_id: str, **fields: Any) -> tuple[int, dict[str, set[int]]]:
        """JoinGroup and SyncGroup of a member that was called back: generation and share."""
        answer = self.classic_join(member_id, **fields).answer
        assert answer.error is ErrorCode.NONE, answer
        synced = self.classic_sync(member_id, answer.generation_id)
        assert synced.error is ErrorCode.NONE, synced
        return answer.generation_id, assigned(synced.assignment)

    def rejoin_static(self, member_id: str, instance: str) -> tuple[int, dict[str, set[int]]]:
        """The same of a static member."""
        answer = self.classic_join(member_id, instance=instance).answer
        assert answer.error is ErrorCode.NONE, answer
        synced = self.classic_sync(member_id, answer.generation_id, instance=instance)
        return answer.generation_id, self.read(synced)

    def go_on(self, member_id: str, instance: str | None = None) -> None:
        """Let a member of the consumer protocol do as it is told."""
        for _ in range(3):
            member = self.group().members[member_id]
            owned = {topic: set(epochs) for topic, epochs in member.assigned_partitions.items()}
            answer = self.beat(member_id, member.member_epoch, owned=owned, instance_id=instance)
            assert answer.error is ErrorCode.NONE, answer

    def read(self, answer: SyncAnswer) -> dict[str, set[int]]:
        """What a SyncGroup's answer assigns."""
        assert answer.error is ErrorCode.NONE, answer
        return assigned(answer.assignment)
