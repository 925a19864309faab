"""Offsets of groups within transactions: AddOffsetsToTxn and TxnOffsetCommit."""

from __future__ import annotations

from typing import Any

from ....protocol.api_keys import ApiKey
from ....protocol.messages import AddOffsetsToTxnRequest, TxnOffsetCommitRequest
from ..scenario import scenario
from ..talk import Talk
from .classic_groups import Member, stable
from .offsets import fetching
from .transactions import (
    END_OF_FIRST_GENERATION,
    END_OF_SECOND,
    WRONG,
    ProducerIdentity,
    describing,
    ending,
    started,
    stranger,
    wrong,
)

OFFSETS_AFTER_ADDING = 4
"""The last version of TxnOffsetCommit for which the group has to be taken in before."""


def offsets_in(
    producer: ProducerIdentity, group: str, topic: str, offset: int, member: Member | None = None
) -> TxnOffsetCommitRequest:
    """A request to commit an offset in a transaction."""
    of_partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    of_topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
        name=topic,
        partitions=[
            of_partition(partition_index=0, committed_offset=offset, committed_metadata="")
        ],
    )
    request = TxnOffsetCommitRequest(group_id=group, topics=[of_topic], **producer.fields())
    if member is not None:
        request.generation_id = member.generation
        request.member_id = member.id
        request.group_instance_id = member.instance
    return request


@scenario(ApiKey.ADD_OFFSETS_TO_TXN)
def group_is_taken_in(talk: Talk) -> None:
    producer = started(talk)
    talk.settled(AddOffsetsToTxnRequest(group_id=talk.name(), **producer.fields()), talk.version)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.ADD_OFFSETS_TO_TXN, cases=WRONG)
def group_is_taken_in_by(talk: Talk, shift: tuple[int, int]) -> None:
    producer = wrong(talk, shift)
    talk.ask(AddOffsetsToTxnRequest(group_id=talk.name(), **producer.fields()), talk.version)


@scenario(ApiKey.ADD_OFFSETS_TO_TXN)
def group_is_taken_in_by_a_stranger(talk: Talk) -> None:
    producer = stranger(talk)
    talk.ask(AddOffsetsToTxnRequest(group_id=talk.name(), **producer.fields()), talk.version)


@scenario(ApiKey.ADD_OFFSETS_TO_TXN)
def group_without_a_name_is_taken_in(talk: Talk) -> None:
    producer = started(talk)
    talk.settled(AddOffsetsToTxnRequest(group_id="", **producer.fields()), talk.version)


@scenario(ApiKey.TXN_OFFSET_COMMIT, cases={"committed": True, "aborted": False})
def offsets_of_a_transaction_are(talk: Talk, committed: bool) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    group = talk.name()
    if talk.version <= OFFSETS_AFTER_ADDING:
        talk.settled(AddOffsetsToTxnRequest(group_id=group, **producer.fields()))
    talk.settled(offsets_in(producer, group, talk.name(), 7), talk.version)
    talk.ask(fetching(9, group, talk.name(), 0, stable_only=True), 9)
    talk.ask(fetching(9, group, talk.name(), 0), 9)
    version = END_OF_FIRST_GENERATION if talk.version <= OFFSETS_AFTER_ADDING else END_OF_SECOND
    talk.ask(ending(producer, committed=committed), version)
    expected = 7 if committed else -1
    talk.settled(
        fetching(9, group, talk.name(), 0, stable_only=True),
        9,
        until=lambda answer: _offset_of(answer) == expected,
    )


def _offset_of(answer: Any) -> int | None:
    """The offset of the only partition of an answer that is no error."""
    partition = answer.groups[0].topics[0].partitions[0]
    return None if partition.error_code else int(partition.committed_offset)


@scenario(ApiKey.TXN_OFFSET_COMMIT, cases={"committed": True})
def offsets_are_committed_without_taking_the_group_in(talk: Talk, _: bool) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(offsets_in(producer, talk.name(), talk.name(), 7), talk.version)


@scenario(ApiKey.TXN_OFFSET_COMMIT, cases=WRONG)
def offsets_in_a_transaction_come_from(talk: Talk, shift: tuple[int, int]) -> None:
    talk.create_topic(talk.name())
    talk.settled(offsets_in(wrong(talk, shift), talk.name(), talk.name(), 7), talk.version)


@scenario(
    ApiKey.TXN_OFFSET_COMMIT,
    "3-",
    cases={
        "the member": (None, 0),
        "a stranger": ("stranger", 0),
        "a later generation": (None, 1),
        "an earlier generation": (None, -1),
    },
)
def offsets_in_a_transaction_name(talk: Talk, case: tuple[str | None, int]) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    member = stable(talk, talk.name())
    talk.settled(AddOffsetsToTxnRequest(group_id=talk.name(), **producer.fields()))
    member_id, shift = case
    named = member._replace(id=member_id or member.id, generation=member.generation + shift)
    talk.settled(offsets_in(producer, talk.name(), talk.name(), 7, named), talk.version)


@scenario(ApiKey.TXN_OFFSET_COMMIT, cases={"absent": "absent-topic", "bad": "a/b"})
def offsets_in_a_transaction_are_of_no_topic(talk: Talk, topic: str) -> None:
    producer = started(talk)
    talk.settled(AddOffsetsToTxnRequest(group_id=talk.name(), **producer.fields()))
    talk.settled(offsets_in(producer, talk.name(), topic, 7), talk.version)


@scenario(ApiKey.TXN_OFFSET_COMMIT)
def offsets_in_a_transaction_are_of_no_group(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.settled(offsets_in(started(talk), "", talk.name(), 7), talk.version)
