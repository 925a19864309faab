"""Durations and partitions as people write and read them."""

from __future__ import annotations

import pytest

from odradek.cli.common.errors import CommandError
from odradek.cli.common.times import format_duration, parse_duration_ms
from odradek.cli.topics.partition_names import (
    format_partitions,
    parse_one_partition,
    parse_partitions,
)

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H30M", 90 * MINUTE),
        ("P7D", 7 * DAY),
        ("P1DT2H3M4.5S", DAY + 2 * HOUR + 3 * MINUTE + 4500),
        ("pt15m", 15 * MINUTE),
        ("PT0.001S", 1),
        ("90s", 90 * SECOND),
        ("15m", 15 * MINUTE),
        ("250ms", 250),
        ("2d", 2 * DAY),
    ],
)
def test_durations_are_read_as_java_and_as_people_write_them(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1", "1H", "PT1D", "P1M", "-PT1H", "1.5h", "soon"]
)
def test_what_is_no_duration_is_reported(text: str) -> None:
    with pytest.raises(CommandError, match="is no duration; write one such as"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (61 * SECOND, "1 min 1 s"),
        (2 * HOUR + 5 * MINUTE + 59 * SECOND, "2 h 5 min"),
        (3 * DAY, "3 d"),
    ],
)
def test_durations_are_shown_in_their_largest_units(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


def test_partitions_are_named_with_their_topic() -> None:
    assert parse_partitions("events") == ("events", None)
    assert parse_partitions("events:0,2") == ("events", [0, 2])
    assert parse_one_partition("events:3") == ("events", 3)
    for text in (":1", "events:", "events:a", "events:1,", "events:-1"):
        with pytest.raises(CommandError, match="write TOPIC:NUMBER"):
            parse_partitions(text)
    for text in ("events", "events:0,1"):
        with pytest.raises(CommandError, match="is not one partition"):
            parse_one_partition(text)


def test_many_partitions_are_shown_as_ranges() -> None:
    partitions = [("b", 7), ("a", 5), *(("a", index) for index in (0, 1, 2, 3)), ("b", 8)]
    assert format_partitions(partitions) == "a:0-3,5 b:7,8"
    assert format_partitions([]) == ""
