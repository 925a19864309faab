"""A topic's settings: what is refused, and what the logs of its partitions work with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.config import BrokerConfig
from odradek.config.topic_configs import log_config, validate_topic_config
from odradek.storage.log.log_config import LogConfig

ANSWERS = json.loads(
    (Path(__file__).parent / "data" / "kafka-4.3.1-topic-config-answers.json").read_text()
)
STRICTER_HERE = (
    {"min.cleanable.dirty.ratio": "NaN"},
    {"leader.replication.throttled.replicas": "0:1,"},
)


def refusal(overrides, config=None):
    with pytest.raises(KafkaError) as refused:
        validate_topic_config(overrides, config)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert refused.value.message
    return refused.value.message


def answer(overrides):
    try:
        validate_topic_config(overrides)
    except KafkaError as error:
        return int(error.code)
    return 0


def test_settings_are_taken_or_refused_as_kafka_does():
    answers = [(overrides, code, answer(overrides)) for overrides, code in ANSWERS]
    assert [each for each in answers if each[1] != each[2]] == [
        (overrides, 0, ErrorCode.INVALID_CONFIG)
        for overrides, _ in ANSWERS
        if overrides in STRICTER_HERE
    ]


def test_refusal_names_key_value_and_rule():
    assert refusal({"retention.ms": "-2"}) == (
        "Invalid value -2 for configuration retention.ms: Value must be at least -1"
    )
    assert "no.such" in refusal({"no.such": "1"})


def test_setting_without_a_value_is_refused():
    assert "retention.ms" in refusal({"retention.ms": None})


def test_half_of_a_pair_is_compared_with_the_brokers_setting():
    config = BrokerConfig.from_sources({}, {"log.cleaner.max.compaction.lag.ms": "5"})
    validate_topic_config({"min.compaction.lag.ms": "6"})
    refusal({"min.compaction.lag.ms": "6"}, config)
    validate_topic_config({"min.compaction.lag.ms": "5"}, config)


def test_topic_without_settings_has_kafkas_defaults():
    assert log_config(BrokerConfig.from_sources({}), {}) == LogConfig()


def test_topic_follows_the_broker_and_its_own_settings_win():
    config = BrokerConfig.from_sources(
        {}, {"log.retention.minutes": "1", "message.max.bytes": "5000", "compression.type": "lz4"}
    )
    made = log_config(config, {"max.message.bytes": "7000", "cleanup.policy": "compact,delete"})
    assert made.retention_ms == 60_000
    assert made.compression_type == "lz4"
    assert made.max_message_bytes == 7000
    assert made.cleanup_policy == {"compact", "delete"}


def test_producer_expiration_comes_from_the_broker():
    config = BrokerConfig.from_sources({}, {"producer.id.expiration.ms": "1000"})
    assert log_config(config, {}).producer_id_expiration_ms == 1000


def test_internal_segment_size_goes_below_the_minimum():
    config = BrokerConfig.from_sources({})
    assert log_config(config, {"internal.segment.bytes": "100"}).segment_bytes == 100
    both = {"internal.segment.bytes": "100", "segment.bytes": "2000000"}
    assert log_config(config, both).segment_bytes == 100


def test_override_in_store_that_is_no_longer_valid_is_passed_over():
    made = log_config(BrokerConfig.from_sources({}), {"retention.ms": "soon", "gone.key": "1"})
    assert made == LogConfig()
