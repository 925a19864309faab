"""What Kafka 4.3.1 answers to changes of settings: every row was observed from it.

A row is one IncrementalAlterConfigs of one resource, asked of a broker whose settings are those
of its start, with what it answers. Where odradek is meant to answer something else, that stands
last in the row, and docs/differences.md says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from odradek.common.errors import ErrorCode

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

NONE = ErrorCode.NONE
UNKNOWN_SERVER_ERROR = ErrorCode.UNKNOWN_SERVER_ERROR
UNKNOWN_TOPIC_OR_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
INVALID_TOPIC_EXCEPTION = ErrorCode.INVALID_TOPIC_EXCEPTION
INVALID_CONFIG = ErrorCode.INVALID_CONFIG
INVALID_REQUEST = ErrorCode.INVALID_REQUEST

OWN = "<own>"
"""Stands for the id of the broker that is asked."""
TOPIC_NAME = "<topic>"
"""Stands for the name of a topic that is there."""

Change = tuple[str, int] | tuple[str, int, str | None]
"""A setting, an operation and its value."""


class Case(NamedTuple):
    """A change and its answer, and odradek's where it is another."""

    kind: int
    name: str
    changes: Sequence[Change]
    kafka: ErrorCode
    here: ErrorCode | None = None

    @property
    def odradek(self) -> ErrorCode:
        """What odradek answers."""
        return self.kafka if self.here is None else self.here


TOPIC_CASES: list[Case] = [
    Case(TOPIC, TOPIC_NAME, [("retention.ms", SET, "6000")], NONE),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", SET, "soon")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", SET, "-2")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", SET, "")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", SET, None)], INVALID_REQUEST),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", DELETE)], NONE),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", DELETE, "x")], NONE),
    Case(TOPIC, TOPIC_NAME, [("nope", SET, "5")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("nope", DELETE)], NONE),
    Case(TOPIC, TOPIC_NAME, [("nope", APPEND, "5")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", APPEND, "compact")], NONE),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", APPEND, "compact,delete")], NONE),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", SUBTRACT, "delete")], NONE),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", SUBTRACT, "compact")], NONE),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", SET, "")], NONE),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", SET, "shred")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("cleanup.policy", DELETE)], NONE),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", APPEND, "5")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", SUBTRACT, "5")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", 9, "5")], UNKNOWN_SERVER_ERROR, INVALID_REQUEST),
    Case(TOPIC, TOPIC_NAME, [("retention.ms", -1, "5")], UNKNOWN_SERVER_ERROR, INVALID_REQUEST),
    Case(
        TOPIC, TOPIC_NAME, [("retention.ms", SET, "5"), ("retention.ms", DELETE)], INVALID_REQUEST
    ),
    Case(TOPIC, TOPIC_NAME, [], NONE),
    Case(TOPIC, "absent", [("retention.ms", SET, "5")], UNKNOWN_TOPIC_OR_PARTITION),
    Case(TOPIC, "absent", [], UNKNOWN_TOPIC_OR_PARTITION),
    Case(TOPIC, "absent", [("nope", SET, "5")], INVALID_CONFIG),
    Case(TOPIC, "", [("retention.ms", SET, "5")], INVALID_REQUEST),
    Case(TOPIC, "a b", [("retention.ms", SET, "5")], INVALID_TOPIC_EXCEPTION),
    Case(TOPIC, TOPIC_NAME, [("segment.bytes", SET, "100")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("min.insync.replicas", SET, "0")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("min.insync.replicas", SET, "5")], NONE),
    Case(TOPIC, TOPIC_NAME, [("min.insync.replicas", DELETE)], NONE),
    Case(
        TOPIC,
        TOPIC_NAME,
        [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
        INVALID_CONFIG,
    ),
    Case(TOPIC, TOPIC_NAME, [("remote.storage.enable", SET, "true")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("message.format.version", SET, "2.0")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("message.timestamp.type", SET, "LogAppendTime")], NONE),
    Case(TOPIC, TOPIC_NAME, [("leader.replication.throttled.replicas", SET, "*")], NONE),
    Case(
        TOPIC,
        TOPIC_NAME,
        [
            ("leader.replication.throttled.replicas", SET, "0:1"),
            ("follower.replication.throttled.replicas", APPEND, "0:1,1:2"),
        ],
        NONE,
    ),
    Case(TOPIC, TOPIC_NAME, [("leader.replication.throttled.replicas", SET, "x")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("preallocate", SET, "maybe")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("compression.type", SET, "brotli")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("segment.bytes", SET, "99999999999")], INVALID_CONFIG),
    Case(TOPIC, TOPIC_NAME, [("log.retention.ms", SET, "5")], INVALID_CONFIG),
]

BROKER_CASES: list[Case] = [
    Case(BROKER, OWN, [("log.retention.ms", SET, "5")], NONE),
    Case(BROKER, OWN, [("log.retention.ms", DELETE)], NONE),
    Case(BROKER, "", [("log.retention.ms", SET, "6")], NONE),
    Case(BROKER, "", [("log.retention.ms", DELETE)], NONE),
    Case(BROKER, "", [("message.max.bytes", SET, "2000000")], NONE),
    Case(BROKER, "", [("message.max.bytes", SET, "-1")], INVALID_REQUEST),
    Case(BROKER, "", [("message.max.bytes", SET, "x")], INVALID_REQUEST),
    Case(BROKER, "", [("message.max.bytes", SET, None)], INVALID_REQUEST),
    Case(BROKER, "", [("message.max.bytes", SET, "")], INVALID_REQUEST),
    Case(BROKER, "", [("message.max.bytes", APPEND, "5")], INVALID_CONFIG),
    Case(BROKER, "", [("auto.create.topics.enable", SET, "false")], INVALID_REQUEST),
    Case(BROKER, OWN, [("auto.create.topics.enable", SET, "false")], INVALID_REQUEST),
    Case(BROKER, OWN, [("auto.create.topics.enable", DELETE)], NONE),
    Case(BROKER, OWN, [("broker.id", SET, "5")], INVALID_REQUEST),
    Case(BROKER, OWN, [("log.retention.hours", SET, "5")], INVALID_REQUEST),
    Case(BROKER, OWN, [("log.dirs", APPEND, "/x")], INVALID_REQUEST),
    Case(BROKER, "7", [("log.retention.ms", SET, "5")], INVALID_REQUEST),
    Case(BROKER, "x", [("log.retention.ms", SET, "5")], INVALID_REQUEST),
    Case(BROKER, "-1", [("log.retention.ms", SET, "5")], INVALID_REQUEST),
    Case(BROKER, f" {OWN}", [("log.retention.ms", SET, "5")], INVALID_REQUEST),
    Case(BROKER, f"0{OWN}", [("log.retention.ms", SET, "5")], NONE),
    Case(BROKER, OWN, [], NONE),
    Case(BROKER, OWN, [("some.unknown", SET, "5")], NONE),
    Case(BROKER, OWN, [("some.unknown", APPEND, "5")], INVALID_CONFIG),
    Case(BROKER, OWN, [("some.unknown", DELETE)], NONE),
    Case(BROKER, "", [("some.unknown", SET, "5")], NONE),
    Case(BROKER, "", [("some.unknown", DELETE)], NONE),
    Case(BROKER, OWN, [("log.cleaner.threads", SET, "2")], NONE),
    Case(BROKER, OWN, [("log.cleaner.threads", SET, "0")], INVALID_REQUEST),
    Case(BROKER, OWN, [("log.cleaner.threads", SET, "9")], INVALID_REQUEST),
    Case(BROKER, OWN, [("num.io.threads", SET, "16")], NONE),
    Case(BROKER, OWN, [("num.io.threads", SET, "33")], INVALID_REQUEST),
    Case(BROKER, OWN, [("num.io.threads", SET, "0")], INVALID_REQUEST),
    Case(BROKER, OWN, [("num.network.threads", SET, "13")], INVALID_REQUEST),
    Case(BROKER, OWN, [("num.replica.fetchers", SET, "2")], NONE),
    Case(BROKER, OWN, [("num.replica.fetchers", SET, "5")], INVALID_REQUEST),
    Case(BROKER, OWN, [("ssl.keystore.location", SET, "/x")], INVALID_REQUEST),
    Case(BROKER, "", [("ssl.keystore.location", SET, "/x")], INVALID_REQUEST),
    Case(BROKER, OWN, [("ssl.client.auth", SET, "required")], NONE),
    Case(BROKER, "", [("ssl.client.auth", SET, "required")], INVALID_REQUEST),
    Case(BROKER, OWN, [("listener.name.plaintext.ssl.keystore.location", SET, "/x")], NONE),
    Case(
        BROKER,
        OWN,
        [("listener.name.plaintext.ssl.keystore.password", SET, "secret")],
        NONE,
        INVALID_REQUEST,
    ),
    Case(
        BROKER,
        "",
        [("listener.name.plaintext.ssl.keystore.password", SET, "secret")],
        INVALID_REQUEST,
    ),
    Case(BROKER, "", [("listener.name.plaintext.max.connections", SET, "50")], NONE),
    Case(BROKER, OWN, [("listener.name.plaintext.max.connections", SET, "x")], INVALID_REQUEST),
    Case(BROKER, OWN, [("listener.name.plaintext.max.connections", SET, "50")], NONE),
    Case(BROKER, OWN, [("listener.name.plaintext.num.partitions", SET, "50")], NONE),
    Case(BROKER, OWN, [("max.connections.per.ip", SET, "0")], INVALID_REQUEST),
    Case(BROKER, OWN, [("max.connections.per.ip", SET, "1000")], NONE),
    Case(BROKER, OWN, [("max.connections.per.ip.overrides", SET, "127.0.0.1:5x")], INVALID_REQUEST),
    Case(BROKER, OWN, [("max.connections.per.ip.overrides", SET, "127.0.0.1")], INVALID_REQUEST),
    Case(BROKER, OWN, [("max.connections.per.ip.overrides", SET, "127.0.0.1:500")], NONE),
    Case(BROKER, OWN, [("listeners", SET, "what")], INVALID_REQUEST),
    Case(
        BROKER,
        "",
        [("listeners", SET, "PLAINTEXT://127.0.0.1:29192,CONTROLLER://127.0.0.1:29193")],
        INVALID_REQUEST,
    ),
    Case(BROKER, OWN, [("log.cleanup.policy", APPEND, "compact")], NONE),
    Case(BROKER, OWN, [("log.cleanup.policy", SUBTRACT, "delete")], NONE),
    Case(BROKER, OWN, [("log.cleanup.policy", SUBTRACT, "compact")], NONE),
    Case(
        BROKER,
        OWN,
        [
            ("log.cleaner.min.compaction.lag.ms", SET, "10"),
            ("log.cleaner.max.compaction.lag.ms", SET, "5"),
        ],
        NONE,
        INVALID_REQUEST,
    ),
    Case(BROKER, OWN, [("log.retention.ms", SET, "0")], INVALID_REQUEST),
    Case(BROKER, OWN, [("log.retention.ms", SET, "-1")], NONE),
    Case(BROKER, OWN, [("log.retention.ms", SET, "-5")], NONE),
    Case(BROKER, OWN, [("log.retention.ms", DELETE)], NONE),
    Case(BROKER, OWN, [("log.roll.ms", SET, "0")], INVALID_REQUEST),
    Case(BROKER, OWN, [("log.segment.bytes", SET, "100")], INVALID_REQUEST),
    Case(BROKER, OWN, [("min.insync.replicas", SET, "1")], INVALID_CONFIG, NONE),
    Case(BROKER, "", [("min.insync.replicas", SET, "1")], NONE),
    Case(BROKER, OWN, [("leader.replication.throttled.rate", SET, "5")], NONE),
    Case(BROKER, OWN, [("leader.replication.throttled.rate", SET, "-5")], INVALID_REQUEST),
    Case(BROKER, "", [("follower.replication.throttled.rate", SET, "5")], NONE),
    Case(
        BROKER, OWN, [("replica.alter.log.dirs.io.max.bytes.per.second", SET, "x")], INVALID_REQUEST
    ),
    Case(BROKER, OWN, [("producer.id.expiration.ms", SET, "1000")], NONE),
    Case(BROKER, OWN, [("producer.id.expiration.ms", SET, "0")], INVALID_REQUEST),
    Case(BROKER, OWN, [("cordoned.log.dirs", SET, "/nowhere")], INVALID_REQUEST),
    Case(BROKER, OWN, [("cordoned.log.dirs", SET, "*")], NONE),
    Case(BROKER, OWN, [("metric.reporters", SET, "no.such.Class")], INVALID_REQUEST),
    Case(BROKER, OWN, [("group.consumer.assignment.interval.ms", SET, "2000")], NONE),
    Case(BROKER, OWN, [("group.consumer.assignment.interval.ms", SET, "20000")], INVALID_REQUEST),
    Case(BROKER, OWN, [("group.coordinator.cached.buffer.max.bytes", SET, "5")], INVALID_REQUEST),
    Case(BROKER, OWN, [("unclean.leader.election.enable", SET, "true")], NONE),
    Case(BROKER, OWN, [("sasl.enabled.mechanisms", SET, "PLAIN")], NONE),
    Case(BROKER, OWN, [("config.providers", SET, "x")], NONE, INVALID_REQUEST),
    Case(BROKER, OWN, [("log.retention.ms", 9, "5")], INVALID_REQUEST),
    Case(
        BROKER,
        OWN,
        [("log.retention.ms", SET, "5"), ("log.retention.ms", SET, "6")],
        INVALID_REQUEST,
    ),
    Case(
        BROKER,
        OWN,
        [("log.retention.ms", SET, "7777"), ("num.partitions", SET, "6")],
        INVALID_REQUEST,
    ),
    Case(BROKER, OWN, [("log.cleaner.dedupe.buffer.size", SET, "5")], INVALID_REQUEST),
    Case(BROKER, OWN, [("log.cleaner.dedupe.buffer.size", SET, "1048577")], NONE),
    Case(BROKER, OWN, [("log.cleaner.io.buffer.load.factor", SET, "1.5")], NONE),
    Case(BROKER, OWN, [("log.cleaner.io.max.bytes.per.second", SET, "0")], NONE),
]

LOGGER_CASES: list[Case] = [
    Case(BROKER_LOGGER, OWN, [("root", SET, "DEBUG")], NONE),
    Case(BROKER_LOGGER, OWN, [("root", SET, "debug")], INVALID_CONFIG),
    Case(BROKER_LOGGER, OWN, [("root", SET, "LOUD")], INVALID_CONFIG),
    Case(BROKER_LOGGER, OWN, [("root", SET, "OFF")], INVALID_CONFIG),
    Case(BROKER_LOGGER, OWN, [("root", DELETE)], INVALID_REQUEST),
    Case(BROKER_LOGGER, OWN, [("root", SET, "INFO")], NONE),
    Case(BROKER_LOGGER, OWN, [("no.such", SET, "INFO")], INVALID_CONFIG),
    Case(BROKER_LOGGER, OWN, [("no.such", DELETE)], INVALID_CONFIG),
    Case(BROKER_LOGGER, OWN, [("kafka.server.KafkaApis", SET, "INFO")], INVALID_CONFIG),
    Case(BROKER_LOGGER, OWN, [("root", APPEND, "INFO")], INVALID_REQUEST),
    Case(BROKER_LOGGER, OWN, [("root", SUBTRACT, "INFO")], INVALID_REQUEST),
    Case(BROKER_LOGGER, OWN, [("root", 9, "INFO")], UNKNOWN_SERVER_ERROR, INVALID_REQUEST),
    Case(BROKER_LOGGER, OWN, [("root", SET, None)], INVALID_REQUEST),
    Case(BROKER_LOGGER, OWN, [("root", SET, "INFO"), ("root", SET, "WARN")], INVALID_REQUEST),
    Case(BROKER_LOGGER, OWN, [], NONE),
    Case(BROKER_LOGGER, "", [("root", SET, "INFO")], INVALID_REQUEST),
    Case(BROKER_LOGGER, "7", [("root", SET, "INFO")], INVALID_REQUEST),
    Case(BROKER_LOGGER, "x", [("root", SET, "INFO")], INVALID_REQUEST),
]

CLIENT_METRICS_CASES: list[Case] = [
    Case(CLIENT_METRICS, "sub", [("interval.ms", SET, "1000")], NONE),
    Case(CLIENT_METRICS, "sub", [("interval.ms", SET, "99")], INVALID_REQUEST),
    Case(CLIENT_METRICS, "sub", [("interval.ms", SET, "3600001")], INVALID_REQUEST),
    Case(CLIENT_METRICS, "sub", [("interval.ms", SET, "x")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("metrics", SET, "org.apache.kafka.")], NONE),
    Case(CLIENT_METRICS, "sub", [("metrics", APPEND, "a,b")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("metrics", SUBTRACT, "a")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("metrics", SET, "")], NONE),
    Case(CLIENT_METRICS, "sub", [("match", SET, "client_id=x.*")], NONE),
    Case(CLIENT_METRICS, "sub", [("match", SET, "client_id=[")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("match", SET, "color=x")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("match", SET, "client_id")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("match", SET, "client_id=a=b")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "sub", [("match", SET, "")], NONE),
    Case(CLIENT_METRICS, "sub", [("nope", SET, "x")], INVALID_REQUEST),
    Case(CLIENT_METRICS, "sub", [("interval.ms", APPEND, "5")], INVALID_CONFIG),
    Case(CLIENT_METRICS, "", [("interval.ms", SET, "1000")], INVALID_REQUEST),
    Case(CLIENT_METRICS, "empty", [], NONE),
    Case(CLIENT_METRICS, "none", [("interval.ms", DELETE)], NONE),
]

GROUP_CASES: list[Case] = [
    Case(GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")], NONE),
    Case(GROUP, "g", [("consumer.session.timeout.ms", SET, "100")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.session.timeout.ms", SET, "70000")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.session.timeout.ms", SET, "0")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.session.timeout.ms", SET, "x")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "10000")], NONE),
    Case(GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "4999")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "15001")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.assignment.interval.ms", SET, "15001")], INVALID_CONFIG),
    Case(GROUP, "g", [("consumer.assignment.interval.ms", SET, "0")], NONE),
    Case(GROUP, "g", [("share.auto.offset.reset", SET, "earliest")], NONE),
    Case(GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:PT1H")], NONE),
    Case(GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:-PT1H")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:P1DT2H3M4.5S")], NONE),
    Case(GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:1h")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.auto.offset.reset", SET, "none")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.isolation.level", SET, "read_committed")], NONE),
    Case(GROUP, "g", [("share.isolation.level", SET, "READ_COMMITTED")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.renew.acknowledge.enable", SET, "false")], NONE),
    Case(GROUP, "g", [("share.record.lock.duration.ms", SET, "14999")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.record.lock.duration.ms", SET, "60001")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.record.lock.duration.ms", SET, "15000")], NONE),
    Case(GROUP, "g", [("share.delivery.count.limit", SET, "1")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.delivery.count.limit", SET, "11")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.delivery.count.limit", SET, "10")], NONE),
    Case(GROUP, "g", [("share.partition.max.record.locks", SET, "99")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.partition.max.record.locks", SET, "4001")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.session.timeout.ms", SET, "44999")], INVALID_CONFIG),
    Case(GROUP, "g", [("share.heartbeat.interval.ms", SET, "15001")], INVALID_CONFIG),
    Case(GROUP, "g", [("streams.num.standby.replicas", SET, "3")], INVALID_CONFIG),
    Case(GROUP, "g", [("streams.num.standby.replicas", SET, "2")], NONE),
    Case(GROUP, "g", [("streams.session.timeout.ms", SET, "1")], INVALID_CONFIG),
    Case(GROUP, "g", [("streams.heartbeat.interval.ms", SET, "1")], INVALID_CONFIG),
    Case(GROUP, "g", [("streams.initial.rebalance.delay.ms", SET, "-1")], INVALID_CONFIG),
    Case(GROUP, "g", [("streams.assignment.interval.ms", SET, "15001")], INVALID_CONFIG),
    Case(GROUP, "g", [("nope", SET, "1")], INVALID_CONFIG),
    Case(GROUP, "g", [("nope", DELETE)], NONE),
    Case(GROUP, "g", [("consumer.session.timeout.ms", APPEND, "1")], INVALID_CONFIG),
    Case(GROUP, "", [("consumer.session.timeout.ms", SET, "50000")], INVALID_REQUEST),
    Case(GROUP, "empty", [], NONE),
]

OTHER_CASES: list[Case] = [
    Case(0, "x", [("a", SET, "b")], INVALID_REQUEST),
    Case(1, "x", [("a", SET, "b")], INVALID_REQUEST),
    Case(3, "x", [], INVALID_REQUEST),
    Case(99, "x", [], INVALID_REQUEST),
    Case(-1, "x", [], INVALID_REQUEST),
    Case(64, "x", [], INVALID_REQUEST),
]

CASES = [
    *TOPIC_CASES,
    *BROKER_CASES,
    *LOGGER_CASES,
    *CLIENT_METRICS_CASES,
    *GROUP_CASES,
    *OTHER_CASES,
]
