"""Share groups (KIP-932): what is handed out, and how often, by ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....common.errors import ErrorCode
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from ..requests import BY_ID_FROM, batch, numbered, production
from ..scenario import NEWEST, scenario
from ..talk import Talk
from .configuration import GROUP_RESOURCE, changing

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
WAIT_MS = 5_000
"""Longer than anything takes that is waited for."""
ACCEPT, RELEASE, REJECT = 1, 2, 3
WHOLE_BATCHES, RECORD_LIMIT = 0, 1

Acquired = Sequence[tuple[int, int, int]]
"""First and last offset, and delivery count."""


class Reading(NamedTuple):
    """How a member reads.

    Attributes:
        batches: how many records each batch of the topic has.
        limit: `share.delivery.count.limit`.
        rounds: how often it fetches; before the last record is done with.
        records_max: of one fetch.
        batch_size: of a fetch; by that records are kept together.
        mode: `WHOLE_BATCHES` or `RECORD_LIMIT`.
        rejects: the offsets that it rejects; the others are released.
    """

    batches: Sequence[int]
    limit: int
    rounds: int
    records_max: int = 500
    batch_size: int = 500
    mode: int = WHOLE_BATCHES
    rejects: Sequence[int] = ()


class ShareMember:
    """A member of the scenario's share group, and its session with the leader of its topic."""

    def __init__(self, talk: Talk, topic_id: bytes) -> None:
        self._talk = talk
        self._topic_id = topic_id
        self._epoch = 0

    def join(self, topic: str) -> None:
        """Join, and wait until the topic is assigned: then the group's state is there."""
        request = ShareGroupHeartbeatRequest(
            group_id=self._talk.name(),
            member_id=MEMBER,
            member_epoch=0,
            subscribed_topic_names=[topic],
        )
        self._talk.settle_quietly(
            request,
            until=lambda answer: bool(answer.assignment and answer.assignment.topic_partitions),
        )

    def fetch(self, reading: Reading, wait_ms: int = WAIT_MS) -> Acquired:
        """Fetch, and say what was handed out."""
        answer = self._talk.ask(self._fetching(wait_ms, reading))
        self._epoch += 1
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for partition in topic.partitions
            for each in partition.acquired_records
        ]

    def _fetching(self, wait_ms: int, reading: Reading) -> ShareFetchRequest:
        request = ShareFetchRequest
        partition = request.FetchPartition(partition_index=0)
        return request(
            group_id=self._talk.name(),
            member_id=MEMBER,
            share_session_epoch=self._epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=reading.records_max,
            batch_size=reading.batch_size,
            share_acquire_mode=reading.mode,
            topics=[request.FetchTopic(topic_id=self._topic_id, partitions=[partition])],
        )

    def acknowledge(self, acquired: Acquired, kind: Callable[[int], int]) -> Any:
        """Say something of every record that was handed out."""
        request = ShareAcknowledgeRequest
        answer = self._talk.ask(
            request(
                group_id=self._talk.name(),
                member_id=MEMBER,
                share_session_epoch=self._epoch,
                topics=[
                    request.AcknowledgeTopic(
                        topic_id=self._topic_id,
                        partitions=[
                            request.AcknowledgePartition(
                                partition_index=0,
                                acknowledgement_batches=[
                                    request.AcknowledgementBatch(
                                        first_offset=first,
                                        last_offset=last,
                                        acknowledge_types=[
                                            kind(each) for each in range(first, last + 1)
                                        ],
                                    )
                                    for first, last, _ in acquired
                                ],
                            )
                        ],
                    )
                ],
            )
        )
        self._epoch += 1
        return answer


def reader(talk: Talk, limit: int = 5, **settings: str) -> tuple[ShareMember, bytes]:
    """A member of a group that reads a new topic from its beginning, and the topic's id.

    Args:
        limit: how often a record is handed out.
        settings: more of the group's, without "share." and with _ for dots.
    """
    topic_id = talk.create_topic(talk.name())
    named = {"auto_offset_reset": "earliest", "delivery_count_limit": str(limit), **settings}
    for name, value in named.items():
        setting = f"share.{name.replace('_', '.')}"
        talk.ask(changing(GROUP_RESOURCE, talk.name(), (setting, 0, value)))
    member = ShareMember(talk, topic_id)
    member.join(talk.name())
    return member, topic_id


def produced(talk: Talk, topic_id: bytes, batches: Sequence[int]) -> None:
    """Append batches of so many records."""
    for count in batches:
        request = production(topic_id, {0: batch(*numbered(count))})
        talk.settled(request, BY_ID_FROM, passing={ErrorCode.UNKNOWN_TOPIC_ID})


@scenario(
    ApiKey.SHARE_FETCH,
    NEWEST,
    cases={
        "eight in a batch, five times": Reading([8], 5, 12),
        "twice": Reading([8], 2, 2),
        "three times": Reading([7], 3, 8),
        "ten times": Reading([20], 10, 24),
        "batches apart": Reading([6, 6], 5, 14, batch_size=6),
        "batches together": Reading([6, 6], 5, 14),
        "some asked for": Reading([12], 4, 14, records_max=5),
        "no more than asked for": Reading([12], 4, 16, records_max=5, mode=RECORD_LIMIT),
        "no more than asked for, of batches": Reading(
            [4, 4, 4], 4, 16, records_max=5, mode=RECORD_LIMIT
        ),
        "some rejected": Reading([10], 5, 10, rejects=(0, 4, 9)),
    },
)
def records_are_released_until_the_limit(talk: Talk, reading: Reading) -> None:
    member, topic_id = reader(talk, reading.limit)
    produced(talk, topic_id, reading.batches)
    for _ in range(reading.rounds):
        acquired = member.fetch(reading)
        member.acknowledge(
            acquired, lambda offset: REJECT if offset in reading.rejects else RELEASE
        )


@scenario(ApiKey.SHARE_FETCH)
def records_are_accepted(talk: Talk) -> None:
    member, topic_id = reader(talk)
    produced(talk, topic_id, [3, 2])
    for _ in range(2):
        member.acknowledge(member.fetch(Reading([], 5, 0)), lambda _: ACCEPT)
        produced(talk, topic_id, [4])
