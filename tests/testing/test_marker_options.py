"""What markers, the ini file and the command line say of brokers, and what they may not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from odradek.testing.fixtures.marker_options import (
    BROKERS_PER_TEST_MAX,
    MarkerError,
    Options,
    options_of,
)


def marks(*options: dict[str, Any]) -> list[pytest.Mark]:
    return [pytest.mark.kafka(**each).mark for each in options]


def test_the_nearer_marker_stands_before_the_farther_setting_by_setting():
    mine = {"brokers": 2, "config": {"num.partitions": 4}}
    of_class = {"tls": True, "brokers": 5, "config": {"num.partitions": "8", "log.flush.ms": "x"}}
    assert options_of(marks(mine, of_class), ["num.partitions=16", "log.roll.ms = 7"]) == Options(
        {"num.partitions": "4", "log.flush.ms": "x", "log.roll.ms": "7"}, 2, True, 1
    )


def test_values_of_python_are_written_as_kafka_has_them():
    config = {"auto.create.topics.enable": False, "log.roll.ms": 7}
    assert options_of(marks({"config": config}), []).settings == {
        "auto.create.topics.enable": "false",
        "log.roll.ms": "7",
    }


def test_most_brokers_are_allowed_and_one_more_is_not():
    assert options_of(marks({"brokers": BROKERS_PER_TEST_MAX}), []).brokers == BROKERS_PER_TEST_MAX
    with pytest.raises(MarkerError, match=f"at most {BROKERS_PER_TEST_MAX}"):
        options_of(marks({"brokers": BROKERS_PER_TEST_MAX + 1}), [])


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"confg": {}}, "no option confg: it has brokers, tls, sasl, acls, external, partitions"),
        ({"brokers": 0}, "brokers is a number from 1 on"),
        ({"brokers": True}, "brokers is a number from 1 on"),
        ({"partitions": "3"}, "partitions is a number from 1 on"),
        ({"tls": "yes"}, "tls is True or False"),
        ({"acls": 1}, "acls is True or False"),
        ({"external": 9092}, "external is HOST or HOST:PORT"),
        ({"external": "0.0.0.0"}, "clients cannot connect to 0.0.0.0"),
        ({"external": "host:x"}, "host:x is no address"),
        ({"external": "host", "sasl": "PLAIN"}, "external and sasl cannot be had together"),
        ({"sasl": True}, "sasl=True is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (
            {"sasl": "GSSAPI"},
            "@pytest.mark.kafka: sasl='GSSAPI' cannot be had: tickets are a KDC's, and there is "
            "none beside a test's broker; give the broker the settings of your own, "
            "sasl.enabled.mechanisms=GSSAPI and so on, as docs/security.md has them",
        ),
        ({"sasl": "OAUTHBEARER"}, "tokens are an identity provider's"),
        ({"config": ["num.partitions=3"]}, "config is a dictionary of Kafka's settings"),
    ],
)
def test_what_a_marker_may_not_say_is_reported_in_a_sentence(option: dict[str, Any], sentence: str):
    with pytest.raises(MarkerError, match=re.escape(sentence)):
        options_of(marks(option), [])


def test_options_of_a_marker_are_named():
    with pytest.raises(MarkerError, match="takes its options by name"):
        options_of([pytest.mark.kafka(3).mark], [])


@pytest.mark.parametrize("line", ["num.partitions", "=3"])
def test_a_line_that_is_no_setting_is_refused_with_what_it_should_be(line: str):
    with pytest.raises(MarkerError, match="write it as KEY=VALUE"):
        options_of([], [line])
