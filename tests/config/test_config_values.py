"""Text to typed value and back, as Kafka's ConfigDef does it."""

from __future__ import annotations

import pytest

from odradek.config.definition import (
    ConfigError,
    ConfigType,
    Definition,
    Importance,
    NonEmpty,
    OneOf,
    Range,
    RangeOr,
    SomeOf,
    ThrottledReplicas,
)
from odradek.config.values import Password, format_value, parse_value


def setting(kind, check=None):
    return Definition("some.key", kind, None, Importance.LOW, check)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, "true", True),
        (ConfigType.BOOLEAN, " FALSE ", False),
        (ConfigType.SHORT, "-32768", -32768),
        (ConfigType.INT, "2147483647", 2**31 - 1),
        (ConfigType.INT, "+5", 5),
        (ConfigType.LONG, "-9223372036854775808", -(2**63)),
        (ConfigType.DOUBLE, " 1e-1 ", 0.1),
        (ConfigType.DOUBLE, "0.5d", 0.5),
        (ConfigType.STRING, " gzip ", "gzip"),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "compact, delete", ("compact", "delete")),
        (ConfigType.LIST, "b,a,b", ("b", "a")),
    ],
)
def test_value_of_a_type(kind, text, value):
    parsed = parse_value(setting(kind), text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.BOOLEAN, ""),
        (ConfigType.SHORT, "32768"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, "--1"),
        (ConfigType.INT, "9" * 5000),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, ""),
        (ConfigType.DOUBLE, "1_0.0"),
        (ConfigType.DOUBLE, "nan"),
        (ConfigType.DOUBLE, ""),
        (ConfigType.LIST, "a,,b"),
        (ConfigType.LIST, "a,"),
    ],
)
def test_text_of_another_type_is_refused(kind, text):
    with pytest.raises(ConfigError):
        parse_value(setting(kind), text)


@pytest.mark.parametrize(
    ("check", "kind", "at_limit", "past_it"),
    [
        (Range(1), ConfigType.INT, "1", "0"),
        (Range(1, 17), ConfigType.INT, "17", "18"),
        (Range(0, 1), ConfigType.DOUBLE, "1.0", "1.0001"),
        (RangeOr(-1, 1, 9), ConfigType.INT, "-1", "0"),
        (RangeOr(-1, 1, 9), ConfigType.INT, "9", "10"),
        (OneOf(("a", "b")), ConfigType.STRING, "b", "B"),
        (OneOf(("Up", "Down"), any_case=True), ConfigType.STRING, "dOWN", "left"),
        (SomeOf(("a", "b")), ConfigType.LIST, "b,a", "a,c"),
        (NonEmpty(), ConfigType.STRING, "x", " "),
        (ThrottledReplicas(), ConfigType.LIST, "*", "*,0:1"),
        (ThrottledReplicas(), ConfigType.LIST, "0:1,10:22", "0:1,2"),
        (ThrottledReplicas(), ConfigType.LIST, "", "a:1"),
    ],
)
def test_rule_holds_at_its_limit_and_refuses_past_it(check, kind, at_limit, past_it):
    parse_value(setting(kind, check), at_limit)
    with pytest.raises(ConfigError, match=r"Invalid value .* for configuration |must not be empty"):
        parse_value(setting(kind, check), past_it)


def test_error_names_key_value_place_and_what_is_right():
    definition = Definition("num.partitions", ConfigType.INT, 1, Importance.LOW, Range(1))
    with pytest.raises(ConfigError) as refused:
        parse_value(definition, "zero", "server.properties, line 3")
    assert str(refused.value) == (
        "server.properties, line 3: Invalid value zero for configuration num.partitions: "
        "Not a number of type INT"
    )


def test_secret_is_shown_nowhere():
    secret = parse_value(setting(ConfigType.PASSWORD), "hunter2")
    assert isinstance(secret, Password)
    assert secret.secret == "hunter2"
    shown = (repr(secret), str(secret), f"{secret}", f"{[secret]}", f"{secret!r:>20}")
    assert not any("hunter2" in text for text in shown)
    assert format_value(ConfigType.PASSWORD, secret) == "[hidden]"


def test_error_about_a_secret_does_not_tell_it():
    definition = Definition(
        "ssl.key.password", ConfigType.PASSWORD, None, Importance.LOW, OneOf(("x",))
    )
    with pytest.raises(ConfigError) as refused:
        parse_value(definition, "hunter2")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [  # as printed by Java's Double.toString
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00123, "0.00123"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"),
        (-1.5e10, "-1.5E10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
    ],
)
def test_double_is_written_as_java_does(value, text):
    assert format_value(ConfigType.DOUBLE, value) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (ConfigType.BOOLEAN, True, "true"),
        (ConfigType.LIST, ("a", "b"), "a,b"),
        (ConfigType.LIST, (), ""),
        (ConfigType.LONG, 5, "5"),
        (ConfigType.STRING, None, None),
    ],
)
def test_value_is_written_as_kafka_does(kind, value, text):
    assert format_value(kind, value) == text
