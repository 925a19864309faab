"""Which names a topic may have (Kafka's Topic class)."""

from __future__ import annotations

from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...config.definition import shorten

TOPIC_NAME_CHARACTERS_MAX = 249
"""A partition's folder is the name, '-' and a number, and must stay below 255 characters."""

FOLDER_CHARACTERS_MAX = 255
PARTITION_INDEX_MAX = 99_999
"""Up to this number a partition's folder is never too long."""

LEGAL_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

CLUSTER_METADATA: Final = "__cluster_metadata"
"""KRaft's log of metadata; nobody may make a topic of that name."""


def shown_name(name: str) -> str:
    """A topic's name as the errors of its partitions repeat it: none that there is, is longer."""
    if len(name) <= TOPIC_NAME_CHARACTERS_MAX:
        return name
    return f"{name[:TOPIC_NAME_CHARACTERS_MAX]}..."


def topic_name_problem(name: str) -> str | None:
    """What is wrong with a topic's name, None when nothing is."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return (
            f"the length of '{shorten(name)}' is longer than the max allowed length "
            f"{TOPIC_NAME_CHARACTERS_MAX}"
        )
    if not LEGAL_CHARACTERS.issuperset(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return None


def validate_topic_name(name: str) -> None:
    """Accept a topic's name.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION, with what is wrong.
    """
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def validate_partition(topic: str, partition: int) -> None:
    """Accept a partition that somebody else names.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION or INVALID_PARTITIONS, with what is wrong.
    """
    validate_topic_name(topic)
    validate_partition_index(topic, partition)


def validate_partition_index(topic: str, partition: int) -> None:
    """The same where the topic's name is legal.

    Raises:
        KafkaError: INVALID_PARTITIONS: it is negative, or no file system takes its folder's name.
    """
    if partition < 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, f"Partition {partition} of topic {topic!r} is negative."
        )
    if partition > PARTITION_INDEX_MAX and len(f"{topic}-{partition}") > FOLDER_CHARACTERS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The folder {topic}-{partition} would have more than {FOLDER_CHARACTERS_MAX} "
            "characters.",
        )


def collision_key(name: str) -> str:
    """Equal for names that differ only in '.' and '_': their metrics would be the same."""
    return name.replace(".", "_")
