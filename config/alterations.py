"""How AlterConfigs and IncrementalAlterConfigs change a resource's settings; nothing is written.

After Kafka's `ConfigAdminManager` (brokers) and `ConfigurationControlManager` (the others).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ..common.errors import ErrorCode, KafkaError
from .definition import ConfigType, Definition, shorten
from .values import format_value


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
    """Refuse what makes no sense whatever the resource.

    Raises:
        KafkaError: INVALID_REQUEST for a setting named twice or without the value it needs,
            and for an operation that there is not.
    """
    seen: set[str] = set()
    for name, operation, value in alterations:
        if name in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        seen.add(name)
        if operation not in OPERATIONS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
        if value is None and operation != AlterOperation.DELETE:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {shorten(name)}"
            )


def alter_config(
    current: Mapping[str, str],
    alterations: Sequence[ConfigAlteration],
    definitions: Mapping[str, Definition],
    *,
    of_broker: bool = False,
) -> dict[str, str]:
    """A resource's own settings after the alterations, which nobody has validated yet.

    Args:
        current: its own settings so far.
        definitions: which settings are lists, and what they are by default. As in Kafka, a
            list that the resource does not set itself is changed from its default.
        of_broker: whether the resource is a broker, for which Kafka has other error texts.

    Raises:
        KafkaError: INVALID_CONFIG, for an APPEND or SUBTRACT to what is no list.
    """
    altered = dict(current)
    for name, operation, value in alterations:
        if operation == AlterOperation.DELETE:
            altered.pop(name, None)
        elif operation == AlterOperation.SET:
            altered[name] = value or ""
        else:
            definition = definitions.get(name)
            if definition is None or definition.type is not ConfigType.LIST:
                raise _not_a_list(name, AlterOperation(operation).name, of_broker)
            altered[name] = _alter_list(definition, operation, value or "", current.get(name))
    return altered


def _not_a_list(name: str, operation: str, of_broker: bool) -> KafkaError:
    key = shorten(name)
    text = f"Can't {operation} to key {key} because its type is not LIST."
    if of_broker:
        text = f"Config value {operation.lower()} is not allowed for config key: {key}"
    return KafkaError(ErrorCode.INVALID_CONFIG, text)


def _alter_list(definition: Definition, operation: int, value: str, text: str | None) -> str:
    if text is None:
        text = format_value(definition.type, definition.default) or ""
    items = [item for item in text.split(",") if item]
    for item in _split(value):
        if operation == AlterOperation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)


def _split(value: str) -> list[str]:
    """The items of a list as Java splits a text: empty ones at its end are none."""
    items = value.rstrip(",").split(",")
    return [] if value and items == [""] else items
