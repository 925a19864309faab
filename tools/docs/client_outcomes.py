"""What clients make of faults and outages: the rows are test cases, and a page of the docs.

`FAULTS` and `TRIGGERS`: a client sends `SENDS` records to a topic of its own, one after the other,
each in one request and without retries. What a send that is struck comes to stands here by client,
and whether its record is in the topic all the same; a send that is not struck succeeds. Then, for
each fault, clients that do retry send one record, and their first request is struck.

`FETCH_FAULTS`: a consumer reads a topic from its beginning, and its first request that matches is
struck. `CONNECTION_FAULTS`: a client that knows nothing yet asks for the topics there are.

An outage: a client does something before it, the same meanwhile, and again when it is over. What it
comes to meanwhile stands here, by client; before and afterwards it succeeds.

Real clients do all that in `tests/testing/test_faults_table.py` and `test_outages_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...testing.faults import kinds
from ...testing.faults.fault import Fault

KAFKA_PYTHON = "kafka-python"
CONFLUENT = "confluent-kafka"
AIOKAFKA = "aiokafka"
CLIENTS = (KAFKA_PYTHON, CONFLUENT)
IDEMPOTENT = ("kafka-python, idempotent", "confluent-kafka, idempotent")
RETRYING_CLIENTS = (AIOKAFKA, *IDEMPOTENT)
ALL_CLIENTS = (KAFKA_PYTHON, CONFLUENT, AIOKAFKA)

SENDS = 4
OK = "succeeds"
LATE = "succeeds later"
LATE_SECONDS = 0.4
"""How much later, at least."""


class FaultRow(NamedTuple):
    """A fault, and what comes of a send that it strikes.

    Attributes:
        name: of the function that makes it, and what tells it from others of the same.
        make: makes it for a topic.
        is_kept: whether the record is in the topic.
        seen: what the send comes to, by client: `OK`, `LATE`, or its name of an error.
        retried: what aiokafka's producer, which retries and is not idempotent, tells its user,
            and how often the record is in the topic then. Idempotent producers that retry
            succeed, and the record is there once.
    """

    name: str
    make: Callable[[str], Fault]
    is_kept: bool
    seen: Mapping[str, str]
    retried: tuple[str, int]


class TriggerRow(NamedTuple):
    """A trigger, and which of the sends it strikes."""

    name: str
    apply: Callable[[Fault], Fault]
    struck: tuple[bool, ...]


def _seen(kafka_python: str, confluent: str) -> Mapping[str, str]:
    return {KAFKA_PYTHON: kafka_python, CONFLUENT: confluent}


TIMED_OUT = _seen("RequestTimedOutError", "_MSG_TIMED_OUT")
ONCE = (OK, 1)
TWICE = (OK, 2)
CONNECTION_LOST = _seen("KafkaConnectionError", "_TRANSPORT")
BOTH_LATE = _seen(LATE, LATE)

FAULTS = (
    FaultRow(
        "answer",
        lambda topic: kinds.answer("Produce", "REQUEST_TIMED_OUT", topic=topic),
        is_kept=False,
        seen=_seen("RequestTimedOutError", "REQUEST_TIMED_OUT"),
        retried=ONCE,
    ),
    FaultRow(
        "answer, after_applying",
        lambda topic: kinds.answer(
            "Produce", "REQUEST_TIMED_OUT", after_applying=True, topic=topic
        ),
        is_kept=True,
        seen=_seen("RequestTimedOutError", "REQUEST_TIMED_OUT"),
        retried=TWICE,
    ),
    FaultRow(
        "delay",
        lambda topic: kinds.delay("Produce", LATE_SECONDS, topic=topic),
        is_kept=True,
        seen=BOTH_LATE,
        retried=ONCE,
    ),
    FaultRow(
        "delay_answer",
        lambda topic: kinds.delay_answer("Produce", LATE_SECONDS, topic=topic),
        is_kept=True,
        seen=BOTH_LATE,
        retried=ONCE,
    ),
    FaultRow(
        "drop",
        lambda topic: kinds.drop("Produce", topic=topic),
        is_kept=False,
        seen=TIMED_OUT,
        retried=("RequestTimedOutError", 0),
    ),
    FaultRow(
        "drop_answer",
        lambda topic: kinds.drop_answer("Produce", topic=topic),
        is_kept=True,
        seen=TIMED_OUT,
        retried=("RequestTimedOutError", 1),
    ),
    FaultRow(
        "disconnect",
        lambda topic: kinds.disconnect("Produce", topic=topic),
        is_kept=False,
        seen=CONNECTION_LOST,
        retried=ONCE,
    ),
    FaultRow(
        "lose_answer",
        lambda topic: kinds.lose_answer("Produce", topic=topic),
        is_kept=True,
        seen=CONNECTION_LOST,
        retried=TWICE,
    ),
    FaultRow(
        "truncate_answer",
        lambda topic: kinds.truncate_answer("Produce", size=6, topic=topic),
        is_kept=True,
        seen=CONNECTION_LOST,
        retried=TWICE,
    ),
    FaultRow(
        "corrupt_answer, of its correlation id",
        lambda topic: kinds.corrupt_answer("Produce", byte=7, topic=topic),
        is_kept=True,
        seen=_seen("CorrelationIdError", "_MSG_TIMED_OUT"),
        retried=TWICE,
    ),
    FaultRow(
        "throttle",
        lambda topic: kinds.throttle("Produce", bytes_per_second=200, topic=topic),
        is_kept=True,
        seen=BOTH_LATE,
        retried=ONCE,
    ),
    FaultRow(
        "half_open",
        lambda topic: kinds.half_open("Produce", topic=topic),
        is_kept=False,
        seen=TIMED_OUT,
        retried=("RequestTimedOutError", 0),
    ),
)
"""The faults of requests and answers, as a Produce meets them."""

TRIGGERS = (
    TriggerRow("once()", lambda fault: fault.once(), (True, False, False, False)),
    TriggerRow("on(2)", lambda fault: fault.on(2), (False, True, False, False)),
    TriggerRow("times(2)", lambda fault: fault.times(2), (True, True, False, False)),
    TriggerRow("after(2)", lambda fault: fault.after(2), (False, False, True, True)),
    TriggerRow("every(2)", lambda fault: fault.every(2), (False, True, False, True)),
    TriggerRow(
        "with_probability(0.5, seed=3)",
        lambda fault: fault.with_probability(0.5, seed=3),
        (True, False, True, False),
    ),
    TriggerRow("until_lifted()", lambda fault: fault.until_lifted(), (True, True, True, True)),
)
"""When they strike; what is left is `until_lifted()`."""


class FetchRow(NamedTuple):
    """A fault that a consumer meets once, and what it tells its user.

    Attributes:
        name: of the function that makes it, and what tells it from others of the same.
        make: makes it for a topic.
        seen: by client: `OK` if all records came, or its name of an error.
    """

    name: str
    make: Callable[[str], Fault]
    seen: Mapping[str, str]


ALL_RECORDS = dict.fromkeys(ALL_CLIENTS, OK)

FETCH_FAULTS = (
    FetchRow(
        "answer NOT_LEADER_OR_FOLLOWER",
        lambda topic: kinds.answer("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=topic),
        ALL_RECORDS,
    ),
    FetchRow(
        "answer TOPIC_AUTHORIZATION_FAILED",
        lambda topic: kinds.answer("Fetch", "TOPIC_AUTHORIZATION_FAILED", topic=topic),
        {
            KAFKA_PYTHON: "TopicAuthorizationFailedError",
            CONFLUENT: "TOPIC_AUTHORIZATION_FAILED",
            AIOKAFKA: "TopicAuthorizationFailedError",
        },
    ),
    FetchRow(
        "answer UNKNOWN_SERVER_ERROR",
        lambda topic: kinds.answer("Fetch", "UNKNOWN_SERVER_ERROR", topic=topic),
        {KAFKA_PYTHON: "UnknownError", CONFLUENT: "UNKNOWN", AIOKAFKA: OK},
    ),
    FetchRow(
        "answer OFFSET_OUT_OF_RANGE",
        lambda topic: kinds.answer("Fetch", "OFFSET_OUT_OF_RANGE", topic=topic),
        ALL_RECORDS,
    ),
    FetchRow(
        "answer to Metadata LEADER_NOT_AVAILABLE",
        lambda topic: kinds.answer("Metadata", "LEADER_NOT_AVAILABLE", topic=topic),
        ALL_RECORDS,
    ),
    FetchRow("delay", lambda topic: kinds.delay("Fetch", 0.2, topic=topic), ALL_RECORDS),
    FetchRow("drop", lambda topic: kinds.drop("Fetch", topic=topic), ALL_RECORDS),
    FetchRow("disconnect", lambda topic: kinds.disconnect("Fetch", topic=topic), ALL_RECORDS),
    FetchRow("lose_answer", lambda topic: kinds.lose_answer("Fetch", topic=topic), ALL_RECORDS),
    FetchRow(
        "truncate_answer", lambda topic: kinds.truncate_answer("Fetch", topic=topic), ALL_RECORDS
    ),
    FetchRow(
        "corrupt_answer, of its correlation id",
        lambda topic: kinds.corrupt_answer("Fetch", byte=7, topic=topic),
        ALL_RECORDS,
    ),
    FetchRow(
        "corrupt_records",
        lambda topic: kinds.corrupt_records("Fetch", topic=topic),
        {
            KAFKA_PYTHON: "CorruptRecordError",
            CONFLUENT: "_BAD_MSG",
            AIOKAFKA: "CorruptRecordException",
        },
    ),
    FetchRow(
        "throttle",
        lambda topic: kinds.throttle("Fetch", bytes_per_second=1000, topic=topic),
        ALL_RECORDS,
    ),
    FetchRow("half_open", lambda topic: kinds.half_open("Fetch", topic=topic), ALL_RECORDS),
)
"""What a consumer meets that reads a topic; confluent-kafka's is set to check checksums
(`check.crcs`), which the others do by default."""


class ConnectionRow(NamedTuple):
    """`refuse_connections`, as a client meets it that knows only the broker's address."""

    name: str
    fault: Fault
    seen: Mapping[str, str]


CONNECTION_FAULTS = (
    ConnectionRow(
        "once()",
        kinds.refuse_connections().once(),
        {KAFKA_PYTHON: OK, CONFLUENT: OK, AIOKAFKA: "KafkaConnectionError"},
    ),
    ConnectionRow(
        "times(2)",
        kinds.refuse_connections().times(2),
        {KAFKA_PYTHON: OK, CONFLUENT: OK, AIOKAFKA: "KafkaConnectionError"},
    ),
    ConnectionRow(
        "until_lifted()",
        kinds.refuse_connections(),
        {
            KAFKA_PYTHON: "KafkaTimeoutError",
            CONFLUENT: "_TRANSPORT",
            AIOKAFKA: "KafkaConnectionError",
        },
    ),
)
"""aiokafka tries each address it was given once; the others go on trying for a while."""


# -- outages ---------------------------------------------------------------------------------------


class OutageRow(NamedTuple):
    """An outage, and what comes of what a client does meanwhile.

    Attributes:
        name: of the outage.
        how: what a test says.
        brokers: how many brokers there are.
        is_kept: whether the record that was sent meanwhile can be read afterwards.
        seen: what the client sees, by client: `OK`, or its name of an error.
    """

    name: str
    how: str
    brokers: int
    is_kept: bool
    seen: Mapping[str, str]


BOTH_SUCCEED = dict.fromkeys(IDEMPOTENT, OK)

SENDING_OUTAGES = (
    OutageRow(
        "the broker is frozen",
        "with broker.frozen(): ...",
        1,
        True,
        _seen("RequestTimedOutError", "_MSG_TIMED_OUT"),
    ),
    OutageRow(
        "its disk is full",
        "with broker.full_disk(): ...",
        1,
        False,
        _seen("KafkaStorageError", "KAFKA_STORAGE_ERROR"),
    ),
    OutageRow(
        "its clock is two hours behind",
        "broker.set_clock_wrong(-7200)",
        1,
        False,
        _seen("InvalidTimestampError", "INVALID_TIMESTAMP"),
    ),
)
"""A producer that does not retry sends a record. A frozen broker has it, and answers too late."""

RETRYING_OUTAGES = (
    OutageRow("killed and started", "broker.kill(); broker.start()", 1, True, BOTH_SUCCEED),
    OutageRow("the broker is frozen", "with broker.frozen(): ...", 1, True, BOTH_SUCCEED),
    OutageRow("its disk is full", "with broker.full_disk(): ...", 1, True, BOTH_SUCCEED),
    OutageRow("another broker leads", "cluster.move_leader(topic, 0, to=2)", 2, True, BOTH_SUCCEED),
    OutageRow("the leader is killed", "cluster.leader_of(topic, 0).kill()", 2, True, BOTH_SUCCEED),
)
"""An idempotent producer, which retries, sends a record: it is there, and once."""

COMMITTING_OUTAGES = (
    OutageRow(
        "its session expires",
        "broker.expire_session(group)",
        1,
        False,
        _seen("CommitFailedError", "UNKNOWN_MEMBER_ID"),
    ),
    OutageRow("the group rebalances", "broker.force_rebalance(group)", 1, True, _seen(OK, OK)),
)
"""A consumer commits what it has read; `is_kept` is the committed offset."""

TRANSACTION_OUTAGES = (
    OutageRow(
        "the producer is fenced",
        "broker.fence_producer(transactional_id)",
        1,
        False,
        _seen("ProducerFencedError", "_FENCED"),
    ),
    OutageRow(
        "the transaction expires",
        "broker.expire_transaction(transactional_id)",
        1,
        False,
        _seen("ProducerFencedError", "_FENCED"),
    ),
)
"""A producer commits its transaction; afterwards another one of that id does."""

SHARING_OUTAGES = (
    OutageRow(
        "the lock of its record expires",
        "broker.expire_lock(group, topic, partition)",
        1,
        False,
        {CONFLUENT: "INVALID_RECORD_STATE"},
    ),
)
"""A member of a share group acknowledges a record; `is_kept` is the acknowledgement."""
