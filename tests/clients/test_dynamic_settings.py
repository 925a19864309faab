"""Settings changed through clients while the broker runs: they act, and they stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ResourceType
from confluent_kafka.admin import ConfigResource as ConfluentResource
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from kafka.errors import (
    InvalidRecordError,
    MessageSizeTooLargeError,
)
from support.config_cases import DELETE, SET
from support.config_requests import alter_configs, describe_config
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

WAIT_SECONDS_MAX = 100.0
KILOBYTE = b"x" * 1024
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


class Bench:
    """A broker with an administrator and a producer that does not try again."""

    def __init__(self, broker: Any) -> None:
        self.broker = broker
        self.admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        self.producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap, retries=0, enable_idempotence=False, acks="all"
        )
        self.broker_id = str(self.admin.describe_cluster()["brokers"][0]["broker_id"])

    def close(self) -> None:
        self.producer.close()
        self.admin.close()

    def create(self, topic: str, **configs: str) -> str:
        names = {name.replace("_", "."): value for name, value in configs.items()}
        requested = {"num_partitions": 1, "replication_factor": 1, "configs": names}
        self.admin.create_topics({topic: requested}, wait_for_metadata=True)
        return topic

    def alter(self, kind: ConfigResourceType, name: str, **settings: str | None) -> None:
        """Set settings; None deletes one."""
        changes = {
            key.replace("_", "."): (AlterConfigOp.DELETE, None)
            if value is None
            else (AlterConfigOp.SET, value)
            for key, value in settings.items()
        }
        resource = ConfigResource(kind, name, changes)
        answer = self.admin.alter_configs([resource], raise_on_unknown=False)
        assert answer == {kind.name.lower(): {name: "OK"}}, answer

    def alter_all_brokers(self, **settings: str | None) -> None:
        """Change the settings of the whole cluster, which kafka-python has no way to."""
        changes = [
            (key.replace("_", "."), DELETE if value is None else SET, value)
            for key, value in settings.items()
        ]
        with RawConnection(self.broker.port) as connection:
            assert alter_configs(connection, BROKER, "", changes) == 0

    def cluster_setting(self, key: str) -> tuple[str | None, int] | None:
        with RawConnection(self.broker.port) as connection:
            return describe_config(connection, BROKER, "", key)

    def describe(self, kind: ConfigResourceType, name: str) -> dict[str, dict[str, Any]]:
        described = self.admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return described[kind.name.lower()][name]

    def setting(self, kind: ConfigResourceType, name: str, key: str) -> tuple[str, str]:
        entry = self.describe(kind, name)[key]
        return entry["value"], entry["config_source"]

    def send(self, topic: str, value: bytes, **more: Any) -> Any:
        return self.producer.send(topic, value, partition=0, **more).get(WAIT_SECONDS_MAX)


@pytest.fixture(scope="module")
def bench(broker) -> Iterator[Bench]:
    bench = Bench(broker)
    yield bench
    bench.close()


@pytest.fixture
def start_bench(start_broker) -> Iterator[Callable[..., Bench]]:
    benches: list[Bench] = []

    def start(**settings: str) -> Bench:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        benches.append(Bench(start_broker(settings=named)))
        return benches[-1]

    yield start
    for bench in benches:
        bench.close()


# -- a topic's own settings ------------------------------------------------------------


def test_max_message_bytes_of_a_topic_acts_at_once(bench: Bench, topic: str) -> None:
    bench.create(topic)
    bench.send(topic, KILOBYTE * 10)
    bench.alter(TOPIC, topic, max_message_bytes="5000")
    with pytest.raises(MessageSizeTooLargeError):
        bench.send(topic, KILOBYTE * 10)
    bench.send(topic, KILOBYTE)
    bench.alter(TOPIC, topic, max_message_bytes=None)
    bench.send(topic, KILOBYTE * 10)


def test_cleanup_policy_of_a_topic_acts_at_once(bench: Bench, topic: str) -> None:
    bench.create(topic)
    bench.send(topic, b"without a key")
    bench.alter(TOPIC, topic, cleanup_policy="compact")
    with pytest.raises(InvalidRecordError):
        bench.send(topic, b"without a key")
    bench.send(topic, b"with a key", key=b"k")


def test_timestamp_type_of_a_topic_acts_at_once(bench: Bench, topic: str) -> None:
    bench.create(topic)
    assert bench.send(topic, b"x", timestamp_ms=1000).timestamp == 1000
    bench.alter(TOPIC, topic, message_timestamp_type="LogAppendTime")
    assert bench.send(topic, b"x", timestamp_ms=1000).timestamp > 1_600_000_000_000


def test_segment_bytes_of_a_topic_act_from_the_next_segment_on(start_bench, topic: str) -> None:
    bench = start_bench()
    bench.create(topic)
    folder = bench.broker.data_dir / f"{topic}-0"
    for _ in range(3):
        bench.send(topic, KILOBYTE * 512)
    assert len(list(folder.glob("*.log"))) == 1
    bench.alter(TOPIC, topic, segment_bytes=str(1024 * 1024))
    for _ in range(4):
        bench.send(topic, KILOBYTE * 512)
    assert len(list(folder.glob("*.log"))) >= 3


def test_retention_of_a_topic_and_of_the_cluster_acts_at_the_next_check(
    start_bench, topic: str
) -> None:
    bench = start_bench(log_retention_check_interval_ms="50", log_initial_task_delay_ms="50")
    own = bench.create(f"{topic}-own")
    kept = bench.create(f"{topic}-kept", retention_ms="-1")
    default = bench.create(f"{topic}-default")
    for name in (own, kept, default):
        bench.send(name, b"old", timestamp_ms=1_600_000_000_000)
    with KafkaConsumer(bootstrap_servers=bench.broker.bootstrap) as consumer:

        def first_offset(name: str) -> int:
            partition = TopicPartition(name, 0)
            return consumer.beginning_offsets([partition])[partition]

        bench.alter(TOPIC, own, retention_ms="-1")
        wait_until(
            lambda: first_offset(default) == 1,
            otherwise="deletion of an old record did not come true",
        )
        assert first_offset(own) in (0, 1)  # a check may have come first
        bench.alter_all_brokers(log_retention_ms="-1")
        bench.send(default, b"old too", timestamp_ms=1_600_000_000_000)
        bench.alter(TOPIC, kept, retention_ms="1000")
        wait_until(
            lambda: first_offset(kept) == 1,
            otherwise="deletion by a topic's own retention did not come true",
        )
        assert first_offset(default) == 1
        bench.alter_all_brokers(log_retention_ms="1000")
        wait_until(
            lambda: first_offset(default) == 2,
            otherwise="deletion by the cluster's retention did not come true",
        )


# -- a broker's and the cluster's settings ------------------------------------------------------


def test_default_acts_on_topics_without_a_setting_of_their_own(bench: Bench, topic: str) -> None:
    plain = bench.create(f"{topic}-plain")
    own = bench.create(f"{topic}-own", max_message_bytes="20000")
    own_id = bench.broker_id
    for alter in (bench.alter_all_brokers, partial(bench.alter, BROKER, own_id)):
        bench.send(plain, KILOBYTE * 10)
        alter(message_max_bytes="5000")
        wait_until(
            lambda: bench.setting(TOPIC, plain, "max.message.bytes")[0] == "5000",
            otherwise="the change did not come true",
        )
        with pytest.raises(MessageSizeTooLargeError):
            bench.send(plain, KILOBYTE * 10)
        bench.send(own, KILOBYTE * 10)
        alter(message_max_bytes=None)
        wait_until(
            lambda: bench.setting(TOPIC, plain, "max.message.bytes")[0] == "1048588",
            otherwise="the change did not come true",
        )


def test_sources_of_a_setting_are_reported_in_their_order(bench: Bench, topic: str) -> None:
    bench.create(topic)
    key = "log.index.interval.bytes"
    assert bench.setting(BROKER, bench.broker_id, key) == ("4096", "DEFAULT_CONFIG")
    bench.alter_all_brokers(log_index_interval_bytes="5000")
    bench.alter(BROKER, bench.broker_id, log_index_interval_bytes="6000")
    mine = ("6000", "DYNAMIC_BROKER_CONFIG")
    wait_until(
        lambda: bench.setting(BROKER, bench.broker_id, key) == mine,
        otherwise="the change did not come true",
    )
    everybodys = ("5000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert bench.cluster_setting(key) == ("5000", 3)
    assert bench.setting(TOPIC, topic, "index.interval.bytes") == mine
    bench.alter(TOPIC, topic, index_interval_bytes="7000")
    own = ("7000", "DYNAMIC_TOPIC_CONFIG")
    wait_until(
        lambda: bench.setting(TOPIC, topic, "index.interval.bytes") == own,
        otherwise="the change did not come true",
    )
    bench.alter(BROKER, bench.broker_id, log_index_interval_bytes=None)
    wait_until(
        lambda: bench.setting(BROKER, bench.broker_id, key) == everybodys,
        otherwise="the change did not come true",
    )
    bench.alter_all_brokers(log_index_interval_bytes=None)


def test_setting_that_needs_a_restart_is_refused(bench: Bench) -> None:
    resource = ConfigResource(
        BROKER, bench.broker_id, {"auto.create.topics.enable": (AlterConfigOp.SET, "false")}
    )
    answer = bench.admin.alter_configs([resource], raise_on_unknown=False)
    assert "InvalidRequestError" in str(answer["broker"][bench.broker_id])


def test_changes_outlast_stop_and_kill(start_broker, topic: str) -> None:
    broker: BrokerProcess = start_broker()
    bench = Bench(broker)
    bench.create(topic, segment_bytes="2000000")
    bench.alter(TOPIC, topic, retention_ms="6000000")
    bench.alter(BROKER, bench.broker_id, message_max_bytes="5000")
    bench.alter_all_brokers(log_retention_ms="7000000")
    bench.alter(ConfigResourceType.GROUP, "readers", consumer_session_timeout_ms="50000")
    bench.alter(ConfigResourceType.CLIENT_METRICS, "all", interval_ms="500")
    bench.close()
    for end in (broker.stop, broker.kill):
        end()
        broker.start()
        bench = Bench(broker)
        own = bench.describe(TOPIC, topic)
        assert own["retention.ms"]["value"] == "6000000"
        assert own["segment.bytes"]["value"] == "2000000"
        assert own["max.message.bytes"]["value"] == "5000"
        with pytest.raises(MessageSizeTooLargeError):
            bench.send(topic, KILOBYTE * 10)
        assert bench.cluster_setting("log.retention.ms") == ("7000000", 3)
        key = "consumer.session.timeout.ms"
        assert bench.setting(ConfigResourceType.GROUP, "readers", key)[0] == "50000"
        metrics = bench.describe(ConfigResourceType.CLIENT_METRICS, "all")
        assert metrics["interval.ms"]["value"] == "500"
        bench.close()


# -- other resources ------------------------------------------------------------


def test_resources_with_settings_are_listed(bench: Bench, topic: str) -> None:
    bench.create(topic)
    group, metrics = f"group-{topic}", f"metrics-{topic}"
    bench.alter(ConfigResourceType.GROUP, group, consumer_heartbeat_interval_ms="6000")
    bench.alter(ConfigResourceType.CLIENT_METRICS, metrics, interval_ms="500")

    def listed() -> set[tuple[str, str]]:
        found = bench.admin.list_config_resources()
        return {(kind, name) for kind, names in found.items() for name in names}

    requested = {
        ("topic", topic),
        ("broker", bench.broker_id),
        ("broker_logger", bench.broker_id),
        ("group", group),
        ("client_metrics", metrics),
    }
    wait_until(lambda: requested <= listed(), otherwise="the new resources did not come true")


def test_logger_is_changed_and_reported(bench: Bench) -> None:
    kind, own = ConfigResourceType.BROKER_LOGGER, bench.broker_id
    before = bench.describe(kind, own)["root"]["value"]
    bench.alter(kind, own, root="ERROR")
    assert bench.setting(kind, own, "root") == ("ERROR", "DYNAMIC_BROKER_LOGGER_CONFIG")
    bench.alter(kind, own, root=before)
    assert bench.describe(kind, own)["root"]["value"] == before


def test_librdkafka_changes_topics_brokers_and_groups(bench: Bench, topic: str) -> None:
    bench.create(topic)
    admin = AdminClient({"bootstrap.servers": bench.broker.bootstrap})
    changes = [
        (ResourceType.TOPIC, topic, "retention.ms", "9000000", 1),
        (ResourceType.BROKER, bench.broker_id, "log.segment.delete.delay.ms", "50000", 2),
        (ResourceType.GROUP, f"group-{topic}", "consumer.heartbeat.interval.ms", "7000", 8),
    ]
    resources = [
        ConfluentResource(
            kind,
            name,
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            ],
        )
        for kind, name, key, value, _ in changes
    ]
    for future in admin.incremental_alter_configs(resources).values():
        future.result(WAIT_SECONDS_MAX)
    for kind, name, key, value, source in changes:

        def described(kind: ResourceType = kind, name: str = name, key: str = key) -> Any:
            (future,) = admin.describe_configs([ConfluentResource(kind, name)]).values()
            entry = future.result(WAIT_SECONDS_MAX)[key]
            return entry.value, entry.source

        wait_until(
            lambda requested=(value, source), reported=described: reported() == requested,
            otherwise="the change did not come true",
        )
    back = ConfigEntry(
        "log.segment.delete.delay.ms", None, incremental_operation=AlterConfigOpType.DELETE
    )
    own = ConfluentResource(ResourceType.BROKER, bench.broker_id, incremental_configs=[back])
    (future,) = admin.incremental_alter_configs([own]).values()
    future.result(WAIT_SECONDS_MAX)
