"""Loggers under Kafka's names for levels."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.broker.dynamic_config.loggers import change_levels, logger_levels
from odradek.common.errors import KafkaError
from odradek.config.alterations import AlterOperation, ConfigAlteration

NAME = "odradek.test_loggers.child"
SET, DELETE = AlterOperation.SET, AlterOperation.DELETE


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    root_level = logging.root.level
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)
    logging.root.setLevel(root_level)


def change(name: str, operation: int, level: str | None = None) -> None:
    change_levels([ConfigAlteration(name, operation, level)])


@pytest.mark.parametrize(
    ("number", "level"),
    [
        (50, "FATAL"),
        (49, "ERROR"),
        (40, "ERROR"),
        (30, "WARN"),
        (25, "INFO"),
        (20, "INFO"),
        (10, "DEBUG"),
        (9, "TRACE"),
        (1, "TRACE"),
    ],
)
def test_level_has_kafkas_name(logger: logging.Logger, number: int, level: str) -> None:
    logger.setLevel(number)
    assert logger_levels()[NAME] == level


def test_logger_without_a_level_is_reported_with_the_level_above_it(logger: logging.Logger) -> None:
    change("root", SET, "FATAL")
    assert logger_levels()[NAME] == logger_levels()["root"] == "FATAL"
    change("odradek.test_loggers", SET, "DEBUG")
    assert logger_levels()[NAME] == "DEBUG"
    assert logger.isEnabledFor(logging.DEBUG)
    change("odradek.test_loggers", DELETE)
    assert logger_levels()[NAME] == "FATAL"
    assert not logger.isEnabledFor(logging.ERROR)


def test_other_peoples_loggers_are_not_ours() -> None:
    logging.getLogger("odradekish.thing")
    logging.getLogger("asyncio")
    names = logger_levels().keys()
    assert names >= {"root", "odradek", NAME}
    assert not names & {"odradekish.thing", "asyncio"}


def test_changing_a_logger_that_is_not_there_makes_none() -> None:
    with pytest.raises(KafkaError):
        change("odradek.no.such", SET, "INFO")
    assert "odradek.no.such" not in logger_levels()
