"""This process's loggers as Kafka's BROKER_LOGGER resource: listed, described, and set to levels.

`root` is above all, the others are `odradek`, what is below it, and the audit log. Levels have
log4j's names. They are not kept: a broker that starts anew logs as it did at first (KIP-412).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...common.log_lines import LEVELS
from ...config.alterations import AlterOperation, ConfigAlteration
from ...config.definition import shorten

ROOT_LOGGER = "root"
OURS = "odradek"
AUDIT_LOGGER = "kafka.authorizer.logger"
"""As Kafka's; who is refused what."""


def logger_levels() -> dict[str, str]:
    """Every logger with the level that holds for it, by name."""
    names = [name for name in logging.root.manager.loggerDict if _is_ours(name)]
    return {
        ROOT_LOGGER: _level_name(logging.root.getEffectiveLevel()),
        **{name: _level_name(_logger(name).getEffectiveLevel()) for name in sorted(names)},
    }


def _is_ours(name: str) -> bool:
    return name in (OURS, AUDIT_LOGGER) or name.startswith(f"{OURS}.")


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT_LOGGER else logging.getLogger(name)


def _level_name(level: int) -> str:
    """The name of a level; one between two of them is as silent as the lower."""
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")


def change_levels(changes: Sequence[ConfigAlteration], *, validate_only: bool = False) -> None:
    """Set loggers to levels; DELETE lets one follow the logger above it.

    Args:
        changes: all are made, or none.
        validate_only: find out what would be refused, and change nothing.

    Raises:
        KafkaError: INVALID_CONFIG for a logger or a level that there is not, INVALID_REQUEST
            for an operation that makes no sense.
    """
    known = logger_levels()
    for name, operation, level in changes:
        if operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{AlterOperation(operation).name} operation is not allowed for the BROKER_LOGGER "
                "resource",
            )
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {shorten(name)} does not exist!")
        if operation == AlterOperation.DELETE:
            if name == ROOT_LOGGER:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "Removing the log level of the root logger is not allowed",
                )
        elif level not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {shorten(name)} to {shorten(str(level))} as it is "
                f"not a supported log level. Valid log levels are {', '.join(LEVELS)}",
            )
    if validate_only:
        return
    for name, operation, level in changes:
        if operation == AlterOperation.DELETE or level is None:
            _logger(name).setLevel(logging.NOTSET)
        else:
            _logger(name).setLevel(LEVELS[level])
