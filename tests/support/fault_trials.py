"""Trials of the table of faults: a client, a fault, and what came of it."""

from __future__ import annotations

import itertools
import time
from typing import NamedTuple

from kafka import KafkaConsumer, TopicPartition

from odradek.testing import Broker
from odradek.tools.docs.client_outcomes import (
    AIOKAFKA,
    ALL_CLIENTS,
    CLIENTS,
    FAULTS,
    FETCH_FAULTS,
    KAFKA_PYTHON,
    LATE,
    LATE_SECONDS,
    OK,
    RETRYING_CLIENTS,
    SENDS,
    TRIGGERS,
    FaultRow,
    FetchRow,
    TriggerRow,
)

from .fault_clients import GIVE_UP_MS, PRODUCERS, READ_SECONDS_MAX, READERS, FaultProducer

BEFORE, AFTER = b"before the fault", b"after the fault"
RECORDS = 3
"""So many a consumer reads."""
topic_numbers = itertools.count()


class Outcome(NamedTuple):
    """What the client saw, how often the fault struck, and which records are in the topic."""

    seen: list[str]
    strikes: int
    kept: list[int]


SILENT = ("drop", "half_open", "corrupt")
"""Faults after which a client may have to wait until it gives up."""


class SendTrial(NamedTuple):
    """A client that does not retry sends records under a fault."""

    client: str
    fault: FaultRow
    trigger: TriggerRow

    def __str__(self) -> str:
        return f"{self.client}, {self.fault.name}, {self.trigger.name}"

    @property
    def waits(self) -> int:
        """How often the client may have to wait until it gives up."""
        return sum(self.trigger.struck) * self.fault.name.startswith(SILENT)

    def expected(self) -> Outcome:
        """What the table says."""
        struck = self.trigger.struck
        seen = [self.fault.seen[self.client] if strikes else OK for strikes in struck]
        kept = [number for number in range(SENDS) if self.fault.is_kept or not struck[number]]
        return Outcome(seen, sum(struck), kept)

    def run(self, broker: Broker, give_up_ms: int = GIVE_UP_MS) -> Outcome:
        """Try it; a send that is not struck may be late, as on any machine."""
        outcome = _send(broker, self.client, self.fault, self.trigger, SENDS, give_up_ms)
        pairs = zip(outcome.seen, self.trigger.struck, strict=True)
        seen = [OK if seen == LATE and not is_struck else seen for seen, is_struck in pairs]
        return outcome._replace(seen=seen)


class RetryTrial(NamedTuple):
    """A client that retries sends a record, and its first request is struck."""

    client: str
    fault: FaultRow

    def __str__(self) -> str:
        return f"{self.client}, {self.fault.name}"

    @property
    def waits(self) -> int:
        """How often the client may have to wait until it gives up."""
        return int(self.fault.name.startswith(SILENT))

    def expected(self) -> Outcome:
        """What the table says."""
        seen, copies = self.fault.retried if self.client == AIOKAFKA else (OK, 1)
        return Outcome([seen], 1, [0] * copies)

    def run(self, broker: Broker, give_up_ms: int = GIVE_UP_MS) -> Outcome:
        """Try it."""
        outcome = _send(broker, self.client, self.fault, TRIGGERS[0], 1, give_up_ms)
        return outcome._replace(seen=[seen.replace(LATE, OK) for seen in outcome.seen])


class FetchTrial(NamedTuple):
    """A consumer reads a topic, and a request of it is struck."""

    client: str
    fault: FetchRow

    def __str__(self) -> str:
        return f"{self.client}, {self.fault.name}"

    @property
    def waits(self) -> int:
        """How often the client may have to wait until it gives up."""
        return int(self.fault.name.startswith(SILENT))

    def expected(self) -> Outcome:
        """What the table says."""
        return Outcome([self.fault.seen[self.client]], 1, list(range(RECORDS)))

    def run(self, broker: Broker, give_up_ms: int = GIVE_UP_MS) -> Outcome:
        """Try it."""
        topic = new_topic(broker)
        producer = PRODUCERS["confluent-kafka"](broker, give_up_ms)
        try:
            assert {producer.send(topic, b"%d" % number) for number in range(RECORDS)} == {OK}
            with broker.faults.during(self.fault.make(topic).once()) as fault:
                seen = READERS[self.client](broker.bootstrap_servers, topic, RECORDS, give_up_ms)
                strikes = fault.strikes
            assert producer.send(topic, AFTER) == OK
        finally:
            producer.close()
        return Outcome([seen], strikes, read_numbers(broker, topic))


Trial = SendTrial | RetryTrial | FetchTrial

SEND_TRIALS = [
    SendTrial(client, fault, trigger)
    for client in CLIENTS
    for fault in FAULTS
    for trigger in TRIGGERS
]
RETRY_TRIALS = [RetryTrial(client, fault) for fault in FAULTS for client in RETRYING_CLIENTS]
FETCH_TRIALS = [FetchTrial(client, fault) for fault in FETCH_FAULTS for client in ALL_CLIENTS]


def new_topic(broker: Broker) -> str:
    """A topic of a trial's own, with one partition."""
    topic = f"trial-{next(topic_numbers)}"
    broker.create_topic(topic)
    return topic


def read_numbers(broker: Broker, topic: str) -> list[int]:
    """The numbers in a topic, up to the record that was sent last."""
    consumer = KafkaConsumer(
        **broker.client_settings(KAFKA_PYTHON),
        consumer_timeout_ms=int(READ_SECONDS_MAX * 1000),
    )
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        values = itertools.takewhile(
            lambda value: value != AFTER, (record.value for record in consumer)
        )
        return [int(value) for value in values if value != BEFORE]
    finally:
        consumer.close()


def _send(
    broker: Broker, client: str, row: FaultRow, trigger: TriggerRow, sends: int, give_up_ms: int
) -> Outcome:
    topic = new_topic(broker)
    producer = PRODUCERS[client](broker, give_up_ms)
    try:
        assert producer.send(topic, BEFORE) == OK
        with broker.faults.during(trigger.apply(row.make(topic))) as fault:
            seen = [_timed_send(producer, topic, number) for number in range(sends)]
            strikes = fault.strikes
        assert producer.send(topic, AFTER) == OK
    finally:
        producer.close()
    return Outcome(seen, strikes, read_numbers(broker, topic))


def _timed_send(producer: FaultProducer, topic: str, number: int) -> str:
    began = time.monotonic()
    seen = producer.send(topic, b"%d" % number)
    return LATE if seen == OK and time.monotonic() - began >= LATE_SECONDS else seen
