"""How AlterConfigs and IncrementalAlterConfigs change a topic's overrides; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ...protocol.errors import ErrorCode, KafkaError
from ..config.broker_config import BrokerConfig
from ..config.definition import ConfigType
from ..config.topic_configs import topic_values, validate_topic_config
from ..config.topic_table import TOPIC_DEFINITIONS


class AlterOperation(IntEnum):
    """What is done to one setting, by its number in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


OPERATIONS = frozenset(AlterOperation)


class ConfigAlteration(NamedTuple):
    """One setting's change. Only DELETE goes without a value.

    `operation` is the number of an `AlterOperation`, or what else a client sent.
    """

    name: str
    operation: int
    value: str | None = None


def check_alterations(alterations: Sequence[ConfigAlteration]) -> None:
    """Refuse what makes no sense whatever the topic.

    Raises:
        KafkaError: INVALID_REQUEST for a setting named twice or without the value it needs,
            and for an operation that there is not.
    """
    seen: set[str] = set()
    for name, operation, value in alterations:
        if name in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The setting {name} is changed twice.")
        seen.add(name)
        if operation not in OPERATIONS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no operation {operation}.")
        if value is None and operation != AlterOperation.DELETE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The setting {name} is given no value.")


def alter_config(
    current: Mapping[str, str], alterations: Sequence[ConfigAlteration], config: BrokerConfig
) -> dict[str, str]:
    """A topic's overrides after the alterations.

    Args:
        current: the overrides so far.
        config: the broker's, for the values of what is not overridden.

    Raises:
        KafkaError: INVALID_CONFIG, for an unknown setting, a bad value, or an APPEND or
            SUBTRACT to what is no list.
    """
    altered = dict(current)
    for name, operation, value in alterations:
        if operation == AlterOperation.DELETE:
            altered.pop(name, None)
        elif operation == AlterOperation.SET:
            altered[name] = value or ""
        else:
            altered[name] = _alter_list(name, operation, value or "", altered, config)
    validate_topic_config(altered, config)
    return altered


def _alter_list(
    name: str,
    operation: int,
    value: str,
    current: Mapping[str, str],
    config: BrokerConfig,
) -> str:
    definition = TOPIC_DEFINITIONS.get(name)
    if definition is None or definition.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"{AlterOperation(operation).name} needs a list, and the topic setting {name} is none.",
        )
    # What is not overridden is changed from the value that is in force.
    items = [str(item) for item in topic_values(config, current)[name]]
    for item in value.split(","):
        if operation == AlterOperation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)
