"""Which names a topic may have (Kafka's Topic class)."""

from __future__ import annotations

from typing import Final

from ...common.errors import ErrorCode, KafkaError

TOPIC_NAME_CHARACTERS_MAX = 249
"""A partition's folder is the name, '-' and a number, and must stay below 255 characters."""

LEGAL_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

CLUSTER_METADATA: Final = "__cluster_metadata"
"""KRaft's log of metadata; nobody may make a topic of that name."""


def topic_name_problem(name: str) -> str | None:
    """What is wrong with a topic's name, None when nothing is."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return f"{name!r} names a folder"
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return f"it has {len(name)} characters, more than {TOPIC_NAME_CHARACTERS_MAX}"
    if not LEGAL_CHARACTERS.issuperset(name):
        return f"{name!r} has other characters than ASCII letters, digits, '.', '_' and '-'"
    return None


def validate_topic_name(name: str) -> None:
    """Accept a topic's name.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION, with what is wrong.
    """
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Invalid topic name: {problem}.")


def collision_key(name: str) -> str:
    """Equal for names that differ only in '.' and '_': their metrics would be the same."""
    return name.replace(".", "_")
