"""Markers, and descriptions of transactions and producers: WriteTxnMarkers, DescribeTransactions,
ListTransactions, DescribeProducers."""

from __future__ import annotations

from typing import Any

from ....common.sentinels import READ_COMMITTED
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    DescribeProducersRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from ..requests import batch, numbered, production
from ..scenario import NEWEST, scenario
from ..talk import Talk
from .reading import BY_NAME, fetched
from .transactions import (
    END_OF_FIRST_GENERATION,
    LAST_VERSION_OF_CLIENTS,
    PRODUCE_AFTER_ADDING,
    PRODUCE_THAT_ADDS,
    ProducerIdentity,
    adding,
    describing,
    ending,
    initiation,
    stable_end,
    started,
    written,
)


def describing_producers(topic: str, *partitions: int) -> DescribeProducersRequest:
    """A request for who has written to partitions."""
    of_topic = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(
        topics=[of_topic(name=topic, partition_indexes=list(partitions))]
    )


# -- WriteTxnMarkers -----------------------------------------------------------------------


def marking(producer: ProducerIdentity, topics: dict[str, list[int]], **fields: Any) -> Any:
    """A request by a coordinator to write markers."""
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic
    given = {"transaction_result": True, "coordinator_epoch": 0, **fields}
    return WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                topics=[topic(name=name, partition_indexes=each) for name, each in topics.items()],
                **given,
            )
        ]
    )


@scenario(ApiKey.WRITE_TXN_MARKERS, cases={"committing": True, "aborting": False})
def marker_is_written(talk: Talk, committed: bool) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    talk.settled(written(producer, talk.name()), PRODUCE_AFTER_ADDING)
    marker = marking(producer, {talk.name(): [0]}, transaction_result=committed)
    talk.ask(marker, talk.version)
    talk.ask(fetched(talk.name(), {0: 0}, isolation_level=READ_COMMITTED), BY_NAME)
    talk.ask(marker, talk.version)


@scenario(ApiKey.WRITE_TXN_MARKERS)
def marker_is_for_partitions_that_are_not_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.ask(marking(producer, {talk.name(): [0, 4], "absent-topic": [0]}), talk.version)


@scenario(ApiKey.WRITE_TXN_MARKERS)
def marker_is_of_an_older_epoch(talk: Talk) -> None:
    talk.create_topic(talk.name())
    started(talk)
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    talk.settled(written(producer, talk.name()), PRODUCE_AFTER_ADDING)
    older = producer._replace(epoch=producer.epoch - 1)
    talk.ask(marking(older, {talk.name(): [0]}), talk.version)


@scenario(ApiKey.WRITE_TXN_MARKERS)
def no_marker_is_written(talk: Talk) -> None:
    talk.ask(WriteTxnMarkersRequest(markers=[]), talk.version)


# -- descriptions ---------------------------------------------------------------------------


@scenario(ApiKey.DESCRIBE_TRANSACTIONS)
def open_transaction_is_described(talk: Talk) -> None:
    talk.create_topic(talk.name(), 2)
    producer = started(talk)
    talk.ask(describing(talk.name()))
    talk.settled(adding(producer, {talk.name(): [1, 0]}), LAST_VERSION_OF_CLIENTS)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.DESCRIBE_TRANSACTIONS, cases={"unknown": ["absent"], "empty": [""], "none": []})
def transactions_to_describe_are(talk: Talk, transactional_ids: list[str]) -> None:
    talk.ask(describing(*transactional_ids))


@scenario(ApiKey.DESCRIBE_TRANSACTIONS)
def transaction_is_described_twice(talk: Talk) -> None:
    started(talk)
    talk.ask(describing(talk.name(), "absent", talk.name()))


def listed(talk: Talk, **filters: Any) -> None:
    """Ask for transactions, and look at the scenario's own."""
    answer = talk.ask(ListTransactionsRequest(**filters), talk.version)
    mine = [each for each in answer.transaction_states if each.transactional_id == talk.name()]
    answer.transaction_states = mine


@scenario(
    ApiKey.LIST_TRANSACTIONS,
    cases={
        "all": [],
        "empty": ["Empty"],
        "ongoing": ["Ongoing"],
        "both": ["Ongoing", "Empty"],
        "unknown": ["Asleep"],
        "unknown and known": ["Asleep", "Empty"],
        "another case": ["empty"],
    },
)
def transactions_are_listed_by_state(talk: Talk, states: list[str]) -> None:
    started(talk)
    listed(talk, state_filters=states)


@scenario(ApiKey.LIST_TRANSACTIONS, cases={"its own": 0, "another": 1_000_000})
def transactions_are_listed_by_producer(talk: Talk, shift: int) -> None:
    producer = started(talk)
    listed(talk, producer_id_filters=[producer.id + shift])


@scenario(
    ApiKey.LIST_TRANSACTIONS, "1-", cases={"unlimited": -1, "below none": -5, "an hour": 3_600_000}
)
def transactions_are_listed_by_duration(talk: Talk, duration_ms: int) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    listed(talk, duration_filter=duration_ms)


@scenario(
    ApiKey.LIST_TRANSACTIONS,
    "2-",
    cases={"all": ".*", "none": "no-such", "part": "list_", "broken": "a(b", "empty": ""},
)
def transactions_are_listed_by_pattern(talk: Talk, pattern: str) -> None:
    started(talk)
    listed(talk, transactional_id_pattern=pattern)


@scenario(ApiKey.DESCRIBE_PRODUCERS)
def producers_of_a_partition_are_described(talk: Talk) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(describing_producers(talk.name(), 0))
    answer = talk.ask(initiation(None))
    who = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
    records = batch(*numbered(3), base_sequence=0, **who)
    talk.ask(production(talk.name(), {0: records}), BY_NAME)
    talk.ask(describing_producers(talk.name(), 0, 1))


@scenario(ApiKey.DESCRIBE_PRODUCERS)
def producer_with_an_open_transaction_is_described(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    talk.settled(written(producer, talk.name()), PRODUCE_AFTER_ADDING)
    talk.ask(describing_producers(talk.name(), 0))
    talk.ask(ending(producer), END_OF_FIRST_GENERATION)
    stable_end(talk, talk.name(), 3)
    talk.ask(describing_producers(talk.name(), 0))


@scenario(ApiKey.DESCRIBE_PRODUCERS)
def producers_of_partitions_that_are_not_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(describing_producers(talk.name(), 0, 4, -1))
    talk.ask(describing_producers("absent-topic", 0))
    talk.ask(describing_producers("a/b", 0))


@scenario(ApiKey.LIST_TRANSACTIONS, NEWEST)
def transaction_that_nobody_ends_is_aborted(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk, transaction_timeout_ms=500)
    talk.settled(written(producer, talk.name()), PRODUCE_THAT_ADDS)
    stable_end(talk, talk.name(), 3)
    talk.settled(ending(producer))
