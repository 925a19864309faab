"""Which topics and partitions are read: `subscribe`, `subscribePattern` or `assign`."""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import SparkConnectorError
from .option_values import Options, json_object_of, partition_number

STRATEGIES = ("subscribe", "subscribePattern", "assign")


class TopicSelection(NamedTuple):
    """What one of the three options says; the other two are None."""

    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    partitions: tuple[tuple[str, int], ...] | None = None

    @property
    def option(self) -> str:
        """The name of the option that was given."""
        if self.topics is not None:
            return "subscribe"
        return "assign" if self.partitions is not None else "subscribePattern"

    def covers(self, topic: str, partition: int) -> bool:
        """Whether a partition is to be read."""
        if self.topics is not None:
            return topic in self.topics
        if self.partitions is not None:
            return (topic, partition) in self.partitions
        return self.pattern is None or re.fullmatch(self.pattern, topic) is not None


EVERY_TOPIC = TopicSelection(pattern=".*")


def selection_of(options: Options, default: TopicSelection | None = None) -> TopicSelection:
    """The selection that the options make.

    Args:
        options: of the source.
        default: where none of the three is given; without it, one has to be.

    Raises:
        SparkConnectorError: not exactly one is given, or it selects nothing.
    """
    given = [name for name in STRATEGIES if options.get(name) is not None]
    if not given and default is not None:
        return default
    if len(given) != 1:
        one = "one" if not given else "only one"
        raise SparkConnectorError(
            f"{one} of the options 'subscribe', 'subscribePattern' and 'assign' must be given"
        )
    text = options[given[0]]
    if given[0] == "subscribe":
        return _subscribed(text)
    return _assigned(text) if given[0] == "assign" else _matching(text)


def _subscribed(text: str) -> TopicSelection:
    topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not topics:
        raise SparkConnectorError(f"option 'subscribe' names no topic: {text!r}")
    return TopicSelection(topics=topics)


def _matching(text: str) -> TopicSelection:
    pattern = text.strip()
    if not pattern:
        raise SparkConnectorError("option 'subscribePattern' is empty")
    try:
        re.compile(pattern)
    except re.error as error:
        raise SparkConnectorError(
            f"option 'subscribePattern' is no regular expression: {error}"
        ) from None
    return TopicSelection(pattern=pattern)


def _assigned(text: str) -> TopicSelection:
    chosen: dict[tuple[str, int], None] = {}
    for topic, partitions in json_object_of("assign", text).items():
        if not isinstance(partitions, list):
            raise SparkConnectorError(
                f"option 'assign' must give each topic a list of partitions, as in"
                f' {{"{topic}": [0, 1]}}'
            )
        for partition in partitions:
            chosen[topic, partition_number("assign", topic, partition)] = None
    if not chosen:
        raise SparkConnectorError(f"option 'assign' names no partition: {text!r}")
    return TopicSelection(partitions=tuple(chosen))
