"""Members of both group protocols in one group, made of single requests over TCP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import request_message

from .consumer_group_peer import NOT_READY, Peer
from .mixed_bench import assigned, assignment, subscription


class Joined(NamedTuple):
    """The answer to a JoinGroup."""

    error: ErrorCode
    member_id: str
    generation_id: int
    leader: str


class MixedPeer(Peer):
    """A peer that speaks the classic protocol too; one request at a time."""

    def classic_join(
        self,
        member_id: str = "",
        *topics: str,
        owned: Mapping[str, Iterable[int]] | None = None,
        instance: str | None = None,
        protocol: str = "range",
        protocol_type: str = "consumer",
        metadata: bytes | None = None,
        version: int = 9,
    ) -> Joined:
        """JoinGroup; a member without an id is given one, and joins with it."""
        request = request_message(ApiKey.JOIN_GROUP)
        content = subscription(*topics, owned=owned) if metadata is None else metadata
        while True:
            answer = self.ask(
                ApiKey.JOIN_GROUP,
                version,
                group_id=self.group_id,
                session_timeout_ms=120_000,
                rebalance_timeout_ms=120_000,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocols=[request.JoinGroupRequestProtocol(name=protocol, metadata=content)],
            )
            error = ErrorCode(answer.error_code)
            if error is ErrorCode.MEMBER_ID_REQUIRED:
                member_id = answer.member_id
            elif error not in NOT_READY:
                return Joined(error, answer.member_id, answer.generation_id, answer.leader)

    def classic_sync(
        self,
        member_id: str,
        generation_id: int,
        given: Mapping[str, Mapping[str, Iterable[int]]] | None = None,
        *,
        instance: str | None = None,
        protocol: str | None = "range",
        protocol_type: str | None = "consumer",
    ) -> tuple[ErrorCode, dict[str, set[int]]]:
        """SyncGroup; `given`, by member id, is the leader's to bring."""
        request = request_message(ApiKey.SYNC_GROUP)
        answer = self.ask(
            ApiKey.SYNC_GROUP,
            5,
            group_id=self.group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                request.SyncGroupRequestAssignment(
                    member_id=name, assignment=assignment(partitions)
                )
                for name, partitions in (given or {}).items()
            ],
        )
        if answer.error_code:
            return ErrorCode(answer.error_code), {}
        return ErrorCode.NONE, assigned(bytes(answer.assignment))

    def classic_beat(
        self, member_id: str, generation_id: int, instance: str | None = None
    ) -> ErrorCode:
        """Heartbeat."""
        answer: Any = self.ask(
            ApiKey.HEARTBEAT,
            4,
            group_id=self.group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
        )
        return ErrorCode(answer.error_code)

    def stable_classic(self, topic: str, *numbers: int, **told: Any) -> Joined:
        """The only member of a stable classic group, which has these partitions."""
        joined = self.classic_join("", topic, **told)
        assert joined.error is ErrorCode.NONE, joined
        share = {joined.member_id: {topic: numbers}}
        error, _ = self.classic_sync(
            joined.member_id, joined.generation_id, share, instance=told.get("instance")
        )
        assert error is ErrorCode.NONE
        return joined
