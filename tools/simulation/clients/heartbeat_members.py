"""Members whose coordinator assigns, in answers to heartbeats (KIP-848, KIP-1071)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from ....common.errors import ErrorCode
from ....protocol.codec.message import Message
from ..checkers.log_checker import Key
from .client import METADATA_MAX_AGE_US
from .group_members import GroupMember

JOINING, LEAVING = 0, -1
REJECTED = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)


class HeartbeatMember(GroupMember):
    """One of them; it makes its member id itself."""

    epoch = JOINING

    @property
    def identity(self) -> tuple[str, int]:
        """Its id, another one for each stay, and the epoch that it was told last."""
        return self.stay, self.epoch

    @abstractmethod
    def heartbeat(self) -> Message:
        """The request, which says what is owned."""

    @abstractmethod
    def assigned(self, answer: Any) -> Collection[Key] | None:
        """What is to be owned from now on; None: the same."""

    def join(self) -> None:
        """The first heartbeat joins."""
        self.epoch = JOINING

    async def beat(self) -> bool:
        """A heartbeat, which says what is owned; the answer says what should be."""
        broker_id = await self.coordinator()
        sent_ms = self.cluster.kernel.now_us // 1000
        answer = await self.request(broker_id, self.heartbeat())
        if answer.error_code in REJECTED:
            return False
        if answer.error_code:
            self.lost_coordinator()
            return True
        self.epoch = answer.member_epoch
        self.checker.heard_of(self.group, self.stay, sent_ms)
        assigned = self.assigned(answer)
        if assigned is not None:
            await self.take(assigned)
        return True

    async def leave(self) -> None:
        """The last heartbeat leaves."""
        self.epoch = LEAVING
        await self.refresh(METADATA_MAX_AGE_US)
        await self.beat()
