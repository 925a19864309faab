"""Fetch sessions (KIP-227): a broker remembers what a client reads, and is told of changes only.

The client's half of it; source: Kafka's `FetchSessionHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID

INITIAL_EPOCH = 0
EPOCH_MAX = 0x7FFFFFFF


class SessionPartition(NamedTuple):
    """What a broker remembers of a partition."""

    topic: str
    partition: int
    topic_id: bytes
    fetch_offset: int
    leader_epoch: int


class SessionRequest(NamedTuple):
    """What the next request of a session says.

    Attributes:
        partitions: all of them at the session's beginning, then those that changed.
        forgotten: partitions that are no longer read.
        is_full: whether the session begins anew with it.
    """

    session_id: int
    epoch: int
    partitions: list[SessionPartition]
    forgotten: list[SessionPartition]
    is_full: bool


class FetchSession:
    """The session of one consumer with one broker.

    Only one request of it may be in flight. What was sent is taken to be known by the broker;
    after an answer with an error, or none, `reset` begins anew.

    Attributes:
        session_id: as the broker named it; `INVALID_SESSION_ID` before.
    """

    def __init__(self) -> None:
        self.session_id = INVALID_SESSION_ID
        self._epoch = INITIAL_EPOCH
        self._known: dict[tuple[str, int], SessionPartition] = {}

    def next_request(self, partitions: Iterable[SessionPartition]) -> SessionRequest:
        """What to send so that the broker reads exactly these partitions.

        Args:
            partitions: all that are read from this broker.
        """
        to_read = {(each.topic, each.partition): each for each in partitions}
        if self._epoch == INITIAL_EPOCH:
            self._known = to_read
            request = SessionRequest(
                self.session_id, self._epoch, list(to_read.values()), [], is_full=True
            )
        else:
            changed = [each for key, each in to_read.items() if self._known.get(key) != each]
            # A topic with another id is another topic: the old one is to be forgotten.
            forgotten = [
                each
                for key, each in self._known.items()
                if key not in to_read or to_read[key].topic_id != each.topic_id
            ]
            self._known = to_read
            request = SessionRequest(
                self.session_id, self._epoch, changed, forgotten, is_full=False
            )
        return request

    def answered(self, session_id: int) -> None:
        """An answer without an error came.

        Args:
            session_id: from the answer; the broker has no session where there is none in it.
        """
        self.session_id = session_id
        if session_id == INVALID_SESSION_ID:
            self.reset()
        else:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def reset(self) -> None:
        """Begin anew: the broker does not know the session, or nobody knows what it knows. The
        id is sent once more, so that the broker forgets the session if it has it."""
        self._epoch = INITIAL_EPOCH
        self._known = {}


def without_session(partitions: Iterable[SessionPartition]) -> SessionRequest:
    """A request that is part of no session."""
    return SessionRequest(INVALID_SESSION_ID, FINAL_EPOCH, list(partitions), [], is_full=True)


def by_topic(
    partitions: Iterable[SessionPartition],
) -> Mapping[tuple[str, bytes], list[SessionPartition]]:
    """Partitions by their topic's name and id."""
    topics: dict[tuple[str, bytes], list[SessionPartition]] = {}
    for each in partitions:
        topics.setdefault((each.topic, each.topic_id), []).append(each)
    return topics
