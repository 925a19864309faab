"""A consumer's settings: Kafka's names and defaults, in Python's spelling."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...common.sentinels import (
    EARLIEST_TIMESTAMP,
    ISOLATION_LEVELS,
    LATEST_TIMESTAMP,
    READ_UNCOMMITTED,
)
from .group.assignors import ASSIGNORS

CLASSIC, CONSUMER = "classic", "consumer"
GROUP_PROTOCOLS = (CLASSIC, CONSUMER)

BY_DURATION = re.compile(
    r"by_duration:P(?!$)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


class ConsumerSettings(NamedTuple):
    """How a consumer reads and keeps its place; times are milliseconds, sizes bytes.

    Each is Kafka's setting of that name with dots.
    """

    group_protocol: str = CONSUMER
    """"consumer": groups of KIP-848; "classic": those that clients assign themselves."""
    group_instance_id: str | None = None
    """Makes it a static member: a restart within the session's timeout moves nothing (KIP-345)."""
    auto_offset_reset: str = "latest"
    """Where to begin without a committed offset, or beyond what is there: "earliest", "latest",
    "by_duration:PT1H" (KIP-1106), or "none": an error."""
    enable_auto_commit: bool = True
    """Commit what the caller is done with: every interval, before partitions go, at the end."""
    auto_commit_interval_ms: int = 5_000
    isolation_level: int = READ_UNCOMMITTED
    max_poll_interval_ms: int = 300_000
    """Who does not poll for so long leaves the group (KIP-62)."""
    session_timeout_ms: int = 45_000
    """A member of a classic group that is silent for so long is removed."""
    heartbeat_interval_ms: int = 3_000
    """Of a classic group; in others the broker says how often."""
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    """The assignors of a classic group, the preferred first."""
    group_remote_assignor: str | None = None
    """The broker's assignor, "uniform" or "range"; None: the broker chooses."""
    client_rack: str = ""
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    exclude_internal_topics: bool = True
    """Whether a pattern leaves Kafka's own topics out."""


def check_consumer_settings(settings: ConsumerSettings) -> ConsumerSettings:
    """The settings, if they make sense.

    Raises:
        ValueError: one is out of its range, or two contradict; the message names them.
    """
    for name in _TIMES_AND_SIZES:
        value = getattr(settings, name)
        least = 1 if name in _AT_LEAST_ONE else 0
        if value < least:
            raise ValueError(f"{name}={value} is not possible: {least} is the least")
    if settings.group_protocol not in GROUP_PROTOCOLS:
        raise ValueError(
            f"group_protocol={settings.group_protocol!r} is neither "
            + " nor ".join(map(repr, GROUP_PROTOCOLS))
        )
    if settings.isolation_level not in ISOLATION_LEVELS:
        raise ValueError(f"isolation_level={settings.isolation_level} is neither 0 nor 1")
    reset_timestamp(settings.auto_offset_reset, 0)
    if not settings.partition_assignment_strategy:
        raise ValueError("partition_assignment_strategy names no assignor")
    for name in settings.partition_assignment_strategy:
        if name not in ASSIGNORS:
            raise ValueError(
                f"partition_assignment_strategy: {name!r} is none of {', '.join(ASSIGNORS)}"
            )
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise ValueError(
            f"heartbeat_interval_ms={settings.heartbeat_interval_ms} must be less than "
            f"session_timeout_ms={settings.session_timeout_ms}"
        )
    return settings


def reset_timestamp(auto_offset_reset: str, now_ms: int) -> int | None:
    """What `auto.offset.reset` comes to, as a timestamp for ListOffsets; None for "none".

    Args:
        auto_offset_reset: as in `ConsumerSettings`.
        now_ms: milliseconds since the epoch, from which a duration is subtracted.

    Raises:
        ValueError: it is none of the four.
    """
    if auto_offset_reset == "earliest":
        return EARLIEST_TIMESTAMP
    if auto_offset_reset == "latest":
        return LATEST_TIMESTAMP
    if auto_offset_reset == "none":
        return None
    found = BY_DURATION.fullmatch(auto_offset_reset)
    if found is None:
        raise ValueError(
            f"auto_offset_reset={auto_offset_reset!r} is none of 'earliest', 'latest', 'none' and "
            "'by_duration:' with a duration such as PT1H30M"
        )
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + float(found[4] or 0)
    return max(now_ms - round(seconds * 1000), 0)


_TIMES_AND_SIZES = tuple(
    name for name, value in ConsumerSettings._field_defaults.items() if type(value) is int
)
_AT_LEAST_ONE = {
    "auto_commit_interval_ms",
    "fetch_max_bytes",
    "heartbeat_interval_ms",
    "max_partition_fetch_bytes",
    "max_poll_interval_ms",
    "session_timeout_ms",
}
