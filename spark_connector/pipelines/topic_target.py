"""Where copied records go: topics of a cluster, made so that they keep what they get."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import SparkConnectorError
from ..kafka_source.cluster import admin_client
from ..kafka_source.kafka_settings import Settings, kafka_settings
from .topic_source import NO_OPTIONS

TIMEOUT_S = 30.0
LONG_MAX = str(2**63 - 1)

KEEPS_ALL = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}
"""Records of years ago would else be deleted as soon as the broker looks, or dated anew."""

ANY_TIME = {"message.timestamp.before.max.ms": LONG_MAX, "message.timestamp.after.max.ms": LONG_MAX}
"""Brokers since Kafka 3.6 refuse timestamps too far ahead; older ones do not know these names."""

RECORD_OVERHEAD_BYTES = 16 << 10
MAX_MESSAGE_BYTES = 1 << 20


class TopicTarget(NamedTuple):
    """Topics of a cluster that are written to."""

    bootstrap_servers: str
    kafka_options: Mapping[str, str] = NO_OPTIONS
    """Settings of Kafka's clients by Java's names."""
    prefix: str = ""
    """In front of a topic's name."""
    names: Mapping[str, str] = NO_OPTIONS
    """Other names for some topics, without the prefix."""
    replication_factor: int = -1
    """Of topics that are made; -1 is the broker's own."""
    topic_config: Mapping[str, str] = NO_OPTIONS
    """Settings of topics that are made, over what keeps all of their records."""

    def name_of(self, topic: str) -> str:
        """What a topic is called here."""
        return self.names.get(topic) or f"{self.prefix}{topic}"

    def settings(self) -> Settings:
        """The settings for clients of librdkafka.

        Raises:
            SparkConnectorError: one cannot be honoured.
        """
        options = {f"kafka.{name}": value for name, value in self.kafka_options.items()}
        return kafka_settings({**options, "kafka.bootstrap.servers": self.bootstrap_servers})


class TopicNeeds(NamedTuple):
    """What a target topic must be able to take."""

    partitions: int
    record_bytes_max: int = 0
    oldest_ms: int | None = None


def existing_topics(target: TopicTarget) -> set[str]:
    """The names of the topics that the cluster has.

    Raises:
        SparkConnectorError: no broker answers.
    """
    return set(_existing(admin_client(target.settings()), target))


def _existing(admin: Any, target: TopicTarget) -> Mapping[str, Any]:
    try:
        topics: Mapping[str, Any] = admin.list_topics(timeout=TIMEOUT_S).topics
    except Exception as error:
        raise SparkConnectorError(
            f"no broker answers at {target.bootstrap_servers}: {_reason(error)}"
        ) from None
    return topics


def ensure_topics(target: TopicTarget, needs: Mapping[str, TopicNeeds]) -> None:
    """Make the topics that are missing, and look at the others.

    Args:
        target: the cluster.
        needs: by the name that the topic has there.

    Raises:
        SparkConnectorError: one cannot be made, has too few partitions, or would delete what it
            gets.
    """
    admin = admin_client(target.settings())
    existing = _existing(admin, target)
    missing = {name: need for name, need in needs.items() if name not in existing}
    for name, need in needs.items():
        if name in missing:
            continue
        count = len(existing[name].partitions)
        if count < need.partitions:
            raise SparkConnectorError(
                f"topic {name} has {count} partitions, but records are to go to partition"
                f" {need.partitions - 1}; add partitions, or choose another name"
            )
    _require_kept(admin, {name: needs[name] for name in needs if name not in missing})
    _create(admin, target, missing)


def _create(admin: Any, target: TopicTarget, missing: Mapping[str, TopicNeeds]) -> None:
    from confluent_kafka import KafkaError

    for extra in (ANY_TIME, {}):
        refused: dict[str, TopicNeeds] = {}
        if not missing:
            return
        for name, future in admin.create_topics(
            [_new_topic(target, name, need, extra) for name, need in missing.items()],
            operation_timeout=TIMEOUT_S,
        ).items():
            try:
                future.result(TIMEOUT_S)
            except Exception as error:
                code = _code(error)
                if code == KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
                if code != KafkaError.INVALID_CONFIG or not extra:
                    raise SparkConnectorError(
                        f"topic {name} was not made: {_reason(error)}"
                    ) from None
                refused[name] = missing[name]
        _wait_until_known(admin, [name for name in missing if name not in refused])
        missing = refused


def _new_topic(target: TopicTarget, name: str, need: TopicNeeds, extra: Mapping[str, str]) -> Any:
    from confluent_kafka import admin as kafka_admin

    config = {**KEEPS_ALL, **extra}
    limit = need.record_bytes_max + RECORD_OVERHEAD_BYTES
    if limit > MAX_MESSAGE_BYTES:
        config["max.message.bytes"] = str(limit)
    config.update(target.topic_config)
    new_topic: Any = kafka_admin.NewTopic  # type: ignore[attr-defined]  # it is not in its __all__
    return new_topic(
        name,
        num_partitions=need.partitions,
        replication_factor=target.replication_factor,
        config=config,
    )


def _wait_until_known(admin: Any, names: list[str]) -> None:
    """A new topic has leaders a moment after it was made."""
    deadline = time.monotonic() + TIMEOUT_S
    for name in names:
        while time.monotonic() < deadline:
            topic = admin.list_topics(name, timeout=TIMEOUT_S).topics[name]
            if topic.error is None and all(p.leader >= 0 for p in topic.partitions.values()):
                break
            time.sleep(0.05)
        else:
            raise SparkConnectorError(f"topic {name} was made, but has no leaders yet; try again")


def _require_kept(admin: Any, needs: Mapping[str, TopicNeeds]) -> None:
    from confluent_kafka import admin as kafka_admin

    resource_of: Any = kafka_admin.ConfigResource  # type: ignore[attr-defined]  # as above

    resources = [
        resource_of(resource_of.Type.TOPIC, name)
        for name, need in sorted(needs.items())
        if need.oldest_ms is not None
    ]
    if not resources:
        return
    now_ms = time.time_ns() // 1_000_000
    for resource, future in admin.describe_configs(resources, request_timeout=TIMEOUT_S).items():
        config = future.result(TIMEOUT_S)
        kept_ms = int(config["retention.ms"].value)
        oldest_ms = needs[resource.name].oldest_ms or 0
        deletes = "delete" in config["cleanup.policy"].value
        if deletes and kept_ms >= 0 and oldest_ms + kept_ms < now_ms:
            raise SparkConnectorError(
                f"topic {resource.name} deletes what is older than {kept_ms} ms, and would delete"
                " records that are to be written; set its retention.ms to -1, or choose another"
                " name"
            )


def _code(error: BaseException) -> int | None:
    cause: Any = error.args[0] if error.args else None
    return cause.code() if hasattr(cause, "code") else None


def _reason(error: BaseException) -> str:
    cause: Any = error.args[0] if error.args else None
    return str(cause.str()) if hasattr(cause, "str") else str(error)
