"""A broker's settings from their sources: precedence, units, values that must fit together."""

from __future__ import annotations

import pytest

from odradek.config import BrokerConfig, ConfigError
from odradek.config.properties import parse_properties

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def from_file(text):
    return BrokerConfig.from_sources(parse_properties(text))


def with_options(**settings):
    return BrokerConfig.from_sources({}, {key.replace("_", "."): v for key, v in settings.items()})


def refusal(**settings):
    with pytest.raises(ConfigError) as refused:
        with_options(**settings)
    return str(refused.value)


def test_values_have_the_type_of_their_setting():
    config = BrokerConfig.from_sources({})
    assert config["num.partitions"] == 1
    assert config["auto.create.topics.enable"] is True
    assert config["log.cleanup.policy"] == ("delete",)
    assert config["log.cleaner.min.cleanable.ratio"] == 0.5
    assert config["broker.rack"] is None


def test_command_line_wins_over_the_file():
    config = BrokerConfig.from_sources(
        {"num.partitions": "2", "log.segment.bytes": "2000000"}, {"num.partitions": "3"}
    )
    assert config["num.partitions"] == 3
    assert config["log.segment.bytes"] == 2_000_000


def test_error_in_a_file_names_its_line():
    with pytest.raises(
        ConfigError,
        match=r"^server\.properties, line 2: Invalid value 0 for configuration num\.partitions: ",
    ):
        from_file("# partitions\nnum.partitions=0\n")


def test_error_in_an_option_names_the_option():
    assert "-o num.partitions: " in refusal(num_partitions="many")


def test_unknown_key_of_a_file_is_kept_aside():
    config = from_file("num.partitions=2\nno.such.key=1\nnor.this=2\n")
    assert config.unknown_keys == ("no.such.key", "nor.this")


def test_unknown_option_is_refused_with_the_nearest_name():
    assert refusal(num_partition="1").endswith("did you mean num.partitions?")
    assert "log.retention.ms" in refusal(retention_ms="1")
    assert refusal(xyzzy="1") == "-o xyzzy: there is no such setting."


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log_retention_hours": "1"}, HOUR_MS),
        ({"log_retention_hours": "1", "log_retention_minutes": "2"}, 2 * MINUTE_MS),
        ({"log_retention_minutes": "2", "log_retention_ms": "3"}, 3),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_ms": "-5"}, -1),
    ],
)
def test_finest_unit_of_retention_counts(settings, retention_ms):
    assert with_options(**settings)["log.retention.ms"] == retention_ms


def test_own_value_is_what_was_written_not_what_it_means():
    config = with_options(log_retention_minutes="2")
    assert config.own_value("log.retention.ms") is None
    assert config.own_value("log.retention.minutes") == 2


def test_finest_unit_of_rolling_counts():
    config = with_options(log_roll_hours="2", log_roll_jitter_hours="1")
    assert config["log.roll.ms"] == 2 * HOUR_MS
    assert config["log.roll.jitter.ms"] == HOUR_MS
    assert with_options(log_roll_hours="2", log_roll_ms="7")["log.roll.ms"] == 7


def test_flush_interval_follows_the_scheduler():
    assert with_options(log_flush_scheduler_interval_ms="5")["log.flush.interval.ms"] == 5
    both = with_options(log_flush_scheduler_interval_ms="5", log_flush_interval_ms="6")
    assert both["log.flush.interval.ms"] == 6


def test_log_dirs_wins_over_log_dir():
    assert with_options(log_dir="/a")["log.dirs"] == ("/a",)
    assert with_options(log_dir="/a", log_dirs="/b, /c")["log.dirs"] == ("/b", "/c")


def test_broker_id_and_node_id_are_one_number():
    for key in ("broker_id", "node_id"):
        config = with_options(**{key: "3"})
        assert (config["broker.id"], config["node.id"]) == (3, 3)
    assert with_options()["broker.id"] == -1
    assert "disagree" in refusal(broker_id="1", node_id="2")


def test_setting_of_one_listener():
    config = BrokerConfig.from_sources(
        {
            "listener.name.outside.ssl.client.auth": "required",
            "listener.name.outside.plain.sasl.jaas.config": "secret",
            "listener.name.outside.no.such.setting": "1",
        }
    )
    assert config.listener_value("OUTSIDE", "ssl.client.auth") == "required"
    assert config.listener_value("INSIDE", "ssl.client.auth") == "none"
    assert config.listener_value("outside", "plain.sasl.jaas.config").secret == "secret"
    assert config.unknown_keys == ("listener.name.outside.no.such.setting",)


def test_bad_value_for_one_listener_is_refused_under_its_full_name():
    with pytest.raises(
        ConfigError,
        match=r"^Invalid value maybe for configuration listener\.name\.x\.ssl\.client\.auth: ",
    ):
        BrokerConfig.from_sources({"listener.name.x.ssl.client.auth": "maybe"})


@pytest.mark.parametrize(
    "settings",
    [
        {"replica_fetch_wait_max_ms": "30001"},
        {"replica_lag_time_max_ms": "499"},
        {"group_min_session_timeout_ms": "5", "group_max_session_timeout_ms": "4"},
        {"log_retention_ms": "0"},
        {"log_roll_ms": "0"},
        {"log_roll_jitter_ms": "-1"},
        {"queued_max_request_bytes": "1000"},
        {"max_connections_per_ip": "0"},
        {"log_cleaner_min_compaction_lag_ms": "5", "log_cleaner_max_compaction_lag_ms": "4"},
    ],
)
def test_values_that_do_not_fit_together_are_refused(settings):
    assert refusal(**settings).endswith(".")


@pytest.mark.parametrize(
    "settings",
    [
        {"replica_fetch_wait_max_ms": "30000"},
        {"replica_lag_time_max_ms": "500"},
        {"group_min_session_timeout_ms": "5", "group_max_session_timeout_ms": "5"},
        {"log_retention_ms": "1"},
        {"queued_max_request_bytes": "104857600"},
        {"max_connections_per_ip": "0", "max_connections_per_ip_overrides": "127.0.0.1:5"},
    ],
)
def test_values_at_the_limit_of_each_other_are_taken(settings):
    with_options(**settings)


def test_file_of_a_kraft_quick_start_is_taken():
    config = from_file(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        "controller.quorum.voters=1@localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        "inter.broker.listener.name=PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        "num.recovery.threads.per.data.dir=1\n"
    )
    assert config.unknown_keys == ()
    assert config["broker.id"] == 1
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]


def test_file_of_a_zookeeper_quick_start_is_taken():
    config = from_file(
        "broker.id=0\nlog.dirs=/data\nzookeeper.connect=localhost:2181\n"
        "zookeeper.connection.timeout.ms=18000\ngroup.initial.rebalance.delay.ms=0\n"
    )
    assert config.unknown_keys == ()
    assert config["zookeeper.connect"] == "localhost:2181"


@pytest.mark.parametrize(("codec", "good"), [("0", True), ("4", True), ("5", False), ("-1", False)])
def test_only_known_codecs_compress_the_offsets_topic(codec: str, good: bool) -> None:
    setting = {"offsets.topic.compression.codec": codec}
    if good:
        assert BrokerConfig.from_sources(setting)["offsets.topic.compression.codec"] == int(codec)
    else:
        with pytest.raises(ConfigError, match=r"offsets\.topic\.compression\.codec="):
            BrokerConfig.from_sources(setting)
