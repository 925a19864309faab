"""The log's lines: bounded for each class of events, and as JSON whatever is in them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from datetime import datetime

import pytest

from odradek.common.log_lines import (
    BROKER_ID,
    INTERVAL_S,
    LINES_MAX,
    JsonLineFormatter,
    LimitedLogHandler,
    one_class,
)

HOSTILE = 'a"b\\c\n{"level":"forged"}\r\x1b[2J\x9b\u202e\ud800\x00 Größe'


class Log:
    """A logger with the handler of a broker, and what it wrote."""

    def __init__(self, name: str = "odradek.tests") -> None:
        self.logger = logging.Logger(name)
        self.stream = io.StringIO()
        self.handler = LimitedLogHandler(self.stream)
        self.logger.addHandler(self.handler)
        self.now_s = 1_700_000_000.0
        self.logger.addFilter(self._stamp)

    def _stamp(self, record: logging.LogRecord) -> bool:
        record.created = self.now_s
        return True

    def take(self) -> list[str]:
        """The lines since this was called last."""
        lines = self.stream.getvalue().splitlines()
        self.stream.seek(0)
        self.stream.truncate()
        return lines


@pytest.fixture
def log() -> Log:
    return Log()


def fail(log: Log, peer: int, **more: object) -> None:
    """One statement of a program."""
    log.logger.warning("closing the connection from %s", peer, **more)  # type: ignore[arg-type]  # extra


def test_a_statement_writes_so_many_lines_a_minute_then_a_count(log: Log) -> None:
    for peer in range(5000):
        fail(log, peer)
    assert log.take() == [f"closing the connection from {peer}" for peer in range(LINES_MAX)]
    log.handler.end_intervals(log.now_s + INTERVAL_S - 1)
    assert log.take() == []
    log.handler.end_intervals(log.now_s + INTERVAL_S)
    (line,) = log.take()
    assert line.startswith(f"{5000 - LINES_MAX} more like this followed: closing the connection")
    log.handler.end_intervals(log.now_s + 2 * INTERVAL_S)
    assert log.take() == []


def test_the_next_minute_begins_with_the_count_of_the_last(log: Log) -> None:
    for peer in range(LINES_MAX + 2):
        fail(log, peer)
    log.take()
    log.now_s += INTERVAL_S
    fail(log, 99)
    count, line = log.take()
    assert count.startswith("2 more like this")
    assert line == "closing the connection from 99"


def test_a_named_class_has_one_line_whatever_statement_it_comes_from(log: Log) -> None:
    for number in range(3):
        fail(log, number, extra=one_class("full", "/disk-1"))
        log.logger.error("elsewhere", extra=one_class("full", "/disk-1"))
        fail(log, number, extra=one_class("full", "/disk-2"))
    assert log.take() == ["closing the connection from 0", "closing the connection from 0"]
    log.handler.close()
    assert sorted(line.split()[0] for line in log.take()) == ["2", "5"]


def test_another_statement_and_another_exception_are_other_classes(log: Log) -> None:
    def raised(error: Exception) -> None:
        try:
            raise error
        except Exception:
            log.logger.exception("failed")

    for _ in range(LINES_MAX + 1):
        fail(log, 1)
        raised(ValueError())
        raised(KeyError())
    lines = log.take()
    for text in ("closing the connection from 1", "ValueError", "KeyError: "):
        assert sum(line.startswith(text.rstrip(": ")) for line in lines) == LINES_MAX


def test_who_has_the_small_events_written_gets_all_of_them(log: Log) -> None:
    for _ in range(5000):
        log.logger.info("moved")
    assert len(log.take()) == 5000


def test_the_audit_log_is_whole() -> None:
    log = Log("kafka.authorizer.logger")
    for _ in range(5000):
        log.logger.warning("refused")
    assert len(log.take()) == 5000


def test_a_clock_that_is_set_back_does_not_silence_the_log(log: Log) -> None:
    for _ in range(LINES_MAX + 1):
        fail(log, 1)
    log.now_s -= 10 * INTERVAL_S
    log.take()
    fail(log, 2)
    assert log.take()[-1] == "closing the connection from 2"


@pytest.fixture
def json_log(log: Log) -> Callable[[], list[dict[str, object]]]:
    log.handler.setFormatter(JsonLineFormatter())
    return lambda: [json.loads(line) for line in log.take()]


def test_json_has_one_object_on_each_line(log: Log, json_log) -> None:
    log.now_s = 1_700_000_000.25
    log.logger.warning("%s said: %s", "peer", HOSTILE)
    written = log.stream.getvalue()
    assert written.isascii()
    assert written.count("\n") == 1
    assert written[:-1].isprintable()
    (event,) = json_log()
    message = event.pop("message")
    assert isinstance(message, str)
    assert message.startswith('peer said: a"b\\c\\n{"level":"forged"}\\r\\x1b[2J')
    assert message.endswith("\\x00 Größe")
    assert datetime.fromisoformat(str(event.pop("timestamp"))).timestamp() == log.now_s
    assert event == {"level": "WARNING", "logger": "odradek.tests", "broker_id": None}


def test_json_has_the_traceback_and_the_broker(log: Log, json_log) -> None:
    token = BROKER_ID.set(7)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.logger.exception("failed")
    finally:
        BROKER_ID.reset(token)
    (event,) = json_log()
    assert event["broker_id"] == 7
    assert event["level"] == "ERROR"
    exception = str(event["exception"])
    assert exception.startswith("Traceback (most recent call last):\n  File ")
    assert "ValueError: a" in exception
    assert "\x1b" not in exception


def test_a_count_is_its_brokers_and_the_others_lines_are_not_counted(log: Log, json_log) -> None:
    for broker_id in (1, 2):
        token = BROKER_ID.set(broker_id)
        for _ in range(LINES_MAX + broker_id):
            fail(log, 0)
        BROKER_ID.reset(token)
    json_log()
    log.handler.close()
    counts = {event["broker_id"]: str(event["message"]).split()[0] for event in json_log()}
    assert counts == {1: "1", 2: "2"}


def test_a_long_message_loses_its_middle(log: Log, json_log) -> None:
    log.logger.warning("x" * 1_000_000)
    (event,) = json_log()
    assert len(str(event["message"])) < 3_000
    assert "characters left out" in str(event["message"])
