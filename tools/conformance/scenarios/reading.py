"""Fetch, with and without sessions, ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any

from ....common.sentinels import NO_EPOCH, ZERO_UUID
from ....protocol.api_keys import ApiKey
from ....protocol.messages import FetchRequest, OffsetForLeaderEpochRequest
from ..requests import BY_ID_FROM, EARLIEST, LATEST, SECOND_MS, TIMESTAMP_MS, offset_listing
from ..scenario import NEWEST, scenario
from ..talk import Talk

BYTES_MAX = 1 << 20
NO_SESSION, FIRST, FINAL = 0, 0, -1
BY_NAME = BY_ID_FROM - 1


def partition(index: int, offset: int, **fields: Any) -> FetchRequest.FetchPartition:
    """A partition to read from an offset on."""
    given = {
        "current_leader_epoch": NO_EPOCH,
        "last_fetched_epoch": NO_EPOCH,
        "log_start_offset": -1,
        "partition_max_bytes": BYTES_MAX,
        **fields,
    }
    return FetchRequest.FetchPartition(partition=index, fetch_offset=offset, **given)


def fetch(
    topic: str | bytes, partitions: list[FetchRequest.FetchPartition], **fields: Any
) -> FetchRequest:
    """A request to read from one topic, outside of sessions and without waiting."""
    named = FetchRequest.FetchTopic(partitions=partitions)
    if isinstance(topic, str):
        named.topic = topic
    else:
        named.topic_id = topic
    given = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": BYTES_MAX,
        "session_id": NO_SESSION,
        "session_epoch": FINAL,
        "topics": [named] if partitions else [],
        **fields,
    }
    return FetchRequest(**given)


def fetched(topic: str | bytes, offsets: dict[int, int], **fields: Any) -> FetchRequest:
    """The same, with offsets by partition."""
    return fetch(topic, [partition(index, at) for index, at in offsets.items()], **fields)


def filled(talk: Talk, partitions: int = 1, count: int = 5) -> Any:
    """Create the scenario's topic and append to it; its name, or id where versions use that."""
    topic_id = talk.create_topic(talk.name(), partitions)
    for index in range(partitions):
        talk.produce(talk.name(), index, count)
        talk.produce(talk.name(), index, count)
    return topic_id if talk.version >= BY_ID_FROM else talk.name()


# -- Fetch ---------------------------------------------------------------------------------


@scenario(
    ApiKey.FETCH,
    cases={"the start": 0, "within a batch": 2, "the second batch": 5, "the end": 10},
)
def records_are_read(talk: Talk, offset: int) -> None:
    talk.ask(fetched(filled(talk), {0: offset}), talk.version)


@scenario(ApiKey.FETCH, cases={"beyond the end": 11, "negative": -1})
def offset_is_out_of_range(talk: Talk, offset: int) -> None:
    talk.ask(fetched(filled(talk), {0: offset}), talk.version)


@scenario(ApiKey.FETCH)
def partitions_are_there_and_not(talk: Talk) -> None:
    talk.ask(fetched(filled(talk, 2), {0: 0, 1: 5, 2: 0, -1: 0}), talk.version)


@scenario(ApiKey.FETCH, "4-12", cases={"absent": "absent-topic", "bad": "a/b", "empty": ""})
def topic_to_read_is_not_there(talk: Talk, name: str) -> None:
    talk.ask(fetched(name, {0: 0}), talk.version)


@scenario(ApiKey.FETCH, "13-", cases={"unknown": b"\3" * 16, "zero": ZERO_UUID})
def topic_id_to_read_is_unknown(talk: Talk, topic_id: bytes) -> None:
    talk.ask(fetched(topic_id, {0: 0}), talk.version)


@scenario(ApiKey.FETCH)
def nothing_is_read(talk: Talk) -> None:
    talk.ask(fetch("nothing", []), talk.version)


@scenario(
    ApiKey.FETCH,
    "4,11,12-",
    cases={
        "one byte of a partition": (1, BYTES_MAX),
        "one byte of all": (BYTES_MAX, 1),
        "a batch and a bit": (150, BYTES_MAX),
        "nothing of a partition": (0, BYTES_MAX),
        "nothing at all": (BYTES_MAX, 0),
        "a negative number": (-1, BYTES_MAX),
    },
)
def little_may_be_read(talk: Talk, limits: tuple[int, int]) -> None:
    of_partition, of_all = limits
    topic = filled(talk, 2)
    requested = [partition(index, 0, partition_max_bytes=of_partition) for index in range(2)]
    talk.ask(fetch(topic, requested, max_bytes=of_all), talk.version)


@scenario(ApiKey.FETCH)
def reader_waits_in_vain(talk: Talk) -> None:
    talk.ask(fetched(filled(talk), {0: 10}, max_wait_ms=50, min_bytes=1), talk.version)


@scenario(ApiKey.FETCH, NEWEST)
def reader_waits_for_more_than_there_is(talk: Talk) -> None:
    talk.ask(fetched(filled(talk), {0: 0}, max_wait_ms=50, min_bytes=1 << 30))


@scenario(ApiKey.FETCH, NEWEST)
def reader_waits_with_an_error_beside_it(talk: Talk) -> None:
    talk.ask(fetched(filled(talk), {0: 10, 7: 0}, max_wait_ms=300, min_bytes=1))


@scenario(ApiKey.FETCH, "9-", cases={"the right one": 0, "a newer one": 1, "none": NO_EPOCH})
def reader_names_a_leader_epoch(talk: Talk, epoch: int) -> None:
    talk.ask(fetch(filled(talk), [partition(0, 0, current_leader_epoch=epoch)]), talk.version)


@scenario(ApiKey.FETCH, "12-", cases={"the right one": 0, "a newer one": 5, "none": NO_EPOCH})
def reader_names_the_epoch_it_read_last(talk: Talk, epoch: int) -> None:
    talk.ask(fetch(filled(talk), [partition(0, 3, last_fetched_epoch=epoch)]), talk.version)


@scenario(ApiKey.FETCH, "4,11-", cases={"uncommitted": 0, "committed": 1, "of nobody": 7})
def isolation_level_is(talk: Talk, level: int) -> None:
    talk.ask(fetched(filled(talk), {0: 0}, isolation_level=level), talk.version)


@scenario(ApiKey.FETCH, "11-")
def reader_names_its_rack(talk: Talk) -> None:
    talk.ask(fetched(filled(talk), {0: 0}, rack_id="here"), talk.version)


@scenario(ApiKey.FETCH)
def records_before_the_start_are_gone(talk: Talk) -> None:
    from .topics import cut

    topic = filled(talk)
    talk.ask(cut(talk.name(), {0: 7}))
    talk.ask(fetched(topic, {0: 7}), talk.version)
    talk.ask(fetched(topic, {0: 6}), talk.version)


@scenario(ApiKey.FETCH)
def one_partition_is_read_twice_in_one_request(talk: Talk) -> None:
    talk.ask(fetch(filled(talk), [partition(0, 0), partition(0, 5)]), talk.version)


# -- fetch sessions ------------------------------------------------------------------------


@scenario(ApiKey.FETCH, "7-")
def session_tells_only_what_is_new(talk: Talk) -> None:
    topic = filled(talk, 2)
    first = talk.ask(fetched(topic, {0: 10, 1: 10}, session_epoch=FIRST), talk.version)
    mine = {"session_id": first.session_id}
    talk.ask(fetch(topic, [], session_epoch=1, **mine), talk.version)
    talk.produce(talk.name(), 1)
    talk.ask(fetch(topic, [], session_epoch=2, **mine), talk.version)
    talk.ask(fetched(topic, {1: 11}, session_epoch=3, **mine), talk.version)
    talk.ask(fetch(topic, [], session_epoch=4, **mine), talk.version)


@scenario(ApiKey.FETCH, "7-")
def session_forgets_a_partition(talk: Talk) -> None:
    topic = filled(talk, 2)
    first = talk.ask(fetched(topic, {0: 0, 1: 0}, session_epoch=FIRST), talk.version)
    left = FetchRequest.ForgottenTopic(partitions=[0])
    if isinstance(topic, str):
        left.topic = topic
    else:
        left.topic_id = topic
    talk.ask(
        fetch(
            topic,
            [],
            session_id=first.session_id,
            session_epoch=1,
            forgotten_topics_data=[left],
        ),
        talk.version,
    )


@scenario(ApiKey.FETCH, "7-", cases={"skipped": 2, "old": 0, "negative": -2})
def session_epoch_is_wrong(talk: Talk, epoch: int) -> None:
    topic = filled(talk)
    first = talk.ask(fetched(topic, {0: 0}, session_epoch=FIRST), talk.version)
    talk.ask(fetch(topic, [], session_id=first.session_id, session_epoch=epoch), talk.version)


@scenario(ApiKey.FETCH, "7-", cases={"next": 1, "first": 0, "final": -1})
def session_is_unknown(talk: Talk, epoch: int) -> None:
    topic = filled(talk)
    talk.ask(fetched(topic, {0: 0}, session_id=123_456, session_epoch=epoch), talk.version)


@scenario(ApiKey.FETCH, "7-")
def session_is_closed_by_the_reader(talk: Talk) -> None:
    topic = filled(talk)
    first = talk.ask(fetched(topic, {0: 0}, session_epoch=FIRST), talk.version)
    mine = {"session_id": first.session_id}
    talk.ask(fetch(topic, [], session_epoch=FINAL, **mine), talk.version)
    talk.ask(fetch(topic, [], session_epoch=1, **mine), talk.version)


@scenario(ApiKey.FETCH, "7-")
def session_keeps_an_error_in_sight(talk: Talk) -> None:
    topic = filled(talk)
    first = talk.ask(fetched(topic, {0: 0, 9: 0}, session_epoch=FIRST), talk.version)
    talk.ask(fetch(topic, [], session_id=first.session_id, session_epoch=1), talk.version)


# -- ListOffsets ---------------------------------------------------------------------------

TIMES = {
    "the start": EARLIEST,
    "the end": LATEST,
    "the largest timestamp": -3,
    "the local start": -4,
    "the tiered end": -5,
    "the pending tiered start": -6,
    "an unknown mark": -7,
    "before the first record": TIMESTAMP_MS - 1,
    "a record's": TIMESTAMP_MS + 2 * SECOND_MS,
    "between two records": TIMESTAMP_MS + 2 * SECOND_MS + 1,
    "after the last record": TIMESTAMP_MS + 60 * SECOND_MS,
    "zero": 0,
}


@scenario(ApiKey.LIST_OFFSETS, cases=TIMES)
def offset_is_looked_up(talk: Talk, timestamp: int) -> None:
    filled(talk)
    talk.refused(offset_listing(talk.name(), {0: timestamp}), talk.version)


@scenario(ApiKey.LIST_OFFSETS, cases={"the start": EARLIEST, "the end": LATEST, "a time": 5})
def empty_partition_is_looked_up(talk: Talk, timestamp: int) -> None:
    talk.create_topic(talk.name())
    talk.ask(offset_listing(talk.name(), {0: timestamp}), talk.version)


@scenario(ApiKey.LIST_OFFSETS, "7-")
def empty_partition_has_no_largest_timestamp(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(offset_listing(talk.name(), {0: -3}), talk.version)


@scenario(ApiKey.LIST_OFFSETS)
def looked_up_partition_is_not_there(talk: Talk) -> None:
    filled(talk)
    talk.ask(offset_listing(talk.name(), {0: LATEST, 4: LATEST, -1: LATEST}), talk.version)
    talk.ask(offset_listing(talk.name("absent"), {0: LATEST}), talk.version)
    talk.ask(offset_listing("a/b", {0: LATEST}), talk.version)


@scenario(ApiKey.LIST_OFFSETS, "2-", cases={"committed": 1, "of nobody": 9})
def looked_up_with_isolation(talk: Talk, level: int) -> None:
    filled(talk)
    talk.ask(offset_listing(talk.name(), {0: LATEST}, isolation_level=level), talk.version)


@scenario(ApiKey.LIST_OFFSETS, "4-", cases={"the right one": 0, "newer": 3})
def looked_up_with_a_leader_epoch(talk: Talk, epoch: int) -> None:
    filled(talk)
    talk.ask(offset_listing(talk.name(), {0: LATEST}, leader_epoch=epoch), talk.version)


@scenario(ApiKey.LIST_OFFSETS, NEWEST, cases={"a broker": 1, "a debugger": -2, "of nobody": -5})
def looked_up_as(talk: Talk, replica_id: int) -> None:
    filled(talk)
    talk.ask(offset_listing(talk.name(), {0: LATEST}, replica_id=replica_id))


@scenario(ApiKey.LIST_OFFSETS)
def partition_is_looked_up_twice(talk: Talk) -> None:
    filled(talk)
    request = offset_listing(talk.name(), {0: LATEST})
    request.topics[0].partitions *= 2
    talk.ask(request, talk.version)


@scenario(ApiKey.LIST_OFFSETS)
def nothing_is_looked_up(talk: Talk) -> None:
    request = offset_listing("nothing", {})
    request.topics = []
    talk.ask(request, talk.version)


# -- OffsetForLeaderEpoch ------------------------------------------------------------------


def epoch_end(
    topic: str, partitions: dict[int, int], current: int = NO_EPOCH, replica_id: int = -2
) -> OffsetForLeaderEpochRequest:
    """A request for the ends of leader epochs, by partition."""
    of_topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    of_partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id,
        topics=[
            of_topic(
                topic=topic,
                partitions=[
                    of_partition(partition=index, leader_epoch=epoch, current_leader_epoch=current)
                    for index, epoch in partitions.items()
                ],
            )
        ],
    )


@scenario(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    cases={"the first": 0, "a later": 3, "negative": -1, "below": -2},
)
def end_of_an_epoch_is_requested(talk: Talk, epoch: int) -> None:
    filled(talk)
    talk.ask(epoch_end(talk.name(), {0: epoch}), talk.version)


@scenario(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def end_of_an_epoch_in_an_empty_partition(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(epoch_end(talk.name(), {0: 0}), talk.version)


@scenario(ApiKey.OFFSET_FOR_LEADER_EPOCH, cases={"right": 0, "newer": 2})
def current_epoch_is_named(talk: Talk, current: int) -> None:
    filled(talk)
    talk.ask(epoch_end(talk.name(), {0: 0}, current), talk.version)


@scenario(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def epochs_of_partitions_that_are_not_there(talk: Talk) -> None:
    filled(talk)
    talk.ask(epoch_end(talk.name(), {0: 0, 1: 0, -1: 0}), talk.version)
    talk.ask(epoch_end(talk.name("absent"), {0: 0}), talk.version)


@scenario(ApiKey.OFFSET_FOR_LEADER_EPOCH, cases={"a broker": 1, "a consumer": -1})
def epochs_are_requested_by(talk: Talk, replica_id: int) -> None:
    filled(talk)
    talk.ask(epoch_end(talk.name(), {0: 0}, replica_id=replica_id), talk.version)
