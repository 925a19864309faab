"""What others' text may do to a log and to a terminal: nothing."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from odradek.common.escaping import SHOWN_CHARACTERS_MAX, escaped, escaped_json, shown
from odradek.common.log_lines import LogLineFormatter

HOSTILE = {
    "line feed": "a\nb",
    "carriage return": "a\rb",
    "escape sequence": "\x1b[2J",
    "8-bit control sequence": "\x9b2J",
    "backspace": "a\b",
    "NUL": "\0",
    "delete": "\x7f",
    "next line": "\x85",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "right-to-left override": "\u202etxt.exe",
    "isolate": "\u2066",
    "zero width space": "\u200b",
    "byte order mark": "\ufeff",
    "tag": "\U000e0041",
    "lone surrogate": "\ud800",
}
every_hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


@every_hostile
def test_what_is_not_printable_is_escaped_and_can_be_read_back(text: str) -> None:
    shown = escaped(text)
    assert shown.isprintable()
    assert shown.encode("latin-1").decode("unicode_escape") == text


@every_hostile
def test_json_means_the_same(text: str) -> None:
    shown = escaped_json(json.dumps({text: text}, ensure_ascii=False))
    assert shown.isprintable()
    assert json.loads(shown) == {text: text}


@pytest.mark.parametrize("text", ["", "orders-0", "Größe 漢字 🦡", r"C:\new"])
def test_what_is_printable_stays(text: str) -> None:
    assert escaped(text) == text
    assert escaped_json(text) == text


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, Callable[[], str]]]:
    """A logger as the broker sets it up, and what it wrote."""
    logger = logging.Logger("odradek.tests")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLineFormatter())
    logger.addHandler(handler)
    return logger, stream.getvalue


@every_hostile
def test_an_event_is_one_line_of_the_log(text, log) -> None:
    logger, written = log
    logger.warning("closing the connection from %s: %s", "127.0.0.1:1", text)
    assert written().endswith(f"closing the connection from 127.0.0.1:1: {escaped(text)}\n")
    assert written()[:-1].isprintable()


def test_a_traceback_begins_no_line_of_the_log(log) -> None:
    logger, written = log
    forged = "2026-01-01 00:00:00,000 INFO odradek: all is well\x1b[2J"
    try:
        raise ValueError(f"no such group: x\n{forged}")
    except ValueError:
        logger.exception("the handler of %s failed", "x\ny")
    head, *others = written().removesuffix("\n").split("\n")
    assert head.endswith("ERROR odradek.tests: the handler of x\\ny failed")
    assert others[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") and line.isprintable() for line in others)
    assert others[-1].endswith("all is well\\x1b[2J")


def test_a_long_text_loses_its_middle_in_a_line_of_the_log() -> None:
    name = "x" * 32_000
    line = shown(f"Group {name} was refused\n")
    assert line.startswith("Group xxx")
    assert line.endswith("xxx was refused\\n")
    assert f"({32_000 + 19 - SHOWN_CHARACTERS_MAX} characters left out)" in line
    assert len(line) < 1.1 * SHOWN_CHARACTERS_MAX
    assert shown("a" * SHOWN_CHARACTERS_MAX) == "a" * SHOWN_CHARACTERS_MAX
