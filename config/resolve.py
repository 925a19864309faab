"""Settings that depend on each other: synonyms in other units, and values that must fit.

Follows Kafka's `AbstractKafkaConfig` and `ReplicationConfigs`, `GroupCoordinatorConfig`, ...:
the finer unit wins (`log.retention.ms` over `.minutes` over `.hours`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .definition import ConfigError

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MEBIBYTE = 1024 * 1024
CODECS = range(5)
"""The numbers of compression in a record batch."""

Values = Mapping[str, Any]

RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
ROLL = ("log.roll.ms", "log.roll.hours")
ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")

COMPANIONS: Mapping[str, tuple[str, ...]] = {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.hours": RETENTION,
    "log.retention.minutes": RETENTION,
    "log.retention.ms": RETENTION,
    "log.roll.hours": ROLL,
    "log.roll.jitter.hours": ROLL_JITTER,
    "log.roll.jitter.ms": ROLL_JITTER,
    "log.roll.ms": ROLL,
}
"""Settings that are one thing in several units, the one that wins first."""


def resolve_synonyms(own: Values, static: Mapping[str, str]) -> dict[str, Any]:
    """The settings as the broker uses them.

    Args:
        own: each setting's own value.
        static: what was written, to distinguish a value given from a default.

    Raises:
        ConfigError: `broker.id` and `node.id` disagree.
    """
    values = dict(own)
    values["log.retention.ms"] = _retention_ms(own)
    values["log.roll.ms"] = _first(own["log.roll.ms"], own["log.roll.hours"] * HOUR_MS)
    values["log.roll.jitter.ms"] = _first(
        own["log.roll.jitter.ms"], own["log.roll.jitter.hours"] * HOUR_MS
    )
    values["log.flush.interval.ms"] = _first(
        own["log.flush.interval.ms"], own["log.flush.scheduler.interval.ms"]
    )
    values["log.dirs"] = own["log.dirs"] or own["log.dir"]
    values["num.replica.alter.log.dirs.threads"] = _first(
        own["num.replica.alter.log.dirs.threads"], len(values["log.dirs"])
    )
    values["delegation.token.secret.key"] = _first(
        own["delegation.token.secret.key"], own["delegation.token.master.key"]
    )
    values["broker.id"] = values["node.id"] = _broker_id(own, static)
    return values


def _first(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _retention_ms(own: Values) -> int:
    """The retention in milliseconds; anything negative means without end, which is -1."""
    retention_ms: int = own["log.retention.hours"] * HOUR_MS
    if own["log.retention.minutes"] is not None:
        retention_ms = own["log.retention.minutes"] * MINUTE_MS
    if own["log.retention.ms"] is not None:
        retention_ms = own["log.retention.ms"]
    return max(retention_ms, -1)


def _broker_id(own: Values, static: Mapping[str, str]) -> int:
    broker_id: int = own["broker.id"]
    node_id: int = own["node.id"]
    if "broker.id" in static and "node.id" in static and broker_id != node_id:
        raise ConfigError(
            f"broker.id={broker_id} and node.id={node_id} disagree: they are one number under two "
            f"names, so set one of them."
        )
    return node_id if "node.id" in static else broker_id


AT_MOST = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("replica.fetch.min.bytes", "replica.fetch.max.bytes"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms"),
    ("group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ("group.share.min.session.timeout.ms", "group.share.session.timeout.ms"),
    ("group.share.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ("group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ("group.share.min.assignment.interval.ms", "group.share.assignment.interval.ms"),
    ("group.share.assignment.interval.ms", "group.share.max.assignment.interval.ms"),
    ("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    ("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ("group.share.min.delivery.count.limit", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ("group.share.min.partition.max.record.locks", "group.share.partition.max.record.locks"),
    ("group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
    ("group.streams.min.session.timeout.ms", "group.streams.session.timeout.ms"),
    ("group.streams.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    ("group.streams.min.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms"),
    ("group.streams.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"),
    ("group.streams.min.assignment.interval.ms", "group.streams.assignment.interval.ms"),
    ("group.streams.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)
"""Pairs of settings whose first must not exceed the second."""


def check_together(values: Values, static: Mapping[str, str]) -> None:
    """Refuse values that are fine alone but not together.

    Only settings that somebody set are blamed: `static` says which.

    Raises:
        ConfigError: one sentence that names both settings.
    """
    for smaller, larger in AT_MOST:
        if values[smaller] > values[larger] and (smaller in static or larger in static):
            raise ConfigError(
                f"{smaller}={values[smaller]} is more than {larger}={values[larger]}: it may be at "
                f"most that."
            )
    _check_times(values)
    _check_queue(values)
    _check_connection_counts(values)
    _check_cleaner(values, static)
    _check_cordoned(values)
    _check_codec(values)


def _check_times(values: Values) -> None:
    if values["log.retention.ms"] == 0:
        raise ConfigError("log.retention.ms=0 cannot be used: it must be at least 1, or -1.")
    if values["log.roll.ms"] < 1:
        raise ConfigError(
            f"log.roll.ms={values['log.roll.ms']} cannot be used: it must be at least 1."
        )
    if values["log.roll.jitter.ms"] < 0:
        raise ConfigError(
            f"log.roll.jitter.ms={values['log.roll.jitter.ms']} cannot be used: it must be at "
            f"least 0."
        )


def _check_queue(values: Values) -> None:
    queue_bytes = values["queued.max.request.bytes"]
    if 0 < queue_bytes < values["socket.request.max.bytes"]:
        raise ConfigError(
            f"queued.max.request.bytes={queue_bytes} is less than socket.request.max.bytes="
            f"{values['socket.request.max.bytes']}: one request must fit, or -1 leaves the limit "
            "to the broker."
        )


def _check_connection_counts(values: Values) -> None:
    overrides = values["max.connections.per.ip.overrides"]
    for item in filter(None, (part.strip() for part in overrides.split(","))):
        host, colon, count = item.rpartition(":")
        if not (colon and host.strip() and count.strip().isdecimal()):
            raise ConfigError(
                f"max.connections.per.ip.overrides has {item!r}: an entry is a host, a colon and a "
                f"number of connections, such as 127.0.0.1:50."
            )
    if values["max.connections.per.ip"] == 0 and not overrides.strip():
        raise ConfigError(
            "max.connections.per.ip=0 lets nobody in: name exceptions in "
            "max.connections.per.ip.overrides, or raise it."
        )


def _check_cleaner(values: Values, static: Mapping[str, str]) -> None:
    size, threads = values["log.cleaner.dedupe.buffer.size"], values["log.cleaner.threads"]
    is_set = "log.cleaner.dedupe.buffer.size" in static or "log.cleaner.threads" in static
    if is_set and values["log.cleaner.enable"] and size // max(threads, 1) <= MEBIBYTE:
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size={size} is too little for log.cleaner.threads="
            f"{threads}: it must be more than {MEBIBYTE} bytes for each."
        )


def _check_cordoned(values: Values) -> None:
    for directory in values["cordoned.log.dirs"]:
        if directory != "*" and directory not in values["log.dirs"]:
            raise ConfigError(
                f"cordoned.log.dirs has {directory!r}, which is not in log.dirs: name some of "
                f"{', '.join(values['log.dirs'])}, or * for all."
            )


def _check_codec(values: Values) -> None:
    codec = values["offsets.topic.compression.codec"]
    if codec not in CODECS:
        raise ConfigError(
            f"offsets.topic.compression.codec={codec} cannot be used: it must be 0 (none), "
            "1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)."
        )
