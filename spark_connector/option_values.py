"""Reading options of a data source: each error is one sentence that names the option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import SparkConnectorError

Options = Mapping[str, str]
"""As Spark hands them over; their names are looked up whatever their case."""


def boolean_of(options: Options, name: str, default: bool) -> bool:
    """An option that is true or false.

    Raises:
        SparkConnectorError: it is neither.
    """
    text = options.get(name)
    if text is None:
        return default
    value = {"true": True, "false": False}.get(text.strip().lower())
    if value is None:
        raise SparkConnectorError(f"option {name!r} must be true or false, not {text!r}")
    return value


def integer_of(options: Options, name: str, at_least: int, default: int | None) -> int | None:
    """An option that is a whole number.

    Raises:
        SparkConnectorError: it is none, or smaller than `at_least`.
    """
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError:
        raise SparkConnectorError(f"option {name!r} must be a number, not {text!r}") from None
    if value < at_least:
        allowed = "positive" if at_least == 1 else f"{at_least} or more"
        raise SparkConnectorError(f"option {name!r} must be {allowed}, not {value}")
    return value


def json_object_of(name: str, text: str) -> dict[str, Any]:
    """An option that is an object in JSON.

    Raises:
        SparkConnectorError: it is none.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SparkConnectorError(f"option {name!r} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise SparkConnectorError(f"option {name!r} must be an object in JSON, not {text!r}")
    return value


def partition_number(name: str, topic: str, text: object) -> int:
    """A partition as Spark's JSON names it: a number, which as a key is text.

    Raises:
        SparkConnectorError: it is none.
    """
    number = int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else text
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise SparkConnectorError(f"option {name!r} names {text!r} as a partition of {topic!r}")
    return number


def numbers_by_partition(name: str, text: str) -> dict[tuple[str, int], int]:
    """An option such as `{"topic": {"0": 23, "1": -2}}`.

    Raises:
        SparkConnectorError: it has another form.
    """
    numbers: dict[tuple[str, int], int] = {}
    for topic, partitions in json_object_of(name, text).items():
        if not isinstance(partitions, dict):
            raise SparkConnectorError(
                f"option {name!r} must give each topic its partitions, as in"
                f' {{"{topic}": {{"0": 23}}}}'
            )
        for partition, number in partitions.items():
            if not isinstance(number, int) or isinstance(number, bool):
                raise SparkConnectorError(
                    f"option {name!r} must give partition {partition} of {topic!r} a number,"
                    f" not {number!r}"
                )
            numbers[topic, partition_number(name, topic, partition)] = number
    return numbers
