"""Transactions of both generations, and their descriptions, and those of producers."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....common.sentinels import NO_PRODUCER_EPOCH, READ_COMMITTED
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from ..requests import LATEST, batch, numbered, offset_listing, production
from ..scenario import scenario
from ..talk import TRANSACTION, Talk
from .reading import BY_NAME, fetched

TRANSACTION_TIMEOUT_MS = 60_000
PRODUCE_AFTER_ADDING, PRODUCE_THAT_ADDS = 11, 12
END_OF_FIRST_GENERATION, END_OF_SECOND = 4, 5
LAST_VERSION_OF_CLIENTS = 3
"""Of AddPartitionsToTxn; later ones are sent by brokers."""


class ProducerIdentity(NamedTuple):
    """A transactional producer."""

    transactional_id: str
    id: int
    epoch: int

    def fields(self) -> dict[str, Any]:
        """What its requests say that they come from."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.id,
            "producer_epoch": self.epoch,
        }


def initiation(transactional_id: str | None, **fields: Any) -> InitProducerIdRequest:
    """A request for a producer id."""
    given = {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS, **fields}
    return InitProducerIdRequest(transactional_id=transactional_id, **given)


def started(talk: Talk, **fields: Any) -> ProducerIdentity:
    """A producer with the scenario's name as its transactional id."""
    talk.wait_for_coordinator(talk.name(), TRANSACTION)
    answer = talk.settled(initiation(talk.name(), **fields))
    return ProducerIdentity(talk.name(), answer.producer_id, answer.producer_epoch)


def adding(producer: ProducerIdentity, topics: dict[str, list[int]]) -> AddPartitionsToTxnRequest:
    """A request by a client to take partitions into a transaction."""
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[topic(name=name, partitions=each) for name, each in topics.items()],
    )


def adding_as_broker(
    producer: ProducerIdentity, topics: dict[str, list[int]], *, verify_only: bool
) -> AddPartitionsToTxnRequest:
    """The same as brokers send it."""
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        verify_only=verify_only,
        topics=[topic(name=name, partitions=each) for name, each in topics.items()],
        **producer.fields(),
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def ending(producer: ProducerIdentity, *, committed: bool = True) -> EndTxnRequest:
    """A request to end a transaction."""
    return EndTxnRequest(committed=committed, **producer.fields())


def written(producer: ProducerIdentity, topic: str, sequence: int = 0, count: int = 2) -> Any:
    """A request to append to partition 0 in a transaction."""
    records = batch(
        *numbered(count),
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return production(topic, {0: records}, transactional_id=producer.transactional_id)


def describing(*transactional_ids: str) -> DescribeTransactionsRequest:
    """A request for what is known of transactions."""
    return DescribeTransactionsRequest(transactional_ids=list(transactional_ids))


def is_at_rest(answer: Any) -> bool:
    """Whether nothing of the transaction described is on its way."""
    return not str(answer.transaction_states[0].transaction_state).startswith("Prepare")


def stable_end(talk: Talk, topic: str, end: int) -> None:
    """Wait until readers of committed records see a partition up to its end."""
    talk.settled(
        offset_listing(topic, {0: LATEST}, isolation_level=READ_COMMITTED),
        until=lambda answer: bool(answer.topics[0].partitions[0].offset == end),
    )


# -- InitProducerId ------------------------------------------------------------------------


@scenario(ApiKey.INIT_PRODUCER_ID)
def producer_without_transactions_gets_an_id(talk: Talk) -> None:
    talk.ask(initiation(None), talk.version)
    talk.ask(initiation(None, transaction_timeout_ms=-1), talk.version)


@scenario(ApiKey.INIT_PRODUCER_ID)
def transactional_producer_gets_an_id(talk: Talk) -> None:
    talk.wait_for_coordinator(talk.name(), TRANSACTION)
    talk.settled(initiation(talk.name()), talk.version)
    talk.settled(initiation(talk.name()), talk.version)
    talk.ask(describing(talk.name()))


@scenario(
    ApiKey.INIT_PRODUCER_ID,
    cases={"zero": 0, "negative": -1, "too long": 900_001, "the longest": 900_000},
)
def transaction_timeout_is(talk: Talk, timeout_ms: int) -> None:
    talk.ask(initiation(talk.name(), transaction_timeout_ms=timeout_ms), talk.version)


@scenario(ApiKey.INIT_PRODUCER_ID)
def transactional_id_is_empty(talk: Talk) -> None:
    talk.ask(initiation(""), talk.version)


@scenario(
    ApiKey.INIT_PRODUCER_ID,
    "3-",
    cases={
        "its own": (0, 0),
        "an older epoch": (0, -1),
        "a later epoch": (0, 1),
        "another id": (1_000_000, 0),
        "an id without an epoch": (0, -99),
    },
)
def producer_asks_again_with(talk: Talk, case: tuple[int, int]) -> None:
    producer = started(talk)
    id_shift, epoch_shift = case
    epoch = -1 if epoch_shift == -99 else producer.epoch + epoch_shift
    fields = {"producer_id": producer.id + id_shift, "producer_epoch": epoch}
    talk.ask(initiation(talk.name(), **fields), talk.version)


@scenario(ApiKey.INIT_PRODUCER_ID, "3-")
def unknown_producer_asks_again(talk: Talk) -> None:
    talk.ask(initiation(talk.name(), producer_id=77_777, producer_epoch=3), talk.version)
    talk.ask(initiation(None, producer_id=77_777, producer_epoch=3), talk.version)


@scenario(ApiKey.INIT_PRODUCER_ID)
def new_producer_aborts_the_old_ones_transaction(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(written(producer, talk.name()), PRODUCE_THAT_ADDS)
    talk.settled(initiation(talk.name()), talk.version)
    stable_end(talk, talk.name(), 3)
    talk.settled(written(producer, talk.name(), 2), PRODUCE_THAT_ADDS)
    talk.ask(fetched(talk.name(), {0: 0}, isolation_level=READ_COMMITTED), BY_NAME)


# -- AddPartitionsToTxn --------------------------------------------------------------------


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "0-3")
def partitions_are_taken_in(talk: Talk) -> None:
    talk.create_topic(talk.name(), 2)
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0, 1]}), talk.version)
    talk.settled(adding(producer, {talk.name(): [1]}), talk.version)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "0-3")
def partitions_to_take_in_are_not_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.ask(adding(producer, {talk.name(): [0, 5], "absent-topic": [0]}), talk.version)
    talk.ask(adding(producer, {}), talk.version)


WRONG = {
    "an older epoch": (0, -1),
    "a later epoch": (0, 1),
    "another id": (1_000_000, 0),
    "no epoch": (0, -99),
}
"""Producers that are not quite the one that is there: shifts of id and epoch."""


def wrong(talk: Talk, shift: tuple[int, int]) -> ProducerIdentity:
    """A producer that is not quite the one that is there, whose epoch is above zero."""
    started(talk)
    producer = started(talk)
    epoch = NO_PRODUCER_EPOCH if shift[1] == -99 else producer.epoch + shift[1]
    return producer._replace(id=producer.id + shift[0], epoch=epoch)


def stranger(talk: Talk) -> ProducerIdentity:
    """A producer that the coordinator never heard of."""
    talk.wait_for_coordinator(talk.name(), TRANSACTION)
    return ProducerIdentity(talk.name("stranger"), 99_999, 0)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "0-3", cases=WRONG)
def partitions_are_taken_in_by(talk: Talk, shift: tuple[int, int]) -> None:
    talk.create_topic(talk.name())
    talk.ask(adding(wrong(talk, shift), {talk.name(): [0]}), talk.version)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "0-3")
def partitions_are_taken_in_by_a_stranger(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(adding(stranger(talk), {talk.name(): [0]}), talk.version)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "4-", cases={"verified": True, "taken in": False})
def broker_has_partitions(talk: Talk, verify_only: bool) -> None:
    talk.create_topic(talk.name(), 2)
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    requested = adding_as_broker(producer, {talk.name(): [0, 1]}, verify_only=verify_only)
    talk.settled(requested, talk.version)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "4-", cases=WRONG)
def broker_verifies_for(talk: Talk, shift: tuple[int, int]) -> None:
    talk.create_topic(talk.name())
    requested = adding_as_broker(wrong(talk, shift), {talk.name(): [0]}, verify_only=True)
    talk.ask(requested, talk.version)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "4-")
def broker_verifies_for_a_stranger(talk: Talk) -> None:
    talk.create_topic(talk.name())
    requested = adding_as_broker(stranger(talk), {talk.name(): [0]}, verify_only=True)
    talk.ask(requested, talk.version)


# -- EndTxn --------------------------------------------------------------------------------


@scenario(ApiKey.END_TXN, "0-4", cases={"committed": True, "aborted": False})
def transaction_is(talk: Talk, committed: bool) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    talk.settled(written(producer, talk.name()), PRODUCE_AFTER_ADDING)
    talk.ask(ending(producer, committed=committed), talk.version)
    stable_end(talk, talk.name(), 3)
    talk.ask(fetched(talk.name(), {0: 0}, isolation_level=READ_COMMITTED), BY_NAME)
    talk.settled(ending(producer, committed=committed), talk.version)
    talk.ask(ending(producer, committed=not committed), talk.version)


@scenario(ApiKey.END_TXN, "5-", cases={"committed": True, "aborted": False})
def transaction_of_the_second_generation_is(talk: Talk, committed: bool) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(written(producer, talk.name()), PRODUCE_THAT_ADDS)
    answer = talk.ask(ending(producer, committed=committed), talk.version)
    stable_end(talk, talk.name(), 3)
    talk.ask(fetched(talk.name(), {0: 0}, isolation_level=READ_COMMITTED), BY_NAME)
    talk.settled(ending(producer, committed=committed), talk.version)
    later = producer._replace(id=answer.producer_id, epoch=answer.producer_epoch)
    talk.settled(written(later, talk.name()), PRODUCE_THAT_ADDS)
    talk.settled(written(producer, talk.name(), 2), PRODUCE_THAT_ADDS)
    talk.settled(ending(later, committed=not committed), talk.version)


@scenario(ApiKey.END_TXN, cases={"committed": True, "aborted": False})
def transaction_without_partitions_is(talk: Talk, committed: bool) -> None:
    producer = started(talk)
    talk.ask(ending(producer, committed=committed), talk.version)
    talk.settled(describing(talk.name()), until=is_at_rest)


@scenario(ApiKey.END_TXN, cases=WRONG)
def transaction_is_ended_by(talk: Talk, shift: tuple[int, int]) -> None:
    talk.ask(ending(wrong(talk, shift)), talk.version)


@scenario(ApiKey.END_TXN)
def transaction_is_ended_by_a_stranger(talk: Talk) -> None:
    talk.ask(ending(stranger(talk)), talk.version)


# -- Produce within transactions -----------------------------------------------------------


@scenario(ApiKey.PRODUCE, "3,11")
def partition_was_not_taken_in(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(written(producer, talk.name()), talk.version)


@scenario(ApiKey.PRODUCE, "11,12")
def readers_of_committed_records_wait(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    talk.settled(written(producer, talk.name()), talk.version)
    talk.produce(talk.name())
    talk.ask(fetched(talk.name(), {0: 0}, isolation_level=READ_COMMITTED), BY_NAME)
    talk.ask(fetched(talk.name(), {0: 0}), BY_NAME)
    talk.ask(offset_listing(talk.name(), {0: LATEST}, isolation_level=READ_COMMITTED))


@scenario(ApiKey.PRODUCE, "11,12", cases=WRONG)
def transactional_batch_comes_from(talk: Talk, shift: tuple[int, int]) -> None:
    talk.create_topic(talk.name())
    talk.settled(written(wrong(talk, shift), talk.name()), talk.version)


@scenario(ApiKey.PRODUCE, "11,12")
def batch_outside_of_a_transaction_comes_within_it(talk: Talk) -> None:
    talk.create_topic(talk.name())
    producer = started(talk)
    talk.settled(adding(producer, {talk.name(): [0]}), LAST_VERSION_OF_CLIENTS)
    talk.settled(written(producer, talk.name()), talk.version)
    who = {"producer_id": producer.id, "producer_epoch": producer.epoch, "base_sequence": 2}
    talk.ask(production(talk.name(), {0: batch(b"v", **who)}), talk.version)
