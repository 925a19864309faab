"""Share groups (KIP-932): their members, what they are handed out, and what they say of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .....common.errors import ErrorCode
from .....protocol.api_keys import ApiKey
from .....protocol.messages import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from ...requests import BY_ID_FROM, batch, numbered, production
from ...scenario import NEWEST, scenario
from ...talk import NotSettledError, Talk
from ..classic_groups import join
from ..configuration import GROUP_RESOURCE, changing

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
WAIT_MS = 5_000
"""Longer than anything takes that is waited for."""
A_WHILE_MS = 1000
"""For what may not come."""
FETCHES_MAX = 60
"""So often what has to come is fetched."""
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
JOIN, LEAVE = 0, -1
WHOLE_BATCHES, RECORD_LIMIT = 0, 1

Acquired = Sequence[tuple[int, int, int]]
"""First and last offset, and delivery count."""

Batch = tuple[int, int, Sequence[int]]
"""First and last offset, and types of an acknowledgement."""


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
    """A member of the scenario's share group, and its session with the leader of its topic.

    Args:
        talk: the scenario's.
        topic_id: of the topic that it reads.
        partitions: how many the topic has.
        version: of ShareFetch and ShareAcknowledge; None: the newest.

    Attributes:
        epoch: of its session's next request.
    """

    def __init__(
        self, talk: Talk, topic_id: bytes, partitions: int = 1, version: int | None = None
    ) -> None:
        self.epoch = 0
        self._talk = talk
        self._topic_id = topic_id
        self._partitions = partitions
        self._version = version

    def join(self, topic: str) -> None:
        """Join, and wait until the topic is assigned: then the group's state is there."""
        join_share_group(self._talk, self._talk.name(), topic)

    def fetch(self, reading: Reading, wait_ms: int = WAIT_MS) -> Acquired:
        """Fetch, and say what was handed out."""
        return acquired_in(self._ask(self._fetching(wait_ms, reading)))

    def fetch_all(self, count: int) -> None:
        """Fetch until so many records were handed out, however they come: nothing is compared."""
        for _ in range(FETCHES_MAX):
            request = self._fetching(A_WHILE_MS, Reading([], 5, 0))
            count -= counted(acquired_in(self._talk.quietly(request, self._version)))
            self.epoch += 1
            if count <= 0:
                return
        raise NotSettledError(f"{count} records more were not handed out")

    def fetching(self, wait_ms: int = 0, **fields: Any) -> ShareFetchRequest:
        """A request to fetch what there is, but for what the fields say."""
        request = self._fetching(wait_ms, Reading([], 5, 0))
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def _fetching(self, wait_ms: int, reading: Reading) -> ShareFetchRequest:
        request = ShareFetchRequest
        partitions = [
            request.FetchPartition(partition_index=number) for number in range(self._partitions)
        ]
        return request(
            group_id=self._talk.name(),
            member_id=MEMBER,
            share_session_epoch=self.epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=reading.records_max,
            batch_size=reading.batch_size,
            share_acquire_mode=reading.mode,
            topics=[request.FetchTopic(topic_id=self._topic_id, partitions=partitions)],
        )

    def acknowledge(self, acquired: Acquired, kind: Callable[[int], int]) -> Any:
        """Say something of every record that was handed out."""
        return self.say(
            {
                0: [
                    (first, last, [kind(each) for each in range(first, last + 1)])
                    for first, last, _ in acquired
                ]
            }
        )

    def say(self, batches: Mapping[int, Sequence[Batch]], **fields: Any) -> Any:
        """Acknowledge batches of partitions by ShareAcknowledge."""
        return self._ask(self.acknowledging(batches, **fields))

    def say_with_fetch(self, batches: Mapping[int, Sequence[Batch]], **fields: Any) -> Any:
        """The same by ShareFetch, which forgets the partitions, and so hands nothing out."""
        make = ShareFetchRequest
        request = self.fetching(**fields)
        gone = make.ForgottenTopic(
            topic_id=self._topic_id, partitions=list(range(self._partitions))
        )
        request.forgotten_topics_data = [gone]
        for partition in request.topics[0].partitions:
            partition.acknowledgement_batches = _batches(make, batches[partition.partition_index])
        return self._ask(request)

    def acknowledging(
        self, batches: Mapping[int, Sequence[Batch]], topic_id: bytes | None = None, **fields: Any
    ) -> ShareAcknowledgeRequest:
        """A request to acknowledge batches of partitions, but for what the fields say."""
        make = ShareAcknowledgeRequest
        partitions = [
            make.AcknowledgePartition(
                partition_index=number, acknowledgement_batches=_batches(make, held)
            )
            for number, held in batches.items()
        ]
        topic = make.AcknowledgeTopic(topic_id=topic_id or self._topic_id, partitions=partitions)
        given = {
            "group_id": self._talk.name(),
            "member_id": MEMBER,
            "share_session_epoch": self.epoch,
            "topics": [topic],
        }
        return make(**{**given, **fields})

    def _ask(self, request: ShareFetchRequest | ShareAcknowledgeRequest) -> Any:
        answer = self._talk.ask(request, self._version)
        self.epoch += 1
        return answer


def _batches(make: Any, batches: Sequence[Batch]) -> list[Any]:
    return [
        make.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=list(types)
        )
        for first, last, types in batches
    ]


def acquired_in(answer: Any) -> Acquired:
    """What a ShareFetch has handed out."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def counted(acquired: Acquired) -> int:
    """How many records there are."""
    return sum(last - first + 1 for first, last, _ in acquired)


def beat(
    group: str, member: str = MEMBER, epoch: int = JOIN, **fields: Any
) -> ShareGroupHeartbeatRequest:
    """A heartbeat of a member of a share group."""
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **fields
    )


def join_share_group(talk: Talk, group: str, topic: str) -> None:
    """A member joins, and waits until the topic is assigned."""
    talk.settle_quietly(
        beat(group, subscribed_topic_names=[topic]),
        until=lambda answer: bool(answer.assignment and answer.assignment.topic_partitions),
    )


def reader(
    talk: Talk,
    limit: int = 5,
    *,
    partitions: int = 1,
    version: int | None = None,
    **settings: str,
) -> tuple[ShareMember, bytes]:
    """A member of a group that reads a new topic from its beginning, and the topic's id.

    Args:
        limit: how often a record is handed out.
        partitions: of the topic.
        version: in which the member fetches and acknowledges; None: the newest.
        settings: more of the group's, without "share." and with _ for dots.
    """
    topic_id = talk.create_topic(talk.name(), partitions)
    named = {"auto_offset_reset": "earliest", "delivery_count_limit": str(limit), **settings}
    for name, value in named.items():
        setting = f"share.{name.replace('_', '.')}"
        talk.ask(changing(GROUP_RESOURCE, talk.name(), (setting, 0, value)))
    member = ShareMember(talk, topic_id, partitions, version)
    member.join(talk.name())
    return member, topic_id


def produced(talk: Talk, topic_id: bytes, batches: Sequence[int], partitions: int = 1) -> None:
    """Append batches of so many records to each of so many partitions."""
    for count in batches:
        made = batch(*numbered(count))
        records: dict[int, bytes | None] = dict.fromkeys(range(partitions), made)
        request = production(topic_id, records)
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
    member, topic_id = reader(talk, version=talk.version)
    produced(talk, topic_id, [3, 2])
    for _ in range(2):
        member.acknowledge(member.fetch(Reading([], 5, 0)), lambda _: ACCEPT)
        produced(talk, topic_id, [4])


# -- where a group begins -------------------------------------------------------------------

RECENT_MS = time.time_ns() // 1_000_000
"""Of a record that is written now; the same for both brokers."""


@scenario(
    ApiKey.SHARE_FETCH,
    NEWEST,
    cases={
        "the beginning": "earliest",
        "the end": "latest",
        "what is not older": "by_duration:PT1H",
        "what is not older, which is all": "by_duration:P36500D",
    },
)
def group_begins_with(talk: Talk, reset: str) -> None:
    member, topic_id = reader(talk, auto_offset_reset=reset)
    come_back(member, A_WHILE_MS)
    produced(talk, topic_id, [3])
    for _ in range(2):
        come_back(member, A_WHILE_MS)
    recent = batch(*numbered(2), first_ms=RECENT_MS)
    talk.settled(
        production(topic_id, {0: recent}), BY_ID_FROM, passing={ErrorCode.UNKNOWN_TOPIC_ID}
    )
    come_back(member, WAIT_MS)


@scenario(ApiKey.SHARE_FETCH, NEWEST, cases={"the end": "latest", "none": "by_duration:PT1H"})
def group_begins_after_old_records_with(talk: Talk, reset: str) -> None:
    member, topic_id = reader(talk, auto_offset_reset=reset)
    produced(talk, topic_id, [3])
    come_back(member, A_WHILE_MS)
    recent = batch(*numbered(2), first_ms=RECENT_MS)
    talk.settled(
        production(topic_id, {0: recent}), BY_ID_FROM, passing={ErrorCode.UNKNOWN_TOPIC_ID}
    )
    come_back(member, WAIT_MS)


# -- acknowledgements ----------------------------------------------------------------------

COUNT = 10
"""How many records each partition has."""

SAID: Sequence[Sequence[Batch]] = (
    [(0, 9, [ACCEPT])],
    [(0, 9, [RELEASE])],
    [(0, 9, [REJECT])],
    [(0, 9, [GAP])],
    [(0, 9, [RENEW])],
    [(0, 3, [ACCEPT]), (4, 6, [RELEASE]), (7, 9, [RENEW])],
    [(0, 9, [GAP, ACCEPT, RELEASE, REJECT, ACCEPT, RELEASE, GAP, REJECT, ACCEPT, ACCEPT])],
    [(0, 4, [ACCEPT]), (5, 9, [RELEASE])],
    [(2, 3, [ACCEPT]), (6, 6, [REJECT])],
    [(5, 9, [ACCEPT]), (0, 6, [RELEASE])],
    [(0, 6, [ACCEPT]), (5, 9, [RELEASE])],
    [(0, 5, [ACCEPT]), (5, 9, [RELEASE])],
    [(0, 5, [ACCEPT]), (5, 5, [RELEASE])],
    [(0, 9, [ACCEPT]), (0, 9, [ACCEPT])],
    [(5, 4, [ACCEPT])],
    [(0, 9, [])],
    [(0, 9, [ACCEPT, ACCEPT])],
    [(0, 1, [ACCEPT, ACCEPT, ACCEPT])],
    [(0, 9, [5])],
    [(0, 9, [-1])],
    [(0, 10, [ACCEPT])],
    [(10, 12, [ACCEPT])],
    [(-1, 3, [ACCEPT])],
    [(-5, -3, [ACCEPT])],
    [(0, 4, [ACCEPT]), (12, 13, [ACCEPT])],
    [],
)
"""What is said of the records of a partition; each partition hears one."""


def acquired_everywhere(
    talk: Talk, partitions: int, version: int | None = None, **settings: str
) -> ShareMember:
    """A member that has all `COUNT` records of each partition."""
    member, topic_id = reader(talk, 5, partitions=partitions, version=version, **settings)
    produced(talk, topic_id, [COUNT], partitions)
    member.fetch_all(COUNT * partitions)
    return member


def come_back(member: ShareMember, wait_ms: int = 0) -> None:
    """Fetch what may be handed out, if anything."""
    member.fetch(Reading([], 5, 0), wait_ms)


@scenario(ApiKey.SHARE_ACKNOWLEDGE)
def batches_are_acknowledged(talk: Talk) -> None:
    member = acquired_everywhere(talk, len(SAID), talk.version)
    member.say(dict(enumerate(SAID)))
    come_back(member)
    member.say({0: [(0, 9, [ACCEPT])], 1: [(0, 9, [ACCEPT])]})
    member.say(dict(enumerate(SAID)))


@scenario(ApiKey.SHARE_FETCH)
def batches_are_acknowledged_with_a_fetch(talk: Talk) -> None:
    member = acquired_everywhere(talk, len(SAID), talk.version)
    member.say_with_fetch(dict(enumerate(SAID)))
    come_back(member)
    come_back(member)


@scenario(ApiKey.SHARE_ACKNOWLEDGE, "2-", cases={"may": "true", "may not": "false"})
def locks_be_renewed(talk: Talk, enabled: str) -> None:
    member = acquired_everywhere(talk, len(SAID), renew_acknowledge_enable=enabled)
    member.say(dict(enumerate(SAID)), is_renew_ack=True)
    come_back(member)


@scenario(ApiKey.SHARE_FETCH, "2-")
def locks_are_renewed_with_a_fetch(talk: Talk) -> None:
    member = acquired_everywhere(talk, len(SAID), talk.version)
    nothing = {"min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
    member.say_with_fetch(dict(enumerate(SAID)), **nothing)
    come_back(member)
    for name in ("wait_ms", "min_bytes", "max_bytes", "max_records"):
        talk.ask(member.fetching(**{**nothing, name: 1}))
    come_back(member)


@scenario(ApiKey.SHARE_ACKNOWLEDGE)
def what_is_acknowledged_is_unknown(talk: Talk) -> None:
    member = acquired_everywhere(talk, 1, talk.version)
    said = [(0, 9, [ACCEPT])]
    member.say({7: said, 0: said})
    member.say({0: said}, topic_id=b"n" * 16)
    member.say({0: [(0, 9, [RENEW])]}, topic_id=b"n" * 16)
    member.say({0: []}, topics=[])


# -- sessions ------------------------------------------------------------------------------

NO_SUCH_EPOCHS = (7, -2)


@scenario(ApiKey.SHARE_FETCH)
def fetch_session_is_refused(talk: Talk) -> None:
    member = acquired_everywhere(talk, 1, talk.version)
    said = {0: [(0, 9, [ACCEPT])]}
    for epoch in NO_SUCH_EPOCHS:
        talk.ask(member.fetching(share_session_epoch=epoch), talk.version)
    for name in ("", "x" * 37, None):
        talk.ask(member.fetching(member_id=name), talk.version)
    talk.ask(member.fetching(member_id="another"), talk.version)
    talk.ask(member.fetching(member_id="another", share_session_epoch=LEAVE), talk.version)
    for group in ("", None):
        talk.ask(member.fetching(group_id=group), talk.version)
    absent = talk.name("absent")
    talk.ask(member.fetching(A_WHILE_MS, group_id=absent, share_session_epoch=0), talk.version)
    come_back(member)
    member.say_with_fetch(said, share_session_epoch=0)
    member.say_with_fetch(said, share_session_epoch=LEAVE)
    talk.ask(member.fetching(), talk.version)


@scenario(ApiKey.SHARE_FETCH)
def fetch_session_begins_anew(talk: Talk) -> None:
    member = acquired_everywhere(talk, 1, talk.version)
    member.epoch = 0
    come_back(member)
    come_back(member)
    talk.ask(member.fetching(share_session_epoch=LEAVE), talk.version)
    member.epoch = 0
    come_back(member, A_WHILE_MS)


@scenario(ApiKey.SHARE_FETCH)
def there_is_nothing_to_fetch(talk: Talk) -> None:
    member, _ = reader(talk, partitions=2, version=talk.version)
    talk.quietly(member.fetching(A_WHILE_MS), talk.version)
    member.epoch += 1
    come_back(member)
    member.epoch = 0
    come_back(member)


@scenario(ApiKey.SHARE_FETCH)
def partitions_of_a_fetch_session_change(talk: Talk) -> None:
    request = ShareFetchRequest
    member = acquired_everywhere(talk, 2, talk.version)
    member.say({0: [(0, 9, [RELEASE])], 1: [(0, 9, [RELEASE])]})
    known = member.fetching().topics[0]
    gone = request.ForgottenTopic(topic_id=known.topic_id, partitions=[0])
    talk.ask(member.fetching(topics=[], forgotten_topics_data=[gone]), talk.version)
    member.epoch += 1
    nowhere = request.FetchPartition(partition_index=7)
    absent = request.FetchTopic(topic_id=known.topic_id, partitions=[nowhere])
    for topics in ([absent], []):
        talk.ask(member.fetching(topics=topics), talk.version)
        member.epoch += 1
    come_back(member)


@scenario(ApiKey.SHARE_ACKNOWLEDGE)
def acknowledging_session_is_refused(talk: Talk) -> None:
    member = acquired_everywhere(talk, 1, talk.version)
    said = {0: [(0, 9, [ACCEPT])]}
    for epoch in (0, *NO_SUCH_EPOCHS):
        talk.ask(member.acknowledging(said, share_session_epoch=epoch), talk.version)
    for name in ("", "x" * 37, None, "another"):
        talk.ask(member.acknowledging(said, member_id=name), talk.version)
    for group in ("", None, talk.name("absent")):
        talk.ask(member.acknowledging(said, group_id=group), talk.version)
    member.say({0: [(0, 4, [ACCEPT])]}, share_session_epoch=LEAVE)
    talk.ask(member.acknowledging(said), talk.version)
    member.epoch = 0
    come_back(member, A_WHILE_MS)


# -- groups --------------------------------------------------------------------------------

SECOND = "AAAAAAAAAAAAAAAAAAAAAg"


def group_of(talk: Talk, partitions: int = 2) -> bytes:
    """A member that reads a new topic, named as the group; returns the topic's id.

    A coordinator may hear of a topic later than others do; a group that began before is an epoch
    further. So another group goes first.
    """
    topic_id = talk.create_topic(talk.name(), partitions)
    for group in (talk.name("first"), talk.name()):
        join_share_group(talk, group, talk.name())
    return topic_id


@scenario(ApiKey.SHARE_GROUP_HEARTBEAT)
def share_member_joins_stays_and_leaves(talk: Talk) -> None:
    group_of(talk)
    joined = talk.ask(beat(talk.name(), subscribed_topic_names=[talk.name()]))
    talk.ask(beat(talk.name(), epoch=joined.member_epoch))
    talk.ask(beat(talk.name(), epoch=joined.member_epoch, subscribed_topic_names=[]))
    talk.ask(beat(talk.name(), epoch=LEAVE))
    talk.ask(beat(talk.name(), epoch=LEAVE))
    talk.ask(ShareGroupDescribeRequest(group_ids=[talk.name()]))


@scenario(ApiKey.SHARE_GROUP_HEARTBEAT)
def share_group_has_two_members(talk: Talk) -> None:
    group_of(talk, 1)  # of several, who is assigned which hangs on the order of hashes
    topics: dict[str, Any] = {"subscribed_topic_names": [talk.name()]}
    first = talk.ask(beat(talk.name(), **topics))
    second = talk.ask(beat(talk.name(), SECOND, rack_id="rack-b", **topics))
    talk.ask(beat(talk.name(), epoch=first.member_epoch))
    talk.ask(ShareGroupDescribeRequest(group_ids=[talk.name()]))
    talk.ask(beat(talk.name(), SECOND, second.member_epoch, rack_id="rack-c"))
    talk.ask(ShareGroupDescribeRequest(group_ids=[talk.name()]))


@scenario(ApiKey.SHARE_GROUP_HEARTBEAT)
def share_heartbeat_is_refused(talk: Talk) -> None:
    group_of(talk)
    topics: dict[str, Any] = {"subscribed_topic_names": [talk.name()]}
    joined = talk.ask(beat(talk.name(), **topics))
    for epoch in (joined.member_epoch + 1, joined.member_epoch - 1, -2, -3):
        talk.ask(beat(talk.name(), epoch=epoch))
    talk.ask(beat(talk.name()))
    talk.ask(beat(talk.name(), SECOND, 1))
    talk.ask(beat(talk.name(), SECOND, LEAVE))
    for member in ("", "x" * 37):
        talk.ask(beat(talk.name(), member, **topics))
    talk.ask(beat("", **topics))
    talk.ask(beat(talk.name("absent"), epoch=1))
    talk.ask(beat(talk.name("absent"), epoch=LEAVE))
    for names in ([""], ["not/a/topic"], ["absent-topic"], []):
        talk.ask(beat(talk.name("new"), subscribed_topic_names=names))
    talk.ask(beat(talk.name("new"), SECOND, rack_id="", **topics))
    join(talk, talk.name("classic"))
    talk.ask(beat(talk.name("classic"), **topics))


@scenario(ApiKey.SHARE_GROUP_DESCRIBE)
def share_group_is_described(talk: Talk) -> None:
    group_of(talk)
    group = talk.name()
    talk.ask(ShareGroupDescribeRequest(group_ids=[group, talk.name("absent"), ""]), talk.version)
    talk.ask(
        ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=True),
        talk.version,
    )
    join(talk, talk.name("classic"))
    talk.ask(ShareGroupDescribeRequest(group_ids=[talk.name("classic")]), talk.version)
    talk.ask(ShareGroupDescribeRequest(), talk.version)
