"""What the memberships of both group protocols have in common: what they decide, and who asks.

A membership is a state machine without trio: it says which request is to be sent next and what
the caller of the consumer must hear of, and is told what became of both. `GroupMember` is the
shell that waits and sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ....common.errors import KafkaError
from ..offsets import TopicPartition

if TYPE_CHECKING:
    from ....protocol.codec.message import Message


class Send(NamedTuple):
    """Send this to the coordinator and hand on the answer.

    Attributes:
        timeout_ms: how long the answer may take; None: as any other.
    """

    request: Message
    timeout_ms: int | None = None


class Wait(NamedTuple):
    """Nothing is to be done before this time; None: before something happens."""

    until_ms: int | None


class CountPartitions(NamedTuple):
    """This member leads a classic group: how many partitions do these topics have?"""

    topics: frozenset[str]


class ResolveTopics(NamedTuple):
    """What are the names of these topics, which the broker assigned by their ids?"""

    topic_ids: frozenset[bytes]


Step = Send | Wait | CountPartitions | ResolveTopics


class Rebalance(NamedTuple):
    """What changes for the caller, who is done with what is revoked when it polls.

    Attributes:
        revoked: goes first.
        assigned: comes then.
        is_lost: the partitions are another member's already, so nothing can be committed.
    """

    revoked: frozenset[TopicPartition] = frozenset()
    assigned: frozenset[TopicPartition] = frozenset()
    is_lost: bool = False


class GroupMetadata(NamedTuple):
    """What a transaction needs to commit offsets for this member (KIP-447).

    Attributes:
        generation_id: the generation, or the member's epoch; -1 outside of the group.
        member_id: "" outside of the group.
        group_instance_id: of a static member.
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class Membership(Protocol):
    """One member of one group."""

    @property
    def metadata(self) -> GroupMetadata:
        """Who this member is to the coordinator now."""

    @property
    def failure(self) -> KafkaError | None:
        """Why this member cannot be in the group; it does not come back."""

    @property
    def rebalance(self) -> Rebalance | None:
        """What the caller is to hear of when it polls; None: nothing."""

    def rebalance_done(self, now_ms: int) -> None:
        """The caller has heard of `rebalance`."""

    def subscribe(self, topics: frozenset[str]) -> None:
        """Be a member that reads these topics."""

    def next_step(self, now_ms: int) -> Step:
        """What to do next; nothing is in flight when it is asked."""

    def answered(self, request: Message, response: Any, now_ms: int) -> KafkaError | None:
        """The coordinator answered; returns an error that means that it is another one, or is
        not ready: the same may succeed later."""

    def unanswered(self, now_ms: int) -> None:
        """The request got no answer: the coordinator may have acted on it or not."""

    def poll_expired(self) -> None:
        """The caller has not polled for too long: leave, until it does again."""

    def partition_counts(self, counts: Mapping[str, int]) -> None:
        """What `CountPartitions` asked for; topics that do not exist are left out."""

    def partitions_changed(self, counts: Mapping[str, int]) -> None:
        """There is new metadata, and so many partitions have the topics in it."""

    def topic_names(self, names: Mapping[bytes, str]) -> None:
        """What `ResolveTopics` asked for; unknown ids are left out."""

    def fenced(self) -> None:
        """The coordinator said in answer to a commit that it does not know this member."""

    def leave(self) -> Message | None:
        """The request that ends the membership; None if there is nothing to end."""
