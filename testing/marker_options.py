"""What `@pytest.mark.kafka(...)`, the command line and the ini file say of a test's brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pytest

CLUSTER_BROKERS = 3
BROKERS_MAX = 16
"""Of one cluster; each is a process."""


class MarkerError(Exception):
    """A marker or a setting says what cannot be; the text is for whoever wrote it."""


class Options(NamedTuple):
    """What the brokers of a test are like.

    Attributes:
        settings: by Kafka's names.
        brokers: how many `kafka_cluster` has.
        tls: whether clients speak TLS with them.
        partitions: how many `kafka_topic` has.
    """

    settings: dict[str, str]
    brokers: int = CLUSTER_BROKERS
    tls: bool = False
    partitions: int = 1


def options_of(markers: Iterable[pytest.Mark], lines: Iterable[str]) -> Options:
    """Put together what holds for a test.

    Args:
        markers: those of name `kafka`, the test's own first, then its class's and its module's;
            the nearer stands before the farther, option by option and setting by setting.
        lines: KEY=VALUE of the ini file and the command line; a later one stands before an earlier.

    Raises:
        MarkerError: one of them cannot be understood.
    """
    options = Options(_settings_of_lines(lines))
    for marker in reversed(list(markers)):
        if marker.args:
            raise MarkerError(
                f"@pytest.mark.kafka takes its options by name, such as brokers=3, not "
                f"{marker.args[0]!r}"
            )
        for name, value in marker.kwargs.items():
            options = _with(options, name, value)
    return options


def _with(options: Options, name: str, value: Any) -> Options:
    if name == "config":
        return options._replace(settings=options.settings | _settings_of_mapping(value))
    if name == "tls":
        if not isinstance(value, bool):
            raise MarkerError(f"@pytest.mark.kafka(tls={value!r}): tls is True or False")
        return options._replace(tls=value)
    if name == "brokers":
        return options._replace(brokers=_number(name, value, BROKERS_MAX))
    if name == "partitions":
        return options._replace(partitions=_number(name, value, None))
    raise MarkerError(
        f"@pytest.mark.kafka has no option {name}: it has brokers, tls, partitions and config, "
        "which holds the broker's settings"
    )


def _number(name: str, value: Any, most: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise MarkerError(f"@pytest.mark.kafka({name}={value!r}): {name} is a number from 1 on")
    if most is not None and value > most:
        raise MarkerError(f"@pytest.mark.kafka({name}={value}): {name} is at most {most}")
    return value


def _settings_of_mapping(config: Any) -> dict[str, str]:
    if not isinstance(config, Mapping):
        raise MarkerError(
            f"@pytest.mark.kafka(config={config!r}): config is a dictionary of Kafka's settings, "
            'such as {"num.partitions": "4"}'
        )
    return {str(key): _text(value) for key, value in config.items()}


def _text(value: Any) -> str:
    """A value as a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings_of_lines(lines: Iterable[str]) -> dict[str, str]:
    settings = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise MarkerError(f"kafka setting {line!r}: write it as KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings
