"""Filters that Spark 4.1 and later push down: what they leave of partitions and offsets.

Filters are known by their classes' names, so that this works, and is tested, with a Spark that
has none. One on topic, partition or offset is carried out here to the letter. One on the
timestamp only says where to begin, since a later record may be of an earlier time, and Spark
looks at each row again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from ...common.sentinels import INT64_MAX
from ..option_values import Options, boolean_of

OPTION = "pushFilters"
SETTING = "spark.sql.python.filterPushdown.enabled"

Test = Callable[[Any], bool]

_TESTS: dict[str, Callable[[Any], Test]] = {
    "EqualTo": lambda operand: lambda value: bool(value == operand),
    "EqualNullSafe": lambda operand: lambda value: bool(value == operand),
    "GreaterThan": lambda operand: lambda value: bool(value > operand),
    "GreaterThanOrEqual": lambda operand: lambda value: bool(value >= operand),
    "LessThan": lambda operand: lambda value: bool(value < operand),
    "LessThanOrEqual": lambda operand: lambda value: bool(value <= operand),
    "In": lambda operand: lambda value: value in operand,
    "StringStartsWith": lambda operand: lambda value: bool(value.startswith(operand)),
    "StringEndsWith": lambda operand: lambda value: bool(value.endswith(operand)),
    "StringContains": lambda operand: lambda value: operand in value,
}


def pushes_filters(options: Options) -> bool:
    """Whether a reader is to take filters; then it warns of what Spark makes of them.

    Spark (seen in 4.3.0) keeps what a Python source has planned with the filters of one query, and
    answers the next query on the same DataFrame from it, whatever that one's filters are. And it
    refuses any reader that can take filters while its own setting is off, as it is by default.

    Raises:
        SparkConnectorError: the option is neither true nor false.
    """
    is_requested = boolean_of(options, OPTION, False)
    if is_requested:
        warnings.warn(
            f"option {OPTION!r}: use each DataFrame for one query only; Spark answers later queries"
            " on it with the rows that the filters of an earlier one have left",
            stacklevel=2,
        )
    return is_requested


class PushedFilters:
    """The filters that a query has, taken one by one."""

    def __init__(self) -> None:
        self._topic_tests: list[Test] = []
        self._partition_tests: list[Test] = []
        self.first_offset = 0
        """Records before it are left out."""
        self.until_offset = INT64_MAX
        """Nor one from it on."""
        self.timestamp_ms: int | None = None
        """Nor one earlier than that, if it is not None."""

    def take(self, filters: Iterable[Any]) -> list[Any]:
        """Take what can be carried out; gives those that Spark has to apply itself."""
        return [each for each in filters if not self._take(each)]

    def covers(self, topic: str, partition: int) -> bool:
        """Whether a partition may hold matching records."""
        return all(test(topic) for test in self._topic_tests) and all(
            test(partition) for test in self._partition_tests
        )

    def _take(self, pushed: Any) -> bool:
        kind = type(pushed).__name__
        column = getattr(pushed, "attribute", None)
        value = getattr(pushed, "value", None)
        if column in (("topic",), ("partition",)):
            if kind == "IsNotNull":
                return True
            make = _TESTS.get(kind)
            if make is None or value is None:
                return False
            tests = self._topic_tests if column == ("topic",) else self._partition_tests
            tests.append(make(value))
            return True
        if column == ("offset",):
            return kind == "IsNotNull" or self._take_offset(kind, value)
        if column == ("timestamp",):
            self._take_timestamp(kind, value)
        return False

    def _take_offset(self, kind: str, value: Any) -> bool:
        if not isinstance(value, int):
            return False
        bounds = {
            "EqualTo": (value, value + 1),
            "EqualNullSafe": (value, value + 1),
            "GreaterThan": (value + 1, INT64_MAX),
            "GreaterThanOrEqual": (value, INT64_MAX),
            "LessThan": (0, value),
            "LessThanOrEqual": (0, value + 1),
        }.get(kind)
        if bounds is None:
            return False
        self.first_offset = max(self.first_offset, bounds[0])
        self.until_offset = min(self.until_offset, bounds[1])
        return True

    def _take_timestamp(self, kind: str, value: Any) -> None:
        is_lower = kind in ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual")
        # Without a time zone it is not known which moment is meant.
        if is_lower and isinstance(value, datetime) and value.tzinfo is not None:
            timestamp_ms = int(value.timestamp() * 1000)
            self.timestamp_ms = max(self.timestamp_ms or 0, timestamp_ms)
