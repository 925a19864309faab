"""Share sessions: what a member fetches, said once, and an epoch for each of its requests.

Unlike a fetch session every member has one: with its first request, of epoch 0, it is opened, the
epoch grows with each request, and the last one has epoch -1. Source: KIP-932; Kafka's
ShareSession, ShareSessionCache and SharePartitionManager.newContext.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import FINAL_EPOCH

INITIAL_EPOCH = 0
INT32_MAX = 2**31 - 1

PartitionId = tuple[bytes, int]
"""Topic id and partition."""


class SessionKey(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


class ShareSession:
    """One member's session.

    Attributes:
        epoch: of the next request.
        partitions: what it fetches, in the order in which it was said.
        unreported: those of which the next answer says something even if there is no news.
    """

    __slots__ = ("connection", "epoch", "key", "partitions", "unreported")

    def __init__(self, key: SessionKey, connection: object) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        self.partitions: dict[PartitionId, None] = {}
        self.unreported: set[PartitionId] = set()

    def add(self, partitions: Iterable[PartitionId]) -> None:
        """Fetch further partitions from now on."""
        for each in partitions:
            if each not in self.partitions:
                self.partitions[each] = None
                self.unreported.add(each)

    def forget(self, partition: PartitionId) -> None:
        """Fetch a partition no more."""
        self.partitions.pop(partition, None)
        self.unreported.discard(partition)

    def advance(self) -> None:
        """A request was taken; the epochs begin at 1 again after the greatest."""
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1

    def rotated(self) -> list[PartitionId]:
        """The partitions, beginning with another one in each epoch, so that none starves."""
        partitions = list(self.partitions)
        if not partitions:
            return partitions
        start = self.epoch % len(partitions)
        return partitions[start:] + partitions[:start]


class ShareSessionCache:
    """The sessions of a broker.

    Args:
        sessions_max: how many there may be (`group.share.max.share.sessions`).
    """

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._groups: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(self._sessions.values())

    def open(
        self, key: SessionKey, connection: object, partitions: Iterable[PartitionId]
    ) -> ShareSession:
        """Begin a session, in the place of the member's former one.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        if key not in self._sessions and len(self._sessions) >= self._sessions_max:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        if key not in self._sessions:
            self._groups[key.group_id] += 1
        session = self._sessions[key] = ShareSession(key, connection)
        session.partitions = dict.fromkeys(partitions)
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request that goes on with it; -1 is taken in any epoch.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if epoch != session.epoch:
                raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.advance()
        return session

    def close(self, key: SessionKey) -> ShareSession | None:
        """Forget a session; returns it if there was one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._groups[key.group_id] -= 1
            if not self._groups[key.group_id]:
                del self._groups[key.group_id]
        return session

    def find(self, key: SessionKey) -> ShareSession | None:
        """A member's session, if it has one."""
        return self._sessions.get(key)

    def has_group(self, group_id: str) -> bool:
        """Whether any member of a group has a session."""
        return group_id in self._groups

    def of_connection(self, connection: object) -> list[ShareSession]:
        """The sessions that were opened over a connection."""
        return [each for each in self._sessions.values() if each.connection is connection]
